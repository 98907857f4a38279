"""The released check on every answer that the kit knows: it names the mistake, or no mistake, never a wrong one."""

import contextlib
import importlib.util
import io
import json
from functools import cache

import pytest
import torch

from autograder import catalogue, course
from autograder.marking.known_mistakes import MOST_SENTENCES
from solutions.six_words import SIX_WORDS
from tests import RELEASE

from .unseen import unseen

HEADER = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


@cache
def released_check(unit):
    """The module that students of the unit get."""
    spec = importlib.util.spec_from_file_location("attention_check", RELEASE / unit / "attention_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Names:
    """The names of a notebook in which the unit is solved, and the check beside it."""

    def __init__(self, unit, **other):
        """other: what has these names instead, as it is once its cell has been run."""
        solutions = vars(importlib.import_module(f"solutions.{unit}"))
        self.names = {**solutions, **other, "module": released_check(unit)}

    def run(self, line):
        """What the line prints, and its value."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = eval(line, self.names)
        return printed.getvalue(), value

    def check(self, exercise=""):
        return self.run(f"module.check({exercise!r})" if exercise else "module.check()")


class Notebook(Names):
    """A notebook of the unit with the answers typed in."""

    def __init__(self, unit, **typed):
        super().__init__(unit)
        answers = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
        self.names = {"X": SIX_WORDS, "module": self.names["module"]}  # a locked cell of the notebook defines X
        for source in [HEADER, *{**answers, **typed}.values()]:
            exec(source, self.names)


def named(unit, exercise, printed):
    """The misconceptions whose sentences stand in what was printed."""
    known = catalogue.misconceptions(unit).values()
    return {one.name for one in known if one.exercise == exercise and one.sentence in printed}


def listed(unit, exercise):
    """The misconceptions that the released table knows."""
    table = json.loads((RELEASE / unit / "known_mistakes.json").read_text())
    sentences = {sentence for mistake in table.get(exercise, ()) for sentence in mistake["sentences"]}
    known = catalogue.misconceptions(unit).values()
    return {one.name for one in known if one.exercise == exercise and one.sentence in sentences}


EXERCISES = [(unit, exercise.name) for unit in course.unit_names() for exercise in course.unit(unit).exercises]


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_every_listed_mistake_is_named(unit, exercise):
    known = {name: one for name, one in catalogue.misconceptions(unit).items() if one.exercise == exercise}
    table = listed(unit, exercise)
    assert table
    for name, one in known.items():
        printed, score = Names(unit, **{exercise: one.answer}).check(exercise)
        found = named(unit, exercise, printed)
        assert (name in found) == (name in table), printed
        assert len(found) <= MOST_SENTENCES, printed
        if name in table and score == course.unit(unit).exercise(exercise).points:
            assert "But so does" in printed


def test_most_mistakes_show_on_the_public_examples():
    known = sum(len(catalogue.misconceptions(unit)) for unit in course.unit_names())
    assert sum(len(listed(unit, exercise)) for unit, exercise in EXERCISES) >= 0.7 * known


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_no_mistake_is_seen_in_a_right_answer(unit, exercise):
    for one in [*catalogue.right_answers(unit).values(), *(u.answer for u in unseen(unit) if not u.wrong)]:
        if one.exercise == exercise:
            printed, score = Names(unit, **{exercise: one.answer}).check(exercise)
            assert (score, named(unit, exercise, printed)) == (course.unit(unit).exercise(exercise).points, set())


@pytest.mark.parametrize("unit", course.unit_names())
def test_answers_from_outside_of_the_catalogue_get_no_wrong_name(unit):
    for one in unseen(unit):
        printed, _ = Names(unit, **{one.answer.exercise: one.answer.answer}).check(one.answer.exercise)
        found = named(unit, one.answer.exercise, printed)
        assert not found or found & set(one.names), printed


def test_a_named_mistake_is_told_in_a_sentence_and_costs_its_examples():
    mistake = catalogue.misconceptions("causal_attention")["past_hidden"]
    printed, score = Notebook("causal_attention", causal_mask=mistake.source()).check("causal_mask")
    assert score == 0
    assert "A common mistake does exactly this:\n        " + mistake.sentence in printed


def test_progress_counts_what_passes():
    unit = "dot_product_attention"
    stub = "def softmax(scores, dim=-1):\n    raise NotImplementedError"
    wrong = "def context_vector(weights, inputs):\n    return inputs[0]"
    notebook = Notebook(unit, softmax=stub, context_vector=wrong)
    del notebook.names["pairwise_scores"]
    printed, value = notebook.check()
    lines = {line.split()[0]: line for line in printed.splitlines()}
    assert value is None
    assert "not written yet" in lines["softmax"]
    assert "not defined yet" in lines["pairwise_scores"]
    assert "0 of" in lines["context_vector"]
    assert "passes" in lines["normalize_by_sum"]
    # simple_self_attention stands on its own; three of six exercises are right.
    assert "3 of 6 exercises pass" in printed
    assert f"of {course.unit(unit).max_score:g} points" in printed


def test_the_notebook_goes_on_as_if_there_had_been_no_check():
    notebook = Notebook("self_attention")
    drawn = notebook.run("(torch.manual_seed(7), torch.rand(3))")[1][1]
    notebook.run("torch.manual_seed(7)")
    printed, _ = notebook.check()
    assert "12 of 12 exercises pass: 31 of 31 points" in printed
    assert notebook.run("torch.rand(3)")[1].equal(drawn)


ODD = {
    "an exit": ("raise SystemExit(3)", "It raised SystemExit: 3\n"),
    "a long error": ("raise ValueError('why\\n' * 500)", "It raised ValueError: why\n"),
    "complex numbers": ("return torch.softmax(scores / d_k**0.5, -1).to(torch.complex64)", "The result is complex;"),
    "a print": ("print('noise')\n    return scores", "differs in"),
}


@pytest.mark.parametrize(("body", "words"), ODD.values(), ids=ODD)
def test_odd_code_is_told_in_a_line(body, words):
    source = f"def scaled_softmax(scores, d_k):\n    {body}"
    printed, score = Notebook("self_attention", scaled_softmax=source).check("scaled_softmax")
    assert score == 0
    assert words in printed
    assert "noise" not in printed
    assert len(printed) < 1200


@pytest.mark.parametrize("switch", ["torch.set_default_dtype(torch.float64)", "torch.set_grad_enabled(False)"])
def test_what_the_notebook_switched_changes_no_verdict(switch):
    mistake = catalogue.misconceptions("self_attention")["divided_by_d_k"]
    wrong = Notebook("self_attention", scaled_softmax=mistake.source())
    default, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        wrong.run(switch)
        switched = torch.get_default_dtype(), torch.is_grad_enabled()
        assert mistake.sentence in wrong.check("scaled_softmax")[0]
        assert wrong.check("SelfAttention_v1")[1] == 5
        assert (torch.get_default_dtype(), torch.is_grad_enabled()) == switched
    finally:
        torch.set_default_dtype(default)
        torch.set_grad_enabled(grad)


def test_a_module_that_keeps_its_weights_is_named_like_any_other():
    mistake = catalogue.misconceptions("self_attention")["ScoresNotScaled"]
    lines = mistake.source().splitlines()
    lines[-1:] = [
        "        result = " + lines[-1].strip().removeprefix("return "),
        "        self.kept = result",
        "        return result",
    ]
    printed, _ = Notebook("self_attention", SelfAttention_v1="\n".join(lines)).check("SelfAttention_v1")
    assert "ScoresNotScaled" in named("self_attention", "SelfAttention_v1", printed)
