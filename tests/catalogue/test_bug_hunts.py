"""A hunt: an input on which a known mistake differs from the right answer, in marking and in the released check."""

import ast
import contextlib
import inspect
import io
import json
import math

import pytest
import torch

from autograder import catalogue, course
from autograder.build.source_notebook import CHECK_OF_A_HUNT
from autograder.catalogue import bug_hunts as graders_of_hunts
from autograder.catalogue.bug_hunts import Hunt, NoHunt
from autograder.catalogue.mutation_report import released_check
from autograder.core.comparison import describe
from autograder.core.constructed_answers import (
    APART,
    MOST_NUMBERS,
    CounterexampleTarget,
    judge_input,
    packed_function,
    unpacked_function,
)
from autograder.course.notebook import joined
from autograder.graders.collection import collect
from autograder.grading import release_data
from autograder.grading.released_steps import NotReleasable
from autograder.student_check.unit_data import EXAMPLES, zip_file
from tests import RELEASE, released_data
from tests.hunts import hunts
from tests.student_check.test_student_check import Notebook
from tests.typed import alone, grade_answer, solved

HEADS = "multi_head_attention"
HUNT = "hunt_merge_heads"
HUNTS = [(unit, hunt) for unit in course.unit_names() for hunt in sorted(hunts(unit))]
IMPORTS = "import torch\nfrom attention_check import buggy\n"


@pytest.fixture(scope="module")
def graders():
    return collect()


def hunted(graders, unit, hunt):
    (grader,) = graders[unit][hunt]
    return grader.hunted


def test_every_hunt_is_one_to_the_graders_too(graders):
    of_graders = [(unit, name) for unit, each in graders.items() for name, its in each.items() if its[0].hunted]
    assert sorted(of_graders) == sorted(HUNTS)
    assert len(HUNTS) >= 4


# What an input is judged by


PREY = CounterexampleTarget("merge", ("x: b h T hd",), hides=("T=1", "x alike turned h T"))


def wrong_merge(x):
    return x.reshape(x.shape[0], x.shape[2], -1)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


def judged(given, target=PREY, wrong=wrong_merge, right=right_merge):
    return judge_input(given, target, wrong, right, describe, "Yours")


TOLD = {
    "no tensor": (None, "The input is None; a tensor is expected."),
    "a list": ([[1.0]], "The input is a list of 1; a tensor is expected."),
    "sparse": (torch.ones(1, 2, 2, 2).to_sparse(), "a tensor is expected."),
    "no numbers": (torch.ones(1, 0, 2, 2, device="meta"), "a tensor is expected."),
    "three dimensions": (torch.ones(2, 2, 2), "The input has 3 dimensions; (b, h, T, hd) is expected."),
    "float64": (torch.ones(1, 2, 2, 2).double(), "torch.float64; torch.float32 is expected. Call `.float()`."),
    "int64": (
        torch.ones(1, 2, 2, 2).long(),
        "torch.int64; torch.float32 is expected. Write its numbers with a decimal point",
    ),
    "complex": (torch.ones(1, 2, 2, 2) * 1j, "The input is torch.complex64; torch.float32 is expected."),
    "empty": (torch.ones(0, 2, 2, 2), "The input has no elements: its shape is (0, 2, 2, 2)."),
    "endless and empty": (torch.ones(1, 1 << 40, 0, 1), "The input has no elements"),
    "expanded": (
        torch.ones(1).expand(1, 1 << 40, 2, 1),
        "The input has 2199023255552 numbers; at most 12 are allowed.",
    ),
    "thirteen": (torch.arange(13.0).view(1, 13, 1, 1), "The input has 13 numbers; at most 12 are allowed."),
    "NaN": (torch.full((1, 2, 2, 2), torch.nan), "NaN or infinite numbers; finite ones are expected."),
    "infinity": (torch.full((1, 2, 2, 2), -torch.inf), "NaN or infinite numbers; finite ones are expected."),
    "one token": (
        torch.arange(6.0).view(1, 2, 1, 3),
        "On your input, x of shape (1, 2, 1, 3), the wrong function and the right one both return "
        "[[[0, 1, 2, 3, 4, 5]]]: there is no difference.",
    ),
    "next to nothing": (
        1 + torch.arange(4.0).view(1, 2, 2, 1) / 2000,
        "The results differ by 0.0005 at most; they must differ by more than 0.001.",
    ),
}


@pytest.mark.parametrize(("given", "said"), TOLD.values(), ids=TOLD)
def test_each_way_to_fail_has_a_sentence(given, said):
    assert said in judged(given).problem


def test_twelve_numbers_that_differ_are_enough():
    assert judged(torch.arange(float(MOST_NUMBERS)).view(1, 2, 3, 2)).problem == ""
    assert judged(1e6 + torch.arange(4.0).view(1, 2, 2, 1) * 4).problem == ""
    assert judged(1 + torch.arange(4.0).view(1, 2, 2, 1) * 1.1 * APART).problem == ""


def test_an_input_that_the_right_one_refuses_is_none():
    def right(x):
        raise ValueError("A width of 5 cannot be split.\nWhatever else.")

    found = judged(torch.arange(8.0).view(1, 2, 2, 2), right=right)
    assert found.problem == "Yours raises an error on this input: ValueError: A width of 5 cannot be split."


@pytest.mark.parametrize(
    ("wrong", "differs"),
    [
        (lambda x: right_merge(x).squeeze(0), True),  # another shape
        (lambda x: x @ x.new_zeros(9, 9), True),  # an error
        (lambda x: right_merge(x) * torch.nan, True),
        (lambda x: right_merge(x) * torch.inf, True),
        (lambda x: None, True),
        (lambda x: right_merge(x) + 0.9 * APART, False),
        (lambda x: right_merge(x.double()), False),
        (lambda x: right_merge(x.zero_()) * 0 + right_merge(INPUT), False),  # it spoils its own copy alone
    ],
)
def test_what_counts_as_a_difference(wrong, differs):
    assert bool(judged(INPUT.clone(), wrong=wrong).problem) != differs


INPUT = torch.arange(1.0, 9.0).view(1, 2, 2, 2)


def test_infinity_and_nan_on_both_sides_are_no_difference():
    for number in (torch.nan, torch.inf, -torch.inf):
        same = lambda x, number=number: x * 0 + number  # noqa: E731
        assert "no difference" in judged(INPUT, wrong=same, right=same).problem


def test_several_tensors_have_their_sizes_in_common():
    target = CounterexampleTarget("scores", ("queries: Tq d", "keys: Tk d", "mask: Tq Tk bool"))
    ones, mask = torch.ones(1, 2), torch.ones(1, 1, dtype=torch.bool)

    def of(*given):
        return judged(given, target, lambda *args: None, lambda *args: args[0])

    assert of(ones, ones, mask).problem == ""
    assert of(ones, ones).problem == ("The input is a tuple of 2; 3 tensors are expected: queries, keys, mask.")
    assert of(ones, torch.ones(1, 3), mask).problem == (
        "d is 2 in one dimension and 3 in another; (Tq, d), (Tk, d) and (Tq, Tk) are expected."
    )
    assert of(ones, ones, mask.float()).problem == "`mask` is torch.float32; torch.bool is expected."
    assert of(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 2).bool()).problem == (
        "The input has 16 numbers; at most 12 are allowed."
    )


def test_why_is_the_same_for_inputs_that_fail_alike():
    """It is what the fingerprint keeps: so a mistake is named whatever its numbers are."""
    one, other = torch.arange(6.0).view(1, 2, 1, 3), torch.randn(3, 4, 1, 1)
    assert judged(one).why == judged(other).why == "alike: T=1"
    symmetric = torch.tensor([[[[1.0], [2.0]], [[2.0], [3.0]]]])
    assert judged(symmetric).why == judged(symmetric * 7).why == "alike: x alike turned h T"
    zeros = CounterexampleTarget("merge", ("x: b h T hd",), hides=("x all 0", "x alike"))
    assert judged(torch.zeros(1, 2, 3, 1), zeros).why == "alike: x all 0"
    assert judged(torch.ones(1, 2, 3, 1), zeros).why == "alike: x alike"
    within = CounterexampleTarget("merge", ("x: b h T hd",), hides=("x within -1 3",))
    one_head = torch.tensor([-1.0, 3.0]).view(1, 1, 2, 1)
    assert judged(one_head, within).why == "alike: x within -1 3"
    assert judged(one_head + 0.1, within).why == judged(one_head - 0.1, within).why == "alike: "


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("return torch.randn(2, 5, 1, 1)", "one_token_alone"),
        ("return torch.randn(1, 2, 3, 2)", "one_sequence_to_merge"),
        ("return torch.rand(2, 3, 1, 2)", "one_token_alone"),
        ("return torch.rand(3, 2, 2, 1)", "sizes_that_a_swap_would_change"),
        ("return 7 + torch.zeros(3, 1, 3, 1)", "numbers_all_alike"),
        ("return torch.zeros(1, 2, 2, 2).numpy().tolist()", "numbers_in_a_list"),
        ("return torch.ones(3, 3, 3, 3)", "more_than_twelve_numbers"),
        ("return torch.tensor([[[[0.0, 1e30 * 1e30]]]])", "input_with_nan"),
    ],
)
def test_a_mistake_is_named_whatever_its_numbers_are(grading_process, code, name):
    typed = f"def {HUNT}():\n    {code}\n"
    report = grade_answer(grading_process, HEADS, HUNT, typed)
    assert (report.status, report.score, report.diagnosis.name) == ("failed", 0.0, name)
    assert report.whereabouts is None
    notebook = Notebook(HEADS, **{HUNT: typed})
    assert catalogue.misconceptions(HEADS)[name].sentence in notebook.check(HUNT)[0]


# What an ordinary input does not show


ORDINARY = {
    "hunt_softmax": [{"R": 2, "T": 3}, {"R": 3, "T": 4}, {"R": 2, "T": 2}, {"R": 4, "T": 3}],
    "hunt_scaled_dot_product_attention": [
        {"Tq": 2, "Tk": 2, "d_k": 2, "d_v": 2}, {"Tq": 1, "Tk": 2, "d_k": 2, "d_v": 2},
        {"Tq": 1, "Tk": 1, "d_k": 4, "d_v": 4}, {"Tq": 2, "Tk": 3, "d_k": 1, "d_v": 1},
    ],
    "hunt_causal_softmax": [{"T": 2}, {"T": 3}],
    "hunt_merge_heads": [
        {"b": 1, "h": 2, "T": 3, "hd": 2}, {"b": 1, "h": 2, "T": 2, "hd": 2}, {"b": 1, "h": 3, "T": 2, "hd": 2},
        {"b": 2, "h": 2, "T": 3, "hd": 1}, {"b": 2, "h": 2, "T": 1, "hd": 3}, {"b": 2, "h": 1, "T": 3, "hd": 2},
    ],
    "hunt_rotary_embedding": [
        {"T": 1, "hd": 4}, {"T": 2, "hd": 4}, {"T": 1, "hd": 6}, {"T": 3, "hd": 2}, {"T": 1, "hd": 10},
    ],
    "hunt_share_heads": [
        {"b": 1, "groups": 2, "T": 3, "hd": 2}, {"b": 1, "groups": 2, "T": 2, "hd": 2},
        {"b": 2, "groups": 2, "T": 3, "hd": 1}, {"b": 1, "groups": 4, "T": 3, "hd": 1},
        {"b": 3, "groups": 4, "T": 1, "hd": 1}, {"b": 1, "groups": 1, "T": 3, "hd": 4},
    ],
    "hunt_tiled_attention": [{"T": 4, "hd": 1}, {"T": 2, "hd": 2}, {"T": 3, "hd": 1}, {"T": 1, "hd": 4}],
    "hunt_next_token_loss": [
        {"b": 2, "T": 2, "V": 2}, {"b": 1, "T": 3, "V": 3}, {"b": 1, "T": 4, "V": 2}, {"b": 1, "T": 2, "V": 5},
    ],
    "hunt_rms_norm": [{"R": 2, "d": 3}, {"R": 2, "d": 4}, {"R": 3, "d": 3}, {"R": 1, "d": 6}, {"R": 5, "d": 2}],
}  # fmt: skip
"""Sizes that a student might type without a thought, for each bug hunt."""


def typed_without_a_thought(target, sizes):
    """Yield inputs of these sizes as a student might type them: drawn from 200 seeds, counted up, and ones."""
    whole = {"positions": lambda T: torch.arange(T), "tokens": lambda b, T: torch.randint(sizes["V"], (b, T))}
    drawn = {**whole, "positions": lambda T: torch.randint(1000, (T,))}
    for number in range(200):
        torch.manual_seed(number)
        yield of_sizes(target, sizes, torch.randn, drawn if number % 2 else whole)
    yield of_sizes(target, sizes, torch.rand, drawn)
    for fill in (torch.ones, lambda *shape: torch.arange(float(math.prod(shape))).reshape(shape)):
        yield of_sizes(target, sizes, fill, whole)


def of_sizes(target, sizes, fill, integers):
    shapes = {one.name: [sizes[dim] for dim in one.sized] for one in target.tensors}
    tensors = [integers[name](*shape) if name in integers else fill(*shape) for name, shape in shapes.items()]
    return tensors if len(tensors) > 1 else tensors[0]


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_no_hunt_is_solved_by_an_ordinary_input(graders, unit, hunt):
    """So its points need a thought about the unit, and not only `torch.randn`."""
    target = hunted(graders, unit, hunt)
    wrong, right = target.wrong(unit).answer, catalogue.solutions(unit)[target.of].answer
    for sizes in ORDINARY[hunt]:
        for given in typed_without_a_thought(target, sizes):
            found = judge_input(given, target, wrong, right, describe, "The right one")
            assert "there is no difference" in found.problem, (sizes, given)


# In marking


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_the_wrong_function_is_no_answer_to_the_other_exercise(grading_process, graders, unit, hunt):
    """It is right on nearly all inputs, so it refuses those that are larger than a bug hunt's."""
    of = hunted(graders, unit, hunt).of
    report = grade_answer(grading_process, unit, of, f"{IMPORTS}{of} = buggy({of!r})\n")
    assert report.score <= report.max_score / 4
    assert "The wrong" in str(report)


def test_a_hunt_that_calls_the_wrong_function_is_marked_as_it_is_checked(grading_process):
    """So nobody reads that the check passes, and gets no points."""
    typed = f"""{IMPORTS}
wrong = buggy("merge_heads")

def {HUNT}():
    x = torch.zeros(2, 1, 2, 1)
    while torch.equal(wrong(x), merge_heads(x)):
        x = torch.rand(2, 1, 2, 1)
    return x
"""
    report = grading_process.grade("typed.ipynb", alone(HEADS, **{HUNT: typed}), HEADS)
    assert report.exercise(HUNT).score == report.exercise(HUNT).max_score
    assert report.status == "graded"


def test_the_students_own_function_is_not_what_an_input_is_marked_by(grading_process):
    """With every exercise wrong but the hunt, the hunt has its points."""
    wrong = catalogue.misconceptions(HEADS)["merged_without_swapping"].source()
    report = grading_process.grade("typed.ipynb", solved(HEADS, merge_heads=wrong), HEADS)
    assert report.exercise("merge_heads").score < report.exercise("merge_heads").max_score
    assert report.exercise(HUNT).score == report.exercise(HUNT).max_score


def test_whatever_is_called_buggy_fails_no_cell(grading_process):
    typed = f"""{IMPORTS}
buggy("anything")(1, 2, key=3)
buggy()
buggy(torch.ones(2))
{catalogue.solutions(HEADS)[HUNT].source()}
"""
    report = grading_process.grade("typed.ipynb", alone(HEADS, **{HUNT: typed}), HEADS)
    assert report.status == "graded"
    assert not [cell for cell in report.cells if cell.troubled]


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_a_wrong_function_pasted_earns_what_its_mistake_earns(grading_process, graders, unit, hunt):
    target = hunted(graders, unit, hunt)
    known = grading_process.grade_candidate(unit, "misconception", target.mistake).exercise(target.of)
    packed = target.packed(unit)
    typed = f"""import base64, zlib
import torch
exec(zlib.decompress(base64.b85decode({packed["code"]!r})).decode())
"""
    report = grade_answer(grading_process, unit, target.of, typed)
    assert report.score == known.score < known.max_score
    assert report.diagnosis.name == target.mistake


# In the notebook


def check_of(unit, **answers):
    """Return what `check` of the unit's hunt prints and returns, in a notebook of solutions and these answers."""
    (hunt,) = hunts(unit)
    return Notebook(unit, **answers).check(hunt)


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_the_wrong_function_can_be_called_and_not_read(graders, unit, hunt):
    target = hunted(graders, unit, hunt)
    wrong = released_check(unit).buggy(target.of)
    with contextlib.suppress(OSError):  # inspect finds the function around it, which limits the input, or nothing
        assert target.wrong(unit).source().splitlines()[-1].strip() not in inspect.getsource(wrong)
    solved = catalogue.solutions(unit)[hunt].answer()
    given = solved if isinstance(solved, tuple) else (solved,)
    right = catalogue.solutions(unit)[target.of].answer
    assert not torch.allclose(wrong(*given, *target.also), right(*given, *target.also), atol=APART)


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_no_released_text_shows_its_lines(graders, unit, hunt):
    body = [ast.unparse(one) for one in ast.parse(hunted(graders, unit, hunt).wrong(unit).source()).body[0].body]
    right = catalogue.solutions(unit)[hunted(graders, unit, hunt).of].source()
    telling = [line for line in body if line not in right]
    assert telling
    cells = json.loads((RELEASE / unit / f"{unit}.ipynb").read_text())["cells"]
    texts = "\n".join(joined(cell["source"]) for cell in cells) + json.dumps(released_data(unit)[EXAMPLES])
    for name in ("attention_check.py", zip_file("attention_check")):
        texts += (RELEASE / unit / name).read_bytes().decode("latin-1")
    assert [line for line in telling if line in texts] == []


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_only_the_hunted_mistake_is_carried(unit, hunt):
    data = json.dumps(released_data(unit)[EXAMPLES])
    assert data.count('"wrong": {"code"') == len(hunts(unit))
    assert hunted(collect(), unit, hunt).mistake not in data


def test_a_name_that_is_not_hunted_is_said():
    for name in ("split_heads", None):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert released_check(HEADS).buggy(name) is None
        assert printed.getvalue() == (
            "The name of a function whose mistake is hunted is wanted: this notebook has a wrong merge_heads.\n"
        )


STUB = "def merge_heads(x):\n    raise NotImplementedError()\n"
COMES_FIRST = "your own function is what the wrong one is compared with."


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (STUB, f"Write merge_heads first: {COMES_FIRST}"),
        (
            "def merge_heads(x):\n    return x.reshape(x.shape[0], x.shape[2], -1)\n",
            f"merge_heads does not pass its check yet, so mend that first: {COMES_FIRST}",
        ),
    ],
)
def test_ones_own_function_comes_first(own, said):
    printed, score = check_of(HEADS, merge_heads=own)
    assert said in printed
    assert score == 0


def test_a_deleted_function_comes_first():
    notebook = Notebook(HEADS)
    del notebook.names["merge_heads"]
    assert f"Write merge_heads first: {COMES_FIRST}" in notebook.check(HUNT)[0]


def test_an_unwritten_hunt_is_said_to_be_that():
    printed, _ = check_of(HEADS, merge_heads=STUB, **{HUNT: f"def {HUNT}():\n    raise NotImplementedError()\n"})
    assert printed == f"{HUNT} is not written yet: its stub still raises NotImplementedError.\n"


def test_ones_own_function_need_not_be_right_where_no_value_is():
    own = "def merge_heads(x):\n    return x.detach().transpose(1, 2).flatten(2).cpu()\n"
    assert check_of(HEADS, merge_heads=own)[1] == 2


@pytest.mark.parametrize(("unit", "hunt"), HUNTS)
def test_nothing_is_said_of_other_numbers_and_no_line_is_told(unit, hunt):
    printed, score = check_of(unit)
    assert score == course.unit(unit).exercise(hunt).points
    assert "other numbers" not in printed
    assert "The hidden test asks the same, with the right `" in printed
    assert "To play with it" not in check_of(unit, **{hunt: f"def {hunt}():\n    return 0\n"})[0]


@pytest.mark.parametrize("unit", course.unit_names())
def test_only_the_check_of_a_hunt_says_what_it_compares(unit):
    cells = json.loads((RELEASE / unit / f"{unit}.ipynb").read_text())["cells"]
    texts = {cell["metadata"].get("nbgrader", {}).get("grade_id"): joined(cell["source"]) for cell in cells}
    for exercise in course.unit(unit).exercises:
        assert (CHECK_OF_A_HUNT in texts[exercise.check]) is (exercise.name in hunts(unit))


# What is hunted


def test_a_mistake_that_is_not_known_cannot_be_hunted():
    for hunt in (
        Hunt("merge_heads", ("x: b h T hd",), mistake="none"),
        Hunt("split_heads", (), mistake="heads_in_reverse"),
    ):
        with pytest.raises(NoHunt, match=r"which is not in autograder/misconceptions/multi_head_attention/\."):
            hunt.packed(HEADS)


def test_two_hunts_for_one_function_are_refused(graders):
    both = {HUNT: graders[HEADS][HUNT], "another": graders[HEADS][HUNT]}
    with pytest.raises(NotReleasable, match="Two bug hunts are for `merge_heads`"):
        release_data.release_data({HEADS: both}, HEADS, is_new=True)


def test_a_wrong_function_that_needs_more_than_modules_cannot_be_released(monkeypatch):
    entry = catalogue.Candidate(
        "merge_heads",
        "x",
        "",
        catalogue.Code(HEADS, "merge_heads", "def merge_heads(x):\n    return split_heads(x, 2)\n"),
    )
    monkeypatch.setattr(graders_of_hunts.catalogue, "misconceptions", lambda unit: {"x": entry})
    with pytest.raises(NoHunt, match="uses `split_heads`; in a bug hunt it may use only imported modules"):
        Hunt("merge_heads", ("x: b h T hd",), mistake="x").packed(HEADS)


def test_a_packed_function_has_what_it_imports():
    packed = packed_function(
        "def f(x):\n    return F.relu(x) + math.pi\n", {"F": "torch.nn.functional", "math": "math"}
    )
    assert "relu" not in packed["code"]
    assert float(unpacked_function("f", json.loads(json.dumps(packed)))(torch.zeros(()))) == pytest.approx(
        3.14159, rel=1e-5
    )


def test_a_packed_function_takes_only_inputs_of_a_hunt():
    double = unpacked_function("f", packed_function("def f(x, factor=2):\n    return x * factor\n", {}))
    result = double(torch.ones(MOST_NUMBERS - 1, requires_grad=True), factor=torch.tensor(3))
    assert torch.equal(result, 3 * torch.ones(MOST_NUMBERS - 1))
    assert not result.requires_grad
    with pytest.raises(ValueError, match=r"The wrong f takes at most 12 numbers, as in a bug hunt; these are 13\."):
        double(torch.ones(MOST_NUMBERS + 1))
    with pytest.raises(ValueError, match=r"The wrong f takes float32, as in a bug hunt, and not torch\.float64\."):
        double(torch.ones(1), factor=torch.ones(1, dtype=torch.float64))
