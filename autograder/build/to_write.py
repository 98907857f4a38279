"""The places of a new exercise that wait for their author: written by `new_exercise`, and told by `build`."""

from collections.abc import Iterator
from pathlib import Path

from ..course import content
from ..course.folder import folder

MARK = "TO WRITE:"


def left_to_write(unit: str) -> list[str]:
    """What is still marked in the unit's files: each with its file and line, in the order of CONTRIBUTING.md."""
    return [f"{path.relative_to(folder())}, line {at}: {what}" for path in _files(unit) for at, what in _marked(path)]


def _files(unit: str) -> Iterator[Path]:
    yield folder() / "exercises" / f"{unit}.py"
    yield folder() / "exercises" / f"{unit}.yaml"
    yield content.place(content.SOLUTIONS) / f"{unit}.py"
    for kind in content.OF_EACH_UNIT:
        yield from sorted(path for path in (content.place(kind) / unit).rglob("*") if path.suffix in (".py", ".yaml"))


def _marked(path: Path) -> Iterator[tuple[int, str]]:
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if MARK in line:
            yield number, line.partition(MARK)[2].strip(' "')
