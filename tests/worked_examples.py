"""The examples of docs/finding_mistakes.md. `python -m tests.worked_examples` writes what grading says of them."""

import re
from collections.abc import Iterator

from autograder.pool.grading_pool import GradingProcess
from autograder.pool.requests import FindRepairs, GradeNotebook
from tests import REPOSITORY
from tests.typed import alone

PAGE = REPOSITORY / "docs" / "finding_mistakes.md"
_EXAMPLE = re.compile(r"In `(\w+)` \(unit `(\w+)`\):\n\n```python\n(.*?)```\n\n```text\n(.*?)```", re.S)


def examples() -> Iterator[tuple[str, str, str, str]]:
    """Yield exercise, unit, code and what the page says of it."""
    yield from _EXAMPLE.findall(PAGE.read_text())


def graded(process: GradingProcess, exercise: str, unit: str, code: str) -> str:
    """Return what grading says of an answer, repairs included."""
    request = GradeNotebook("example.ipynb", alone(unit, **{exercise: code}), unit)
    report = process.report(request)
    report = process.report(FindRepairs(request, report)) if report.has_unexplained else report
    found = report.exercise(exercise)
    lines = [*found.mistake_messages, *([found.whereabouts.told] if found.whereabouts else [])]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    with GradingProcess("cpu") as process:
        page = PAGE.read_text()
        for exercise, unit, code, said in examples():
            new = graded(process, exercise, unit, code)
            page = page.replace(f"{code}```\n\n```text\n{said}```", f"{code}```\n\n```text\n{new}```")
    PAGE.write_text(page)
