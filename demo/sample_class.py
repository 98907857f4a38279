"""Writes the sample class into demo/submitted/: notebooks as students hand them in. All names are invented.

Their answers come from the catalogue, so that they stay valid when a unit changes. `python demo/sample_class.py`
writes them, and makes demo/ a course folder as `autograder new-course` does; with `--check` it fails if a file is not
what it would write.
"""

import json
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.classroom.class_folder import furnish
from autograder.course.cells import filled_in
from autograder.gradebook.nbgrader_course import CourseProblem
from autograder.nbgrader_plugin.guards import SECRET

UNIT = "self_attention"
DEMO = Path(__file__).parent
SUBMITTED = DEMO / "submitted"

SYNTAX_ERROR = """def scaled_softmax(scores, d_k)
    return torch.softmax(scores / d_k**0.5, dim=-1)"""

INFINITE_LOOP = """def scaled_softmax(scores, d_k):
    weights = torch.exp(scores / d_k**0.5)
    while weights.sum(dim=-1).ne(1).any():
        weights = weights / 2
    return weights"""

EXIT = """import sys, os

def score_variance(queries, keys):
    os._exit(1)"""

ANSWER = """The variance of a dot product grows with d_k. Without scaling, softmax would saturate for d_k = 64, and its
gradient would vanish. Dividing by sqrt(d_k) keeps the variance near 1."""


def submitted() -> dict[str, tuple[str, bytes]]:
    """Return each student's file: its name and its content. noor, on the roster, submitted nothing."""
    right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    right["why_scale"] = ANSWER
    styles, mistakes = catalogue.right_answers(UNIT), catalogue.misconceptions(UNIT)

    def typed(*entries: catalogue.Candidate, **code: str) -> bytes:
        """The solutions, some of them replaced by these entries and this code."""
        return filled_in(UNIT, {**right, **{entry.exercise: entry.source() for entry in entries}, **code})

    def in_style(*names: str) -> bytes:
        return typed(*(styles[name] for name in names))

    def with_mistakes(*names: str) -> bytes:
        return typed(*(mistakes[name] for name in names))

    name = f"{UNIT}.ipynb"
    return {
        "amara": (name, typed()),
        "bertil": (name, in_style("einsum_scores", "softmax_by_hand", "LibraryAttention", "bmm_attention")),
        "chiara": (name, with_mistakes("divided_by_d_k")),
        "dmitri": (name, with_mistakes("softmax_over_dim_1", "transposed_the_first_two")),
        "elif": (name, with_mistakes("KeysUsedAsValues", "scores_changed_in_place")),
        "farid": (name, typed(scaled_softmax=SYNTAX_ERROR)),
        "greta": (name, typed(scaled_softmax=INFINITE_LOOP)),
        "hiroshi": (name, b"<html><body>Sign in to download self_attention.ipynb</body></html>\n"),
        "ines": (name, in_style("broadcast_products", "minus_logsumexp", "TokenByToken", "numbered_in_a_loop")),
        "jonas": (name, filled_in(UNIT, dict(list(right.items())[:7]))),
        "kavya": (name, _changed(typed(), _copy_a_cell)),
        "liam": (name, _changed(with_mistakes("BiasIgnored"), _delete_a_check)),
        "mina": (
            "homework (final) v2.ipynb",
            in_style("matmul_with_mt", "attention_in_float64", "LayersAppliedByHand"),
        ),
        "olu": (name, with_mistakes("attention_not_scaled", "repeated_words_counted_twice", "keys_detached")),
        "petra": (name, typed(score_variance=EXIT)),
    }


def _changed(content: bytes, change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    notebook = json.loads(content)
    change(notebook["cells"])
    return json.dumps(notebook, indent=1).encode() + b"\n"


def _copy_a_cell(cells: list[dict[str, Any]]) -> None:
    """Copies as Jupyter's copy and paste does: with the same grade_id. The first one keeps an old mistake."""
    place = next(i for i, cell in enumerate(cells) if cell["id"] == "scaled_softmax")
    wrong = catalogue.misconceptions(UNIT)["not_scaled"].source()
    cells.insert(place, {**cells[place], "id": "pasted", "source": wrong})


def _delete_a_check(cells: list[dict[str, Any]]) -> None:
    cells[:] = [cell for cell in cells if cell["id"] != "test_context_vectors"]


def make_course() -> None:
    """Makes demo/ a course folder with the units as they are now, and each submission one that can get its feedback."""
    for kind in (course.SOURCE, course.RELEASE):
        shutil.rmtree(DEMO / kind, ignore_errors=True)
    furnish(DEMO, course.unit_names())
    for student in submitted():  # what `collect` brings, and the student's account would find the page by
        (SUBMITTED / student / UNIT / SECRET).write_text(sha256(student.encode()).hexdigest())


def main() -> int:
    """Writes or checks the files; returns the exit code."""
    stale = 0
    for student, (name, content) in submitted().items():
        path = SUBMITTED / student / UNIT / name
        if path.is_file() and path.read_bytes() == content:
            continue
        stale += 1
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        print(f"{path.relative_to(DEMO)}: out of date")
    if "--check" not in sys.argv:
        try:
            make_course()
        except CourseProblem as reason:
            sys.exit(str(reason))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
