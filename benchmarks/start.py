"""Cost of starting a command: `python -m benchmarks.start [RUNS]`.

Grades one notebook, with a known mistake in it, with `autograder mark`, RUNS (5) times, and records the CPU seconds of
each process, those of all, and the wall time, each as the median and the least. Each process is polled every
few milliseconds, so its work after the last poll counts only in the sum of all. Wall times are meaningful only on an
idle machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from autograder import catalogue
from autograder.course.cells import filled_in
from tests import REPOSITORY

from . import performance
from .cpu_time import of_children
from .memory import ROLES, roles

UNIT, MISTAKE = "dot_product_attention", "score_divided_by_the_root"
_LOOK_SECONDS = 0.01
_TICK = 1 / os.sysconf("SC_CLK_TCK")
NAMES = {**dict(zip(ROLES, ROLES, strict=True)), "coordinator": "the command", "worker": "workers"}


def one_run(notebook: Path) -> dict[str, float]:
    """CPU seconds by process, of all, and wall seconds."""
    before, started = of_children(), time.monotonic()
    command: list[str | Path] = [Path(sys.executable).with_name("autograder"), "mark", notebook, "--device", "cpu"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    used: dict[tuple[str, int], float] = {}
    while process.poll() is None:
        for pid, role in roles(process.pid).items():
            used[role, pid] = _used(pid) or used.get((role, pid), 0.0)
        time.sleep(_LOOK_SECONDS)
    assert process.returncode == 0, "see above"
    wall, found = time.monotonic() - started, defaultdict[str, float](float)
    for (role, _), seconds in used.items():
        found[NAMES[role]] += seconds
    return {**{name: found[name] for name in NAMES.values()}, "all": of_children() - before, "wall time": wall}


def _used(pid: int) -> float:
    """CPU seconds of a process so far, without those of its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) * _TICK


def tables(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds of each process, of all processes, and of wall time."""
    rows = [[name, f"{seconds['median']:.2f}", f"{seconds['least']:.2f}"] for name, seconds in figures.items()]
    return performance.table(["CPU seconds", "median", "least"], rows)


def main() -> None:
    """Measure, and record the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    answers = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    mistake = catalogue.misconceptions(UNIT)[MISTAKE]
    answers[mistake.exercise] = mistake.source()
    with tempfile.TemporaryDirectory() as folder:
        notebook = Path(folder, f"{UNIT}.ipynb")
        notebook.write_bytes(filled_in(UNIT, answers))
        found = [one_run(notebook) for _ in range(1 + runs)][1:]  # the first reads files that no cache has
    seconds = {name: [run[name] for run in found] for name in found[0]}
    figures = {name: {"median": statistics.median(each), "least": min(each)} for name, each in seconds.items()}
    performance.record("start", figures)


if __name__ == "__main__":
    main()
