"""A class of 100 with a known mistake for each student: `python -m tests.class_of_100 FOLDER`.

Many submit the same notebook, which is graded once. As a command it makes and grades the class in a new folder.
"""

import random
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import course_directory
from autograder.pool.grading_pool import GradingProcess

from .recorded_class import UNIT, RecordedClass, opened_gradebook, put_submission, set_due
from .typed import solution_sources

FIRST = ["Ada", "Bo", "Cleo", "Dua", "Eino", "Fay", "Gus", "Hana", "Ivo", "Jun",
         "Kai", "Lea", "Mio", "Nia", "Otis", "Pia", "Quin", "Rae", "Sol", "Tove"]  # fmt: skip
LAST = ["Ås", "Baptiste", "Çelik", "Dlamini", "Eriksen"]
STUDENTS = {
    f"{first.lower()}{number:02}": (first, last)
    for number, (first, last) in enumerate((first, last) for last in LAST for first in FIRST)
}
SIGNED = "sol78"
"""Signs their code: in a comment, a docstring, a string, and the name of a variable."""
ABSENT = "noor"
MARKUP = " <i>x</i>"
"""In everyone's last name."""
IN_TIME, LATE, DUE = "2026-01-01 16:00:00 UTC", "2026-01-01 19:30:00 UTC", datetime(2026, 1, 1, 17)

HALVED = "def context_vector(weights, inputs):\n    return 0.5 * (weights @ inputs) + 1"
"""No known mistake does this, and what follows does the same."""
HALVED_OTHERWISE = (
    "def context_vector(w, x):\n    mixed = (w.unsqueeze(-1) * x).sum(dim=0)  # by row\n    return mixed / 2 + 1"
)
STEEPER = """def softmax(scores, dim=-1):
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    powers = (1.5 * shifted).exp() + 0.1
    return powers / powers.sum(dim=dim, keepdim=True)"""
RAISES = 'def pairwise_scores(inputs):\n    raise ValueError("<img src=x onerror=alert(1)> of Tove")'
SIGNED_CODE = f'''def dot_product_scores(query, inputs):
    """By Sol Dlamini."""
    {SIGNED}_scores = query @ inputs.T  # Sol Dlamini wrote this
    print(f"{{query}} Dlamini")
    return {SIGNED}_scores / len(query) ** 0.5'''


@dataclass(frozen=True)
class Bundle:
    """Students who submit the same notebook."""

    count: int
    mistakes: tuple[str, ...] = ()
    code: dict[str, str] = field(default_factory=dict)


BUNDLES = [
    Bundle(26, (), {"why_softmax": "So that they are positive and sum to 1."}),
    Bundle(17, ("naive_exponentials",)),
    Bundle(12, ("naive_exponentials", "weights_ignored")),
    Bundle(10, ("weights_ignored", "tokens_not_transposed")),
    Bundle(8, ("weights_ignored",)),
    Bundle(6, ("divided_by_the_maximum", "products_averaged")),
    Bundle(5, ("divided_by_the_maximum",)),
    Bundle(6, (), {"context_vector": HALVED}),
    Bundle(3, (), {"context_vector": HALVED_OTHERWISE}),
    Bundle(2, (), {"softmax": STEEPER}),
    Bundle(2, (), {"pairwise_scores": RAISES}),
    Bundle(1, (), {"softmax": "def softmax(scores, dim=-1)\n    return scores"}),
]
"""For all but two students: SIGNED, and one whose file is damaged."""


@dataclass(frozen=True)
class Put:
    """Contents of the class."""

    mistakes: dict[str, set[str]]
    """By mistake, who makes it."""
    halved: set[str]
    damaged: str
    late: set[str]


def make(root: Path) -> Put:
    """Fills the folder of a class: roster, settings, due date, and submissions."""
    right = solution_sources(UNIT)
    known = catalogue.misconceptions(UNIT)
    chosen = random.Random(100).sample(sorted(set(STUDENTS) - {SIGNED}), len(STUDENTS) - 1)
    roster = [f"{student},{first},{last}{MARKUP}" for student, (first, last) in STUDENTS.items()]
    (root / "roster.csv").write_text("\n".join(["id,first_name,last_name", *roster, f"{ABSENT},Noor,de Vries"]))
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"  #
    )
    damaged, *others = chosen
    late = set(others[::14])
    put = Put({}, set(), damaged, late)
    put_submission(root, damaged, b"<html>Sign in</html>", IN_TIME)
    put_submission(root, SIGNED, filled_in(UNIT, {**right, "dot_product_scores": SIGNED_CODE}), IN_TIME)
    put.mistakes["score_divided_by_the_root"] = {SIGNED}
    for bundle in BUNDLES:
        group, others = others[: bundle.count], others[bundle.count :]
        answers = {known[name].exercise: known[name].source() for name in bundle.mistakes} | bundle.code
        content = filled_in(UNIT, {**right, **answers})
        for student in group:
            put_submission(root, student, content, LATE if student in late else IN_TIME)
        for name in bundle.mistakes:
            put.mistakes.setdefault(name, set()).update(group)
        if {HALVED, HALVED_OTHERWISE} & set(bundle.code.values()):
            put.halved.update(group)
    assert not others
    ClassGradebook(course_directory(root), UNIT).close()
    set_due(root, DUE)
    return put


def mark_by_hand(root: Path) -> None:
    """A person gives marks for the written question, to every third; changes one mark, and gives one more credit."""
    with opened_gradebook(root) as opened:
        for number, student in enumerate(sorted(STUDENTS)):
            if number % 3:
                continue
            grade = opened.find_grade("why_softmax", UNIT, UNIT, student)
            grade.manual_score, grade.needs_manual_grade = number % 4, False
        changed, more = sorted(STUDENTS)[1:3]
        opened.find_grade("test_softmax", UNIT, UNIT, changed).manual_score = 1.25
        opened.find_grade("test_pairwise_scores", UNIT, UNIT, more).extra_credit = 0.5
        opened.db.commit()


def main() -> int:
    """Makes the class in a folder that is not there yet."""
    root = Path(sys.argv[1])
    root.mkdir()
    make(root)
    with GradingProcess("cpu") as grading_process:
        RecordedClass(grading_process).grade(root)
    mark_by_hand(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
