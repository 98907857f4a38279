"""The released data of units: one packed file for each, in the folder of the student check.

A file holds the format's version, the unit's name, and a section for each of the keys below.
"""

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

FORMAT = 1
"""The version of the data format that the build writes, and the newest that the check reads."""
EXAMPLES, MISTAKES, STEPS = "public_examples", "mistakes_by_example", "right_steps"
LESSON = "guesses_and_hints"
"""Only units with guesses or hints have this section."""
SHOW_REPAIR = "show_repair"
"""True if students may see the change that repairs their code."""
WRITTEN = "written questions"
"""Key among the exercises, of the points of the questions that a person grades."""

_FORMAT, _UNIT = "format", "unit"
"""Keys of the format's version and of the unit's name, which no other JSON file in the folder has."""
_PACKED, _UNPACKED = ".json.gz", ".json"


class UnreadableUnit(ValueError):
    """A unit's data cannot be read; `str()` names the file and says what to do."""


class _OtherFile(UnreadableUnit):
    """The file is not a unit's data."""


def packed_unit(unit: str, sections: Mapping[str, Any]) -> bytes:
    """Return the content of a unit's data file."""
    return data_of({_FORMAT: FORMAT, _UNIT: unit, **sections})


def read_unit(path: Path) -> dict[str, Any]:
    """Return what a unit's data file holds, read again only after it has changed: change nothing in it.

    A browser may have unpacked the file while it fetched it; then `self_attention.json` is read instead of
    `self_attention.json.gz`. Raises OSError if there is neither, and UnreadableUnit.
    """
    if not path.exists() and path.with_suffix("").exists():
        path = path.with_suffix("")
    about = path.stat()
    return _read(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> dict[str, Any]:
    again = "fetch the assignment's files again."
    try:
        content = read_data(path) if path.suffix == ".gz" else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        kind = UnreadableUnit if path.suffix == ".gz" else _OtherFile
        raise kind(f"{path.name} is damaged ({error}): {again}") from None
    if not isinstance(content, dict) or not {_FORMAT, _UNIT} <= content.keys():
        raise _OtherFile(f"{path.name} does not hold a unit's data: {again}")
    version, unit = content[_FORMAT], content[_UNIT]
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise UnreadableUnit(
            f"{path.name} has the data of unit {unit} in format {version}, and the check beside it reads formats up to "
            f"{FORMAT}: {again}"
        )
    return content


@dataclass(frozen=True)
class UnitData:
    """The data of one unit."""

    path: Path
    name: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def exercises(self) -> list[str]:
        """The names of the unit's exercises."""
        return [name for name in self.content[EXAMPLES] if name != WRITTEN]

    @property
    def written(self) -> dict[str, float]:
        """The points of the questions that a person grades, by name."""
        return dict(self.content[EXAMPLES].get(WRITTEN, {}))

    @property
    def shows_repair(self) -> bool:
        """Return whether students may see the change that repairs their code."""
        return self.content.get(SHOW_REPAIR) is True

    def section(self, key: str) -> Mapping[str, Any]:
        """Return a section; empty if the unit has none. Change nothing in it."""
        its: Mapping[str, Any] = self.content.get(key, {})
        return its

    def of(self, key: str, exercise: str, default: Any = None) -> Any:
        """Return a copy of an exercise's entry in a section, because the tried code may write into it."""
        return json.loads(json.dumps(self.section(key).get(exercise, default)))


def units_in(folder: Path) -> tuple[list[UnitData], list[str]]:
    """Return the units whose data files are in a folder, by name, and a sentence for each file that cannot be read.

    If a browser has saved a unit twice, the file with the unit's own name is used.
    """
    found, problems = dict[str, UnitData](), list[str]()
    packed = sorted(folder.glob(f"*{_PACKED}"))
    unpacked = [path for path in sorted(folder.glob(f"*{_UNPACKED}")) if not path.with_name(f"{path.name}.gz").exists()]
    for path in packed + unpacked:
        try:
            content = read_unit(path)
        except _OtherFile:
            continue
        except UnreadableUnit as problem:
            problems.append(str(problem))
            continue
        except OSError as error:
            problems.append(f"{path.name} cannot be read ({error.strerror}).")
            continue
        unit = str(content[_UNIT])
        if unit not in found or path.name.partition(".")[0] == unit:
            found[unit] = UnitData(path, unit, content)
    return [found[unit] for unit in sorted(found)], problems


def data_file(unit: str) -> str:
    """Return the name of a unit's data file."""
    return f"{unit}.json.gz"


def zip_file(check: str) -> str:
    """Return the name of the zip with the modules of the student check. check: the module that notebooks import."""
    return f"{check}.zip"


def read_data(path: Path) -> Any:
    """Return the value in a packed file; raises OSError if it cannot be read, and ValueError if it is damaged."""
    try:
        return json.loads(gzip.decompress(path.read_bytes()))
    except (EOFError, zlib.error) as error:
        raise ValueError(str(error)) from error


def data_of(value: Any) -> bytes:
    """Return the content of a packed file that holds the value."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)
