"""Costs of a class of any size: `python -m benchmarks.scale [--folder FOLDER] [SIZE ...]` (100 1000 10000).

For each size a class is made (`big_class`) and taken through the commands as an instructor would: `autograder grade`,
`grade` again with nothing changed, `report` and `export`. CPU time is that of the command and all that it starts.
While a class is marked, CPU time and memory are noted along the way, every two seconds at most, so that looking costs
nothing that counts: what grows with the class shows there too. The figures are written after every command.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import REPOSITORY

from . import big_class, performance
from .cpu_time import of_tree
from .memory import Watching
from .scale_page import plot, tables

__all__ = ["tables"]  # which `performance` calls

UNIT = "dot_product_attention"
_SIZES = (100, 1_000, 10_000)
_NOTED = 40
"""Points along the way of a class, about as many."""
_SELDOM_SECONDS, _OFTEN_SECONDS = 2.0, 0.1
"""Time between two readings of memory, while a class is graded and otherwise."""


@dataclass
class Run:
    """One command, measured."""

    command: Sequence[str]
    progress: Path | None = None
    """A folder with one entry for each submission that is done."""
    out: dict[str, Any] = field(default_factory=dict)

    def measure(self, size: int) -> dict[str, Any]:
        """Runs it; raises SystemExit, with what it said, where it fails."""
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "autograder", *self.command],
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=REPOSITORY,
            )
            with Watching(process.pid, _SELDOM_SECONDS if self.progress else _OFTEN_SECONDS) as watching:
                over = threading.Event()
                noting = threading.Thread(target=self._note, args=(process.pid, size, watching, over, started))
                noting.start()
                _, status, used = os.wait4(process.pid, 0)
                over.set()
                noting.join()
            said.seek(0)
            text = said.read()
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"{self.command} ended with {status}: {text[-2000:]}")
        self.out |= {
            "cpu": used.ru_utime + used.ru_stime,
            "wall": time.monotonic() - started,
            "memory": watching.most,
        }
        return self.out

    def _note(self, pid: int, size: int, watching: Watching, over: threading.Event, started: float) -> None:
        if self.progress is None:
            return
        along = self.out["along"] = []
        step, wanted = max(1, size // _NOTED), 0
        while not over.wait(0.5):
            done = sum(1 for _ in self.progress.iterdir()) if self.progress.is_dir() else 0
            if done > wanted:
                wanted = (done // step + 1) * step
                now = {role: held[1] for role, held in watching.now.items()}
                along.append([done, of_tree(pid), time.monotonic() - started, now])


def measure(size: int, folder: Path | None, markers: int) -> Iterator[dict[str, Any]]:
    """Yield the figures so far after each command, for a class of this size in a folder that is removed in the end."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=folder, prefix=f"class-of-{size}-"))
    try:
        big_class.submit(root, UNIT, size)
        of_class = ["--course", str(root)]
        grade = ["grade", UNIT, *of_class, "--markers", str(markers), "--require-isolation", "A"]
        found: dict[str, Any] = {"load": os.getloadavg()[0]}
        found["grade"] = Run(grade, root / "feedback").measure(size)
        found["gradebook MB"] = (root / "gradebook.db").stat().st_size / 1e6
        found["folder MB"] = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) / 1e6
        yield found
        table = ["--output", str(root / "marks.csv")]
        for name, command in (
            ("grade again", grade),
            ("report", ["report", UNIT, *of_class]),
            ("export", ["export", UNIT, *of_class, *table]),
        ):
            found[name] = Run(command).measure(size)
            yield found
    finally:
        shutil.rmtree(root)


def main() -> None:
    """Measure, and record the figures and a plot after every command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("sizes", nargs="*", type=int, default=_SIZES, metavar="SIZE")
    asked.add_argument("--folder", type=Path, help="where the classes' folders are made, some 0.5 MB a submission")
    asked.add_argument("--markers", type=int, default=os.cpu_count() or 1)
    given = asked.parse_args()
    figures: dict[str, Any] = {"unit": UNIT, "cores": os.cpu_count(), "markers": given.markers, "sizes": {}}
    for size in given.sizes:
        for found in measure(size, given.folder, given.markers):
            figures["sizes"][str(size)] = found
            performance.record("scale", figures)
            plot(figures, performance.FIGURES / "scale.svg")


if __name__ == "__main__":
    main()
