"""What a submission costs, here and with stock nbgrader: `python -m benchmarks.class_of_100 [OURS] [STOCK] [ROUNDS]`.

The same submissions go through stock `nbgrader autograde` and `generate_feedback` with the same checks as hidden test
cells, through the same with kernels that are shut down at once, and through `autograder grade` at isolation level A.
The three take turns, slice by slice, so that whatever else the machine does falls on all of them alike. A slice is
graded with one submission and with many; the difference is what the others cost, the rest is what a batch costs once.
OURS submissions (100) go through ours, STOCK (12) through the other two, which need seconds each.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from autograder.course import REPOSITORY

from . import stock_course

UNIT = "dot_product_attention"
FIGURES = REPOSITORY / "docs" / "figures"
STOCK, IMMEDIATE, OURS = "stock nbgrader", "stock, kernels shut down at once", "autograder grade"
Submissions = Mapping[str, bytes]


def stock(more: str, checks: Mapping[str, Any]) -> Callable[[Submissions], dict[str, Any]]:
    """What grades submissions with stock nbgrader; `more` stands in its configuration."""

    def run(submissions: Submissions) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            stock_course.build(root, UNIT, checks, more)
            stock_course.hand_in(root, UNIT, submissions)
            before, started = _children(), time.monotonic()
            stock_course.nbgrader(root, "autograde", UNIT)
            stock_course.nbgrader(root, "generate_feedback", UNIT)
            return {"cpu": _children() - before, "wall": time.monotonic() - started}

    return run


def ours(submissions: Submissions, workers: int = 1, wanted: str = "time") -> dict[str, Any]:
    """What `autograder grade` takes, told by `one_batch`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        stock_course.hand_in(root, UNIT, submissions)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.one_batch", folder, UNIT, str(workers), wanted]
        before, started = _children(), time.monotonic()
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
        told: dict[str, Any] = json.loads(done.stdout)
        return {**told, "cpu": _children() - before, "wall": time.monotonic() - started}


def measure(sizes: Mapping[str, int], rounds: int) -> dict[str, Any]:
    """Seconds a submission and once, by pipeline, from one slice a round."""
    checks = stock_course.calls(UNIT)
    runs = {STOCK: stock("", checks), IMMEDIATE: stock(stock_course.IMMEDIATE, checks), OURS: ours}
    slices: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            size = sizes[name] // rounds
            part = dict(list(stock_course.class_of(sizes[name], UNIT).items())[number * size : (number + 1) * size])
            one, many = run(dict(list(part.items())[:1])), run(part)
            each = {kind: (many[kind] - one[kind]) / (size - 1) for kind in ("cpu", "wall")}
            slices[name].append({**each, "once": one["cpu"] - each["cpu"]})
            print(name, {kind: round(value, 3) for kind, value in slices[name][-1].items()}, file=sys.stderr)
    return {
        name: _median(parts) | {"submissions": sizes[name], "slices": [found["cpu"] for found in parts]}
        for name, parts in slices.items()
    }


def main() -> None:
    """Measures, prints a table, and writes the figures and the plot."""
    total, few, rounds = (int(given) for given in (*sys.argv[1:], *("100", "12", "3")[len(sys.argv) - 1 :]))
    figures: dict[str, Any] = {"unit": UNIT, "cores": os.cpu_count(), "rounds": rounds}
    figures["pipelines"] = measure({STOCK: few, IMMEDIATE: few, OURS: total}, rounds)
    whole = stock_course.class_of(total, UNIT)
    figures["workers"], figures["stages"] = with_workers(whole, rounds)
    figures["stages"]["marking"] = figures["pipelines"][OURS]["cpu"] - sum(figures["stages"].values())
    figures["memory"] = {}
    for size in (total, 10 * total):
        held = ours(stock_course.class_of(size, UNIT), os.cpu_count() or 1, "memory")["memory"]
        figures["memory"][str(size)] = held
        write(figures)


def with_workers(whole: Submissions, rounds: int) -> tuple[dict[int, dict[str, float]], dict[str, float]]:
    """Seconds a submission by the number of workers, without what a batch costs once; and the stages of one worker."""
    few = dict(list(whole.items())[:2])
    each: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    stages: list[dict[str, float]] = []
    for _ in range(rounds):
        for workers, found in each.items():
            start, batch = ours(few, workers), ours(whole, workers)
            found.append({kind: (batch[kind] - start[kind]) / (len(whole) - len(few)) for kind in ("cpu", "wall")})
            print(workers, "workers", found[-1], file=sys.stderr)
            if workers == 1:
                stages.append({name: seconds / len(whole) for name, seconds in batch["stages"].items()})
    return {workers: _median(found) for workers, found in each.items()}, _median(stages)


def write(figures: Mapping[str, Any]) -> None:
    """The figures as JSON, as a table, and as a plot."""
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
    """The figures as tables for docs/performance.md."""
    base = figures["pipelines"][STOCK]["cpu"]
    lines = [
        "| | submissions | CPU s a submission | wall s a submission | CPU s once | less CPU |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in figures["pipelines"].items():
        numbers = f"{found['cpu']:.3f} | {found['wall']:.3f} | {found['once']:.1f} | {base / found['cpu']:.1f} times"
        lines.append(f"| {name} | {found['submissions']} | {numbers} |")
    lines += ["", "| stage of `autograder grade` | CPU ms a submission |", "|---|---|"]
    lines += [f"| {name} | {1000 * seconds:.1f} |" for name, seconds in figures["stages"].items()]
    lines += ["", "| workers | CPU s a submission | wall s a submission | faster |", "|---|---|---|---|"]
    alone = figures["workers"][1]["wall"]
    lines += [
        f"| {workers} | {found['cpu']:.3f} | {found['wall']:.3f} | {alone / found['wall']:.2f} times |"
        for workers, found in figures["workers"].items()
    ]
    lines += ["", "| class of | process | resident MB, at most | proportional | private |", "|---|---|---|---|---|"]
    for size, roles in figures["memory"].items():
        lines += [f"| {size} | {role} | {' | '.join(f'{most:.0f}' for most in held)} |" for role, held in roles.items()]
    return "\n".join(lines) + "\n"


def _median(parts: list[dict[str, float]]) -> dict[str, float]:
    return {kind: statistics.median(found[kind] for found in parts) for kind in parts[0]}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
