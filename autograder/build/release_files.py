"""Make what students get with a unit's notebook, in files or in a cell of a single notebook.

The files are the student check, a README, requirements.txt and AGENTS.md. The student check is a short module and a zip
file with the modules that it imports. The single notebook has the check's files in a cell, for courses that can give
students only one file.

The unit's data file has the guesses and hints, which an author writes in `exercises/<unit>.yaml`:

    guesses:
      most_alike:
        answer: 4            # a number, yes or no, a word, or a list of numbers
        because: "What the student reads below `Yes.` and `Not quite.`"
        instead:             # the text below `Not quite.` for one particular other answer
          6: "..."
    hints:
      dot_product_scores:    # three for each exercise
        - "A question ..."
        - "A plan of shapes ..."
        - "The operation to look up ..."
"""

import ast
import base64
import io
import json
import lzma
import re
import tarfile
import textwrap
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import metadata, requires
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import nbformat
from nbformat.v4 import new_code_cell

from .. import output_files
from ..catalogue.known_answers import NotYaml, read_yaml
from ..course.cells import CARRIED
from ..course.settings import Settings, folder
from ..student_check.notebook_functions import matches_answer, required_kind
from ..student_check.unit_data import data_file, zip_file
from .source_notebook import COLUMNS, BuildError, called_in, locked, points_of

README, REQUIREMENTS, ASSISTANTS = "README.md", "requirements.txt", "AGENTS.md"
_ENGINE = "attention-autograder"
_ALWAYS = frozenset({"jupyterlab", "torch"})
"""Packages for every notebook: the student check imports torch."""
_PACKAGE = Path(__file__).parents[1]
_FACADE = _PACKAGE / "student_check" / "facade.py"
_LOADER, _CHECK = _PACKAGE / "student_check" / "loader.py", _PACKAGE / "student_check" / "check.py"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The time stamp of all files in the zip file, so that its bytes depend only on the modules."""
_UNIX, _MODE = 3, 0o644 << 16
_TEMPLATES = Path(__file__).parent / "templates"
SINGLE_FILES = "single_file"
T = TypeVar("T")

HINTS = 3
LONGEST_SENTENCE = 200
"""Most characters in a sentence."""


def facade() -> bytes:
    """Return the content of the module from which notebooks import the student check."""
    return _FACADE.read_bytes()


@cache
def zipped_modules() -> bytes:
    """Return the bytes of a zip file with all modules of the student check.

    The modules are not compressed, so that the bytes do not depend on the version of zlib.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for path in modules():
            about = zipfile.ZipInfo(path.relative_to(_PACKAGE.parent).as_posix(), _DATE)
            about.create_system, about.external_attr = _UNIX, _MODE
            archive.writestr(about, path.read_bytes())
    return content.getvalue()


def modules() -> list[Path]:
    """Return the paths of the student check, its loader, and all modules of the engine that they import."""
    found, left = set[Path](), [_LOADER, _CHECK]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _imported(path)
    return sorted(found, key=lambda path: path.relative_to(_PACKAGE).as_posix())


def _imported(path: Path) -> Iterator[Path]:
    """Yield the paths of the engine's modules that a module imports, and of the packages that contain the module."""
    yield from (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(_PACKAGE))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in node.names:
                yield _module(place / name.name) or _module(place) or _missing(path, node)


def _module(place: Path) -> Path | None:
    candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _missing(path: Path, node: ast.ImportFrom) -> Path:
    raise AssertionError(f"{path}, line {node.lineno}, imports a module that is not in the package.")


def readme(unit: str, notebook: Any, settings: Settings, *, with_lesson: bool) -> str:
    """Return the README for the folder of a unit's files. with_lesson: True if the unit has guesses or hints."""
    found = re.search(r"^# +(.+)$", notebook.cells[0].source if notebook.cells else "", re.M)
    text = (
        (_TEMPLATES / "readme.txt")
        .read_text()
        .format(
            title=found[1].strip() if found else unit,
            notebook=f"{unit}.ipynb",
            python=metadata(_ENGINE)["Requires-Python"].removeprefix(">="),
            check=settings.check,
            zip=zip_file(settings.check),
            data=data_file(unit),
            lesson=", guesses and hints" if with_lesson else "",
            assistants=_ROW if settings.assistants else "",
        )
    )
    how = settings.handing_in.section(f"{unit}.ipynb")
    return f"{text}\n{how}\n" if how else text


_ROW = f"| `{ASSISTANTS}` | asks AI assistants to tutor you, and not to write your answers |\n"


def for_assistants(unit: str, settings: Settings, *, with_lesson: bool) -> str:
    """Return the text of AGENTS.md, which asks AI assistants to tutor. with_lesson: True if the unit has hints."""
    return (
        (_TEMPLATES / "assistants.txt")
        .read_text()
        .format(
            notebook=f"{unit}.ipynb",
            hint='`hint("NAME")` asks a question that leads on. ' if with_lesson else "",
            zip=zip_file(settings.check),
            data=data_file(unit),
        )
    )


def requirements(notebook: Any) -> str:
    """Return the text of requirements.txt: the engine's requirements that the notebook or the check imports."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    imported = _ALWAYS.union(map(str.lower, re.findall(r"^(?:import|from) (\w+)", code, re.M)))
    wanted = [line.partition(";")[0].strip() for line in requires(_ENGINE) or [] if "extra" not in line]
    return "".join(sorted(f"{line}\n" for line in wanted if re.split(r"[^\w.-]", line.lower())[0] in imported))


def single_files(root: Path, check: str) -> dict[Path, str]:
    """Return the text of each unit's single notebook, by the path to write it to, relative to the course's folder.

    root: the folder that contains release/. check: name of the student check's module. Raises BuildError.
    """
    released = sorted(path for path in root.glob("release/*/*.ipynb") if path.stem == path.parent.name)
    return {Path(SINGLE_FILES, path.name): nbformat.writes(single_file(path, check)) + "\n" for path in released}


def write_single_files(texts: dict[Path, str]) -> list[Path]:
    """Write the single notebooks that are missing or differ; return the written paths. Raises NotWritable.

    texts: the result of `single_files`.
    """
    changed = []
    for path, text in texts.items():
        target, content = folder() / path, text.encode()
        if target.is_symlink() or not target.is_file() or target.read_bytes() != content:
            output_files.write({target: content}, makes_folder=True)
            changed.append(path)
    return changed


def single_file(released: Path, check: str) -> Any:
    """Return a released notebook with the student check's files in a cell above the import of the check.

    released: path of the notebook. check: name of the check's module. Raises BuildError if no cell imports the check.
    """
    notebook = nbformat.read(released, as_version=4)
    imports = f"from {check} import "
    cells = enumerate(notebook.cells)
    first = next((at for at, cell in cells if cell.cell_type == "code" and imports in cell.source), None)
    if first is None:
        raise BuildError(f"{released.name}: no cell imports the check; begin a line of a cell with `{imports}check`.")
    files = [released.with_name(name) for name in (f"{check}.py", zip_file(check), data_file(released.stem))]
    metadata = {
        "nbgrader": locked(CARRIED),
        "jupyter": {"source_hidden": True},
        "cellView": "form",  # collapsed, in Colab
        "deletable": False,
        "editable": False,
    }
    source = (_TEMPLATES / "carried_check.txt").read_text().format(packed=_packed(files)).rstrip("\n")
    notebook.cells.insert(first, new_code_cell(source, id=CARRIED, metadata=metadata))
    return notebook


def _packed(files: list[Path]) -> str:
    """Return files packed as lines of base64 text, which depends only on the files' names and contents."""
    held = BytesIO()
    with lzma.open(held, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for file in files:
            about = tarfile.TarInfo(file.name)
            about.size = file.stat().st_size
            archive.addfile(about, BytesIO(file.read_bytes()))
    return "\n".join(textwrap.wrap(base64.b64encode(held.getvalue()).decode(), COLUMNS))


class _Guess(msgspec.Struct, forbid_unknown_fields=True):
    answer: bool | int | float | str | list[int | float]
    because: str
    instead: dict[Any, str] = {}


class _Lesson(msgspec.Struct, forbid_unknown_fields=True):
    guesses: dict[str, Any] = {}
    hints: dict[str, Any] = {}


def lesson(text: Path) -> dict[str, Any] | None:
    """Read a unit's guesses and hints, in the form of the release; None if the unit has no such file.

    text: path of the unit's text in exercises/. Raises BuildError.
    """
    file = text.with_suffix(".yaml")
    if not file.is_file():
        return None
    try:
        held = _as(_Lesson, read_yaml(file), file.name)
    except NotYaml as reason:
        raise BuildError(f"{file.name}: {reason}.") from None
    return {
        "guesses": {name: _guess(f"{file.name}: guess `{name}`", guess) for name, guess in held.guesses.items()},
        "hints": {name: _hints(f"{file.name}: `{name}`", its) for name, its in held.hints.items()},
    }


def reject_unmatched(text: Path, held: dict[str, Any] | None, notebook: Any) -> None:
    """Raise BuildError unless the notebook's guesses and exercises match the guesses and hints in the file.

    text: path of the unit's text. held: the result of `lesson`.
    """
    file = text.with_suffix(".yaml").name
    names = _guess_names(text, held, notebook)
    for name in names:
        if held is None or name not in held["guesses"]:
            raise BuildError(f"{text.name} asks for the guess `{name}`, but {file} has no answer to it.")
    if held is None:
        return
    for name in held["guesses"]:
        if name not in names:
            raise BuildError(f"{file} answers the guess `{name}`, but {text.name} has no `guess({name!r}, ...)`.")
    exercises, _ = points_of(notebook.cells)
    for name in exercises:
        if name not in held["hints"]:
            raise BuildError(f"{file} has no hints for `{name}`: write {HINTS}, each of which says more than the last.")
    for name in held["hints"]:
        if name not in exercises:
            raise BuildError(f"{file} has hints for `{name}`, but {text.name} has no exercise line for it.")


def _guess_names(text: Path, held: dict[str, Any] | None, notebook: Any) -> list[str]:
    """Return the names of the notebook's guesses; raises BuildError if a call of `guess` or `hint` is invalid."""
    found = list[str]()
    for cell in notebook.cells:
        for call in called_in(cell.source) if cell.cell_type == "code" else ():
            if call.function == "hint" and (held is None or (call.name and call.name not in held["hints"])):
                file = text.with_suffix(".yaml").name
                raise BuildError(f"{text.name} gives a hint for `{call.name}`, but {file} has none.")
            if call.function != "guess":
                continue
            if not call.name or not call.is_open:
                raise BuildError(f'{text.name}: ask for a guess with `guess("name", ...)`, including the three dots.')
            if "nbgrader" in cell.metadata or "jupyter" in cell.metadata:
                raise BuildError(
                    f"{text.name}: guess `{call.name}` is in a locked or collapsed cell: move it to a plain one."
                )
            found.append(call.name)
    return found


def _as(kind: type[T], written: Any, where: str) -> T:
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as reason:
        raise BuildError(f"{where}: {reason}. CONTRIBUTING.md says how guesses and hints are written.") from None


def _guess(where: str, written: Any) -> dict[str, Any]:
    guess = _as(_Guess, written, where)
    if isinstance(guess.answer, str) and matches_answer(True, guess.answer) is not None:
        raise BuildError(f"{where}: write yes or no without quotation marks.")
    if guess.answer in ("", []):
        raise BuildError(f"{where} has no answer.")
    instead = [
        (_as_list(other) if isinstance(guess.answer, list) else other, say) for other, say in guess.instead.items()
    ]
    for other, sentence in instead:
        is_right = matches_answer(guess.answer, other)
        if is_right is None:
            raise BuildError(
                f"{where}: `instead` has {other!r}, which is not such an answer. {required_kind(guess.answer)}"
            )
        if is_right:
            raise BuildError(f"{where}: `instead` has {other!r}, which is right.")
        _reject_long(where, sentence)
    _reject_long(where, guess.because)
    return {"answer": guess.answer, "because": guess.because, "instead": instead}


def _as_list(written: Any) -> Any:
    """Parse a list in a string such as "[3, 6]", because YAML allows no list as a key."""
    try:
        return json.loads(written)
    except (TypeError, ValueError):
        return written


def _hints(where: str, written: Any) -> list[str]:
    hints = _as(list[str], written, where)
    if len(hints) != HINTS:
        raise BuildError(f"{where} has {len(hints)} hints; write {HINTS}, each of which says more than the last.")
    for one in hints:
        _reject_long(where, one)
    return hints


def _reject_long(where: str, sentence: str) -> None:
    if not sentence.strip():
        raise BuildError(f"{where} has an empty sentence.")
    if len(sentence) > LONGEST_SENTENCE:
        raise BuildError(
            f"{where} has a sentence of {len(sentence)} characters, more than {LONGEST_SENTENCE}: {sentence}"
        )
