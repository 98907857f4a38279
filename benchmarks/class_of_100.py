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

from matplotlib.figure import Figure

from autograder.classroom.batch import EACH
from tests import REPOSITORY

from . import stock_course
from .cpu_time import of_children
from .one_batch import STAGES

UNIT = "dot_product_attention"
FIGURES = REPOSITORY / "docs" / "figures"
STOCK, IMMEDIATE = "stock nbgrader", "stock, kernels shut down at once"
OURS, TWO_WORKERS = "autograder grade, one worker", "autograder grade, two workers"
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


def ours(submissions: Submissions, workers: int = 1, wanted: str = "time") -> dict[str, Any]:
    """Return the time or memory that `autograder grade` takes, as `one_batch` prints it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        stock_course.submit(root, UNIT, submissions)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.one_batch", folder, UNIT, str(workers), wanted]
        before, started = of_children(), time.monotonic()
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
        told: dict[str, Any] = json.loads(done.stdout)
        return {**told, "cpu": of_children() - before, "wall": time.monotonic() - started}


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
    """Measures, prints a table, and writes the figures and the plot."""
    total, few, rounds = (int(given) for given in (*sys.argv[1:], *("100", "8", "5")[len(sys.argv) - 1 :]))
    sizes = {STOCK: few, IMMEDIATE: few, OURS: total, TWO_WORKERS: total}
    figures: dict[str, Any] = {"unit": UNIT, "cores": os.cpu_count(), "pipelines": measure(sizes, rounds), "memory": {}}
    for size in (total, 10 * total):
        write(figures)
        held = ours(stock_course.class_of(size, UNIT), os.cpu_count() or 1, "memory")["memory"]
        figures["memory"][str(size)] = held
    write(figures)


def write(figures: Mapping[str, Any]) -> None:
    """Writes the figures as JSON, as a table, and as a plot."""
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / "class_of_100.json").write_text(json.dumps(figures, indent=1) + "\n")
    table = as_markdown(figures)
    (FIGURES / "class_of_100.md").write_text(table)
    print(table)
    names = list(figures["pipelines"])
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(names[::-1], [figures["pipelines"][name]["cpu"] for name in names[::-1]], color="#4c72b0")
    axes.bar_label(bars, fmt="%.2f s", padding=3)
    axes.set_xlabel("CPU seconds a submission: marking, gradebook and feedback page")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.15)
    figure.savefig(FIGURES / "class_of_100.svg", metadata={"Date": None})


def as_markdown(figures: Mapping[str, Any]) -> str:
    """Return the page of the figures, which docs/performance.md repeats."""
    pipelines = figures["pipelines"]
    lines = [
        "# Figures: a class of 100",
        "",
        "| | submissions | CPU s a submission | wall s a submission | CPU s once | less CPU | by round |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in pipelines.items():
        less = _in_each_round(pipelines[STOCK], found, "cpu")
        numbers = f"{found['cpu']:.3f} | {found['wall']:.3f} | {found['once']:.1f}"
        spread = ", ".join(f"{one:.1f}" for one in less)
        lines.append(
            f"| {name} | {found['submissions']} | {numbers} | {statistics.median(less):.1f} times | {spread} |"
        )
    faster = statistics.median(_in_each_round(pipelines[OURS], pipelines[TWO_WORKERS], "wall"))
    busy = pipelines[OURS]["cpu"] / pipelines[OURS]["wall"]
    most = figures["cores"] / busy
    lines += ["", f"Two workers are {faster:.2f} times as fast as one. One worker and the process that writes the"]
    lines += [f"results together keep {busy:.2f} processors busy. So on a machine with {figures['cores']} processors,"]
    lines += [f"two workers can be at most {most:.2f} times as fast."]
    stages = {stage: pipelines[OURS][stage] for stage in STAGES}
    stages["marking"] = pipelines[OURS]["cpu"] - sum(stages.values())
    lines += ["", "| stage of `autograder grade` | CPU ms a submission |", "|---|---|"]
    lines += [f"| {name} | {1000 * seconds:.1f} |" for name, seconds in stages.items()]
    lines += ["", "| class of | process | resident MB, at most | proportional | private |", "|---|---|---|---|---|"]
    for size, roles in figures["memory"].items():
        lines += [f"| {size} | {role} | {' | '.join(f'{most:.0f}' for most in held)} |" for role, held in roles.items()]
    return "\n".join(lines) + "\n"


def _in_each_round(one: Mapping[str, Any], other: Mapping[str, Any], kind: str) -> list[float]:
    """Return the ratio of the two in each round, for one kind of cost."""
    return [more / less for more, less in zip(one["rounds"][kind], other["rounds"][kind], strict=True)]


if __name__ == "__main__":
    main()
