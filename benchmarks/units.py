"""CPU seconds of a right submission of every unit: `python -m benchmarks.units [--against PYTHON] [UNIT ...]`.

Each submission solves the whole unit, every exercise by the solution or by another right answer of the catalogue. One
grading process grades them all, and what it and its workers use for each is read from the kernel; the start is left
out, and so are gradebook and feedback page, on which a unit has no influence.

--against: the Python of another checkout's environment, `CHECKOUT/.venv/bin/python`. Both checkouts grade their
submissions in turn, one by one, so that whatever else the machine does affects both alike. The table has the medians,
and the mean of what the first checkout uses more, in seconds and as a ratio of the sums.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.course.cells import filled_in
from benchmarks.cpu_time import of_tree  # absolute: the file also runs in a checkout that lacks it

WARM_UP = 2
"""Submissions that are graded first: what the grading process learns from them is not counted."""
WITH_RESOURCE_TESTS = ("inference", "efficient_attention")
"""Units in which some tests measure memory or operations: these may use more."""
RUN_THIS_FILE = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"


def submissions(unit: str, size: int) -> list[bytes]:
    """Return `size` right submissions, each in another mix of the known right answers."""
    styles = {name: [solution.source()] for name, solution in catalogue.solutions(unit).items()}
    for answer in catalogue.right_answers(unit).values():
        styles[answer.exercise].append(answer.source())
    turns = {name: cycle(sources) for name, sources in styles.items()}
    return [filled_in(unit, {name: next(turn) for name, turn in turns.items()}) for _ in range(size)]


def grading_process() -> Any:
    """Return a grading process of this checkout, which may be an earlier one with other names."""
    try:
        return importlib.import_module("autograder.pool.grading_pool").GradingProcess("cpu")
    except ImportError:
        return importlib.import_module("autograder.client.marker").Marker("cpu")


def grade_when_told(unit: str, size: int) -> None:
    """Grade the next submission for each line of the input; print its CPU seconds, and the tests that it failed."""
    with grading_process() as process:
        report_on = getattr(process, "grade", None) or process.mark  # the name before the pool
        for notebook, _ in zip(submissions(unit, size), sys.stdin, strict=False):
            before = of_tree(os.getpid())
            report = report_on(f"{unit}.ipynb", notebook, unit)
            used = of_tree(os.getpid()) - before
            failed = [test.name for exercise in report.exercises for test in exercise.tests if test.outcome != "passed"]
            print(json.dumps([used, failed]), flush=True)


def grade(pythons: Sequence[Path], unit: str, size: int) -> list[list[float]]:
    """Return the CPU seconds of each submission, by checkout. Of submissions that fail a test it says so on stderr."""
    seconds: list[list[float]] = [[] for _ in pythons]
    with ExitStack() as stack:
        graders = []
        for python in pythons:
            command = [str(python), "-W", "ignore", "-c", RUN_THIS_FILE, __file__, unit]
            command += ["--submissions", f"{size + WARM_UP}", "--when-told"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            checkout = python.absolute().parents[2]
            process = subprocess.Popen(command, cwd=checkout, text=True, **pipes)  # type: ignore[call-overload]
            graders.append((checkout, stack.enter_context(process)))
        for number in range(size + WARM_UP):
            for place, (checkout, process) in list(enumerate(graders))[:: 1 if number % 2 else -1]:
                process.stdin.write("next\n")
                process.stdin.flush()
                used, failed = json.loads(process.stdout.readline())
                if number >= WARM_UP:
                    seconds[place].append(used)
                if failed:
                    print(f"{checkout}: a right submission of {unit} fails {', '.join(failed)}", file=sys.stderr)
    return seconds


def tables(figures: Mapping[str, float]) -> str:
    """Return a table of the units."""
    from benchmarks import performance

    rows = [[f"`{unit}`", f"{seconds:.2f}"] for unit, seconds in figures.items()]
    return performance.table(["unit", "CPU s a submission, median"], rows)


def main() -> None:
    """Measure and print a table, a line as soon as a unit is done. Without --against, record the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", metavar="UNIT")
    parser.add_argument("--against", type=Path, metavar="PYTHON")
    parser.add_argument("--submissions", type=int, default=20)
    parser.add_argument("--when-told", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.when_told:
        grade_when_told(options.units[0], options.submissions)
        return
    from benchmarks import performance  # which the other checkout may lack

    pythons = [Path(sys.executable), *([options.against] if options.against else [])]
    ratios, figures = {}, {}
    print("| unit | CPU s a submission | against | more, mean | ratio |\n|---|---|---|---|---|")
    for unit in options.units or course.unit_names():
        seconds = grade(pythons, unit, options.submissions)
        own, other = seconds[0], seconds[-1]
        ratios[unit] = sum(own) / sum(other)
        figures[unit] = statistics.median(own)
        medians = f"{statistics.median(own):.3f} | {statistics.median(other):.3f}"
        more = statistics.mean(own) - statistics.mean(other)
        print(f"| {unit} | {medians} | {more:+.3f} | {ratios[unit]:.3f} |", flush=True)
    if not options.against:
        performance.record("units", figures)
        return
    without = [ratio for unit, ratio in ratios.items() if unit not in WITH_RESOURCE_TESTS]
    if without:
        print(f"\nMean ratio over the {len(without)} units without tests of resources: {statistics.mean(without):.3f}")


if __name__ == "__main__":
    main()
