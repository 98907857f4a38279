"""Time that students wait for `autograder serve`: `python -m benchmarks.serve [ROUNDS] [MARKERS]`.

Submits through a real exchange to a class of 200, and waits for the released page: one submission, 20 at once, and 20
at once with another one that hangs. Records the seconds from the submission to the page, and CPU time while idle.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.utils import notebook_hash

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.sandbox.client import children

from . import performance

UNIT = "dot_product_attention"
STUDENTS, AT_ONCE = 200, 20
_MOST_SECONDS = 120
_HANGS = "def softmax(x):\n    while True:\n        pass\n"
_AUTOGRADER = Path(sys.executable).with_name("autograder")


class Course:
    """A class's folder with an exchange."""

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run([_AUTOGRADER, "new-course", root, UNIT], check=True, capture_output=True)
        (root / "roster.csv").write_text("id\n" + "".join(f"s{number:03}\n" for number in range(STUDENTS)))
        with (root / "nbgrader_config.py").open("a") as settings:
            settings.write("c.ExchangeCollect.check_owner = False\n")
        self.inbound = root / "exchange" / "attention" / "inbound"
        self.inbound.mkdir(parents=True)
        self._count = 0

    def submit(self, student: str, **answers: str) -> Path:
        """Submit as nbgrader's `submit` does; return the page that is released for the submission."""
        self._count += 1
        solutions = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
        mistakes = list(catalogue.misconceptions(UNIT).values())
        mistake = mistakes[self._count % len(mistakes)]
        wrong = {mistake.exercise: mistake.source()} if self._count % 2 else {}
        text = filled_in(UNIT, {**solutions, **wrong, **answers, "why_softmax": f"Answer {self._count}."})
        moment = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f UTC}"
        secret = f"{self._count:0128}"
        folder = self.inbound / f"{student}+{UNIT}+{moment}+r"
        folder.mkdir()
        (folder / f"{UNIT}.ipynb").write_bytes(text)
        (folder / "timestamp.txt").write_text(moment)
        (folder / "submission_secret.txt").write_text(secret)
        folder.chmod(0o777)
        name = notebook_hash(secret=secret, notebook_id=UNIT)
        return self.root / "exchange" / "attention" / "feedback" / f"{name}.html"


def waited(pages: list[Path]) -> list[float]:
    """Seconds until each page is there."""
    begun, found = time.monotonic(), dict.fromkeys(pages, 0.0)
    while not all(found.values()):
        for page in pages:
            if not found[page] and page.exists():
                found[page] = time.monotonic() - begun
        if time.monotonic() - begun > _MOST_SECONDS:
            raise SystemExit("A page did not come.")
        time.sleep(0.005)
    return list(found.values())


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and all its running descendants."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100 + sum(map(cpu_seconds, children(pid)))


def tables(figures: Mapping[str, Sequence[float]]) -> str:
    """Return a table of seconds. figures: for each row the median; if there were several, the least and the most."""
    rows = [
        [name, f"{median:.3g}", " to ".join(f"{seconds:.3g}" for seconds in spread)]
        for name, (median, *spread) in figures.items()
    ]
    return performance.table(["seconds", "median", "range"], rows)


def main() -> None:
    """Serve, submit, and record the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    folder = Path(tempfile.mkdtemp())
    course = Course(folder / "course")
    begun = time.monotonic()
    command: list[str | Path] = [_AUTOGRADER, "serve", UNIT, "--course", course.root]
    command += ["--markers", sys.argv[2]] if sys.argv[2:] else []
    serving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert serving.stderr
        print(serving.stderr.readline().strip())
        start = time.monotonic() - begun
        alone = [waited([course.submit(f"s{number:03}")])[0] for number in range(2 * rounds)]
        last: dict[bool, list[float]] = {False: [], True: []}
        number, hung = 100, list[float]()
        for hanging in (False, True):
            for _ in range(rounds):
                hangs = course.submit("s199", softmax=_HANGS) if hanging else None
                pages = [course.submit(f"s{number + one:03}") for one in range(AT_ONCE)]
                number = 100 + (number - 80) % 80
                seconds = waited([*pages, hangs] if hangs else pages)
                last[hanging].append(max(seconds[:AT_ONCE]))
                hung += seconds[AT_ONCE:]
        time.sleep(2)
        before = cpu_seconds(serving.pid)
        time.sleep(60)
        figures = {
            "start of `serve`": [start],
            "the first one after the start": alone[:1],
            "one alone": _spread(alone[1:]),
            f"the last of {AT_ONCE} at once": _spread(last[False]),
            f"the last of {AT_ONCE} at once, with another one that hangs": _spread(last[True]),
            "the one that hangs": _spread(hung),
            "CPU time of an idle minute": [cpu_seconds(serving.pid) - before],
        }
        performance.record("serve", figures)
    finally:
        serving.terminate()
        serving.wait()
        shutil.rmtree(folder)


def _spread(seconds: list[float]) -> list[float]:
    return [statistics.median(seconds), min(seconds), max(seconds)]


if __name__ == "__main__":
    main()
