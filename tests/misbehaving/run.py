"""Marks every misbehaving submission at one level, and an honest one after them: `python -m tests.misbehaving.run`.

What hangs comes last, with less time. An honest one comes at the end of either. After any other the next case is as
good: it is right but for one exercise, and has to get its marks.

LEVEL FOLDER [NAME ...]     one JSON object a case in FOLDER/results.jsonl; NAMEs pick cases
"""

import ctypes
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.course.notebook_file import read_at
from autograder.course.settings import Isolation, Settings, load
from autograder.pool.grading_pool import GradingProcess
from autograder.report import ungraded_report
from tests import CHECK

from .case import TARGET, UNIT, Case, cases
from .instructor import Instructor

_PR_SET_CHILD_SUBREAPER = 36

PRELUDE = '''
import json as _json
globals().update(_json.loads({names!r}))
TOKEN = TOKEN[::-1]

def attempt(what, *args, **kwargs):
    """Says so if something works that must not."""
    try:
        found = what(*args, **kwargs)
    except BaseException as error:
        print("refused:", getattr(what, "__name__", ""), type(error).__name__)
    else:
        print("ESCAPED:", getattr(what, "__name__", ""), str(found)[:500])

def forge(lie):
    """From now on an answer is what `lie` makes of it: a header and a payload, or None for the answer itself."""
    import struct, sys
    protocol = sys.modules["inside.sandbox.worker.protocol"]
    send = protocol.send
    def forged(connection, header, tensors=None):
        head, payload = lie(dict(header), tensors) or (None, None)
        if head is None:
            return send(connection, header, tensors)
        head = head if isinstance(head, bytes) else _json.dumps(head).encode()
        connection.sendall(struct.pack("<II", len(head), len(payload)) + head + payload)
    protocol.send = forged

def answered_with(lie):
    """Each call of the function is answered with what `lie` makes of its true answer."""
    def mark(function):
        called = []
        def now(header, tensors):
            if "gradients" in header and called:
                called.clear()
                return lie(header, tensors)
        def marked(*args):
            called.append(1)
            return function(*args)
        forge(now)
        return marked
    return mark

def safetensors_of(listed, body=b""):
    import struct
    listed = listed if isinstance(listed, bytes) else _json.dumps(listed).encode()
    return struct.pack("<Q", len(listed)) + listed + body

'''


def settings(level: str, *, for_hangs: bool = False) -> Settings:
    """The usual ones at this level, with less memory, which takes its time to fill.

    For what hangs with the least time that there is, or it would take an hour.
    """
    limits = msgspec.structs.replace(load().limits, memory_megabytes=2048)
    if for_hangs:
        limits = msgspec.structs.replace(limits, cell_cpu_seconds=1, call_cpu_seconds=1, wall_factor=4)
    return Settings(Isolation(level), limits, check=CHECK)  # type: ignore[arg-type]


def notebook(names: dict[str, object], code: str) -> bytes:
    """A notebook that is right but for this code, before which the names stand that it may use."""
    right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    return filled_in(UNIT, {**right, TARGET: PRELUDE.format(names=json.dumps(names)) + code})


def main() -> int:
    """Writes the results; returns the exit code."""
    level, folder, *picked = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what is left behind comes to this process
    tried = [case for case in cases() if not picked or case.name in picked]
    with (Path(folder) / "results.jsonl").open("w") as results:
        for hang in (False, True):
            of_these = [case for case in tried if case.hangs is hang]
            for result in _results(of_these, settings(level, for_hangs=hang), Path(folder) / str(hang)):
                results.write(json.dumps(result) + "\n")
                results.flush()
    return 0


def _results(tried: list[Case], settings: Settings, folder: Path) -> Iterator[dict[str, Any]]:
    if not tried:
        return
    submitted = folder / "submitted"
    submitted.mkdir(parents=True)
    instructor = Instructor(folder)
    honest = filled_in(UNIT, {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()})
    with GradingProcess("cpu", settings) as grading_process:
        names = instructor.names(grading_process.pid)
        grading_process.grade(
            "wrong.ipynb", notebook(names, "def context_vector(weights, inputs): return inputs"), UNIT
        )
        instructor.settle()
        for case in tried:
            path = submitted / f"{case.name}.ipynb"
            case.put_submission(path, lambda code: notebook(names, code))
            yield _result(path, instructor, grading_process, honest if case is tried[-1] else None)
    instructor.close()


def _result(
    path: Path, instructor: Instructor, grading_process: GradingProcess, honest: bytes | None
) -> dict[str, Any]:
    started = time.monotonic()
    file = read_at(path)
    if file.is_read:
        report = grading_process.grade(str(path), file.content, UNIT, digest=file.digest)
    else:
        report = ungraded_report(str(path), "unreadable", str(file.content), grading_process.ready)
    seconds = time.monotonic() - started
    text = msgspec.json.encode(report).decode()
    neighbour = grading_process.grade("honest.ipynb", honest, UNIT) if honest else None
    return {
        "name": path.stem,
        "report": json.loads(text),
        "leaked": instructor.token in text,
        "size": len(text),
        "escaped": [line for cell in report.cells for line in cell.printed.splitlines() if "ESCAPED" in line],
        "harm": instructor.harm(),
        "neighbour": [neighbour.status, neighbour.score, neighbour.max_score] if neighbour else [],
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
