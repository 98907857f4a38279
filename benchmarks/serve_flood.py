"""Measure a submission's delay by another student's empty folders: `python -m benchmarks.serve_flood [FOLDERS...]`.

Submits through a real exchange, first alone and then next to FOLDERS empty folders that one account has just made. The
default is 2,500 and 14,500 folders. Prints the seconds from the submission to the released page, and the difference
from the submission without empty folders. Both are measured in one run, because the machine may be busy.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .serve import _AUTOGRADER, UNIT, Course, waited

_FOLDERS = (2_500, 14_500)
_TIMES = 5
_SETTLED_SECONDS = 12


def main() -> None:
    """Serves, submits, and prints."""
    folders = [int(number) for number in sys.argv[1:]] or list(_FOLDERS)
    folder = Path(tempfile.mkdtemp())
    course = Course(folder / "course")
    command: list[str | Path] = [_AUTOGRADER, "serve", UNIT, "--course", course.root, "--markers", "2"]
    serving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert serving.stderr
        print(serving.stderr.readline().strip(), flush=True)
        waited([course.submit("s000")])  # the first one also waits until all is warm
        alone = _median(course, 1)
        print(f"alone: {alone:.2f} s", flush=True)
        for number, count in enumerate(folders):
            flood(course.inbound, "s199", count)
            beside = waited([course.submit(f"s{100 + number}")])[0]
            print(
                f"beside {count} new empty folders: {beside:.2f} s, {beside - alone:+.2f} s, {beside / alone:.1f} times"
            )
            time.sleep(_SETTLED_SECONDS)
            later = _median(course, 120 + 10 * number)
            print(f"  {_SETTLED_SECONDS} s later: {later:.2f} s, {later - alone:+.2f} s", flush=True)
    finally:
        serving.terminate()
        serving.wait()
        shutil.rmtree(folder)


def _median(course: Course, first: int) -> float:
    """Seconds that each of some students waits, one after another."""
    return statistics.median(waited([course.submit(f"s{first + number:03}")])[0] for number in range(_TIMES))


def flood(inbound: Path, student: str, count: int) -> None:
    """Makes empty folders in the names of one student's submissions, the newest of all."""
    first = len(list(inbound.iterdir()))
    for number in range(first, first + count):
        (inbound / f"{student}+{UNIT}+2027-01-01 00:00:00.{number:06} UTC+r").mkdir()


if __name__ == "__main__":
    main()
