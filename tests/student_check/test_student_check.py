"""The released check on the answers that the kit knows: it names the mistake, or no mistake, never a wrong one.

Each run tries the part in `sampling`; `pytest --every` tries all, and the committed page has what came of that.
"""

import contextlib
import importlib
import io
import json
import linecache
import sys
from functools import cache

import pytest
import torch

from autograder import catalogue, course
from autograder.catalogue.mutation_report import check_part, check_verdict, released_check
from autograder.core import random_results
from autograder.core.comparison import Mismatch
from autograder.core.judgement import ANY_GRADIENTS, CommonMistakes, matching_mistakes, signature_of
from autograder.core.run_trace import Run
from autograder.graders.collection import collect
from autograder.grading import public_examples, reference_trace
from autograder.grading.reference_trace import trace_cases
from autograder.grading.release_data import MOST_SENTENCES
from autograder.student_check.fault_location import located_fault, read_cases, read_trace
from autograder.student_check.run_examples import new_notebook_state, run_examples
from autograder.student_check.unit_data import EXAMPLES, MISTAKES, STEPS, WRITTEN, data_file
from solutions.latent_cache import LatentCache
from solutions.six_words import SIX_WORDS
from tests import RELEASE, REPOSITORY, golden_record, released_data, sampling
from tests.hidden_tests import listed as listed_graders
from tests.typed import alone, solution_sources, stored
from tests.unseen import unseen

PAGE = REPOSITORY / "docs" / "matrix.md"
STORED = stored("student_check")
HEADER = (
    "import math\nfrom collections.abc import Callable, Iterable\n"
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
)


said_of = cache(check_verdict)
"""The check's output for an answer; each is tried once."""


class Notebook:
    """A notebook of the unit with the answers typed in, and the check next to it."""

    def __init__(self, unit, **typed):
        answers = solution_sources(unit)
        given = {"X": SIX_WORDS, "LatentCache": LatentCache}  # locked cells of the notebooks define them
        self.names = {**given, "module": released_check(unit)}
        for source in [HEADER, *{**answers, **typed}.values()]:
            exec(source, self.names)

    def run(self, line):
        """Return the line's output and value."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = eval(line, self.names)
        return printed.getvalue(), value

    def check(self, exercise=""):
        return self.run(f"module.check({exercise!r}, more=True)" if exercise else "module.check()")


def module_of(unit, name):
    """A module of the released check, such as `run_examples`."""
    return importlib.import_module(f"{released_check(unit).check.__module__.rpartition('.')[0]}.{name}")


def named(unit, exercise, printed):
    """The misconceptions whose sentences stand in what was printed."""
    known = catalogue.misconceptions(unit).values()
    return {one.name for one in known if one.exercise == exercise and one.sentence in printed}


def listed(unit, exercise):
    """The misconceptions that the released table knows."""
    table = released_data(unit)[MISTAKES]
    sentences = {sentence for mistake in table.get(exercise, ()) for sentence in mistake["sentences"]}
    known = catalogue.misconceptions(unit).values()
    return {one.name for one in known if one.exercise == exercise and one.sentence in sentences}


def known_by(unit, name):
    return catalogue.misconceptions(unit)[name]


def has_forms(unit, one):
    return sum(other.mistake == one.mistake for other in catalogue.misconceptions(unit).values()) > 1


def part(unit, known):
    return [one for _, one in sampling.part(((unit, one) for one in known.values()), sampling.exercises_and_kinds)]


KNOWN = {unit: part(unit, catalogue.misconceptions(unit)) for unit in course.unit_names()}
"""The mistakes that are tried."""
RIGHT = {unit: part(unit, catalogue.right_answers(unit)) for unit in course.unit_names()}
"""The right answers that are tried."""
EXERCISES = [(unit, exercise.name) for unit in course.unit_names() for exercise in course.unit(unit).exercises]


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_every_listed_mistake_is_named(unit, exercise):
    known = {one.name: one for one in KNOWN[unit] if one.exercise == exercise}
    table = listed(unit, exercise)
    assert table
    for name, one in known.items():
        printed = said_of(unit, one).printed
        found = named(unit, exercise, printed)
        # Of several forms of a mistake one may end in an error, which is no sign of it; their sentence is one.
        is_named = name in found or (name in table and has_forms(unit, one))
        assert is_named == (name in table), printed
        assert len({known_by(unit, other).sentence for other in found}) <= MOST_SENTENCES, printed


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_the_check_agrees_with_the_golden_record(unit, exercise):
    tried = [one for one in [*KNOWN[unit], *RIGHT[unit]] if one.exercise == exercise]
    said = {one.name: check_part(said_of(unit, one)) for one in tried}
    assert said == {one.name: golden_record.checked(unit, one) for one in tried}


GRADERS = {f"{one.exercise.partition('.')[2]}/{one.name}" for one in listed_graders()}
WEIGHTS = {(*one.exercise.split("."), one.name): float(one.weight) for one in listed_graders()}


def costs_nothing(unit, one):
    """True if the grade has all points too: the hidden test of this misconception is advisory."""
    return WEIGHTS.get((unit, one.exercise, one.caught_by)) == 0


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_unreported_misconceptions_are_listed_as_not_tried(unit, exercise):
    """Full points here are full points in the mark, but for what the check says that it does not try."""
    known = [one for one in KNOWN[unit] if one.exercise == exercise]
    not_tried = released_data(unit)[EXAMPLES][exercise]["not_tried"]
    assert [
        one.name for one in known if said_of(unit, one).has_all_points and not (not_tried or costs_nothing(unit, one))
    ] == []
    assert [one.name for one in known if said_of(unit, one).is_unreported] == []


WITH_DROPOUT = [(unit, name) for unit, name in EXERCISES if f"{name}/test_dropout_in_training" in GRADERS]


@pytest.mark.parametrize(("unit", "exercise"), WITH_DROPOUT)
def test_dropout_is_not_blamed_for_other_faults(unit, exercise):
    known = [one for one in catalogue.misconceptions(unit).values() if one.exercise == exercise]
    plain = [one for one in known if one.kind in ("value", "mask")]
    assert any(random_results.WRONG_ALREADY in said_of(unit, one).printed for one in plain)  # mostly one of the first
    others = [said_of(unit, one).printed for one in KNOWN[unit] if one in plain]
    for printed in others:
        for line in printed.splitlines():
            assert line.strip() not in (
                random_results.ANOTHER_SHARE,
                random_results.NOT_RESCALED,
                random_results.CHANGED,
            ), printed
            assert not line.endswith("; drop each weight independently."), printed


def test_dropout_that_is_not_rescaled_has_a_message():
    """The example as it is made now, one of dropout alone."""
    solution = catalogue.solutions("causal_attention")["CausalAttention"].source()
    source = solution.replace("self.dropout(torch", "(1 - self.dropout.p * self.training) * self.dropout(torch")
    assert source != solution
    graders = collect()["causal_attention"]["CausalAttention"]
    (own,) = (one for one in graders if one.name == "test_dropout_in_training")
    example = public_examples.example("causal_attention", own)
    names = Notebook("causal_attention", CausalAttention=source).names
    with new_notebook_state():
        found = run_examples(names, "CausalAttention", {"points": 1, "examples": [example]}, [])
    assert [one.problem for one in found.tried] == [random_results.NOT_RESCALED]


def test_on_the_page_nearly_every_mistake_meets_a_word_and_no_right_answer_is_refused():
    """The page is about what is there now: `test_matrix` sees to that."""
    of_the_check = PAGE.read_text().partition("## In the student check")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in of_the_check.splitlines() if row[-1:] == "|"]
    by_name = {name: list(map(int, numbers)) for name, *numbers in rows if numbers[0].isdigit()}
    exercises = {f"`{exercise}`" for _, exercise in EXERCISES}
    units = {f"`{unit}`" for unit in course.unit_names()}
    assert {*exercises, *units, "value", "mask"} <= by_name.keys()
    for name, (mistakes, _, silent, _, refused) in by_name.items():
        assert refused == 0, name
        most = 0.1 if name in exercises else 0.03 if name in units else 0 if name in ("value", "mask") else 1
        assert silent <= most * mistakes, name


@pytest.mark.parametrize("unit", course.unit_names())
def test_released_data_is_small(unit):
    assert (RELEASE / unit / "attention_check.zip").stat().st_size < 510_000
    assert (RELEASE / unit / f"{unit}.json.gz").stat().st_size < 300_000


def test_blocks_that_are_kept_are_told_and_the_call_is_no_wall():
    kept = catalogue.misconceptions("efficient_attention")["blocks_kept_for_a_second_loop"]
    printed, _ = Notebook("efficient_attention", online_softmax=kept.source()).check("online_softmax")
    assert kept.sentence in printed
    assert "in memory at the same time" in printed
    assert "online_softmax(blocks of 32: each a tensor of shape (64,))" in printed


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_no_mistake_is_seen_in_a_right_answer(unit, exercise):
    for one in [*RIGHT[unit], *(u.answer for u in unseen(unit) if not u.wrong)]:
        if one.exercise == exercise:
            said = said_of(unit, one)
            assert (said.score, named(unit, exercise, said.printed)) == (said.points, set())


@pytest.mark.parametrize("unit", course.unit_names())
def test_answers_from_outside_of_the_catalogue_get_no_wrong_name(unit):
    for one in sampling.thinned(unseen(unit), 12, by=lambda one: one.answer.name):
        printed = said_of(unit, one.answer).printed
        found = named(unit, one.answer.exercise, printed)
        assert not found or found & set(one.names), printed


OUTSIDE = stored("outside")


@pytest.mark.parametrize("answer", OUTSIDE.values(), ids=OUTSIDE)
def test_a_mistake_is_named_by_the_examples_that_it_fails(answer):
    exercise = answer["exercise"]
    printed, _ = Notebook(answer["unit"], **{exercise: answer["code"]}).check(exercise)
    assert named(answer["unit"], exercise, printed) == set(answer["names"])
    assert [line for line in printed.splitlines() if "common mistake" in line] == answer["titles"]


def known_mistake(sentence, *shown, **of_examples):
    return {"sentences": [sentence, *shown], "shows": {name[1:]: one for name, one in of_examples.items()}}


def test_sentences_on_mistakes_say_how_they_belong_together():
    wide, tail = known_mistake("wide", _0=[1, 2.0], _1=[3, 4.0]), known_mistake("tail", _7=[5, 1.0])
    either = known_mistake("one", "other", _0=[1, 2.0], _1=[3, 4.0])
    failed = {0: [1, 2.0004], 1: [3, 4.0]}
    assert matching_mistakes(failed, [wide, tail]) == CommonMistakes(("wide",), False, 2)
    assert matching_mistakes(failed, [either, tail]) == CommonMistakes(("one", "other"), False, 2)
    assert matching_mistakes({**failed, 7: [5, 1.0]}, [wide, tail]) == CommonMistakes(("wide", "tail"), True, 3)
    assert matching_mistakes({**failed, 7: [5, 1.0]}, [either, tail]) == CommonMistakes(("one", "other"), False, 2)
    assert matching_mistakes({**failed, 7: [6, 1.0]}, [wide, tail]) == CommonMistakes(("wide",), False, 2)
    assert matching_mistakes({0: [1, 2.1], 1: [3, 4.0]}, [wide, tail]) == CommonMistakes()


def test_gradients_are_compared_only_for_mistakes_about_gradients_if_nothing_else_fits():
    in_place = {**known_mistake("in place", _3=[7, 2.0], _5=[8, 1.0]), ANY_GRADIENTS: True}
    detached = known_mistake("detached", _3=[7, 2.0])
    failed = {3: [9, 1.0], 5: [8, 1.0]}
    assert matching_mistakes(failed, [in_place, detached], [3]) == CommonMistakes(("in place",), False, 2)
    assert matching_mistakes(failed, [in_place, detached]) == CommonMistakes()
    assert matching_mistakes({3: [9, 1.0]}, [in_place, detached], [3]) == CommonMistakes(), "shown by nothing else"
    of_gradients = {key: one for key, one in in_place.items() if key != ANY_GRADIENTS}
    assert matching_mistakes(failed, [of_gradients], [3]) == CommonMistakes()
    assert matching_mistakes({3: [7, 2.0]}, [in_place, detached], [3]) == CommonMistakes(("detached",), False, 1)


def error_of(call):
    with pytest.raises(RuntimeError) as raised:
        call()
    return raised.value


def test_errors_that_differ_only_by_style_have_one_signature():
    def needed(*sizes):
        x = torch.ones(*sizes, requires_grad=True)
        y = x.exp() if len(sizes) > 1 else x.tanh()
        y += 1
        y.sum().backward()

    leaf, long = torch.ones(3, requires_grad=True), torch.ones(2, 4)
    pairs = [
        (lambda: needed(2, 3), lambda: needed(5)),
        (lambda: leaf.mul_(2), lambda: leaf.view(1, 3).mul_(2)),
        (lambda: leaf + long, lambda: long + leaf),
    ]
    signatures = [[signature_of(error_of(call)) for call in pair] for pair in pairs]
    assert all(one == other for one, other in signatures)
    assert len({tuple(one) for one, _ in signatures}) == len(pairs)
    assert signature_of(error_of(lambda: leaf + long)) != signature_of(error_of(lambda: leaf + torch.ones(2, 5)))


def test_a_value_that_cannot_be_described_has_a_signature():
    endless = []
    endless.append(endless)
    mismatch = Mismatch("The result is a list.")
    mismatch.compared = endless, endless
    assert len(signature_of(mismatch)) == 1, "no sums: it alone diagnoses nothing"


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
    # simple_self_attention stands on its own, and the hunt waits for softmax; three of seven exercises are right.
    assert "3 of 7 exercises pass" in printed
    assert "not marked yet: a person reads it" in printed
    tried = sum(course.unit(unit).points.values()) - 3
    assert f"of the {tried:g} points that are tried here" in printed
    assert "3 more are not given here: a person reads what you write in words." in printed


def test_heads_by_hand_are_judged_by_the_weights_that_they_give():
    """Many matrices give the same weights, so that the matrices themselves are compared with nothing."""
    unit, name = "tiny_language_model", "heads_by_hand"
    stub = f"def {name}(head, num_words, num_places):\n    d = num_words + num_places\n    return "
    problems = {
        "[torch.eye(d)] * 3": "W_value is a tensor of shape (13, 13); a tensor of shape (13, 4) is expected.",
        "[torch.full((d, num_words), torch.nan)] * 3": "W_query has inf or NaN. Use finite numbers",
        "[torch.zeros(d, num_words)] * 3": 'In "itself", token 1 of 7 gives token 0 the weight 0.500; 0.000 is',
    }
    for matrices, problem in problems.items():
        printed, score = Notebook(unit, **{name: stub + matrices}).check(name)
        assert problem in printed
        assert score < 1


def test_words_are_judged_by_how_often_they_are_drawn():
    unit, name = "tiny_language_model", "sample_next"
    softmax = "torch.softmax(logits.double(), -1)"
    code = f"def {name}(logits, temperature, top_k):\n    return torch.multinomial({softmax}, 1)[:, 0]"
    printed, _ = Notebook(unit, **{name: code}).check(name)
    assert "is drawn, but its logit is not among the 3 largest." in printed
    assert "the words are not drawn as often as softmax(logits / temperature) over the top_k largest says" in printed
    assert "In a row with tied logits, a word is drawn whose logit is smaller than the 2 largest." in printed


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_hidden_test_is_tried_in_the_check(unit):
    exercises = {name: of for name, of in released_data(unit)[EXAMPLES].items() if name != WRITTEN}
    assert [test["statement"] for of in exercises.values() for test in of["not_tried"]] == []


def test_the_notebook_goes_on_as_if_there_had_been_no_check():
    notebook = Notebook("self_attention")
    drawn = notebook.run("(torch.manual_seed(7), torch.rand(3))")[1][1]
    notebook.run("torch.manual_seed(7)")
    printed, _ = notebook.check()
    assert "15 of 15 exercises pass: 36 of the 36 points" in printed
    assert notebook.run("torch.rand(3)")[1].equal(drawn)


ODD = STORED["odd"]


@pytest.mark.parametrize(("body", "words"), ODD.values(), ids=ODD)
def test_odd_code_gets_a_message_of_one_line(body, words):
    source = f"def scaled_softmax(scores, d_k):\n    {body}"
    printed, score = Notebook("self_attention", scaled_softmax=source).check("scaled_softmax")
    assert score == 0
    assert words in printed
    assert max(map(len, printed.splitlines())) < 700
    assert len(printed) < 5000


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


def test_changed_arguments_are_restored_for_the_next_call():
    source = catalogue.solutions("self_attention")["encode"].source().replace("return ", "ids = ")
    notebook = Notebook("self_attention", encode=f"{source}\n    vocab.clear()\n    return ids")
    assert notebook.check("encode") == notebook.check("encode") == notebook.check("encode")


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


def test_a_call_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(module_of("self_attention", "run_examples"), "SECONDS", 0.3)
    source = "def scaled_softmax(scores, d_k):\n    while True:\n        try:\n            scores = scores + 1\n"
    source += "        except Exception:\n            pass"
    printed, score = Notebook("self_attention", scaled_softmax=source).check("scaled_softmax")
    assert score == 0
    assert printed.count("Does a loop in it never end?") == 1
    assert "not tried  The scores are not modified." in printed


@pytest.mark.parametrize(("waits", "points"), {0.75: 4, 60: 0}.items())
def test_a_call_that_waits_is_stopped_later_than_one_that_computes(monkeypatch, waits, points):
    """On a busy machine a right answer waits for the processor."""
    monkeypatch.setattr(module_of("self_attention", "run_examples"), "SECONDS", 0.5)
    source = f"import time\ndef scaled_softmax(scores, d_k, waits=[{waits}]):\n    while waits:\n"
    source += "        time.sleep(waits.pop())\n    return torch.softmax(scores / d_k**0.5, -1)"
    printed, score = Notebook("self_attention", scaled_softmax=source).check("scaled_softmax")
    assert score == points, printed
    assert ("did not come back" in printed) == (not points)


def test_an_interrupt_gets_a_message():
    source = "def scaled_softmax(scores, d_k):\n    raise KeyboardInterrupt"
    printed, score = Notebook("self_attention", scaled_softmax=source).check("scaled_softmax")
    assert (printed, score) == (
        "The check was interrupted, so it says nothing. Run its cell again when you like.\n",
        0.0,
    )
    assert "interrupted" in Notebook("self_attention", scaled_softmax=source).check()[0]


def test_an_example_is_the_call_and_the_right_result():
    notebook = Notebook("self_attention")
    (args, right) = notebook.run("module.example('scaled_softmax', 2)")[1]
    assert args[1] == 24
    assert torch.allclose(notebook.names["scaled_softmax"](*args).double(), right.double(), atol=1e-4)
    printed, _ = Notebook("self_attention", scaled_softmax="def scaled_softmax(scores, d_k):\n    return scores").check(
        "scaled_softmax"
    )
    assert 'example("scaled_softmax", 2)' in printed
    assert "scaled_softmax(scores of shape (1, 6), d_k=24)" in printed
    for wrong in ("'SelfAttention_v1', 1", "'scaled_softmax', 99", "'nothing', 1", "'scaled_softmax', 'x'"):
        printed, nothing = notebook.run(f"module.example({wrong})")
        assert nothing is None
        assert printed.count("\n") == 1


def cell(text, number):
    """Store a cell's text as a kernel does."""
    file = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


@pytest.mark.parametrize("is_wrong", [True, False])
def test_a_wrong_answer_that_the_code_uses_is_named_in_place_of_a_mistake(is_wrong):
    notebook = Notebook("dot_product_attention")
    scores = "inputs @ inputs.T" + " * 2" * is_wrong
    exec(cell(f"def pairwise_scores(inputs):\n    return {scores}", 1), notebook.names)
    uses = "def simple_self_attention(inputs):\n    return pairwise_scores(inputs).softmax(dim=0) @ inputs"
    exec(cell(uses, 2), notebook.names)
    printed = notebook.check("simple_self_attention")[0]
    assert ("It uses your `pairwise_scores`, which is not right yet" in printed) == is_wrong
    assert ("mistake" in printed or "ine 2" in printed) != is_wrong


def test_an_answer_that_differs_from_its_cell_is_reported(tmp_path, monkeypatch):
    right = catalogue.solutions("self_attention")["scaled_softmax"].source()
    failed = f"1 / 0\n{right}"
    notebook = Notebook("self_attention")
    exec(cell(right, 1), notebook.names)
    notebook.names["In"] = ["", right]
    assert "cell" not in notebook.check("scaled_softmax")[0]
    notebook.names["In"].append(failed)
    assert "it ended in an error before `scaled_softmax` was defined" in notebook.check("scaled_softmax")[0]
    notebook.names["In"].append(right)
    cells = [{"metadata": {"nbgrader": {"grade_id": "scaled_softmax"}}, "source": f"# new\n{right}"}]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "one.ipynb"))
    assert "Its cell has changed since it was run" in notebook.check("scaled_softmax")[0]


def test_forbidden_calls_are_detected_by_any_route():
    for body in ("F.softmax(scores, dim)", "scores.softmax(dim)", "torch.exp(torch.log_softmax(scores, dim))"):
        source = f"def softmax(scores, dim=-1):\n    return {body}"
        printed, score = Notebook("dot_product_attention", softmax=source).check("softmax")
        assert score == 0
        assert "The code calls a library's softmax" in printed


BACKWARD = STORED["backward"]


def test_one_wrong_result_of_three_fails_its_own_example_only():
    wrong = BACKWARD.replace("d_scores.mT @ queries", "d_scores.mT @ queries * root")
    printed, score = Notebook("efficient_attention", attention_backward=wrong).check("attention_backward")
    assert [line.split()[0] for line in printed.splitlines() if "any shapes." in line] == ["passed", "passed", "FAILED"]
    assert score == 3


TOO_EVEN = STORED["too_even"]


def test_the_check_reports_the_same_faulty_line_as_the_feedback(grading_process):
    notebook = Notebook("self_attention")
    exec(cell(TOO_EVEN, 11), notebook.names)
    printed, _ = notebook.check("scaled_dot_product_attention")
    report = grading_process.grade("typed.ipynb", alone("self_attention", scaled_dot_product_attention=TOO_EVEN))
    marked = report.exercise("scaled_dot_product_attention").whereabouts
    assert marked.lines == [4]
    assert marked.told in printed


@pytest.mark.parametrize("unit", course.unit_names())
def test_no_line_of_a_right_answer_is_reported(unit):
    """Even where it is looked for, as it would be if an example refused the answer."""
    data = RELEASE / unit / data_file(unit)
    exercises = released_data(unit)[STEPS].keys()
    answers = [*catalogue.solutions(unit).values(), *RIGHT[unit]]
    answers += sampling.thinned((one.answer for one in unseen(unit) if not one.wrong), 3, by=lambda one: one.name)
    assert exercises
    for one in answers:
        if one.exercise in exercises:
            names = {**vars(importlib.import_module(f"solutions.{unit}")), one.exercise: one.answer}
            with new_notebook_state():
                assert located_fault(names, one.exercise, data)[0] == "", one.name


@pytest.mark.parametrize("unit", course.unit_names())
def test_the_released_reference_trace_is_the_one_used_in_grading(unit):
    data = RELEASE / unit / data_file(unit)
    for exercise in sampling.thinned(released_data(unit)[STEPS], 6):
        cases = trace_cases(unit, exercise)
        released = read_cases(data, 0, exercise)
        for number, (given, case) in enumerate(zip(released, cases, strict=True)):
            reference = read_trace(data, 0, exercise, number)
            known = reference_trace.reference_trace(unit, case)
            assert given.is_silent == case.is_silent == (reference is None)
            if known is None:
                continue
            steps = [[tensor.step for tensor in one.tensors if tensor.step] for one in (reference, known)]
            assert steps[0] == steps[1]
            for right in known.tensors:
                matches = reference.matches(right.values)
                assert matches, (exercise, right)
                assert not right.step or right.step in {match.step for match in matches}
            assert (reference.ancestors, reference.inputs) == (known.ancestors, known.inputs)
            assert all(map(reference.is_prescaled, known.prescaled))
            assert reference.is_right(Run(result=tuple(known.results)))


def test_a_line_in_another_cell_is_not_reported():
    """Lines are reported by their numbers, which count from the top of the exercise's own cell."""
    own, helper = (
        TOO_EVEN.replace("torch.softmax(scores / keys.shape[-1] ** 2, dim=-1)", "made_of(scores)"),
        """\
def made_of(scores):
    return torch.softmax(scores / 36, dim=-1)
""",
    )
    for cells, is_told in (([helper, own], False), ([f"{helper}\n\n{own}"], True)):
        notebook = Notebook("self_attention")
        for number, text in enumerate(cells, start=21):
            exec(cell(text, number), notebook.names)
        printed, score = notebook.check("scaled_dot_product_attention")
        assert score < course.unit("self_attention").exercise("scaled_dot_product_attention").points
        assert ("What line 2 makes is wrong." in printed) == is_told
        assert ("Tried on" in printed) == is_told


TRACES = STORED["traces"]


def test_fault_location_leaves_no_trace():
    notebook = Notebook("self_attention")
    exec(cell(TRACES, 31), notebook.names)
    drawn = notebook.run("(torch.manual_seed(7), torch.rand(3))")[1][1]
    notebook.run("torch.manual_seed(7)")
    printed, _ = notebook.check("scaled_dot_product_attention")
    assert "Line 5 makes `weights` wrong." in printed
    assert not all(notebook.names["calls"])  # it was watched, without gradients
    assert torch.is_grad_enabled()
    assert sys.getprofile() is None
    assert sys.gettrace() is None
    assert notebook.run("torch.rand(3)")[1].equal(drawn)


def test_fault_location_ends(monkeypatch):
    """A loop that ends only with gradients: it ends in each example, and never while it is traced."""
    monkeypatch.setattr(module_of("self_attention", "fault_location"), "MAX_SECONDS", 0.3)
    body = "    while not torch.is_grad_enabled():\n        pass\n"
    notebook = Notebook("self_attention")
    exec(cell(TOO_EVEN.replace('    print("noise")\n', body), 41), notebook.names)
    printed, _ = notebook.check("scaled_dot_product_attention")
    assert "FAILED" in printed
    assert "Tried on" not in printed
    assert "Does a loop in it never end?" not in printed
