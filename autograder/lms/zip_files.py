"""Import a zip file of submissions from Canvas or Moodle, and pack the feedback pages into one for the same platform.

Submissions are imported into `submitted/<student>/<unit>/`. No earlier submission is lost: a replaced one is moved to
COURSE/imported/replaced/. The zip files do not contain the times of submission, so no time is recorded, and a
`timestamp.txt` from a student is not imported. COURSE/imported/<unit>.json records the names by which the platform
accepts the feedback files.
"""

import filecmp
import os
import re
import shutil
import stat
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from .. import UserError, output_files
from ..course.notebook import printable
from ..course.submitted_files import BadZip, NotTaken, ZipFile, new_folder, path_within
from ..gradebook.class_gradebook import UnitGrades
from ..gradebook.nbgrader_course import KILOBYTE
from ..gradebook.roster import Roster
from ..gradebook.time_stamp import TIMESTAMP
from ..output_files import opened
from .roster_match import NotMatched, Platform, Reading, RosterMatcher, platform_of, readings

FOLDER = "imported"
_REPLACED = "replaced"
_MODE = 0o644
_NOT_STUDENTS = {TIMESTAMP, "submission_secret.txt"}
"""Names of files that nbgrader writes next to a notebook and trusts; those from students are not imported."""
_MOST_FILES = 1_000
_MOST_BYTES = 20_000_000_000
"""Most bytes of all submissions in one zip file together."""


class BadRecord(UserError):
    """Raised if the record of imported files cannot be read; `str()` says why and what to do."""


class Origin(msgspec.Struct, frozen=True):
    """The platform from which a student's submission was imported, and the name by which it accepts the feedback."""

    platform: Platform
    returned: str
    """Prefix of the feedback file's name, by which the platform finds the student."""


@dataclass
class Imported:
    """The result of an import, by student unless stated otherwise."""

    new: list[str] = field(default_factory=list)
    replaced: dict[str, Path] = field(default_factory=dict)
    """The path to which the earlier submission was moved."""
    unchanged: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Students whose files Canvas marks as late."""
    older: list[str] = field(default_factory=list)
    """Names of files that were not imported, because the zip file has a newer one with the same name."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The reason why a file or a student was left out, by the file's name in the zip file or the student's id."""
    platform: str = ""
    """The platform of the zip file; empty if none of its files is named as Canvas or Moodle name them."""


@dataclass(frozen=True)
class _File:
    info: zipfile.ZipInfo
    reading: Reading
    path: Path

    @property
    def newness(self) -> tuple[int, Any]:
        return self.reading.newness, self.info.date_time

    @property
    def name(self) -> str:
        return printable(self.info.filename)


def read_origins(root: Path, unit: str) -> dict[str, Origin]:
    """Read the origins of a unit's imported submissions, by student; empty if none was imported. Raises BadRecord.

    root: the class's folder.
    """
    path = _record(root, unit)
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Origin])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise BadRecord(f"{path} cannot be read: {error}. Delete it and import the zip file again.") from None


def _record(root: Path, unit: str) -> Path:
    return root / FOLDER / f"{unit}.json"


def import_zip(file: ZipFile, directory: Any, root: Path, unit: str, roster: Roster) -> Imported:
    """Import the files in a zip file that belong to students on the roster.

    directory: nbgrader's `CourseDirectory`. root: the class's folder. Raises BadRecord, BadZip if the roster is another
    platform's, and OSError if the disk is full or cannot be written.
    """
    result = Imported(platform=platform_of((info.filename for info in file.files), roster.platform))
    if result.platform and roster.platform not in ("", result.platform):
        raise BadZip(
            f"The zip file is from {result.platform} and the roster from {roster.platform}, so only names could match "
            f"files with students. Use {result.platform}'s own table as the roster."
        )
    origins = read_origins(root, unit)  # if it cannot be read, nothing is written
    by_student = _by_student(file, unit, RosterMatcher(roster), result)
    left = _MOST_BYTES
    try:
        for student, files in by_student.items():
            path = Path(directory.format_path(directory.submitted_directory, student, unit))
            try:
                _refuse_links(path)
                with new_folder(path) as new:
                    left -= _unpack(file, files, new, directory, left, result)
                    _place(new, path, root, student, result)
            except NotTaken as reason:
                result.left_out[student] = str(reason)
                continue
            except OSError as error:
                if error.errno in output_files.DISK_ERRORS or not path.parent.parent.is_dir():
                    raise
                result.left_out[student] = f"{path} cannot be replaced: {error.strerror}"
                continue
            newest = files[-1].reading
            origins[student] = Origin(newest.platform, newest.returned)
            result.late += [student] if newest.is_late else []
    finally:
        if result.new or result.replaced or result.unchanged:
            (root / FOLDER).mkdir(exist_ok=True)
            output_files.replace_file(_record(root, unit), msgspec.json.format(msgspec.json.encode(origins)), _MODE)
    return result


def _by_student(file: ZipFile, unit: str, matcher: RosterMatcher, result: Imported) -> dict[str, list[_File]]:
    """Return, by student, the newest file of each name, in the order of submission.

    A student to whom files with different numbers of the platform belong is left out. What is left out is added to
    `result`.
    """
    found: dict[str, dict[Path, _File]] = defaultdict(dict)
    numbers: dict[str, set[str]] = defaultdict(set)
    for info in file.files:
        try:
            ways = readings(info.filename, result.platform)
            if not ways:
                platform = result.platform or "Canvas or Moodle"
                raise NotMatched(f"its name does not have the form of a submission from {platform}")
            student, reading = matcher.student(ways)
            numbers[student].add(reading.number)
            if reading.instead:
                raise NotTaken(f"it is {reading.instead}, not a file")
            new = _File(info, reading, _submitted_path(path_within(reading.file), unit))
        except (NotMatched, NotTaken) as reason:
            result.left_out[printable(info.filename)] = str(reason)
            continue
        old = found[student].get(new.path, new)
        if old is not new:
            result.older.append(min(old, new, key=lambda one: one.newness).name)
        if new.newness >= old.newness:
            found[student][new.path] = new
    for student in [student for student in found if len(numbers[student]) > 1]:
        del found[student]
        result.left_out[student] = (
            f"files with different numbers have this student's name: {', '.join(sorted(numbers[student]))}"
        )
    return {student: sorted(files.values(), key=lambda one: one.newness) for student, files in sorted(found.items())}


def _submitted_path(path: Path, unit: str) -> Path:
    """Return a file's path in the submission, without the attempt's number that Canvas adds: `unit-1.ipynb`.

    Raises NotTaken for the names in `_NOT_STUDENTS`.
    """
    if re.fullmatch(rf"{re.escape(unit)}-\d+\.ipynb", path.name):
        return path.with_name(f"{unit}.ipynb")
    if path.name in _NOT_STUDENTS:
        raise NotTaken("a file of this name sets the submission time, which a student may not do")
    return path


def _refuse_links(path: Path) -> None:
    """Raise NotTaken if a student's folder, or the one for the unit, is a link."""
    for folder in (path.parent, path):
        if folder.is_symlink():
            raise NotTaken(f"{folder} is a link")


def _unpack(file: ZipFile, files: list[_File], new: Path, directory: Any, left: int, result: Imported) -> int:
    """Unpack a student's files into the folder `new`, and return their size in bytes.

    left: bytes that all students together may still use. Raises NotTaken if there are too many files, or if none can be
    unpacked.
    """
    left = min(directory.max_dir_size * KILOBYTE, left)
    if len(files) > _MOST_FILES:
        raise NotTaken(f"there are more than {_MOST_FILES} files")
    size = 0
    for one in files:
        try:
            size += _write(file, one, new / one.path, min(directory.max_file_size * KILOBYTE, left - size))
        except NotTaken as reason:
            result.left_out[one.name] = str(reason)
    if not any(new.iterdir()):
        raise NotTaken("none of the files could be imported")
    return size


def _write(file: ZipFile, one: _File, path: Path, most: int) -> int:
    """Unpack one file to a path, and return its size in bytes; raises NotTaken, also if it has more than `most`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as output:
            return sum(output.write(chunk) for chunk in file.content(one.info, most))
    except (FileExistsError, NotADirectoryError):
        raise NotTaken("a file and a folder have the same name") from None
    except OSError as error:
        if error.errno in output_files.DISK_ERRORS:
            raise
        raise NotTaken(f"it could not be written: {error.strerror}") from None
    except NotTaken:
        path.unlink()
        raise


def _place(new: Path, path: Path, root: Path, student: str, result: Imported) -> None:
    """Move the unpacked folder `new` to its path, and an earlier submission there to imported/replaced/.

    If both have the same files, do nothing. The outcome is added to `result`. root: the class's folder.
    """
    if os.path.lexists(path):
        files = _files(new)
        if files == _files(path) and all(_is_same(new / name, path / name) for name in files):
            result.unchanged.append(student)
            return
        result.replaced[student] = _put_aside(path, root / FOLDER / _REPLACED)
    else:
        result.new.append(student)
    new.rename(path)


def _put_aside(submission: Path, folder: Path) -> Path:
    """Move a submission to FOLDER/STUDENT/UNIT/NUMBER, where NUMBER is the next unused one; return that path."""
    place = folder / submission.parent.name / submission.name
    place.mkdir(parents=True, exist_ok=True)
    number = max((int(path.name) for path in place.iterdir() if path.name.isdecimal()), default=0) + 1
    return Path(shutil.move(submission, place / str(number)))


def _is_same(new: Path, old: Path) -> bool:
    """Return whether the existing file is a regular file with the same content as the new one."""
    return stat.S_ISREG(old.lstat().st_mode) and filecmp.cmp(new, old, shallow=False)


def _files(folder: Path) -> set[Path]:
    """Return the relative paths of all files and links in a folder, except nbgrader's own files."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder) for path in paths} - {Path(name) for name in _NOT_STUDENTS}


@dataclass
class Packed:
    """The ids of the students, in lists by what happened to their feedback pages."""

    packed: list[str] = field(default_factory=list)
    without_origin: list[str] = field(default_factory=list)
    """Students whose page was not packed, because their submission was not imported from Canvas or Moodle."""
    without_page: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """Students whose page was packed but is older than a change of the grade or comments, or than the due date."""


def pack_feedback(output: Path, directory: Any, grades: UnitGrades, origins: Mapping[str, Origin]) -> Packed:
    """Write a zip file with the feedback pages of a unit, unless there are none; raises NotWritable.

    The file is written completely or not at all. output: its path. directory: nbgrader's `CourseDirectory`. grades: the
    grades of the unit. origins: by student, the platform that the submission was imported from.
    """
    packed = Packed()
    names: dict[Path, str] = {}
    for student in sorted({*origins, *grades.grades}):
        page = Path(directory.format_path(directory.feedback_directory, student, grades.unit)) / f"{grades.unit}.html"
        if not page.is_file():
            packed.without_page.append(student)
        elif student not in origins:
            packed.without_origin.append(student)
        else:
            names[page] = f"{origins[student].returned}{grades.unit}.html"
            packed.packed.append(student)
            mark = grades.grades.get(student)
            if mark and mark.page and mark.page != mark.shown.digest:
                packed.outdated.append(student)
    if names:
        with opened(output) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as pages:
            for page, name in names.items():
                pages.write(page, name)
    return packed
