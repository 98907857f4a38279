"""Mutants made by machine: `python -m benchmarks.mutants [--lines FILE] [--write]`.

Grades single edits of all solutions and alternative solutions by the hidden tests, in this process. A mutant is killed
if it does not get all points. mutants.yaml has the reason for each survivor; the command fails if one has none.

--lines: also grade mutants of alternative solutions as submissions, with a search for repairs, and count the reported
lines. They are of exercises on which no search for lines was tuned. FILE has a record of each; those that it has
already are not graded again. --write: put the counts into docs/matrix.md.
"""

import argparse
import ast
import contextlib
import io
import json
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import torch

from autograder import catalogue, course
from autograder.catalogue.candidate import strip_annotations
from autograder.core.edit_trials import OverLimit, cpu_limit
from autograder.course.cells import filled_in
from autograder.graders.collection import collect
from autograder.grading import scoring
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.grading.repairs import raised_lines
from autograder.pool.grading_pool import GradingProcess
from autograder.pool.requests import FindRepairs, GradeNotebook
from autograder.report import ExerciseReport
from benchmarks.located.edits import EditedAnswer, is_held_out
from benchmarks.located.measure import cases, defined, run_of, truth
from tests import REPOSITORY

from .mutants_page import (
    HEADING,
    HEADING_OF_LINES,
    OF_ALTERNATIVE,
    OF_SOLUTION,
    SEED,
    Survivors,
    described,
    killed_section,
    lines_section,
    reasons,
)
from .mutation_operators import drawn
from .performance import with_section

PAGE = REPOSITORY / "docs" / "matrix.md"
FOR_LINES = 3
"""Mutants of each alternative solution."""
MOST_LINES = 250
"""Mutants whose lines are counted."""
SECONDS = 10.0
"""CPU seconds until a mutant that does not end is killed."""


def answers(unit: str) -> Iterator[tuple[str, str, str]]:
    """Yield exercise, name and code of a unit's right answers. A solution has the name of its exercise."""
    for name, one in catalogue.solutions(unit).items():
        yield name, name, ast.unparse(ast.parse(strip_annotations(one.source())))  # only solutions have annotations
    for one in catalogue.right_answers(unit).values():
        yield one.exercise, one.name, ast.unparse(ast.parse(one.source()))


def mutants(unit: str) -> Iterator[EditedAnswer]:
    """Yield the mutants of a unit."""
    for exercise, name, code in answers(unit):
        count = OF_SOLUTION if name == exercise else OF_ALTERNATIVE
        yield from islice(drawn(unit, exercise, name, code, SEED), count)


def is_killed(examiner: Examiner, mutant: EditedAnswer) -> bool:
    """Return whether a mutant loses points, or never ends."""
    exercise = course.unit(mutant.unit).exercise(mutant.exercise)
    verdicts = []
    try:
        with cpu_limit(SECONDS), contextlib.redirect_stdout(io.StringIO()):
            bench = candidate_bench(mutant.unit, mutant.candidate, watch=True)
            names = examiner.tests(mutant.unit, exercise.name)
            for verdict in examiner.verdicts(mutant.unit, exercise.name, bench, names):
                if verdict.outcome == "failed" and verdict.test.points:
                    return True
                verdicts.append(verdict)
        report = scoring.score(exercise, verdicts, library_calls=set())
    except (Exception, OverLimit):  # it cannot even be defined
        return True
    return report.score < report.max_score


def survivors(examiner: Examiner, unit: str) -> Survivors:
    """Grade the mutants of a unit."""
    verdicts = [(mutant, is_killed(examiner, mutant)) for mutant in mutants(unit)]
    return Survivors(unit, len(verdicts), [mutant for mutant, killed in verdicts if not killed])


def to_locate(examiner: Examiner) -> Iterator[EditedAnswer]:
    """Yield killed mutants of alternative solutions of held-out exercises."""
    found = [
        mutant
        for unit in course.unit_names()
        for exercise, name, code in answers(unit)
        if name != exercise and is_held_out(exercise) and exercise not in reasons()
        for mutant in islice(drawn(unit, exercise, name, code, f"{SEED} located"), FOR_LINES)
    ]
    Random(SEED).shuffle(found)
    return (mutant for mutant in found if is_killed(examiner, mutant))


def graded(process: GradingProcess, unit: str, exercise: str, source: str, *, repairs: bool) -> ExerciseReport:
    """Grade an answer as a submission whose other answers are right."""
    solutions = {name: one.source() for name, one in catalogue.solutions(unit).items()}
    request = GradeNotebook("typed.ipynb", filled_in(unit, {**solutions, exercise: source}), unit)
    report = process.report(request)
    return (process.report(FindRepairs(request, report)) if repairs else report).exercise(exercise)


def located(process: GradingProcess, mutant: EditedAnswer) -> dict[str, Any]:
    """Grade a mutant as a submission, and return a record of what is reported."""
    report = graded(process, mutant.unit, mutant.exercise, mutant.source, repairs=True)
    return {
        "mutant": described(mutant),
        "exercise": mutant.exercise,
        "lines": sorted(_right_lines(mutant)),
        "diagnosis": report.diagnosis.names if report.diagnosis else "",
        "reported": report.whereabouts.lines if report.whereabouts else [],
        "raised": sorted(raised_lines(report)),
    }


def _right_lines(mutant: EditedAnswer) -> set[int]:
    """Return the edited line, and the first line whose value differs from that of the unedited answer."""
    with contextlib.suppress(Exception, OverLimit), cpu_limit(SECONDS):  # not each mutant can be defined, or ends
        for case, known in cases(mutant.unit, mutant.exercise, mutant.of):
            run = run_of(defined(mutant.unit, mutant.exercise, mutant.source), case, {})
            if not known.is_right(run):
                return {*mutant.lines, *truth(mutant, case, run)}
    return set(mutant.lines)


def main() -> None:
    """Grade the mutants and print or write the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # mutants compare literals and index numbers
    torch.set_num_threads(1)
    examiner = Examiner(collect())
    found = [survivors(examiner, unit) for unit in course.unit_names()]
    unread = [one for each in found for one in each.mutants if not {one.exercise, described(one)} & reasons().keys()]
    if unread:
        sys.exit("\n".join(["Survivors without a reason in mutants.yaml:", *map(described, unread)]))
    sections = {HEADING: killed_section(found)}
    if options.lines:
        sections[HEADING_OF_LINES] = lines_section(_records(examiner, options.lines))
    for heading, section in sections.items():
        print(section)
        if options.write:
            PAGE.write_text(with_section(PAGE.read_text(), heading, section))


def _records(examiner: Examiner, file: Path) -> list[dict[str, Any]]:
    lines = file.read_text().splitlines() if file.exists() else []
    records = {record["mutant"]: record for record in map(json.loads, lines)}
    found = []
    with GradingProcess("cpu") as process, file.open("a") as out:
        for mutant in islice(to_locate(examiner), MOST_LINES):
            if described(mutant) not in records:
                records[described(mutant)] = located(process, mutant)
                print(json.dumps(records[described(mutant)]), file=out, flush=True)
            found.append(records[described(mutant)])
    return found


if __name__ == "__main__":
    main()
