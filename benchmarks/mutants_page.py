"""The sections of docs/matrix.md on mutants made by machine, from the results of `mutants`."""

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from autograder.catalogue.mutation_report import table
from benchmarks.located.edits import EditedAnswer
from tests import REPOSITORY

SEED = "35"
OF_SOLUTION, OF_ALTERNATIVE = 12, 2
"""Mutants of each answer."""
REASONS = Path(__file__).with_name("mutants.yaml")

HEADING = "## Mutants made by machine"
_KILLED = """{heading}

Written by `python -m benchmarks.mutants --write` on {today}. Each mutant is a single edit by a classic
operator: another name, number, sign or function; a statement, argument, call or operand less. The seed {seed} draws
{of_solution} for each solution and {of_alternative} for each alternative solution. *Killed*: the mutant loses points
in the hidden tests. *Equivalent*: it gets all points and is right; `benchmarks/mutants.yaml` has the reasons.

The 100% of the catalogue above says nothing of mistakes that it lacks.
[Testing](design/testing.md#held-out-answers) has the rates for wrong answers of people who knew neither the tests nor
the catalogue.

{table}
"""

HEADING_OF_LINES = "### Lines reported for mutants of alternative solutions"
_LINES = """{heading}

Written by `python -m benchmarks.mutants --lines FILE --write` on {today}. Killed mutants, drawn again, are
graded as submissions, with a search for repairs.

- *Diagnosed*: a known misconception behaves exactly like the mutant.
- *Located*: a reported line is the edited one, or the first whose value differs from that of the unedited answer.
- *Error's line*: only the message of an exception names the line. For a dropped statement, its next use counts.

No search for lines was developed on these exercises; on those in the second row, the search for repairs was. The
unedited answers are among the references of the search for lines, so a student's own code is harder.

{table}
"""
_LINE_COLUMNS = ("diagnosed", "located", "error's line", "nothing", "wrong line")


@dataclass(frozen=True)
class Survivors:
    """The mutants of a unit that get all points."""

    unit: str
    drawn: int
    mutants: list[EditedAnswer]


def described(mutant: EditedAnswer) -> str:
    """Return unit, answer, line and change of a mutant."""
    lines = zip(mutant.right.splitlines(), mutant.source.splitlines(), strict=True)
    before, after = next((one.strip(), other.strip()) for one, other in lines if one != other)
    return f"{mutant.unit} {mutant.of} {mutant.lines[0]}: {before} -> {after}"


@cache
def reasons() -> dict[str, str]:
    """Return the reasons why survivors are right: by exercise, which stands for all of its mutants, or by mutant."""
    read = yaml.safe_load(REASONS.read_text())
    return {**read["exercises"], **{one: reason for reason, which in read["equivalent"].items() for one in which}}


def killed_section(found: Sequence[Survivors]) -> str:
    """Return the section on killed mutants, in Markdown."""
    rows = [(f"`{one.unit}`", [one.drawn, one.drawn - len(one.mutants), len(one.mutants)]) for one in found]
    return _KILLED.format(
        heading=HEADING,
        today=_today(),
        seed=SEED,
        of_solution=OF_SOLUTION,
        of_alternative=OF_ALTERNATIVE,
        table=_with_total("unit", rows, ("mutants", "killed", "equivalent")),
    )


def lines_section(records: Sequence[dict[str, Any]]) -> str:
    """Return the section on reported lines, in Markdown."""
    tuned = {path.stem.split("__")[1] for path in (REPOSITORY / "tests" / "answers" / "repaired").glob("*.py")}
    rows = []
    for name, is_tuned in (("no search developed on them", False), ("repair developed on them", True)):
        counts = Counter(outcome(one) for one in records if (one["exercise"] in tuned) == is_tuned)
        rows.append((name, [counts.total(), *(counts[column] for column in _LINE_COLUMNS)]))
    return _LINES.format(
        heading=HEADING_OF_LINES, today=_today(), table=_with_total("exercises", rows, ("mutants", *_LINE_COLUMNS))
    )


def outcome(record: dict[str, Any]) -> str:
    """Return the column of a record."""
    lines = set(record["lines"])
    if record["diagnosis"]:
        return "diagnosed"
    if lines & set(record["reported"]):
        return "located"
    if record["reported"]:
        return "wrong line"
    is_dropped = record["mutant"].endswith("-> pass")  # then its first use is the line
    return "error's line" if record["raised"] and (is_dropped or lines & set(record["raised"])) else "nothing"


def _with_total(of: str, rows: Sequence[tuple[str, Sequence[int]]], columns: Sequence[str]) -> str:
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    return table(of, [*rows, ("**all**", total)], columns)


def _today() -> str:
    return f"{datetime.date.today():%-d %B %Y}"
