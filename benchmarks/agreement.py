"""Agreement of student check and grade on answers outside the catalogue: `python -m benchmarks.agreement`.

Grades each answer of `tests/unseen` as a submission, and runs the released check on it. Compares the outcomes of the
hidden tests that the check tries, the points of these tests, and what is diagnosed.
"""

import argparse
from collections import Counter

import torch

from autograder import course
from autograder.catalogue.mutation_report import check_verdict
from autograder.graders.collection import collect
from autograder.pool.grading_pool import GradingProcess
from tests.typed import alone
from tests.unseen import unseen

BOXES = (
    "A common mistake looks just like",
    "Several common mistakes look like",
    "Two common mistakes at once look just like",
)
"""Openings of the check's sentences on common mistakes."""

PASSES = ("passed", "withheld")
"""Outcomes of a hidden test that the answer passes; whether the points are withheld depends on the other tests."""


def main() -> None:
    """Grade, check, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=1, metavar="N", help="every Nth answer of each unit")
    each = parser.parse_args().each
    torch.set_num_threads(1)
    count, differ = Counter[str](), list[str]()
    unequal_points, points = 0.0, 0.0
    hidden = collect()
    with GradingProcess("cpu") as process:
        for unit in course.unit_names():
            for one in unseen(unit)[::each]:
                exercise = one.answer.exercise
                notebook = alone(unit, **{exercise: one.answer.source()})
                graded = process.grade("unseen.ipynb", notebook, unit).exercise(exercise)
                checked = check_verdict(unit, one.answer)
                count["answers"] += 1
                statements = {test.name: test.statement for test in hidden[unit][exercise]}
                outcomes = [(test, checked.outcome(statements[test.name])) for test in graded.tests]
                tried = [(test, outcome) for test, outcome in outcomes if outcome in ".F"]
                unequal = [test for test, outcome in tried if (test.outcome in PASSES) != (outcome == ".")]
                count["tests"] += len(tried)
                count["tests that differ"] += len(unequal)
                points += sum(test.max_points for test, _ in tried)
                unequal_points += sum(test.max_points for test in unequal)
                differ += [f"{unit} {exercise} {one.answer.name}: {test.name} {test.outcome}" for test in unequal]
                if one.wrong and graded.diagnosis:
                    count["diagnosed by the grade"] += 1
                    is_named = any(box in checked.printed for box in BOXES)
                    count["of these by the check"] += is_named
                    if not is_named:
                        kind = "a part" if graded.diagnosis.is_partial else "two" if graded.diagnosis.beside else "one"
                        differ.append(f"{unit} {exercise} {one.answer.name}: only the grade names {kind}")
                if one.wrong and not graded.diagnosis and any(box in checked.printed for box in BOXES):
                    count["diagnosed only by the check"] += 1
    for name, many in count.items():
        print(f"{name}: {many}")
    print(f"points of the tests that differ: {unequal_points:g} of {points:g} ({unequal_points / points:.2%})")
    print(*differ, sep="\n")


if __name__ == "__main__":
    main()
