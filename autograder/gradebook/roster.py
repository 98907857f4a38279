"""Who is in the class: the instructor's own table, or the one that Canvas or Moodle exports."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..course.notebook import printable
from ..submitted.student_id import RULE, can_be_id
from . import roster_file, roster_words
from .roster_file import BadRoster, Line, RosterFile

__all__ = ["BadRoster", "Enrolled", "Roster", "is_filled_in", "own", "read"]

TEMPLATE = "id,first_name,last_name,email\n"
"""A roster that nobody is on yet."""

_MOST_NAMED = 20
_BEFORE_AT = " before @"
"""Behind a column's name: the part of its address that is before the @."""
_TEST_STUDENT = "Student, Test"


@dataclass(frozen=True)
class Enrolled:
    """A student as nbgrader knows one."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


def is_filled_in(path: Path) -> bool:
    """Whether there is a roster with more in it than the template."""
    try:
        return path.read_text(encoding="utf-8-sig").strip() != TEMPLATE.strip()
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True  # `read` says what is wrong


@dataclass(frozen=True)
class Roster:
    """Who is in the class, and what else the roster says about them."""

    students: list[Enrolled]
    platform: str = ""
    """"Canvas" or "Moodle" where the table is theirs, else empty."""
    person: tuple[str, ...] = ()
    """The columns that say who somebody is, as the table calls them and in its order."""
    header: tuple[str, ...] = ()
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Each student's values by column, by id."""
    points_possible: Mapping[str, str] = field(default_factory=dict)
    """Canvas's line with the points of each assignment, by column."""
    remarks: tuple[str, ...] = ()
    """What to say about how it was read."""
    left_out: tuple[str, ...] = ()
    """What is in the column of the ids in lines that are left out of a platform's table, because it can be no id."""

    words: Mapping[str, str] = field(default_factory=dict)
    """English name of each column, in lower case."""

    def value(self, student: str, column: str) -> str:
        """Return a student's value in a column, named in any case or in English; empty if the column is missing."""
        return _value(self.lines.get(student, {}), self.words, column)

    def word(self, column: str) -> str:
        """Return the English name of a column of the header, in lower case."""
        return self.words.get(column, column.lower())


@dataclass(frozen=True)
class _Kind:
    """The tables of one program. Columns are in small letters, for they are compared without regard to case."""

    platform: str
    ids: tuple[str, ...]
    """The columns that can name a student's folder, the best first."""
    person: frozenset[str]
    first_name: tuple[str, ...]
    last_name: tuple[str, ...]
    whole_name: tuple[str, ...]
    email: tuple[str, ...]
    others: re.Pattern[str]
    """The other columns that the program writes."""


_OWN = _Kind(
    "",
    ("id",),
    frozenset(
        {"id", "first_name", "last_name", "email", "lms_user_id"}
        | {"first name", "last name", "surname", "full name", "email address"}
    ),
    ("first_name", "first name"),
    ("last_name", "last name", "surname"),
    ("full name",),
    ("email", "email address"),
    re.compile("lms_user_id"),
)
_CANVAS = _Kind(
    "Canvas",
    ("sis login id", "sis user id", "id"),
    frozenset(
        {"student", "lastname", "firstname", "id", "sis user id", "sis login id"}
        | {"integration id", "root account", "section"}
    ),
    ("firstname",),
    ("lastname",),
    ("student",),
    (),
    re.compile(
        r".*\(\d+\)|.*\b(current|final) (score|points|grade)( \(.*\))?|.*\boverride (score|grade|status)( \(.*\))?"
    ),
)
_MOODLE = _Kind(
    "Moodle",
    ("username", "id number", "email address"),
    frozenset(
        {"identifier", "full name", "first name / last name", "first name / surname", "first name", "last name"}
        | {"surname", "username", "id number", "email address"}
    ),
    ("first name",),
    ("last name", "surname"),
    ("full name", "first name / last name", "first name / surname"),
    ("email address",),
    re.compile(
        r"status|grade|maximum grade|grade can be changed|last modified \(.*\)|feedback comments|groups|institution"
        r"|department|last downloaded from this course|.*\((real|percentage|letter|feedback)\)|online text"
    ),
)
_NAMES = _OWN.person | _CANVAS.person | _MOODLE.person
_NO_STUDENT = re.compile(r"\s*(points possible|muted|manual posting.*)?\s*", re.IGNORECASE)
"""What Canvas's lines without a student hold in the columns of a person."""


def read(
    path: Path,
    enrolled: Collection[str] = (),
    id_column: str | None = None,
    header: Mapping[str, str] | None = None,
) -> Roster:
    """The students of a table, in its order; raises BadRoster.

    enrolled: the ids that are already in the gradebook, to which the rule for new ids does not apply.
    id_column: the column with the ids; with ` before @` behind its name, the part of an address before the @. If it
    is not given, a table of our own has them in `id` (its other columns are those of `nbgrader db student import`),
    one of Canvas's or Moodle's in the first column of those that can name a folder.
    header: words of headers beyond those in `roster_words`, each with the English one.
    """
    own = header or {}
    table = roster_file.read(
        path, _NAMES | roster_words.known() | set(map(roster_words.plain, own)), roster_words.plain
    )
    words = roster_words.in_english(table.header, own, _NAMES)
    kind = _kind(words)
    people, left_out, points = _people(table, words, kind)
    column = _id_column(path, table, words, kind, people, id_column)
    if crowded := next((line.number for line in table.lines if line.is_crowded), None):
        raise BadRoster(
            f"The roster {path} has more values than columns in line {crowded}. Is there a "
            f"`{printable(table.separator)}` in a name? Put the name in quotation marks."
        )
    ids = [_id(line, words, column) for line in people]
    _check(path, people, ids, column)
    unsafe = tuple(name for name in ids if name not in enrolled and not can_be_id(name))
    if unsafe and (not kind.platform or len(unsafe) == len(ids)):
        raise BadRoster(f"The roster {path} has ids that no new student can have: {_shown(unsafe)}. An id has {RULE}.")
    people = [line for line, name in zip(people, ids, strict=True) if name not in unsafe]
    ids = [name for name in ids if name not in unsafe]
    students = [_enrolled(kind, line, words, name) for line, name in zip(people, ids, strict=True)]
    return Roster(
        students,
        kind.platform,
        tuple(name for name in table.header if words[name] in kind.person),
        table.header,
        {name: line.values for line, name in zip(people, ids, strict=True)},
        points,
        tuple(_remarks(path, table, words, kind, column, left_out, unsafe)),
        unsafe,
        words,
    )


def own(students: list[Enrolled]) -> Roster:
    """A roster of these students, as a table of our own would have them."""
    columns = ("id", "first_name", "last_name", "email")
    lines = {one.id: {name: getattr(one, name) or "" for name in columns} for one in students}
    return Roster(students, "", columns, columns, lines)


def _kind(words: Mapping[str, str]) -> _Kind:
    columns = set(words.values())
    if columns & {"sis login id", "sis user id"} or columns >= {"student", "id", "section"}:
        return _CANVAS
    return _MOODLE if columns & _MOODLE.person and "id" not in columns else _OWN


def _people(
    table: RosterFile, words: Mapping[str, str], kind: _Kind
) -> tuple[list[Line], list[str], Mapping[str, str]]:
    """The lines of students, the names in lines that are left out, and Canvas's line with the points."""
    if kind is not _CANVAS:
        return list(table.lines), [], {}
    people: list[Line] = []
    left_out: list[str] = []
    points: Mapping[str, str] = {}
    for line in table.lines:
        who = [line.values[name] for name in table.header if words[name] in kind.person]
        name = _value(line.values, words, "student")
        if all(map(_NO_STUDENT.fullmatch, who)):
            points = line.values if "points possible" in " ".join(who).lower() else points
        elif name == _TEST_STUDENT:
            left_out.append(name)
        else:
            people.append(line)
    return people, left_out, points


def _id_column(
    path: Path, table: RosterFile, words: Mapping[str, str], kind: _Kind, people: list[Line], asked: str | None
) -> str:
    """The column with the ids; the one that was asked for, or else the best that is not empty. Raises BadRoster."""
    there = {*map(str.lower, table.header), *words.values()}
    if asked:
        column = asked.strip().lower()
        if column.removesuffix(_BEFORE_AT) not in there:
            raise BadRoster(
                f"The roster {path} has no column `{printable(asked)}`. Its columns are: {_some(table.header)}."
            )
        return column
    for column in kind.ids:
        if column in there and any(_value(line.values, words, column) for line in people):
            return column
    raise BadRoster(
        f"The roster {path} names nobody: it needs a header with a column `id`, and a line a student, or to be the "
        f"table that Canvas or Moodle exports. Its columns are: {_some(table.header) or 'none'}. If another one has "
        "the ids, `--id-column` names it."
    )


def _check(path: Path, people: list[Line], ids: list[str], column: str) -> None:
    """Raises BadRoster unless each line has an id of its own."""
    if not any(ids):
        raise BadRoster(f"The roster {path} names nobody: its column `{printable(column)}` is empty.")
    without = [str(line.number) for line, name in zip(people, ids, strict=True) if not name]
    if without:
        raise BadRoster(
            f"The roster {path} has no {printable(column)} in line {_some(without)}: give one, or take the line out."
        )
    repeated = [name for name, count in Counter(ids).items() if count > 1]
    if repeated:
        raise BadRoster(f"The roster {path} has {_some(sorted(repeated))} more than once.")


def _id(line: Line, words: Mapping[str, str], column: str) -> str:
    value = _value(line.values, words, column.removesuffix(_BEFORE_AT))
    return value.partition("@")[0].strip() if column.endswith(_BEFORE_AT) else value


def _enrolled(kind: _Kind, line: Line, words: Mapping[str, str], name: str) -> Enrolled:
    def first_of(columns: tuple[str, ...]) -> str | None:
        return next((value for column in columns if (value := _value(line.values, words, column))), None)

    first, last, whole = map(first_of, (kind.first_name, kind.last_name, kind.whole_name))
    if whole and not (first or last):
        last = whole
        if kind is _CANVAS and ", " in whole:  # `O'Neil, Jr., Ada`: what is behind the last comma is the first name
            last, _, first = whole.rpartition(", ")
    return Enrolled(name, first, last, first_of(kind.email))


def _remarks(
    path: Path,
    table: RosterFile,
    words: Mapping[str, str],
    kind: _Kind,
    column: str,
    left_out: list[str],
    unsafe: Collection[str],
) -> Iterable[str]:
    called = _named(table.header, words, column.removesuffix(_BEFORE_AT))
    if kind.platform or called.lower() != "id":
        whose = f"{kind.platform}'s table" if kind.platform else "a table"
        part = _BEFORE_AT if column.endswith(_BEFORE_AT) else ""
        yield f"The roster {path} is {whose}; the students' ids are its column `{printable(called)}`{part}."
    if table.encoding != "UTF-8":
        yield f"The roster {path} was read as {table.encoding}."
    if left_out:
        yield f"Left out of the roster: {_some(left_out)}, Canvas's test student."
    if unsafe:
        yield (
            f"NOT TAKEN FROM THE ROSTER: {_shown(unsafe)}, which can be no new student's id, in the column "
            f"`{printable(column)}`. An id has {RULE}. Correct these lines, or name another column with `--id-column`."
        )
    unknown = [name for name in table.header if name and not _is_known(kind, words[name])]
    if unknown:
        yield f"Not understood in the roster, and not used: {_some(unknown)}."


def _is_known(kind: _Kind, column: str) -> bool:
    return column in kind.person or kind.others.fullmatch(column) is not None


def _value(values: Mapping[str, str], words: Mapping[str, str], column: str) -> str:
    """Return a line's value in the column with this name or English name; empty if the column is missing."""
    return values.get(_named(values, words, column), "")


def _named(header: Iterable[str], words: Mapping[str, str], column: str) -> str:
    """Return the column with this name in any case, else the one with this English name, else an empty string."""
    names = list(header)
    called = (name for name in names if name.lower() == column.lower())
    meant = (name for name in names if words.get(name) == column.lower())
    return next(called, "") or next(meant, "")


def _shown(ids: Collection[str]) -> str:
    """Ids that are none, with what cannot be seen in them."""
    return _some([ascii(name)[1:-1] for name in ids])


def _some(names: Collection[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(printable(name[:100]) for name in list(names)[:_MOST_NAMED]) + more
