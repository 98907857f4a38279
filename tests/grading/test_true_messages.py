"""Messages on an answer that is not there or cannot run say what the notebook shows, and nothing else."""

import pytest
import torch

from autograder import catalogue
from autograder.graders.decoding import grading_hint
from autograder.report import NOT_WRITTEN
from autograder.sandbox.worker.cell_source import unsupported_magic
from tests import typed
from tests.typed import stored

UNIT = "self_attention"
ANSWER = catalogue.solutions(UNIT)["scaled_softmax"].source()
HEAD, BODY = ANSWER.split("\n", 1)
OTHER = ANSWER.replace("scaled_softmax", "scale_softmax")
IS_NOT_DEFINED = "`scaled_softmax` is not defined in the notebook. "
RIGHT = typed.alone(UNIT, scaled_softmax=ANSWER)
STUB = f"{HEAD}\n    # YOUR CODE HERE\n    raise NotImplementedError()"
NO_GPU = "Grading runs without a GPU: use the device of the input"
NO_ANSWER = "Nobody can type input during grading"


@pytest.fixture
def message(grading_process):
    """The message on an exercise."""

    def message(content, exercise="scaled_softmax"):
        return grading_process.grade("said.ipynb", content, UNIT).exercise(exercise).message

    return message


NO_EFFECT = "The definition in its cell had no effect."
MISSING = {
    "a magic": (f"%%memit\n{ANSWER}", "`%%memit`, which grading does not run, kept the cell `scaled_softmax` from"),
    "below blank lines": (f"\n\n%%html\n{ANSWER}", "`%%html`, which grading does not run, kept the cell"),
    "a file": (f"%%writefile answer.py\n{ANSWER}", "`%%writefile` writes the cell `scaled_softmax` into a file and"),
    "emptied": ("", "Its cell `scaled_softmax` is empty."),
    "another name": (OTHER, "Its cell `scaled_softmax` does not define this name: did you change the name?"),
    "a string": (f"'''\n{ANSWER}\n'''", NO_EFFECT),
    "a branch": ("if not torch:\n    def scaled_softmax(): pass", NO_EFFECT),
    "deleted by its own cell": (f"{ANSWER}\ndel scaled_softmax", NO_EFFECT),
}


@pytest.mark.parametrize(("code", "words"), MISSING.values(), ids=MISSING)
def test_why_an_answer_is_not_defined(message, code, words):
    assert message(typed.edited(RIGHT, scaled_softmax=code)).startswith(IS_NOT_DEFINED + words)


def test_a_deleted_cell_is_asked_about_and_a_text_cell_is_said(message):
    deleted = typed.edited(RIGHT, scaled_softmax=None)
    assert message(deleted) == f"{IS_NOT_DEFINED}Did you delete its cell or change the name?"
    assert message(typed.with_cells(deleted, ANSWER, kind="markdown")).startswith(
        f"{IS_NOT_DEFINED}Its cell is a text cell"
    )


def test_what_is_missing_is_named_and_not_what_needs_it(grading_process):
    """Every hidden test of `copy_weights` builds the two classes."""
    classes = {name: catalogue.solutions(UNIT)[name].source() for name in ("SelfAttention_v2", "copy_weights")}
    content = typed.edited(typed.alone(UNIT, **classes), SelfAttention_v1="# later")
    exercise = grading_process.grade("no_class.ipynb", content, UNIT).exercise("copy_weights")
    said = [exercise.message, *(test.message for test in exercise.tests)]
    assert not [words for words in said if "`copy_weights` is not defined" in words]
    assert [words for words in said if "SelfAttention_v1" in words]


def test_nothing_is_written_is_said_of_an_untouched_stub_only(message):
    assert message(typed.edited(RIGHT, scaled_softmax=STUB)) == f"{NOT_WRITTEN} `scaled_softmax` yet."
    for written in (
        f"{STUB}\n{BODY}",
        STUB.replace("    raise", "    scores = scores / d_k\n    raise"),
        f"{HEAD}\n    if scores.ndim < 9:\n        raise NotImplementedError\n{BODY}",
    ):
        said = message(typed.edited(RIGHT, scaled_softmax=written))
        assert NOT_WRITTEN not in said
        assert "of the cell `scaled_softmax` and ends the call there: write what is missing, and delete" in said


def test_the_same_line_of_two_cells_is_told_apart(message):
    """Their answers are the same to the bit."""
    for _ in range(2):
        assert NOT_WRITTEN in message(typed.edited(RIGHT, scaled_softmax=STUB))
        assert NOT_WRITTEN not in message(typed.edited(RIGHT, scaled_softmax=f"{STUB}\n{BODY}"))


@pytest.mark.parametrize("after", ["setup", ""])
def test_an_untouched_stub_beside_an_answer_does_not_count(grading_process, after):
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=STUB), ANSWER, after=after)
    assert grading_process.grade("beside.ipynb", content, UNIT).exercise("scaled_softmax").status == "passed"


BREAKPOINTS = stored("true_messages")


def test_breakpoints_are_ignored_and_the_cells_are_named(grading_process):
    """In an answer and in cells of a student's own; `%debug` after an error, too."""
    lines = "".join(f"    {line}\n" for line in BREAKPOINTS.values())
    content = typed.edited(RIGHT, scaled_softmax=f"{HEAD}\n{lines}{BODY}", setup=lambda text: f"{text}\nbreakpoint()")
    content = typed.with_cells(content, "1 / 0", "%debug", *BREAKPOINTS.values(), "# breakpoint()")
    report = grading_process.grade("debugged.ipynb", content, UNIT)
    assert report.exercise("scaled_softmax").status == "passed"
    assert "Grading ignores breakpoints: there is one in the cells `setup (added lines)`, `sc" in report.message
    assert [cell.message.split(" (")[0] for cell in report.cells if cell.troubled] == [
        "Raised ZeroDivisionError: division by zero"
    ]


def test_a_cell_below_a_debugging_magic_runs(grading_process):
    content = typed.edited(RIGHT, scaled_softmax=f"%%debug\n{ANSWER}")
    assert grading_process.grade("debugged.ipynb", content, UNIT).exercise("scaled_softmax").status == "passed"


CANNOT = {
    "a GPU": (f'{HEAD}\n    scores = scores.to("cuda")\n{BODY}', NO_GPU),
    "input": (f'{HEAD}\n    d_k = int(input("d_k: "))\n{BODY}', NO_ANSWER),
    "input in the cell": (f"name = input()\n{ANSWER}", NO_ANSWER),
    "a GPU in the cell": (f"torch.cuda.synchronize()\n{ANSWER}", NO_GPU),
}


@pytest.mark.parametrize(("code", "words"), CANNOT.values(), ids=CANNOT)
def test_what_grading_does_not_have_is_said(message, code, words):
    assert words in message(typed.edited(RIGHT, scaled_softmax=code))


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", "xpu", "xla"])
@pytest.mark.parametrize(
    "act", [lambda device: torch.zeros(1, device=device), torch.zeros(1).to], ids=["made", "moved"]
)
def test_pytorchs_own_errors_are_known(device, act):
    with pytest.raises(Exception) as raised:  # noqa: PT011  (each device has an error of its own)
        act(device)
    assert NO_GPU in grading_hint([], str(raised.value)[:300])


def test_other_errors_are_no_matter_of_the_machine():
    for message in ("division by zero", "name 'cuda' is not defined", "size mismatch", "EOF in a string"):
        assert grading_hint(["RuntimeError"], message) == ""


def test_magics_that_keep_a_cell_from_running():
    for runs in ("%%time\nx", "%%capture out\nx", "%%timeit x", "x = 1", "# a\n%%bash", "%time x", "", "'%%bash'"):
        assert unsupported_magic(runs) == ""
    for cell, name in {"%%bash\nls": "bash", "\n %%memit\nx": "memit", "%%script false": "script"}.items():
        assert unsupported_magic(cell) == name
