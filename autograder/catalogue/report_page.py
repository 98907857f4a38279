"""Write the mutation report as a page of the documentation.

The page carries a digest of the content that it is about, so that a test can tell quickly whether it is outdated.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from .. import course
from ..course import content
from ..course.folder import FILE, folder
from ..student_check.unit_data import EXAMPLES, MISTAKES, STEPS, data_file, read_unit
from .mutation_report import (
    CHECK_COLUMNS,
    COLUMNS,
    OF_MISCONCEPTIONS,
    CheckVerdict,
    Outcome,
    count,
    count_by,
    count_by_kind,
    not_tried,
)

_GRADING = """# Mutation report

Every known misconception is a mutant of a solution. `autograder matrix --write` grades all of them, and all alternative
solutions, with the hidden tests, and writes this page. A test compares the digest at its end with the present files.

- *Detected*: the misconception fails the hidden test that it must fail, and loses points.
- *Advisory*: it fails that test, which has no weight.
- *Diagnosed*: the student reads the misconception's own message, or which library must not be called.
- *Misdiagnosed*: the student reads the message of another misconception.
- *Alternatives*: alternative solutions. *False positives*: those that lose points.

## By exercise

{exercises}

## By kind of misconception

{kinds}
"""

_CHECK = """
## In the student check

The released check tries the same answers. *Unreported*: the check shows all points and reports no fault. *False
positives*: alternative solutions for which the check shows fewer points.
{not_tried}

{units}

{exercises}

{kinds}
"""

_LINE = "About the content with the digest `{}`."


def page(outcomes: Sequence[Outcome], verdicts: Sequence[CheckVerdict]) -> str:
    """Return the whole page, in Markdown."""
    return f"{_part_on_grading(outcomes)}{_part_on_check(verdicts)}\n{_LINE.format(digest())}\n"


def digest() -> str:
    """Return the SHA-256 of solutions, hidden tests, known answers, settings, and the data released of them.

    Texts and the engine are left out: a changed word should not require grading thousands of answers again.
    """
    digested = hashlib.sha256()
    for name, part in sorted(_digested_parts()):
        digested.update(f"{name} {len(part)}\n".encode() + part)
    return digested.hexdigest()


def digest_in(page: str) -> str:
    """Return the digest that a page carries; empty if there is none."""
    found = re.search(_LINE.format("([0-9a-f]{64})"), page)
    return found[1] if found else ""


def below_digest(page: str) -> str:
    """Return the part of a page below its digest, which other commands wrote."""
    return re.split(_LINE.format("[0-9a-f]{64}"), page)[-1].lstrip("\n") if digest_in(page) else ""


def _digested_parts() -> Iterator[tuple[str, bytes]]:
    places = map(content.place, (content.SOLUTIONS, *content.OF_EACH_UNIT))
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".py", ".yaml")]
    for path in (*files, folder() / FILE):
        yield str(path.relative_to(folder())), path.read_bytes()
    for unit in course.unit_names():
        released = read_unit(course.released(unit).with_name(data_file(unit)))
        for section in (EXAMPLES, MISTAKES, STEPS):
            yield f"{unit} {section}", json.dumps(released[section]).encode()


def _part_on_grading(outcomes: Sequence[Outcome]) -> str:
    exercises = count_by(outcomes, lambda one: f"`{one.entry.exercise}`", COLUMNS)
    return _GRADING.format(
        exercises=table("exercise", [*exercises, ("**all**", count(outcomes, COLUMNS))], COLUMNS),
        kinds=table("kind", count_by_kind(outcomes), [*COLUMNS][:OF_MISCONCEPTIONS]),
    )


def _part_on_check(verdicts: Sequence[CheckVerdict]) -> str:
    left_out = [f"`{exercise}`: {statement}" for exercise, statement in not_tried()]
    notes = (
        ["The check does not try these, and says so:", *left_out]
        if left_out
        else ["It tries what every hidden test requires."]
    )

    def counted(of: str, key: Callable[[CheckVerdict], str]) -> str:
        return table(of, count_by(verdicts, key, CHECK_COLUMNS), CHECK_COLUMNS)

    return _CHECK.format(
        not_tried="\n".join(notes),
        units=counted("unit", lambda one: f"`{one.unit}`"),
        exercises=counted("exercise", lambda one: f"`{one.entry.exercise}`"),
        kinds=counted("kind", lambda one: str(one.entry.kind or "none")),
    )


def table(of: str, rows: Sequence[tuple[str, Sequence[int]]], columns: Collection[str]) -> str:
    """Return a Markdown table. of: the heading of the first column, which has the rows' names."""
    lines = [f"| {of} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, numbers))} |" for name, numbers in rows]
    return "\n".join(lines)
