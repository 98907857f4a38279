"""Imports a zip file of submissions from Canvas or Moodle into `submitted/<student>/<unit>/`.

What is in such a file is strangers', names included. Nothing that was handed in before is lost: the submission that a
new one replaces is kept. Neither platform says in the zip file when something was handed in, so no time is written,
and none is taken from a student's own `timestamp.txt`.
"""

import errno
import filecmp
import os
import re
import shutil
import stat
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..classroom import whole_files
from ..course.notebook import printable
from ..gradebook.roster import Roster
from ..gradebook.time_stamp import TIMESTAMP
from ..submitted.zip_file import BadZip, NotTaken, ZipFile, path_within
from .file_names import Layout, Platform, Reading, layout, readings
from .roster_match import NotMatched, RosterMatcher

_NOT_STUDENTS = {TIMESTAMP, "submission_secret.txt"}
"""What nbgrader writes beside a notebook, and believes."""
_OF_ONE_STUDENT = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG}
"""Errors that say that something else is where one student's folder should be; others are everyone's."""
_MOST_FILES = 1_000
_KILOBYTE = 1000  # as nbgrader counts
_MOST_BYTES = 20_000_000_000
"""Of all submissions together."""
FOLDER = "imported"
_REPLACED = "replaced"
_MODE = 0o644


class BadRecord(Exception):
    """What is kept cannot be read; `str()` says why and what to do."""


class Origin(msgspec.Struct, frozen=True):
    """Where a student's submission came from."""

    platform: Platform
    returned: str
    """What the name of a file of feedback begins with: see `file_names`."""


def read_origins(root: Path, unit: str) -> dict[str, Origin]:
    """By student, for a unit; empty if nothing was imported. Raises BadRecord."""
    path = _record(root, unit)
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Origin])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise BadRecord(f"{path} cannot be read: {error}. Delete it and import the zip file again.") from None


def keep_origins(root: Path, unit: str, found: Mapping[str, Origin]) -> None:
    """Adds these students to what is kept. Raises BadRecord and OSError."""
    everyone = {**read_origins(root, unit), **found}
    path = _record(root, unit)
    path.parent.mkdir(exist_ok=True)
    whole_files.write(path, msgspec.json.format(msgspec.json.encode(everyone)), _MODE)


def keep_replaced(root: Path, submission: Path) -> Path:
    """Moves a submission out of the way of a new one; returns where it is now. Raises OSError."""
    student, unit = submission.parent.name, submission.name
    place = root / FOLDER / _REPLACED / student / unit
    place.mkdir(parents=True, exist_ok=True)
    number = max((int(one.name) for one in place.iterdir() if one.name.isdecimal()), default=0) + 1
    return Path(shutil.move(submission, place / str(number)))


def _record(root: Path, unit: str) -> Path:
    return root / FOLDER / f"{unit}.json"


@dataclass
class Imported:
    """What came of it."""

    new: list[str] = field(default_factory=list)
    replaced: dict[str, Path] = field(default_factory=dict)
    """By student, where the submission is now that was there before."""
    unchanged: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Whose files Canvas calls late."""
    older: list[str] = field(default_factory=list)
    """Files of which there is a newer one with the same name."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why, by name in the zip file, or by student."""
    platform: str = ""
    """Whose zip file it is; empty if none of its files is named as Canvas or Moodle name them."""


@dataclass(frozen=True)
class _File:
    info: zipfile.ZipInfo
    reading: Reading
    path: Path

    @property
    def newness(self) -> tuple[int, Any]:
        return self.reading.newness, self.info.date_time


def import_zip(file: ZipFile, directory: Any, root: Path, unit: str, roster: Roster) -> Imported:
    """Takes out of the zip file what belongs to students on the roster.

    directory: the course as nbgrader has it. Raises BadRecord, BadZip where the roster is another platform's, and
    OSError if the disk is full or cannot be written.
    """
    its = layout((info.filename for info in file.files), roster.platform)
    done = Imported(platform=its.platform)
    if done.platform and roster.platform not in ("", done.platform):
        raise BadZip(
            f"The zip file is {done.platform}'s and the roster {roster.platform}'s, so names alone would tell whose a "
            f"file is. Take {done.platform}'s own table for the roster."
        )
    read_origins(root, unit)  # if it cannot be read, nothing is done
    by_student = _by_student(file, unit, its, RosterMatcher(roster), done)
    left = _MOST_BYTES
    origins: dict[str, Origin] = {}
    try:
        for student, files in by_student.items():
            there = Path(directory.format_path(directory.submitted_directory, student, unit))
            try:
                with _part(there) as part:
                    left -= _unpack(file, files, part, directory, left, done)
                    _place(part, there, root, student, done)
            except NotTaken as reason:
                done.left_out[student] = str(reason)
                continue
            except OSError as error:
                if error.errno not in _OF_ONE_STUDENT and not (error.errno == errno.EACCES and there.parent.is_dir()):
                    raise
                done.left_out[student] = f"what is at {there} is in the way: {error.strerror}"
                continue
            latest = max(files, key=lambda one: one.newness).reading
            origins[student] = Origin(latest.platform, latest.returned)
            done.late += [student] if latest.is_late else []
    finally:
        if origins:
            keep_origins(root, unit, origins)
    return done


def _by_student(
    file: ZipFile, unit: str, its: Layout, matcher: RosterMatcher, done: Imported
) -> Mapping[str, list[_File]]:
    """The newest of each student's files; students whom two numbers claim to be are left out."""
    found: dict[str, dict[Path, _File]] = defaultdict(dict)
    numbers: dict[str, set[str]] = defaultdict(set)
    for info in file.files:
        name = info.filename
        try:
            ways = readings(name, its)
            if not ways:
                raise NotMatched(
                    f"its name is not as in a zip file of submissions from {done.platform or 'Canvas or Moodle'}"
                )
            student, reading = matcher.student(ways)
            numbers[student].add(reading.number)
            if reading.instead:
                raise NotTaken(f"it is {reading.instead}, not a file")
            new = _File(info, reading, _called(path_within(reading.file), unit))
        except (NotMatched, NotTaken) as reason:
            done.left_out[printable(name)] = str(reason)
            continue
        old = found[student].get(new.path)
        if old is not None:
            done.older.append(printable(min(old, new, key=lambda one: one.newness).info.filename))
        if old is None or new.newness >= old.newness:
            found[student][new.path] = new
    for student in [student for student in found if len(numbers[student]) > 1]:
        del found[student]
        done.left_out[student] = (
            f"files with different numbers have this student's name: {', '.join(sorted(numbers[student]))}"
        )
    return {student: list(files.values()) for student, files in sorted(found.items())}


def _called(path: Path, unit: str) -> Path:
    """The path in the submission: Canvas puts the number of the attempt behind a notebook's name."""
    again = re.fullmatch(rf"{re.escape(unit)}-\d+\.ipynb", path.name)
    path = path.with_name(f"{unit}.ipynb") if again else path
    if path.name in _NOT_STUDENTS:
        raise NotTaken("a file of this name would be believed; the time of handing in is not the student's to say")
    return path


class _part:  # noqa: N801  a context manager
    """A folder beside the one to come, on the same disk, which is gone in the end."""

    def __init__(self, there: Path) -> None:
        self._path = there.with_name(f".{there.name}.part")
        for folder in (there.parent, there):
            if folder.is_symlink():
                raise NotTaken(f"{folder} is a link")

    def __enter__(self) -> Path:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._path, ignore_errors=True)  # from a killed run
        self._path.mkdir()
        return self._path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        if not any(self._path.parent.iterdir()):
            self._path.parent.rmdir()


def _unpack(file: ZipFile, files: list[_File], part: Path, directory: Any, left: int, done: Imported) -> int:
    """Writes a student's files; returns their bytes. Raises NotTaken if nothing comes of it, or too much."""
    room = min(directory.max_dir_size * _KILOBYTE, left)
    most = directory.max_file_size * _KILOBYTE
    if len(files) > _MOST_FILES:
        raise NotTaken(f"there are more than {_MOST_FILES} files")
    size = 0
    for one in sorted(files, key=lambda one: one.newness):  # the newest file is written last, and looks it
        try:
            size += _write(file, one, part / one.path, min(most, room - size))
        except NotTaken as reason:
            done.left_out[printable(one.info.filename)] = str(reason)
    if not any(part.iterdir()):
        raise NotTaken("none of the files could be taken")
    return size


def _write(file: ZipFile, one: _File, path: Path, most: int) -> int:
    size = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as written:
            for piece in file.content(one.info, most):
                size += written.write(piece)
    except (FileExistsError, NotADirectoryError):
        raise NotTaken("a file and a folder have the same name") from None
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            raise
        raise NotTaken("its name cannot be a file's here") from None
    except NotTaken:
        path.unlink()
        raise
    return size


def _place(part: Path, there: Path, root: Path, student: str, done: Imported) -> None:
    """Puts the folder in its place, and what was there before where it is kept."""
    if os.path.lexists(there):
        if _files(part) == _files(there) and all(_is_same(part / name, there / name) for name in _files(part)):
            done.unchanged.append(student)
            return
        done.replaced[student] = keep_replaced(root, there)
    else:
        done.new.append(student)
    part.rename(there)


def _is_same(new: Path, old: Path) -> bool:
    """Return whether the existing file is a regular file with the same content as the new one."""
    return stat.S_ISREG(old.lstat().st_mode) and filecmp.cmp(new, old, shallow=False)


def _files(folder: Path) -> set[Path]:
    return set(_within(folder)) - {Path(name) for name in _NOT_STUDENTS}


def _within(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder)
