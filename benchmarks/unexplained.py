"""Cost of a vain search for two mistakes in one answer: `python -m benchmarks.unexplained UNIT... [--size N]`.

Grades a class of N (40) in each unit. A quarter is right; the others make three known mistakes in one exercise, which
mostly nothing explains. These answers cost most. The first ones run the pairs of mistakes, and the others use that.
"""

import argparse
import itertools
import os
import random
import statistics
import time
from collections.abc import Mapping
from typing import Any

import torch

from autograder import catalogue
from autograder.catalogue import Candidate, can_be_combined, combined
from autograder.catalogue.diagnosis import Pairs
from autograder.course.cells import filled_in
from autograder.course.settings import load
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner
from autograder.grading.submission import NotebookGrading
from autograder.pool.requests import GradeNotebook, Ready
from autograder.sandbox.fork_server import ForkServer
from autograder.sandbox.isolation import launch

from . import performance
from .cpu_time import of_tree


def class_of(size: int, unit: str) -> list[bytes]:
    """The notebooks."""
    draw = random.Random(1)
    right = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
    known = [one for one in catalogue.misconceptions(unit).values() if one.caught_by != catalogue.FORBIDDEN]
    of_exercise = {name: [one for one in known if one.exercise == name] for name in right}
    wrong = [
        one for one in (_three(of_exercise[name], draw) for name in itertools.islice(_cycled(right), 5 * size)) if one
    ]
    made = [right if number % 4 == 0 else {**right, one.exercise: one.source()} for number, one in enumerate(wrong)]
    return [filled_in(unit, answers) for answers in made[:size]]


def _cycled(names: Any) -> Any:
    return itertools.cycle(list(names))


def _three(known: list[Candidate], draw: random.Random) -> Candidate | None:
    """Three mistakes at once, if some that are drawn fit together."""
    for _ in range(20):
        three = draw.sample(known, 3) if len(known) >= 3 else []
        if three and all(can_be_combined(*pair) for pair in itertools.combinations(three, 2)):
            one = combined(combined(three[0], three[1]), three[2])
            try:
                _ = one.answer
            except Exception:
                continue
            return one
    return None


def tables(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of the units."""
    rows = [
        [f"`{unit}`", of["submissions"], of["unexplained"], f"{of['more']:.0%}", f"{1000 * of['later']:.0f}"]
        for unit, of in figures.items()
    ]
    columns = ["unit", "submissions", "unexplained answers", "more CPU time", "CPU ms of a later unexplained answer"]
    return performance.table(columns, rows)


def main() -> None:
    """Grade a class of each unit, and record the figures."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="+", metavar="UNIT")
    parser.add_argument("--size", type=int, default=40)
    options = parser.parse_args()
    spent = list[float]()
    explaining = Pairs.explaining

    def timed(self: Pairs, transcript: Any) -> Any:
        begun = time.thread_time()
        try:
            return explaining(self, transcript)
        finally:
            spent.append(time.thread_time() - begun)

    Pairs.explaining = timed  # type: ignore[method-assign]
    settings, figures = load(), {}
    for unit in options.units:
        notebooks = class_of(options.size, unit)
        spent.clear()
        with ForkServer(launch("A", settings.limits, cuda=False, check=settings.check)) as sandbox:
            grading = NotebookGrading(Examiner(collect()), sandbox, Ready("cpu", sandbox.isolation, sandbox.enforced))
            before = of_tree(os.getpid())
            for content in notebooks:
                grading.grade(GradeNotebook("typed.ipynb", content, unit))
            cpu = of_tree(os.getpid()) - before
        figures[unit] = {
            "submissions": len(notebooks),
            "unexplained": len(spent),
            "more": sum(spent) / (cpu - sum(spent)),
            "later": statistics.median(spent[len(spent) // 2 :]),
        }
    performance.record("unexplained", figures)


if __name__ == "__main__":
    main()
