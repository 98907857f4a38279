"""What the search for repairs costs a class: `python -m benchmarks.repairs [--unit UNIT] [--students 100]`.

Grades the same class without and with the search, one after the other, each in a new folder. A quarter of the class is
right. The others make three known mistakes in one exercise, which nothing explains in some 65 of 100. No two of them
submit the same code, and two edits repair few, so no class of this size takes longer. Prints one JSON object. On a busy
machine the ratios tell more than the seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autograder.classroom.assignment import assignment
from autograder.classroom.grade import grade
from autograder.course import settings
from autograder.reports.graded_notebook import read_report
from tests import REPOSITORY

from . import stock_course
from .cpu_time import of_tree
from .unexplained import class_of


def graded(root: Path, unit: str, markers: int, *, repair: bool) -> dict[str, Any]:
    """Grade a class folder; return the seconds until all points are recorded, and those until the end."""
    began, stages = time.monotonic(), list[tuple[float, float]]()

    def note(*stage: object) -> None:
        stages.append((time.monotonic() - began, of_tree(os.getpid())))

    work = assignment(unit, root, None, None)
    result = grade(work, device="cpu", settings=settings.load(), markers=markers, repair=repair, on_start=note)
    note()
    reports = [read_report(root / "autograded" / row.student / unit, unit) for row in result.rows]
    exercises = [exercise for report in reports if report for exercise in report.exercises]
    return {
        "points": stages[1],
        "all": stages[-1],
        "unexplained": sum(one.behaviour is not None or bool(one.repairs) for one in exercises),
        "repaired": sum(bool(one.repairs) for one in exercises),
    }


def main() -> None:
    """Grade the class twice, each time in a process of its own, and print what it took."""
    options = argparse.ArgumentParser()
    options.add_argument("--unit", default="self_attention")
    options.add_argument("--students", type=int, default=100)
    options.add_argument("--markers", type=int, default=1)
    options.add_argument("--folder", help="grade the class in this folder, and print the times")
    options.add_argument("--repair", action="store_true", help="with a search for repairs")
    chosen = options.parse_args()
    if chosen.folder:
        print(json.dumps(graded(Path(chosen.folder), chosen.unit, chosen.markers, repair=chosen.repair)))
        return
    notebooks = {f"student{n:03}": content for n, content in enumerate(class_of(chosen.students, chosen.unit))}
    runs = []
    for more in ([], ["--repair"]):
        with tempfile.TemporaryDirectory() as folder:
            stock_course.hand_in(Path(folder), chosen.unit, notebooks)
            terms = ["--folder", folder, "--unit", chosen.unit, "--markers", str(chosen.markers), *more]
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.repairs", *terms]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
            runs.append(json.loads(done.stdout))
    (without, cpu_without), (_, cpu_with) = runs[0]["all"], runs[1]["all"]
    figures = {
        "students": len(notebooks),
        "unexplained answers": runs[0]["unexplained"],
        "repaired": runs[1]["repaired"],
        "CPU s without, with": [round(cpu_without, 1), round(cpu_with, 1)],
        "CPU s more for an unexplained answer": round((cpu_with - cpu_without) / max(runs[0]["unexplained"], 1), 2),
        "CPU ratio": round(cpu_with / cpu_without, 2),
        "time until all points are recorded, ratio": round(runs[1]["points"][0] / without, 2),
        "time until the end, ratio": round(runs[1]["all"][0] / without, 2),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
