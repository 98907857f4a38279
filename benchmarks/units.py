"""CPU seconds of a right submission of every unit: `python -m benchmarks.units [--against PYTHON] [UNIT ...]`.

Each submission solves the whole unit, every exercise by the solution or by another right answer of the catalogue. The
class goes through `autograder grade` at isolation level A with one worker; of two classes, a small one and a large one,
the difference is what the further submissions cost: workers, gradebook and feedback page included, the start not.

--against: the Python of another checkout's environment, `CHECKOUT/.venv/bin/python`. Both checkouts grade the same
units in turn, each its own right answers, so that whatever else the machine does affects both alike. The table has the
medians, and the median over the rounds of what the first costs more, in seconds and as a ratio.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from autograder import catalogue, course
from autograder.course.cells import filled_in
from benchmarks.cpu_time import of_children  # absolute: the file also runs in a checkout that lacks it
from benchmarks.stock_course import hand_in

FEW = 4
WITH_RESOURCE_TESTS = ("inference", "efficient_attention", "modern_attention")
"""Units in which some tests measure memory or operations: these may cost more."""


def submissions(unit: str, size: int) -> dict[str, bytes]:
    """Return `size` right submissions, each in another mix of the known right answers."""
    styles = {name: [solution.source()] for name, solution in catalogue.solutions(unit).items()}
    for answer in catalogue.right_answers(unit).values():
        styles[answer.exercise].append(answer.source())
    turns = {name: cycle(sources) for name, sources in styles.items()}
    return {f"student-{number:04}": filled_in(unit, {name: next(turn) for name, turn in turns.items()})
            for number in range(size)}  # fmt: skip


def checkout(python: Path) -> Path:
    """Return the folder of the checkout whose environment this Python is of."""
    return python.absolute().parents[2]


def cpu(python: Path, unit: str, size: int) -> float:
    """Return the CPU seconds in which that checkout grades so many submissions; raises SystemExit if one loses points.

    They are those of the command and of all processes below it: each waits for those that it starts.
    """
    with tempfile.TemporaryDirectory() as folder:
        run_this_file = "import runpy, sys; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
        _run(python, "-c", run_this_file, __file__, unit, "--write", f"{size}", "--folder", folder)
        before = of_children()
        printed = _run(python, "-m", "benchmarks.one_batch", folder, unit, "1", "time")
        used = of_children() - before
    scores = set(json.loads(printed)["scores"].values())
    if len(scores) > 1:
        raise SystemExit(f"{checkout(python)}: right submissions of {unit} get different points: {sorted(scores)}")
    return used


def _run(python: Path, *arguments: str) -> str:
    command = [str(python), "-W", "ignore", *arguments]
    return subprocess.run(command, cwd=checkout(python), check=True, stdout=subprocess.PIPE, text=True).stdout


def rounds(pythons: Sequence[Path], unit: str, size: int, count: int) -> Iterator[list[float]]:
    """Yield, for each round, the CPU seconds of a submission in each checkout; every other round the last begins."""
    for number in range(count):
        order = pythons if number % 2 == 0 else pythons[::-1]
        few, many = ({python: cpu(python, unit, one) for python in order} for one in (FEW, FEW + size))
        yield [(many[python] - few[python]) / size for python in pythons]


def main() -> None:
    """Measure and print a table, a line as soon as a unit is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", metavar="UNIT")
    parser.add_argument("--against", type=Path, metavar="PYTHON")
    parser.add_argument("--submissions", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        (unit,) = asked.units
        hand_in(asked.folder, unit, submissions(unit, asked.write))
        return
    pythons = [Path(sys.executable), *([asked.against] if asked.against else [])]
    ratios = {}
    print("| unit | CPU s a submission | against | more s | ratio | ratio by round |\n|---|---|---|---|---|---|")
    for unit in asked.units or course.unit_names():
        found = list(rounds(pythons, unit, asked.submissions, asked.rounds))
        own, other = ([one[place] for one in found] for place in (0, -1))
        by_round = [one / two for one, two in zip(own, other, strict=True)]
        more = statistics.median(one - two for one, two in zip(own, other, strict=True))
        ratios[unit] = statistics.median(by_round)
        each = " ".join(f"{one:.2f}" for one in by_round)
        medians = f"{statistics.median(own):.3f} | {statistics.median(other):.3f}"
        print(f"| {unit} | {medians} | {more:+.3f} | {ratios[unit]:.3f} | {each} |", flush=True)
    without = [ratio for unit, ratio in ratios.items() if unit not in WITH_RESOURCE_TESTS]
    if without:
        print(f"\nMean ratio over the {len(without)} units without tests of resources: {statistics.mean(without):.3f}")


if __name__ == "__main__":
    main()
