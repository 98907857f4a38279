"""Cost of each layer of isolation for a submission: `python -m benchmarks.isolation [ROUNDS]`.

The same right notebook is marked at each level in turn, so that whatever else the machine does affects all of them
alike. After that, each layer alone: what it costs one worker to put it on.
"""

import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.course.settings import Isolation, load
from autograder.pool.grading_pool import GradingProcess
from autograder.sandbox import isolation
from autograder.sandbox.confine import confinement, process
from autograder.sandbox.confine.confinement import Level

from .cpu_time import of_tree

UNIT = "dot_product_attention"
LEVELS: tuple[Level, ...] = ("none", "B", "A")


def levels(rounds: int) -> dict[str, list[float]]:
    """CPU seconds per submission at each level, marking process and sandbox together, round by round."""
    content = filled_in(UNIT, {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()})
    settings = {level: replace(load(), isolation=Isolation(level, level == "none")) for level in LEVELS}
    graders = {level: GradingProcess("cpu", its) for level, its in settings.items()}
    used: dict[str, list[float]] = {level: [] for level in LEVELS}
    for number in range(rounds + 1):
        for level in LEVELS[number % 3 :] + LEVELS[: number % 3]:
            before = of_tree(graders[level].pid)
            graders[level].grade("right.ipynb", content, UNIT)
            if number:  # the first warms up
                used[level].append(of_tree(graders[level].pid) - before)
    for grader in graders.values():
        grader.close()
    return used


def layers(rounds: int) -> dict[str, list[float]]:
    """CPU seconds that each layer takes in a newly forked process, by its name."""
    limits = load().limits.worker
    program = confinement.compile_filter(cuda=False)
    readable = isolation.readable()
    confinement.landlock_version()  # imports what the fork server imports before it forks
    with tempfile.TemporaryDirectory() as scratch:
        steps: dict[str, Callable[[], None]] = {
            "fork alone": lambda: None,
            "rlimits": lambda: process.limit(limits, cuda=False, counts_threads=False),
            "Landlock": lambda: confinement.restrict_files(readable, scratch),
            "seccomp": lambda: confinement.load_filter(program, os.getpid()),
        }
        return {name: [_in_a_fork(step) for _ in range(rounds)] for name, step in steps.items()}


def _in_a_fork(step: Callable[[], None]) -> float:
    near, far = os.pipe()
    pid = os.fork()
    if not pid:
        started = time.process_time()
        step()
        os.write(far, struct.pack("d", time.process_time() - started))
        os._exit(0)
    os.waitpid(pid, 0)
    used: float = struct.unpack("d", os.read(near, 8))[0]
    os.close(near)
    os.close(far)
    return used


def main() -> None:
    """Prints both tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    console = Console()
    console.print(f"{os.cpu_count()} cores, {UNIT}, {rounds} rounds; milliseconds of CPU time")
    used = levels(rounds)
    table = Table("level", "a submission: mean", "median", "more than none: mean", "± 2 standard errors")
    for level in LEVELS:
        more = [a - b for a, b in zip(used[level], used["none"], strict=True)]
        error = 2 * statistics.stdev(more) / len(more) ** 0.5
        mean, median = statistics.mean(used[level]), statistics.median(used[level])
        table.add_row(level, *(f"{1000 * value:.1f}" for value in (mean, median, statistics.mean(more), error)))
    console.print(table)
    table = Table("layer, once a worker", "mean", "median")
    for name, values in layers(10 * rounds).items():
        table.add_row(name, *(f"{1000 * value:.2f}" for value in (statistics.mean(values), statistics.median(values))))
    console.print(table)


if __name__ == "__main__":
    main()
