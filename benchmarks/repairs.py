"""Measure the search for repairs: `python -m benchmarks.repairs [--unit UNIT] [--students 100] [--unexplained 65]`.

Grades the same class without and with the search, one after the other, each in a new folder. The unexplained answers
make three known mistakes at once, which nothing explains; they are chosen by grading a larger class first. The others
are right. No two of them are equal, and two edits repair few, so no class of this size takes longer. On a
busy machine the ratios tell more than the seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.classroom.assignment import assignment
from autograder.classroom.grade import grade
from autograder.course import settings
from autograder.reports.pages import read_report
from tests import REPOSITORY

from . import performance, stock_course
from .cpu_time import of_tree
from .unexplained import class_of

_POOL = 4
"""Size of the class from which the unexplained answers are chosen, in multiples of their number."""


def graded(root: Path, unit: str, markers: int, *, repair: bool) -> dict[str, Any]:
    """Grade a class folder; return the wall and CPU seconds until all points are recorded, and until the end."""
    began, stages = time.monotonic(), list[tuple[float, float]]()

    def note(*stage: object) -> None:
        stages.append((time.monotonic() - began, of_tree(os.getpid())))

    work = assignment(unit, root, None, None)
    result = grade(work, device="cpu", settings=settings.load(), process_count=markers, repair=repair, on_start=note)
    note()
    reports = {row.student: read_report(root / "autograded" / row.student / unit, unit) for row in result.rows}
    return {
        "points": stages[1],
        "all": stages[-1],
        "unexplained": [student for student, its in reports.items() if its and its.has_unexplained],
        "repaired": sum(any(one.repairs for one in its.exercises) for its in reports.values() if its),
    }


def measured(notebooks: dict[str, bytes], unit: str, markers: int, *more: str) -> dict[str, Any]:
    """Return what `graded` returns for these notebooks, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        stock_course.submit(Path(folder), unit, notebooks)
        terms = ["--folder", folder, "--unit", unit, "--markers", str(markers), *more]
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.repairs", *terms]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures


def tables(figures: Mapping[str, float]) -> str:
    """Return a table of what grading takes with and without the search."""
    return performance.table(["grading without and with the search", ""], list(figures.items()))


def main() -> None:
    """Choose the class, grade it twice, and record the figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--unit", default="self_attention")
    options.add_argument("--students", type=int, default=100)
    options.add_argument("--unexplained", type=int, default=65, help="students with an unexplained answer")
    options.add_argument("--markers", type=int, default=1)
    options.add_argument("--folder", help="grade the class in this folder, and print the times")
    options.add_argument("--repair", action="store_true", help="with a search for repairs")
    chosen = options.parse_args()
    if chosen.folder:
        print(json.dumps(graded(Path(chosen.folder), chosen.unit, chosen.markers, repair=chosen.repair)))
        return
    unit, markers = chosen.unit, chosen.markers
    made = class_of(_POOL * chosen.unexplained, unit)
    pool = {f"student{n:03}": content for n, content in enumerate(made) if n % 4}  # every fourth is right
    wrong = measured(pool, unit, markers)["unexplained"][: chosen.unexplained]
    right = [f"right{n:03}" for n in range(chosen.students - len(wrong))]
    notebooks = {student: pool[student] for student in wrong} | dict.fromkeys(right, made[0])
    runs = [measured(notebooks, unit, markers, *more) for more in ([], ["--repair"])]
    (without, cpu_without), (_, cpu_with) = runs[0]["all"], runs[1]["all"]
    figures = {
        "students": len(notebooks),
        "students with an unexplained answer": len(wrong),
        "of these answers repaired": runs[1]["repaired"],
        "CPU seconds without the search": round(cpu_without, 1),
        "CPU seconds with the search": round(cpu_with, 1),
        "CPU seconds of the search for each of these answers": round((cpu_with - cpu_without) / max(len(wrong), 1), 1),
        "ratio of CPU seconds": round(cpu_with / cpu_without, 2),
        "ratio of wall times until all points are recorded": round(runs[1]["points"][0] / without, 2),
        "ratio of wall times until the end": round(runs[1]["all"][0] / without, 2),
    }
    performance.record("repairs", figures)


if __name__ == "__main__":
    main()
