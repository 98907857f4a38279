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
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.course.settings import Isolation, load
from autograder.pool.grading_pool import GradingProcess
from autograder.sandbox import isolation
from autograder.sandbox.confine import confinement, process
from autograder.sandbox.confine.confinement import Level

from . import performance
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
            "limits": lambda: process.limit(limits, cuda=False, counts_threads=False),
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


def tables(figures: Mapping[str, Any]) -> str:
    """Return a table of levels and one of layers."""
    levels = [
        [level, f"{ms['all']:.1f}", f"{ms['more']:.1f} ± {ms['error']:.1f}" if "more" in ms else ""]
        for level, ms in figures["levels"].items()
    ]
    of_levels = performance.table(["level", "CPU ms a submission", "more than `none` (± 2 standard errors)"], levels)
    layers = [[layer, f"{ms:.2f}"] for layer, ms in figures["layers"].items()]
    return f"{of_levels}\n\n{performance.table(['layer, once a worker', 'CPU ms'], layers)}"


def main() -> None:
    """Measure, and record the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    used = levels(rounds)
    of_levels = {level: {"all": 1000 * statistics.mean(seconds)} for level, seconds in used.items()}
    for level in LEVELS[1:]:
        more = [1000 * (a - b) for a, b in zip(used[level], used["none"], strict=True)]
        error = 2 * statistics.stdev(more) / len(more) ** 0.5
        of_levels[level] |= {"more": statistics.mean(more), "error": error}
    of_layers = {layer: 1000 * statistics.mean(seconds) for layer, seconds in layers(10 * rounds).items()}
    performance.record("isolation", {"levels": of_levels, "layers": of_layers})


if __name__ == "__main__":
    main()
