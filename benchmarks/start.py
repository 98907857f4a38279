"""Cost of starting a command: `python -m benchmarks.start [RUNS]`.

Marks one notebook, with a known mistake in it, with `autograder mark`, RUNS (5) times, and prints the CPU seconds of
each process, those of all, and the wall time, each as the median with the least and the most. Each process is
polled every few milliseconds, so its work after the last poll counts only in the sum of all. Wall times are meaningful
only on an idle machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from autograder import catalogue
from autograder.course.cells import filled_in
from tests import REPOSITORY

from .cpu_time import of_children
from .memory import roles

UNIT, MISTAKE = "dot_product_attention", "score_divided_by_the_root"
_LOOK_SECONDS = 0.01
_TICK = 1 / os.sysconf("SC_CLK_TCK")
NAMES = {"coordinator": "the command", "marker": "marking process", "warm parent": "warm parent", "worker": "workers"}


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
    return {**{name: found[name] for name in NAMES.values()}, "all": of_children() - before, "wall": wall}


def _used(pid: int) -> float:
    """CPU seconds of a process so far, without those of its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) * _TICK


def main() -> None:
    """Prints the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    answers = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    mistake = catalogue.misconceptions(UNIT)[MISTAKE]
    answers[mistake.exercise] = mistake.source()
    with tempfile.TemporaryDirectory() as folder:
        notebook = Path(folder, f"{UNIT}.ipynb")
        notebook.write_bytes(filled_in(UNIT, answers))
        found = [one_run(notebook) for _ in range(1 + runs)][1:]  # the first reads files that no cache has
    print(f"{os.cpu_count()} processors, {runs} runs, load before the last minute: {os.getloadavg()[0]:.1f}")
    print("| | seconds | least | most |\n|---|---|---|---|")
    for name in found[0]:
        seconds = [run[name] for run in found]
        print(f"| {name} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |")


if __name__ == "__main__":
    main()
