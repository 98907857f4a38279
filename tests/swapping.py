"""Runs a command of Python's in which files change at the moment when they are opened: `python tests/swapping.py`.

FOLDER COMMAND ...     the command is `autograder` or `nbgrader`, as it is installed
AGAIN=1                in the environment: it is a later run

A student of FOLDER/submitted is called after what happens: `file-link` has a link in the place of the notebook, just
before it is opened; `unit-pipe` a pipe in the place of the unit's folder; and so on. Behind the links is
FOLDER/instructor, with the unit's folder, a solved notebook and a time.
"""

import os
import runpy
import sys
import threading
from collections import Counter
from pathlib import Path

UNIT = "dot_product_attention"
PLACES = ("student", "unit", "file", "stamp")
KINDS = ("link", "pipe", "folder", "grown")
STUDENTS = [
    *(f"{place}-{kind}" for place in PLACES for kind in KINDS if kind != "grown" or place in ("file", "stamp")),
    # At a later opening of the same name, and in a later run.
    "student-link-2", "student-link-3", "unit-link-2",
    "student-link-again", "unit-link-again", "file-link-again", "file-pipe-again", "stamp-link-again",
]  # fmt: skip
GROWN_TO = 300 << 20

_here = threading.local()


def main() -> None:
    """Runs the command with the swaps in place."""
    folder, command, *arguments = sys.argv[1:]
    waiting = {student for student in STUDENTS if student.endswith("-again") == ("AGAIN" in os.environ)}
    opened: Counter[str] = Counter()
    program = Path(sys.executable).with_name(command)
    sys.argv = [str(program), *arguments]

    def opening(event: str, about: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(about[0], str) or not waiting:
            return
        parts = Path(about[0]).parts
        found = [part for part in parts if part in STUDENTS]
        if found and "autograded" not in parts and "feedback" not in parts:
            _here.student = found[0]
        student = getattr(_here, "student", None)
        if student in waiting and parts[-1] in (student, UNIT, f"{UNIT}.ipynb", "timestamp.txt"):
            place = student.partition("-")[0]
            if parts[-1] in _triggers(place, student, is_path=len(parts) > 1):
                opened[student] += 1
                last = student.rpartition("-")[2]
                if opened[student] == (int(last) if last.isdigit() and len(parts) == 1 else 1):
                    waiting.discard(student)
                    _swap(Path(folder), student)

    sys.addaudithook(opening)
    runpy.run_path(str(program), run_name="__main__")


def _triggers(place: str, student: str, *, is_path: bool) -> set[str]:
    """Return the names whose opening is the last moment for a swap. is_path: a path is opened, not one name."""
    notebook = f"{UNIT}.ipynb"
    last = {"student": {student}, "unit": {UNIT}, "file": {notebook}, "stamp": {"timestamp.txt"}}[place]
    return {"timestamp.txt" if place == "stamp" else notebook} if is_path else last


def _swap(folder: Path, student: str) -> None:
    place, kind, *_ = student.split("-")
    within = {"student": "", "unit": UNIT, "file": f"{UNIT}/{UNIT}.ipynb", "stamp": f"{UNIT}/timestamp.txt"}[place]
    path = folder / "submitted" / student / within
    if kind == "grown":
        os.truncate(path, GROWN_TO)
        return
    path.rename(folder / f"was-{student}")
    match kind:
        case "link":
            path.symlink_to(folder / "instructor" / within)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()


if __name__ == "__main__":
    main()
