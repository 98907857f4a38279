"""The golden record: the verdicts of grading and of the student check on each known answer, in one line of text.

It shows every change of a verdict that a change of the code causes. A line has the exercise, the answer, its points,
the outcome of each hidden test as a letter, the diagnosis, and the verdict of the student check:

    online_softmax old_sum_not_rescaled 1/5 FFFFF.FFFFF.F. old_sum_not_rescaled check 1.25/5 FFFFF.FFFFF.F? diagnosed

In the check's part, `?` stands for a hidden test without an example.

Faulty lines are not recorded: they are found in the sandbox, in which the known answers do not run here.

Of one answer in 45 the whole report and the text of the student check are recorded too, in a second file for each unit.
There `#` stands for numbers with decimals, of which two machines may give other digits.

`autograder matrix --write` writes the record.
"""

import re
import zlib
from collections.abc import Iterable

import msgspec

from ..graders.collection import collect
from .candidate import Candidate
from .mutation_report import CheckVerdict, Outcome

FOLDER = "tests/golden"
CHECK = " check "
"""Opens the part of a line about the student check."""
_ONE_IN = 45
_DECIMALS = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
_LETTERS = {"passed": ".", "failed": "F", "withheld": "w", "not_run": "-", "grader_error": "!"}


def name_of(answer: Candidate) -> tuple[str, str]:
    """Return the exercise and the name of an answer; the name of a right one begins with `right:`."""
    return answer.exercise, f"{'right:' if answer.caught_by is None else ''}{answer.name}"


def outcome_line(outcome: Outcome) -> str:
    """Return the part of an answer's line that describes its grading."""
    report = outcome.report
    letters = "".join(_LETTERS[test.outcome] for test in report.tests) or report.status
    diagnosis = report.diagnosis.names.replace(" + ", "+") if report.diagnosis else "-"
    points = f"{report.score:.7g}/{report.max_score:g}"
    return " ".join([*name_of(outcome.entry), points, letters, diagnosis])


def check_part(verdict: CheckVerdict) -> str:
    """Return the part of an answer's line that describes the student check: points, outcomes and diagnosis."""
    hidden_tests = collect()[verdict.unit][verdict.entry.exercise]
    letters = "".join(verdict.outcome(test.statement) for test in hidden_tests)
    return f"{CHECK}{verdict.score:.7g}/{verdict.points:g} {letters}{' diagnosed' if verdict.is_diagnosed else ''}"


def is_whole(unit: str, answer: Candidate) -> bool:
    """Return whether an answer's report and text are recorded whole: its name decides, and so no other answer does."""
    return zlib.crc32(" ".join([unit, *name_of(answer)]).encode()) % _ONE_IN == 0


def whole(outcome: Outcome, verdict: CheckVerdict) -> str:
    """Return an answer's whole report and the text of the student check."""
    report = msgspec.json.format(msgspec.json.encode(outcome.report)).decode()
    text = "\n".join(line.rstrip() for line in f"{report}\n\n{verdict.printed}".splitlines())
    return f"# {' '.join(name_of(outcome.entry))}\n\n{_DECIMALS.sub('#', text)}\n"


def records(outcomes: Iterable[Outcome], verdicts: Iterable[CheckVerdict]) -> dict[str, str]:
    """Return the text of each file of the record, by its path in the repository."""
    texts: dict[str, str] = {}
    for outcome, verdict in zip(outcomes, verdicts, strict=True):
        unit = outcome.unit
        path = f"{FOLDER}/{unit}.txt"
        texts[path] = f"{texts.get(path, '')}{outcome_line(outcome)}{check_part(verdict)}\n"
        if is_whole(unit, outcome.entry):
            path = f"{FOLDER}/whole/{unit}.txt"
            texts[path] = f"{texts.get(path, '')}{whole(outcome, verdict)}\n"
    return texts
