"""Measure a submission's delay by another student's empty folders: `python -m benchmarks.serve_flood [FOLDERS...]`.

Submits through a real exchange, first alone and then next to FOLDERS empty folders that one account has just made. The
default is 2,500 and 14,500 folders. Records the seconds from the submission to the released page.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from . import performance
from .serve import _AUTOGRADER, UNIT, Course, waited

_FOLDERS = (2_500, 14_500)
_TIMES = 5
_SETTLED_SECONDS = 12


def tables(figures: Mapping[str, float]) -> str:
    """Return a table of the seconds that a student waits."""
    return performance.table(["a submission", "seconds"], [[name, f"{value:.2f}"] for name, value in figures.items()])


def main() -> None:
    """Serve, submit, and record the figures."""
    folders = [int(number) for number in sys.argv[1:]] or list(_FOLDERS)
    folder = Path(tempfile.mkdtemp())
    course = Course(folder / "course")
    command: list[str | Path] = [_AUTOGRADER, "serve", UNIT, "--course", course.root, "--markers", "2"]
    serving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert serving.stderr
        print(serving.stderr.readline().strip(), flush=True)
        waited([course.submit("s000")])  # the first one also waits until all is warm
        alone = [waited([course.submit(f"s{1 + number:03}")])[0] for number in range(_TIMES)]
        figures = {"alone": statistics.median(alone)}
        for number, count in enumerate(folders):
            flood(course.inbound, "s199", count)
            name = f"next to {count:,} more" if number else f"next to {count:,} new empty folders"
            (figures[name],) = waited([course.submit(f"s{100 + number}")])
            time.sleep(_SETTLED_SECONDS)
        performance.record("serve_flood", figures)
    finally:
        serving.terminate()
        serving.wait()
        shutil.rmtree(folder)


def flood(inbound: Path, student: str, count: int) -> None:
    """Makes empty folders in the names of one student's submissions, the newest of all."""
    first = len(list(inbound.iterdir()))
    for number in range(first, first + count):
        (inbound / f"{student}+{UNIT}+2027-01-01 00:00:00.{number:06} UTC+r").mkdir()


if __name__ == "__main__":
    main()
