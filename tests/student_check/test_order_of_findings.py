"""A wrong value comes before a note on devices, and a line's message says only what the line makes."""

import contextlib
import io

from autograder.student_check import check
from autograder.student_check.call_description import compare_matrices
from autograder.student_check.run_examples import run_examples
from autograder.student_check.unit_data import units_in
from tests import RELEASE
from tests.student_check.test_student_check import Notebook, cell
from tests.typed import stored

STORED = stored("order_of_findings")
TILED = STORED["tiled"]
REVERSED = STORED["reversed"]
ON_THE_CPU = """\
def padding_mask(lengths, max_len):
    return torch.arange(max_len) >= lengths[:, None]
"""
OF_PRODUCT = """\
def swiglu(x, W_gate, W_up, W_down):
    return F.silu(x @ W_gate.T * (x @ W_up.T)) @ W_down.T
"""


def checked(unit, exercise, source):
    """The short account of an answer, by this repository's code and the released examples."""
    notebook = Notebook(unit)
    exec(cell(source, 7000 + len(source)), notebook.names)
    (data,) = [one for one in units_in(RELEASE / unit)[0] if exercise in one.exercises]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        check._check_one(
            notebook.names, data, exercise, RELEASE / unit / "attention_check.py", more=False, repair=False
        )
    return printed.getvalue()


def test_the_line_that_makes_nan_is_named_and_no_device():
    """A tile that is hidden completely gives -inf - (-inf); the mask of line 9 stays on the CPU, too."""
    account = checked("efficient_attention", "tiled_attention", TILED)
    assert "Line 12 is the first that makes NaN.\n  line 12: w = torch.exp(scores - m)" in account
    assert account.index("makes NaN") < account.index("is nan where")
    assert "CPU" not in account


def test_a_note_on_devices_comes_after_a_wrong_value():
    account = checked("attention_masks", "padding_mask", REVERSED)
    note = "Another matter: line 2 makes a tensor that stays on the CPU"
    assert account.index("other way round") < account.index("is 1 where 0 is expected") < account.index(note)
    assert 'Which line? check("padding_mask", repair=True)' in account


def test_a_note_on_devices_comes_first_if_values_are_right():
    account = checked("attention_masks", "padding_mask", ON_THE_CPU)
    assert "Another matter" not in account
    assert account.index("Line 2 makes a tensor that stays on the CPU") < account.index("FAILED")


def test_a_step_inside_a_function_of_torch_is_not_what_the_line_makes():
    """`@` flattens (2, 5, 4) to (10, 4), and its (10, 6) is right in itself."""
    account = checked("modern_attention", "swiglu", OF_PRODUCT)
    assert "What line 2 makes is wrong.\n  line 2: return F.silu" in account
    assert "(10, 6)" not in account


def test_a_wrong_number_is_not_quoted_and_its_type_is_not_blamed():
    account = checked("inference", "attention_flops", "def attention_flops(b, T, d, h):\n    return 456\n")
    assert "The result is 456; 528 is expected." in account


ALL_ACCEPTED = STORED["all_accepted"]


def test_a_table_says_which_of_two_results_it_shows():
    """The count of accepted tokens is wrong, and the probabilities that the table compares are the second result."""
    notebook = Notebook("modern_attention")
    exec(cell(ALL_ACCEPTED, 7000), notebook.names)
    (data,) = units_in(RELEASE / "modern_attention")[0]
    found = run_examples(notebook.names, "accept_draft", check.examples_of(data, "accept_draft"), [])
    tables = [compare_matrices(one.call) for one in found.tried if one.problem]
    assert {table.where for table in tables if table} == {"second result"}
