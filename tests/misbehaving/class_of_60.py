"""A class of 60 of whom 20 misbehave, each in a way of its own: `python -m tests.misbehaving.class_of_60`.

Prints how long `autograder grade` takes with them and with honest students in their place.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.course.cells import filled_in

UNIT = "dot_product_attention"
HONEST = [f"student-{number:02}" for number in range(40)]
FULL = course.unit(UNIT).max_score
RIGHT = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
POINTS = {exercise.name: exercise.points for exercise in course.unit(UNIT).exercises}

FORGED = (
    '<div class="nbgrader_cell"><div class="full-credit modal-backdrop fade" id="test_softmax" onclick="alert(1)">'
    '<a href="https://elsewhere.example">x</a></div></div><script>alert(1)</script>'
)

Put = Callable[[Path], None]
"""Puts a student's folder, which is not there yet, at this path."""


def right(change: Callable[[list[dict[str, Any]]], None] = lambda cells: None, **answers: str) -> bytes:
    """The solved notebook, with other answers and after a change of its cells."""
    data = json.loads(filled_in(UNIT, {**RIGHT, **answers}))
    change(data["cells"])
    return json.dumps(data).encode()


def _text(kind: str, *sources: str) -> bytes:
    """The solved notebook and cells of a kind with these texts."""

    def add(cells: list[dict[str, Any]]) -> None:
        for number, source in enumerate(sources):
            cell = {"cell_type": kind, "id": f"added-{number}", "metadata": {}, "source": source}
            cells.append(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))

    return right(add)


def _written(answer: str) -> bytes:
    """The solved notebook with this answer to the written question."""

    def write(cells: list[dict[str, Any]]) -> None:
        next(cell for cell in cells if cell["id"] == "why_softmax")["source"] = answer

    return right(write)


def _outputs(megabytes: int) -> bytes:
    def print_much(cells: list[dict[str, Any]]) -> None:
        text = {"output_type": "stream", "name": "stdout", "text": "x" * (megabytes << 20)}
        next(cell for cell in cells if cell["id"] == "softmax")["outputs"] = [text]

    return right(print_much)


def _file(content: bytes, stamp: str = "") -> Put:
    def put(student: Path) -> None:
        (student / UNIT).mkdir(parents=True)
        (student / UNIT / f"{UNIT}.ipynb").write_bytes(content)
        if stamp:
            (student / UNIT / "timestamp.txt").write_text(stamp)

    return put


def _answer(code: str) -> Put:
    return _file(right(context_vector=code))


def _pipe(student: Path) -> None:
    (student / UNIT).mkdir(parents=True)
    os.mkfifo(student / UNIT / f"{UNIT}.ipynb")


def _linked_folder(student: Path) -> None:
    student.mkdir(parents=True)
    (student / UNIT).symlink_to(student.parent / HONEST[0] / UNIT, target_is_directory=True)


_SLEEP = "import time\ntime.sleep(1000)"
_EVERY_KEY_ONE_HASH = """
class Same(int):
    def __hash__(self): return 0
def context_vector(weights, inputs):
    few = {1: 2}
    class Many(dict):
        def items(self): return [(n % 4 * (2**61 - 1) - n // 4 * 0, n) for n in range(9000)]
        def __len__(self): return 9000
    return [Many(few) for _ in range(4)]
"""
_IGNORES_ITS_LIMIT = """
import resource, signal
def context_vector(weights, inputs):
    signal.signal(signal.SIGXCPU, lambda *about: None)
    resource.setrlimit(resource.RLIMIT_CPU, resource.getrlimit(resource.RLIMIT_CPU)[1:] * 2)
    while True:
        pass
"""
_MANY_THREADS = """
import threading, time
for _ in range(200):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)
def context_vector(weights, inputs):
    return weights @ inputs
"""

WHO: dict[str, tuple[Put, float]] = {
    "fence-never-lexed": (_file(_written("```mcschema\n<!--\n```")), FULL),
    "fence-lexed-for-minutes": (_file(_written("```autohotkey\n" + " " * 9_900 + "\n```")), FULL),
    "many-line-ends": (_file(_text("code", *["\n" * 9_900 + "x = 1"] * 10)), FULL),
    "ten-raw-cells": (_file(_text("raw", *["<a<b " * 30_000] * 10)), FULL),
    "one-raw-cell": (_file(_text("raw", "<p" * 6_000_000)), FULL),
    "recursive-markdown": (_file(_written("> " * 600)), FULL),
    "recursive-lists": (_file(_text("markdown", "".join(" " * n + "- x\n" for n in range(140)))), FULL),
    "forged-raw-cell": (_file(_text("raw", FORGED)), FULL),
    "forged-cell-type": (_file(_text("poem", FORGED)), FULL),
    "forged-formula": (_file(_written("$\\class{full-credit modal-backdrop fade}{x}$ " + FORGED)), FULL),
    "ten-sleeping-cells": (_file(_text("code", *[_SLEEP] * 10)), FULL),
    "ignores-its-limit": (_answer(_IGNORES_ITS_LIMIT), FULL - POINTS["context_vector"]),
    "many-keys": (_answer(_EVERY_KEY_ONE_HASH), FULL - POINTS["context_vector"]),
    "large-tensors": (
        _answer("def context_vector(weights, inputs): return torch.zeros(4000, 4000)"),
        FULL - POINTS["context_vector"],
    ),
    "float8": (
        _answer("def context_vector(weights, inputs): return (weights @ inputs).to(torch.float8_e4m3fn)"),
        FULL - POINTS["context_vector"],
    ),
    "many-threads": (_answer(_MANY_THREADS), FULL - POINTS["context_vector"]),
    "sixty-megabytes-of-outputs": (_file(_outputs(60)), FULL),
    "odd-time": (_file(right(), "2026-11-22 10:00:00 UTC+99:99"), FULL),
    "pipe": (_pipe, 0.0),
    "linked-folder": (_linked_folder, 0.0),
}
"""The hand-ins of those who misbehave, with the score that each must get."""


def make(root: Path, *, misbehaving: bool, honest: Sequence[str] = HONEST) -> dict[str, float]:
    """Fills ROOT/submitted; the score that each student must get."""
    submitted = root / "submitted"
    for student in honest:
        _file(right())(submitted / student)
    for student, (put, _) in WHO.items():
        (put if misbehaving else _file(right()))(submitted / student)
    return dict.fromkeys(honest, FULL) | {
        student: score if misbehaving else FULL for student, (_, score) in WHO.items()
    }


def grade(root: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """`autograder grade` on the class, by two workers."""
    command = [Path(sys.executable).with_name("autograder"), "grade", UNIT, "--course", root, "--markers", "2"]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)


def main() -> int:
    """Measures both classes, one after the other."""
    took = {}
    for misbehaving in (False, True):
        root = Path(tempfile.mkdtemp(prefix="class-of-60-"))
        make(root, misbehaving=misbehaving)
        started = time.monotonic()
        done = grade(root, 3600)
        took[misbehaving] = time.monotonic() - started
        print(f"{'20 of them misbehave' if misbehaving else 'all are honest'}: {took[misbehaving]:.1f} s")
        if done.returncode not in (0, 1):
            print(done.stdout, done.stderr, sep="\n")
        shutil.rmtree(root)
    print(f"for each who misbehaves: {(took[True] - took[False]) / len(WHO):.1f} s more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
