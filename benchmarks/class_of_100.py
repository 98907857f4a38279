"""Cost of a submission, here and with stock nbgrader: `python -m benchmarks.class_of_100 [OURS] [STOCK] [ROUNDS]`.

The same submissions go through stock `nbgrader autograde` and `generate_feedback` with the same checks as hidden test
cells, through the same with kernels that are shut down at once, and through `autograder grade` at isolation level A.
They take turns, so that whatever else the machine does affects all alike. Each grades a few submissions, then many; the
difference is the cost of the others, and the rest is what a batch costs once. In each of ROUNDS (5), OURS (100)
submissions go through ours and STOCK (8) through the others, which need seconds each; the figures are the medians. How
much less one costs than another is the median of what each round says: a machine may be slower for minutes.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autograder.classroom.assignment import EACH
from tests import REPOSITORY

from . import performance, stock_course
from .cpu_time import of_children
from .one_batch import STAGES

UNIT = "dot_product_attention"
STOCK, IMMEDIATE = "stock nbgrader", "stock, kernels shut down at once"
OURS, TWO_WORKERS = "`autograder grade`, one worker", "`autograder grade`, two workers"
Submissions = Mapping[str, bytes]
FEW = {STOCK: 2, IMMEDIATE: 2, OURS: 2 * EACH, TWO_WORKERS: 2 * EACH}
"""Sizes of the smaller batches. With fewer submissions than this, `autograder grade` does not start a second worker;
its start would then count among the costs of the other submissions."""


def stock(more: str, checks: Mapping[str, Any]) -> Callable[[Submissions], dict[str, Any]]:
    """A function that grades submissions with stock nbgrader; `more` goes into its configuration."""

    def run(submissions: Submissions) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            stock_course.build(root, UNIT, checks, more)
            stock_course.submit(root, UNIT, submissions)
            before, started = of_children(), time.monotonic()
            stock_course.nbgrader(root, "autograde", UNIT)
            stock_course.nbgrader(root, "generate_feedback", UNIT)
            return {"cpu": of_children() - before, "wall": time.monotonic() - started}

    return run


def ours(submissions: Submissions, workers: int = 1) -> dict[str, Any]:
    """Return the time that `autograder grade` takes, as `one_batch` prints it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        stock_course.submit(root, UNIT, submissions)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.one_batch", folder, UNIT, str(workers)]
        before, started = of_children(), time.monotonic()
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
        figures: dict[str, Any] = json.loads(done.stdout)
        return {**figures, "cpu": of_children() - before, "wall": time.monotonic() - started}


def measure(sizes: Mapping[str, int], rounds: int) -> dict[str, Any]:
    """Seconds per submission and per batch, by pipeline; each round takes different submissions of the class."""
    checks = stock_course.calls(UNIT)
    runs: dict[str, Callable[[Submissions], dict[str, Any]]] = {
        STOCK: stock("", checks),
        OURS: ours,  # next to what it is compared with
        TWO_WORKERS: lambda submissions: ours(submissions, workers=2),
        IMMEDIATE: stock(stock_course.IMMEDIATE, checks),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for number in range(rounds):
        scores = {}
        for name, run in runs.items():
            size = sizes[name]
            part = dict(list(stock_course.class_of(size * rounds, UNIT).items())[number * size : (number + 1) * size])
            few, many = run(dict(list(part.items())[: FEW[name]])), run(part)
            each = {kind: (many[kind] - few[kind]) / (size - FEW[name]) for kind in ("cpu", "wall")}
            stages = {stage: seconds / size for stage, seconds in many.get("stages", {}).items()}
            found[name].append({**each, "once": few["cpu"] - FEW[name] * each["cpu"], **stages})
            scores[name] = many.get("scores")
            print(name, {kind: round(value, 3) for kind, value in found[name][-1].items()}, file=sys.stderr)
        assert scores[OURS] == scores[TWO_WORKERS]
    return {
        name: {kind: statistics.median(part[kind] for part in found[name]) for kind in found[name][0]}
        | {
            "submissions": size * rounds,
            "rounds": {kind: [part[kind] for part in found[name]] for kind in ("cpu", "wall")},
        }
        for name, size in sizes.items()
    }


def main() -> None:
    """Measure, and record the figures."""
    total, few, rounds = (int(given) for given in (*sys.argv[1:], *("100", "8", "5")[len(sys.argv) - 1 :]))
    sizes = {STOCK: few, IMMEDIATE: few, OURS: total, TWO_WORKERS: total}
    performance.record("class_of_100", {"cores": os.cpu_count(), "pipelines": measure(sizes, rounds)})


def tables(figures: Mapping[str, Any]) -> str:
    """Return a table of the four ways to grade, how two workers compare with one, and a table of stages."""
    pipelines = figures["pipelines"]
    rows = []
    for name, found in pipelines.items():
        less = _in_each_round(pipelines[STOCK], found, "cpu")
        numbers = [f"{found['cpu']:.3f}", f"{found['wall']:.3f}", f"{found['once']:.1f}"]
        ratios = [f"{statistics.median(less):.1f} times", ", ".join(f"{one:.1f}" for one in less)]
        rows.append([name, found["submissions"], *numbers, *(ratios if name != STOCK else ("", ""))])
    columns = ["", "submissions", "CPU s a submission", "wall s", "CPU s once", "less CPU", "by round"]
    faster = statistics.median(_in_each_round(pipelines[OURS], pipelines[TWO_WORKERS], "wall"))
    busy = pipelines[OURS]["cpu"] / pipelines[OURS]["wall"]
    workers = (
        f"Two workers are {faster:.2f} times as fast as one. One worker and the process that writes the results\n"
        f"together use {busy:.2f} cores. So on a machine with {figures['cores']} cores, two workers can be at most\n"
        f"{figures['cores'] / busy:.2f} times as fast."
    )
    stages = {stage: pipelines[OURS][stage] for stage in STAGES}
    grading = pipelines[OURS]["cpu"] - sum(stages.values())
    stages = {"grading: the notebook's cells, hidden tests, sandbox, diagnosis": grading, **stages}
    of_stages = [[name, f"{1000 * seconds:.1f}"] for name, seconds in stages.items()]
    return "\n\n".join(
        [
            performance.table(columns, rows),
            workers,
            performance.table(["stage of `autograder grade`, one worker", "CPU ms a submission"], of_stages),
        ]
    )


def _in_each_round(one: Mapping[str, Any], other: Mapping[str, Any], kind: str) -> list[float]:
    """Return the ratio of the two in each round, for one kind of cost."""
    return [more / less for more, less in zip(one["rounds"][kind], other["rounds"][kind], strict=True)]


if __name__ == "__main__":
    main()
