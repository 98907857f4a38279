"""Build every unit's files in a temporary folder, then compare the course's files with them, or replace them.

Data files are compared up to the rounding of numbers, which differs between processors.
"""

import filecmp
import json
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from .. import course, output_files
from ..course import content
from ..course.settings import folder, load
from ..pool.grading_pool import GradingProcess
from ..sandbox.confine import scratch
from ..student_check.unit_data import (
    EXAMPLES,
    LESSON,
    MISTAKES,
    SHOW_REPAIR,
    STEPS,
    WRITTEN,
    data_file,
    packed_unit,
    read_unit,
    zip_file,
)
from . import release_files
from .exercise_files import left_to_write
from .release_files import (
    ASSISTANTS,
    README,
    REQUIREMENTS,
    SINGLE_FILES,
    facade,
    for_assistants,
    readme,
    requirements,
    single_files,
    write_single_files,
    zipped_modules,
)
from .source_notebook import BuildError, points_of, source_notebook

_KINDS = (course.SOURCE, course.RELEASE)
BUILT = Path("built.json")
"""File with, for each unit, the digest of the files that its source/ and release/ were built from."""


@dataclass(frozen=True)
class Difference:
    """A file in which a build differs from the course's folder."""

    path: Path
    what: str
    """The difference, such as `missing` or `out of date`."""


def differences(units: Sequence[str] = ()) -> list[Difference]:
    """Return the files that `build` would change. units: names of the units to build; all if empty."""
    texts = _texts(units)
    with scratch.temporary_folder("build-") as stage:
        _build(stage, texts, is_new=True)
        changes = list(compared(stage, units, needs_copies=False))
    return changes if _built() == _new_built(texts, is_all=not units) else [*changes, Difference(BUILT, "out of date")]


def changed_units() -> list[str]:
    """Return the names of the units to build: those whose inputs have changed or whose built files are missing."""
    built = _built()
    names = [text.stem for text in _texts(())]
    if built.keys() - set(names):
        return names  # a unit was removed, so that all are built
    return [name for name in names if built.get(name) != content.inputs_digest(name) or not _is_whole(name)]


def copy_released(units: Sequence[str]) -> int:
    """Copy released files to source/ where copies are missing or differ, as in a new clone; return their number."""
    number = 0
    for unit in units:
        for released in sorted((folder() / course.RELEASE / unit).iterdir()):
            copy = Path(course.SOURCE, unit, released.name)
            target = folder() / copy
            if _is_copy(copy) and not (target.is_file() and filecmp.cmp(target, released, shallow=False)):
                output_files.write({target: released.read_bytes()}, makes_folder=True)
                number += 1
    return number


def build(units: Sequence[str] = (), *, in_single_files: bool = False) -> list[Difference]:
    """Build units, write the changed files of source/ and release/, and return them.

    units: names of the units; if empty, all, and the files of removed units are deleted. in_single_files: also write
    single_file/; this is always done if that folder exists.
    Raises BuildError and NotWritable; then nothing was written, unless the disk is full.
    """
    if {text.stem for text in _texts(())} == set(units):
        units = ()  # so that files of removed units are deleted, and their digests
    with scratch.temporary_folder("build-") as stage:
        texts = _texts(units)
        for unit in course.unit_names():
            if unit in units or not units:
                _reject_edited(course.source(unit))
        _build(stage, texts, is_new=False)
        wanted = in_single_files or (folder() / SINGLE_FILES).is_dir()
        if wanted:
            for path in single_files(stage, load().check):  # raises BuildError while nothing is written
                output_files.check(folder() / path, makes_folder=True)
        changes = list(compared(stage, units, needs_copies=True))
        output_files.check(folder() / BUILT)
        for change in changes:
            output_files.check(folder() / change.path, makes_folder=True)
        for change in changes:
            built, target = stage / change.path, folder() / change.path
            if built.exists():
                output_files.write({target: content_to_write(built, change.path)}, makes_folder=True)
            else:
                target.unlink()
    _remove_folders_without_files()
    if (new := _new_built(texts, is_all=not units)) != _built():
        output_files.write({folder() / BUILT: f"{json.dumps(new, indent=1, sort_keys=True)}\n".encode()})
    if wanted:  # made of the files in release/, because another processor may have rounded their numbers
        notebooks = single_files(folder(), load().check)
        changes += [Difference(path, "written") for path in write_single_files(notebooks)]
    return changes


def _built() -> dict[str, str]:
    """Return, by unit, the digest of its inputs when it was last built; empty if they cannot be read."""
    try:
        return dict(json.loads((folder() / BUILT).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _new_built(texts: Sequence[Path], *, is_all: bool) -> dict[str, str]:
    """Return the digests to write to `BUILT`, after the units with these texts were built.

    is_all: leave out the other units.
    """
    return {**({} if is_all else _built()), **{text.stem: content.inputs_digest(text.stem) for text in texts}}


def _is_whole(unit: str) -> bool:
    """Return whether both built notebooks of a unit and its data file exist."""
    released = course.released(unit)
    return all(path.is_file() for path in (course.source(unit), released, released.with_name(data_file(unit))))


def _reject_incomplete(unit: str) -> None:
    """Raise BuildError if files of a unit are missing, or are marked as not written yet."""
    wanted = [content.place(content.SOLUTIONS) / f"{unit}.py"]
    wanted += [content.place(kind) / unit for kind in content.OF_EACH_UNIT]
    missing = [str(path.relative_to(folder())) for path in wanted if not path.exists()]
    if missing:
        raise BuildError(f"The unit {unit} has no {', no '.join(missing)}. docs/design.md says what a unit needs.")
    if left := left_to_write(unit):
        raise BuildError("\n".join([f"The unit {unit} still has parts to write:", *left]))


def _texts(units: Sequence[str]) -> list[Path]:
    """Return the paths of the units' texts in exercises/, of all units if `units` is empty; raises BuildError."""
    texts = {path.stem: path for path in sorted((folder() / "exercises").glob("*.py"))}
    for unit in units:
        if unit not in texts:
            known = ", ".join(texts) or "none yet"
            raise BuildError(f"There is no exercises/{unit}.py. The units with a text are: {known}.")
    return [text for unit, text in texts.items() if unit in units or not units]


def _build(stage: Path, texts: Sequence[Path], *, is_new: bool) -> None:
    """Build the units with these texts into the folder `stage`. is_new: ignore results that earlier builds cached."""
    settings = load()
    lessons = dict[str, dict[str, Any]]()
    for text in texts:
        _reject_incomplete(text.stem)
        source = stage / "source" / text.stem
        source.mkdir(parents=True)
        lesson = release_files.lesson(text)
        notebook = source_notebook(text, folder() / "solutions" / text.name, settings, with_hints=lesson is not None)
        release_files.reject_unmatched(text, lesson, notebook)
        lessons[text.stem] = {} if lesson is None else {LESSON: lesson}
        nbformat.write(notebook, source / f"{text.stem}.ipynb")
        (source / README).write_text(readme(text.stem, notebook, settings, with_lesson=lesson is not None))
        if settings.assistants:
            instructions = for_assistants(text.stem, settings, with_lesson=lesson is not None)
            (source / ASSISTANTS).write_text(instructions)
        (source / REQUIREMENTS).write_text(requirements(notebook))
    with GradingProcess("cpu", settings, own_code_alone=True) as grading_process:
        # The import takes seconds, in which the grading process starts.
        from ..gradebook.nbgrader_course import GRADEBOOK, address_of, nbgrader_api

        for text in texts:
            source = stage / "source" / text.stem
            points, written = points_of(nbformat.read(source / f"{text.stem}.ipynb", as_version=4).cells)
            handout = grading_process.handout(text.stem, is_new=is_new)
            examples = {**_examples(text.stem, points, handout.examples), WRITTEN: written}
            sections = {EXAMPLES: examples, MISTAKES: handout.mistakes, STEPS: handout.steps, **lessons[text.stem]}
            if settings.show_repair:
                sections[SHOW_REPAIR] = True
            (source / data_file(text.stem)).write_bytes(packed_unit(text.stem, sections))
            (source / f"{settings.check}.py").write_bytes(facade())
            (source / zip_file(settings.check)).write_bytes(zipped_modules())
            api = nbgrader_api(stage)
            api.coursedir.db_url = address_of(stage / GRADEBOOK)  # never the class's, wherever that is
            result = api.generate_assignment(text.stem, force=True, create=True)
            if not result["success"]:
                raise BuildError(f"nbgrader could not make the release of {text.stem}:\n{result['log']}")
    (stage / GRADEBOOK).unlink(missing_ok=True)  # a course without units has no such file


def _examples(unit: str, points: dict[str, float], examples: dict[str, Any]) -> dict[str, Any]:
    """Return the student check's data for each exercise; raises BuildError if texts and hidden tests do not match.

    points: the exercises of the text, with their points. examples: data for the exercises that have hidden tests.
    """
    hidden = f"autograder/hidden/{unit}/"
    for exercise in points:
        if not any(one["public"] for one in examples.get(exercise, {}).get("examples", ())):
            raise BuildError(f"{unit}: exercise `{exercise}` has no public grader; write one in {hidden}.")
    for exercise in examples:
        if exercise not in points:
            raise BuildError(f"{hidden} grades `{exercise}`, for which exercises/{unit}.py has no exercise line.")
    return {name: {"points": points[name], **examples[name]} for name in points}


def _reject_edited(path: Path) -> None:
    if content.is_edited(path):
        name = path.relative_to(folder())
        raise BuildError(
            f"{name} was edited by hand, and building would lose that. Move the change to exercises/{path.stem}.py "
            f"or solutions/{path.stem}.py, then delete {name} and build again."
        )


def compared(stage: Path, units: Sequence[str], *, needs_copies: bool) -> Iterator[Difference]:
    """Yield the course's files that differ from the built ones in `stage`.

    needs_copies: also report missing copies of released files in source/.
    """
    for kind in _KINDS:
        built = _files(stage, kind)
        present = {path for path in _files(folder(), kind) if not units or path.parts[1] in units}
        for path in sorted(built | present):
            if path not in present:
                if needs_copies or not _is_copy(path):
                    yield Difference(path, "missing")
            elif path not in built:
                yield Difference(path, "not built from anything")
            elif not has_same_meaning(stage / path, folder() / path):
                yield Difference(path, "out of date")


def _is_copy(path: Path) -> bool:
    """Return whether a path is that of a file in source/ other than a notebook.

    Such a file is only there because nbgrader releases all files next to a notebook. Git tracks it only in release/.
    """
    return path.parts[0] == course.SOURCE and path.suffix != ".ipynb"


def content_to_write(built: Path, path: Path) -> bytes:
    """Return the content to write to `path`: that of the built file.

    If release/ has an up-to-date file, the copy in source/ gets that file's content instead.
    """
    released = folder() / course.RELEASE / Path(*path.parts[1:])
    if _is_copy(path) and released.is_file() and has_same_meaning(built, released):
        return released.read_bytes()
    return built.read_bytes()


def has_same_meaning(built: Path, present: Path) -> bool:
    """Return whether a present file is up to date: equal to the built one, or different only by rounding."""
    return filecmp.cmp(built, present, shallow=False) or differs_only_in_rounding(built, present)


def differs_only_in_rounding(built: Path, present: Path) -> bool:
    """Return whether a built file differs from the present one only in the rounding of its numbers.

    Always False for files that are not data files of the student check.
    """
    if not built.name.endswith(".json.gz"):
        return False
    try:
        one, other = read_unit(built), read_unit(present)
    except ValueError:
        return False
    tolerances = _tolerances()
    return one.keys() == other.keys() and all(
        _alike(one[key], other[key], tolerances.get(key, _EXACTLY)) for key in one
    )


@dataclass(frozen=True)
class _Close:
    """Tolerance, relative and absolute, for the same number from two processors; the student check allows more."""

    to_its_size: float
    at_all: float

    def holds(self, one: float, other: float) -> bool:
        close = math.isclose(one, other, rel_tol=self.to_its_size, abs_tol=self.at_all)
        return close or one == other or (math.isnan(one) and math.isnan(other))


_EXACTLY = _Close(0.0, 0.0)
_OF_TENSORS = {"float32": _Close(1e-6, 2e-6), "float64": _Close(1e-12, 2e-12)}
"""Tolerance for tensors in these sections, by dtype. They may be rounded to six or twelve decimals."""


@cache
def _tolerances() -> dict[str, _Close]:
    """Return the tolerance for each section of a data file. The sums of misconceptions are rounded to four decimals."""
    from ..tracing.reference import TOLERANCE  # imports torch

    steps = _Close(TOLERANCE, TOLERANCE)
    return {EXAMPLES: _EXACTLY, LESSON: _EXACTLY, MISTAKES: _Close(1e-5, 2e-4), STEPS: steps}


def _alike(one: Any, other: Any, close: _Close) -> bool:
    match one, other:
        case float(), float():
            return close.holds(one, other)
        case dict(), dict():
            is_step = close is _tolerances()[STEPS] and "dtype" not in one
            if "shape" in one and not is_step:
                close = _OF_TENSORS.get(_dtype(one), _EXACTLY)
            if isinstance(one.get("packed"), str) and isinstance(other.get("packed"), str):  # not a prediction's name
                one, other = _with_numbers(one, is_step=is_step), _with_numbers(other, is_step=is_step)
            return one.keys() == other.keys() and all(_alike(one[key], other[key], close) for key in one)
        case list(), list():
            return len(one) == len(other) and all(_alike(*pair, close) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def _with_numbers(tensor: dict[str, Any], *, is_step: bool) -> dict[str, Any]:
    from ..student_check import examples  # imports torch
    from ..tracing.reference import unpack_numbers

    if is_step:
        return {**tensor, "packed": unpack_numbers(tensor).tolist()}
    return {**tensor, "packed": examples.unpack_numbers(tensor["packed"], _dtype(tensor))}


def _dtype(tensor: dict[str, Any]) -> str:
    """Return the name of a tensor's dtype, which is left out of the data if it is the usual one."""
    from ..student_check.examples import USUAL  # imports torch

    return str(tensor.get("dtype", USUAL))


def _remove_folders_without_files() -> None:
    """Delete the folders of removed units, in which only files of other programs are left."""
    for kind in _KINDS:
        kept = {path.parts[1] for path in _files(folder(), kind)}
        for place in (folder() / kind).glob("*/"):
            if place.name not in kept and not place.name.startswith(".") and not place.is_symlink():
                shutil.rmtree(place)


def _files(root: Path, kind: str) -> set[Path]:
    files = (path.relative_to(root) for path in (root / kind).rglob("*") if path.is_file())
    return {
        path
        for path in files
        if path.parts[1:] != (README,) and not {".ipynb_checkpoints", "__pycache__"} & set(path.parts)
    }
