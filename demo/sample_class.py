"""Writes the sample class into demo/submitted/: eight notebooks as students hand them in. All names are invented.

Their answers are the catalogue's, so that they stay true when a unit changes: `python demo/sample_class.py`
writes them, and with `--check` fails where a file is not what it would write.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from autograder import catalogue
from autograder.notebook import filled_in

UNIT = "self_attention"
SUBMITTED = Path(__file__).parent / "submitted"

SYNTAX_ERROR = """def scaled_softmax(scores, d_k)
    return torch.softmax(scores / d_k**0.5, dim=-1)"""

INFINITE_LOOP = """def scaled_softmax(scores, d_k):
    weights = torch.exp(scores / d_k**0.5)
    while weights.sum(dim=-1).ne(1).any():
        weights = weights / 2
    return weights"""


def hand_ins() -> dict[str, bytes]:
    """Each student's file."""
    right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    styles, mistakes = catalogue.right_answers(UNIT), catalogue.misconceptions(UNIT)

    def with_answers(*entries: catalogue.Candidate) -> bytes:
        return filled_in(UNIT, {**right, **{entry.exercise: entry.source() for entry in entries}})

    def with_code(code: Mapping[str, str]) -> bytes:
        return filled_in(UNIT, {**right, **code})

    return {
        "amara": with_answers(),
        "bertil": with_answers(styles["einsum_scores"], styles["softmax_by_hand"], styles["LibraryAttention"]),
        "chiara": with_answers(mistakes["divided_by_d_k"]),
        "dmitri": with_answers(mistakes["softmax_over_dim_1"], mistakes["transposed_the_first_two"]),
        "elif": with_answers(mistakes["KeysUsedAsValues"], mistakes["scaled_in_place"]),
        "farid": with_code({"scaled_softmax": SYNTAX_ERROR}),
        "greta": with_code({"scaled_softmax": INFINITE_LOOP}),
        "hiroshi": b"<html><body>Sign in to download self_attention.ipynb</body></html>\n",
    }


def main() -> int:
    """Writes or checks the files; returns the exit code."""
    stale = 0
    for student, content in hand_ins().items():
        path = SUBMITTED / student / UNIT / f"{UNIT}.ipynb"
        if path.is_file() and path.read_bytes() == content:
            continue
        stale += 1
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        print(f"{path.relative_to(SUBMITTED.parent)}: out of date")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
