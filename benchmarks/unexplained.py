"""Cost of a vain search for two mistakes in one answer: `python -m benchmarks.unexplained UNIT [SIZE]`.

Marks a class of SIZE (40). A quarter is right; the others make three known mistakes in one exercise, which mostly
nothing explains: the dearest answers that there are. The first ones find out what pairs show, and the others use it.
"""

import itertools
import json
import os
import random
import statistics
import sys
import time
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


def main() -> None:
    """Marks the class, and prints the CPU seconds as one JSON object."""
    torch.set_num_threads(1)
    unit, size = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    notebooks, spent = class_of(size, unit), list[float]()
    explaining = Pairs.explaining

    def timed(self: Pairs, transcript: Any) -> Any:
        begun = time.thread_time()
        try:
            return explaining(self, transcript)
        finally:
            spent.append(time.thread_time() - begun)

    Pairs.explaining = timed  # type: ignore[method-assign]
    settings = load()
    with ForkServer(launch("A", settings.limits, cuda=False, check=settings.check)) as sandbox:
        grading = NotebookGrading(Examiner(collect()), sandbox, Ready("cpu", sandbox.isolation, sandbox.enforced))
        before = of_tree(os.getpid())
        for content in notebooks:
            grading.grade(GradeNotebook("typed.ipynb", content, unit))
        cpu = of_tree(os.getpid()) - before
    print(
        json.dumps(
            {
                "submissions": len(notebooks),
                "CPU s a submission, without": round((cpu - sum(spent)) / len(notebooks), 3),
                "answers that no single mistake explains": len(spent),
                "CPU s for them": round(sum(spent), 2),
                "median": round(statistics.median(spent), 3),
                "of the second half": round(statistics.median(spent[len(spent) // 2 :]), 3),
                "more CPU": f"{sum(spent) / (cpu - sum(spent)):.0%}",
            }
        )
    )


if __name__ == "__main__":
    main()
