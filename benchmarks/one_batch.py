"""One `autograder grade`, measured: `python -m benchmarks.one_batch COURSE UNIT WORKERS`. Prints one JSON object."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from autograder.classroom.assignment import assignment
from autograder.classroom.grade import grade
from autograder.classroom.student_folders import Autograded, FeedbackPages
from autograder.course import settings
from autograder.course.settings import Isolation
from autograder.gradebook.class_gradebook import ClassGradebook

STAGES = {
    "graded notebook": (Autograded, ("graded", "put")),
    "feedback page": (FeedbackPages, ("put",)),
    "gradebook": (ClassGradebook, ("entry", "new_entry", "penalise", "commit")),
}


def timed(owner: Any, name: str, spent: dict[str, float], stage: str) -> None:
    """Adds the CPU seconds of a method to its stage."""
    method: Callable[..., Any] = getattr(owner, name)

    def measured(*args: Any, **named: Any) -> Any:
        started = time.thread_time()
        try:
            return method(*args, **named)
        finally:
            spent[stage] += time.thread_time() - started

    setattr(owner, name, measured)


def main() -> None:
    """Grades, and prints what it took."""
    root, unit, workers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    spent = dict.fromkeys(STAGES, 0.0)
    for stage, (owner, names) in STAGES.items():
        for name in names:
            timed(owner, name, spent, stage)
    asked = replace(settings.load(), isolation=Isolation("A"))
    work = assignment(unit, root, None, None)
    started = time.monotonic()
    result = grade(work, device="cpu", settings=asked, process_count=workers)
    wall = time.monotonic() - started
    own, below = (_seconds(resource.getrusage(who)) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    scores = {row.student: row.report.score for row in result.rows}
    figures = {"wall": wall, "cpu": own + below, "coordinator": own, "marking": below, "stages": spent}
    print(json.dumps({**figures, "scores": scores}))


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
