"""The two records of a mutation report: a page of the documentation, and the golden record.

The page contains a digest of the course's content that it reports on, so that a test can find quickly whether the page
is outdated.

The golden record has one line for each known answer, with the verdicts of grading and of the student check. After a
change of the code, a comparison with it shows every changed verdict. A line has the exercise, the answer, its points,
the outcome of each hidden test as a letter, the diagnosis, and the verdict of the student check:

    online_softmax old_sum_not_rescaled 1/5 FFFFF.FFFFF.F. old_sum_not_rescaled check 1.25/5 FFFFF.FFFFF.F? diagnosed

In the part of the student check, `?` stands for a hidden test without an example.

Faulty lines are not recorded, because only the sandbox finds them, and the known answers are not run in it.

For one answer in 45, the whole report and the output of the student check are recorded as well, in a second file for
each unit. In this file, `#` replaces numbers with decimals, whose digits may differ between machines.

`autograder matrix --write` writes both records.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from .. import course
from ..course import content
from ..course.settings import FILE, folder
from ..graders.collection import collect
from ..student_check.unit_data import EXAMPLES, MISTAKES, STEPS, data_file, read_unit
from .candidate import Candidate
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

FOLDER = "tests/golden"
CHECK = " check "
"""The text before the part of a line that is about the student check."""
_ONE_IN = 45
_DECIMALS = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
_LETTERS = {"passed": ".", "failed": "F", "withheld": "w", "not_run": "-", "grader_error": "!"}
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


def name_of(answer: Candidate) -> tuple[str, str]:
    """Return the exercise and the name of a known answer; `right:` precedes the name of a right answer."""
    return answer.exercise, f"{'right:' if answer.caught_by is None else ''}{answer.name}"


def outcome_line(outcome: Outcome) -> str:
    """Return the part of an answer's line in the golden record that describes its grading."""
    report = outcome.report
    letters = "".join(_LETTERS[test.outcome] for test in report.tests) or report.status
    diagnosis = report.diagnosis.names.replace(" + ", "+") if report.diagnosis else "-"
    points = f"{report.score:.7g}/{report.max_score:g}"
    return " ".join([*name_of(outcome.entry), points, letters, diagnosis])


def check_part(verdict: CheckVerdict) -> str:
    """Return the part of an answer's line in the golden record that describes the student check."""
    hidden_tests = collect()[verdict.unit][verdict.entry.exercise]
    letters = "".join(verdict.outcome(test.statement) for test in hidden_tests)
    return f"{CHECK}{verdict.score:.7g}/{verdict.points:g} {letters}{' diagnosed' if verdict.is_diagnosed else ''}"


def is_whole(unit: str, answer: Candidate) -> bool:
    """Return whether an answer's whole report is recorded; this depends only on the answer's name."""
    return zlib.crc32(" ".join([unit, *name_of(answer)]).encode()) % _ONE_IN == 0


def whole(outcome: Outcome, verdict: CheckVerdict) -> str:
    """Return an answer's whole report and the output of the student check as text, with `#` for decimal numbers."""
    report = msgspec.json.format(msgspec.json.encode(outcome.report)).decode()
    text = "\n".join(line.rstrip() for line in f"{report}\n\n{verdict.printed}".splitlines())
    return f"# {' '.join(name_of(outcome.entry))}\n\n{_DECIMALS.sub('#', text)}\n"


def records(outcomes: Iterable[Outcome], verdicts: Iterable[CheckVerdict]) -> dict[str, str]:
    """Return the text of each file of the golden record, by the file's path in the repository.

    outcomes, verdicts: those of the same known answers, in the same order.
    """
    texts: dict[str, str] = {}
    for outcome, verdict in zip(outcomes, verdicts, strict=True):
        unit = outcome.unit
        path = f"{FOLDER}/{unit}.txt"
        texts[path] = f"{texts.get(path, '')}{outcome_line(outcome)}{check_part(verdict)}\n"
        if is_whole(unit, outcome.entry):
            path = f"{FOLDER}/whole/{unit}.txt"
            texts[path] = f"{texts.get(path, '')}{whole(outcome, verdict)}\n"
    return texts


def page(outcomes: Sequence[Outcome], verdicts: Sequence[CheckVerdict]) -> str:
    """Return the documentation page in Markdown. Its last line has the digest of the catalogue as it is now."""
    return f"{_part_on_grading(outcomes)}{_part_on_check(verdicts)}\n{_LINE.format(digest())}\n"


def digest() -> str:
    """Return one SHA-256 of solutions, hidden tests, known answers, settings and the released data of all units.

    The exercises' texts and the engine are left out, so that a changed word does not require grading thousands of
    answers again.
    """
    digested = hashlib.sha256()
    for name, part in sorted(_digested_parts()):
        digested.update(f"{name} {len(part)}\n".encode() + part)
    return digested.hexdigest()


def digest_in(page: str) -> str:
    """Return the digest that a page contains; empty if it contains none."""
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
    """Return a Markdown table.

    of: heading of the first column, which has the rows' names. columns: headings of the columns of numbers.
    """
    lines = [f"| {of} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, numbers))} |" for name, numbers in rows]
    return "\n".join(lines)
