"""Cost of a cluster for each submission: `python -m benchmarks.cluster [SIZE] [ROUNDS]`.

Marks a class of SIZE (40), a quarter of it right, by turns with two marking processes here and with two Dask workers on
this machine over TLS. Gradebook and pages are left out; the marking processes are new in each round on both routes, and
their start counts. Records CPU seconds, of all processes together.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from autograder import catalogue
from autograder.classroom.assignment import Assignment, LocalGrading, assignment
from autograder.cluster.cluster_run import ClusterRun
from autograder.course.cells import filled_in
from autograder.course.settings import HandingIn, load
from tests.dask_cluster import DaskCluster

from . import performance
from .cpu_time import of_tree

UNIT = "dot_product_attention"


def class_of(size: int, root: Path) -> Assignment:
    """Return a class in which every fourth submission is right."""
    right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    wrong = list(catalogue.misconceptions(UNIT).values())
    for number in range(size):
        mistake = wrong[number * 7 % len(wrong)]
        answers = right if number % 4 == 0 else {**right, mistake.exercise: mistake.source()}
        folder = root / "submitted" / f"student-{number:03}" / UNIT
        folder.mkdir(parents=True)
        (folder / f"{UNIT}.ipynb").write_bytes(filled_in(UNIT, answers))
    return assignment(UNIT, root, None, None)


def cost(marking: Any, work: Assignment, number: int) -> float:
    """Return CPU seconds. number: of the round, for which workers start new grading processes."""
    of_round = msgspec.structs.replace(load(), handing_in=HandingIn(str(number)))
    before = of_tree(os.getpid())
    with marking(work, work.submissions, device="cpu", settings=of_round, process_count=2) as desks:
        desks.start()
        for _ in desks.graded():
            pass
        return of_tree(os.getpid()) - before


def tables(figures: Mapping[str, Any]) -> str:
    """Return a table of the two ways to grade."""
    local, cluster = figures["CPU seconds"]["local"], figures["CPU seconds"]["cluster"]
    more = [1000 * (one - other) / figures["submissions"] for one, other in zip(cluster, local, strict=True)]
    rows = [
        ["two local grading processes", *_numbers(local, 1), ""],
        ["a Dask cluster of two workers, with TLS", *_numbers(cluster, 1), _numbers(more, 0)[1]],
    ]
    columns = ["graded by", "CPU s, median", "by round", "CPU ms more a submission"]
    return f"{figures['submissions']} submissions:\n\n{performance.table(columns, rows)}"


def _numbers(values: list[float], places: int) -> tuple[str, str]:
    """Return the median, and all values."""
    return f"{statistics.median(values):.{places}f}", ", ".join(f"{value:.{places}f}" for value in values)


def main() -> None:
    """Measure, and record the figures."""
    given = [int(number) for number in sys.argv[1:]]
    size, rounds = [*given, *(40, 3)[len(given) :]]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "class").mkdir()
        (place / "dask").mkdir()
        work = class_of(size, place / "class")
        cluster = DaskCluster(place / "dask")
        try:
            cluster.workers(2)
            found: dict[str, list[float]] = {"local": [], "cluster": []}
            with cluster.spoken_to() as address:
                there = partial(ClusterRun, scheduler=address, say=lambda sentence: None)
                cost(there, work, -1)  # until both workers are there
                for number in range(rounds):
                    found["local"].append(cost(LocalGrading, work, number))
                    found["cluster"].append(cost(there, work, number))
        finally:
            cluster.close()
    performance.record("cluster", {"submissions": size, "CPU seconds": found})


if __name__ == "__main__":
    main()
