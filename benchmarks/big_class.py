"""A class of any size, made from known answers and variants of them that a machine makes; all of them terminate.

Of every exercise of every student an answer is drawn: the solution, a right answer in another style, a known mistake,
two known mistakes at once, or the solution with a number of its own in what it returns, which no mistake explains. No
two notebooks have the same text: what is kept of an answer, by its text or by what it shows, is kept of each.
"""

import ast
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from autograder import catalogue
from autograder.catalogue import Candidate, can_be_combined, combined
from autograder.course.cells import filled_in

_NAMES = ("Ada", "Bo", "Cleo", "Dua", "Eino", "Fay", "Gus", "Hana", "Ivo", "Jun", "Kai", "Lea", "Mio", "Nia", "Otis")
_SHARES = {"solution": 60, "style": 12, "mistake": 20, "two": 5, "own": 3}
"""Number of answers of each kind among a hundred."""


def submit(root: Path, unit: str, size: int) -> None:
    """Puts a roster and everyone's submission into a class's folder, where `nbgrader collect` puts them."""
    lines = ["id,first_name,last_name,email"]
    for number, content in zip(range(size), notebooks(unit), strict=False):
        student = f"student-{number:05}"
        lines.append(f"{student},{_NAMES[number % len(_NAMES)]},Number {number},{student}@example.org")
        folder = root / "submitted" / student / unit
        folder.mkdir(parents=True)
        (folder / f"{unit}.ipynb").write_bytes(content)
        (folder / "timestamp.txt").write_text(f"2026-01-{1 + number % 28:02} 12:00:00 UTC")
    (root / "roster.csv").write_text("\n".join(lines) + "\n")


def notebooks(unit: str) -> Iterator[bytes]:
    """Yield notebooks without end, in each call the same."""
    draw = random.Random(1)
    solutions = catalogue.solutions(unit)
    kinds = {name: _Answers(unit, name, solution) for name, solution in solutions.items()}
    for number in count():
        answers = {name: kind.drawn(draw, number) for name, kind in kinds.items()}
        if number % 4 == 0:
            answers = {name: f"{kind.right}\n# {number}" for name, kind in kinds.items()}
        yield filled_in(unit, answers)


class _Answers:
    """The answers to one exercise."""

    def __init__(self, unit: str, exercise: str, solution: Candidate) -> None:
        known = catalogue.misconceptions(unit).values()
        self.right = solution.source()
        self._styles = [one.source() for one in catalogue.right_answers(unit).values() if one.exercise == exercise]
        self._wrong = [one for one in known if one.exercise == exercise and one.caught_by != catalogue.FORBIDDEN]

    def drawn(self, draw: random.Random, number: int) -> str:
        """An answer's code, with the number in it."""
        (kind,) = draw.choices(list(_SHARES), list(_SHARES.values()))
        code = self.right
        if kind == "style" and self._styles:
            code = draw.choice(self._styles)
        elif kind == "mistake" and self._wrong:
            code = draw.choice(self._wrong).source()
        elif kind == "two" and len(self._wrong) > 1:
            code = _both(*draw.sample(self._wrong, 2)) or code
        elif kind == "own":
            code = _with_a_number(code, 1 + draw.random())
        return f"{code}\n# {number}"


def _both(one: Candidate, other: Candidate) -> str | None:
    if not can_be_combined(one, other):
        return None
    both = combined(one, other)
    try:
        _ = both.answer
    except Exception:  # two edits that together are no code
        return None
    return both.source()


def _with_a_number(code: str, number: float) -> str:
    """The code with what it returns multiplied; as it is, if it returns nothing."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = ast.BinOp(node.value, ast.Mult(), ast.Constant(round(number, 6)))
    return ast.unparse(ast.fix_missing_locations(tree))
