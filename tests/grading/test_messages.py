"""Messages on wrong answers: they say nothing false about the answer, and use only the student's own names."""

import re

import pytest
import torch

from autograder.core import random_results
from autograder.graders.collection import collect
from autograder.grading import examiner, reference_trace
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.grading.reference_trace import trace_cases
from autograder.tracing.explain import explain
from autograder.tracing.fault_search import locate_fault
from benchmarks.located.edits import right_sources
from benchmarks.located.measure import defined, run_of
from tests.typed import stored

SOURCES = right_sources()
CAUSAL = SOURCES["causal_attention", "CausalAttention", "CausalAttention"]
SDPA = ("self_attention", "scaled_dot_product_attention")


def said(unit, exercise, source):
    """Return the message on the faulty line of an answer; lines are numbered as in the source."""
    answer, lines = defined(unit, exercise, source), source.splitlines()
    for case in trace_cases(unit, exercise):
        known = reference_trace.reference_trace(unit, case)
        found = locate_fault(known, lambda new, case=case: run_of(answer, case, new))
        if not known.is_right(run_of(answer, case, {})):
            assert found, "no line is told"
            return explain(found, case, lambda _: lines)
    raise AssertionError("it is right")


def edited(old, new):
    assert CAUSAL.count(old) == 1
    return "causal_attention", "CausalAttention", CAUSAL.replace(old, new)


MASKING = next(line.strip() for line in CAUSAL.splitlines() if "scores = scores.masked_fill(" in line)
EDITED = {
    "a mask and its use": (*edited("masked_fill(self", "masked_fill(~self"), ["do not fit together",
      "reads it with the opposite meaning: it keeps what should be hidden", "It is inverted: 0 where"], []),
    "a step left out": (*edited(MASKING, "pass"), ["a step there is wrong, or missing"], ["pass"]),
    "made and not used": (*edited(MASKING, MASKING.removeprefix("scores = ")), ["do not fit together",
      "makes is right, but line", "it uses the input of line"], []),
    "ones that a line cuts": ("causal_attention", "CausalAttention", CAUSAL.replace(
        "scores = scores.masked_fill(self.mask[:num_tokens, :num_tokens], float('-inf'))",
        "seen = torch.ones(num_tokens, num_tokens).tril(diagonal=1)\n"
        "        scores = scores.masked_fill(seen == 0, float('-inf'))",
    ), ["Line 23 makes `seen` wrong.", "made:   shape (5, 5), from [0, 1] on 1, 0, 0, 0, …",
        "needed: shape (5, 5), from [0, 1] on 0, 0, 0, 0, …"], []),
}  # fmt: skip
FIELDS = ("unit", "exercise", "code", "says", "never")
ANSWERS = {one["name"]: [one[field] for field in FIELDS] for one in stored("messages")} | EDITED


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_told_of_a_line_is_true_of_it(kind):
    unit, exercise, source, words, no_words = ANSWERS[kind]
    found = said(unit, exercise, source)
    assert found.splitlines()[-1].startswith(f"Tried on {exercise}{' after ' if exercise == 'KVCache' else '('}")
    # An excerpt begins where the printed numbers differ.
    excerpts = [re.findall(rf"{of}: +(shape .*?(?:on|with) |the number )(.*?)(?:,|$)", found, re.M)
                for of in ("made", "needed")]  # fmt: skip
    assert not excerpts[0] or excerpts[0] != excerpts[1], found
    for one in words:
        assert one in found, found
    for one in no_words:
        assert one not in found, found


class Typed:
    """An answer as the catalogue has one."""

    def __init__(self, exercise, source):
        self.exercise, self.text, self.name = exercise, source, exercise
        self.answer = defined("causal_attention", exercise, source)


def test_no_number_alone_is_taken_for_another():
    """A single 0 is like many."""
    source = """\
def sinusoidal_positions(num_tokens, d):
    table = torch.zeros(num_tokens, d)
    for place in range(num_tokens):
        for column in range(d):
            angle = place / 10000 ** (column / d)
            table[place, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return table
"""
    with pytest.raises(AssertionError, match="no line is told"):
        said("tiny_language_model", "sinusoidal_positions", source)


def complaints(source):
    """By its name, what each grader of CausalAttention that fails says."""
    answer = Typed("CausalAttention", source)
    seen = EXAMINER.examine("causal_attention", "CausalAttention", candidate_bench("causal_attention", answer))
    return {one.test.name: one.seen for one in seen.verdicts if one.outcome == "failed"}


EXAMINER = Examiner(collect())
DROPS = "self.dropout(torch.softmax("
UNSCALED = CAUSAL.replace(" ** 0.5", "")
WITH_DROPOUT = {
    "unscaled, and drops in evaluation": (
        UNSCALED.replace(DROPS, "nn.functional.dropout(p=self.dropout.p, input=torch.softmax("),
        {"test_dropout_in_training": random_results.WRONG_ALREADY, "test_after_eval": random_results.WRONG_ALREADY},
    ),
    "layers made anew in forward": (
        CAUSAL.replace("self.W_query(x)", "nn.Linear(x.shape[-1], self.W_query.out_features)(x)"),
        {"test_dropout_in_training": random_results.WRONG_ALREADY, "test_after_eval": random_results.WRONG_ALREADY},
    ),
    "drops in evaluation": (
        CAUSAL.replace(DROPS, "nn.functional.dropout(p=self.dropout.p, input=torch.softmax("),
        {"test_after_eval": "Some weights are zero after eval(); outside of training dropout does nothing."},
    ),
    "drops of the result too": (
        CAUSAL.replace("return weights @ values", "return self.dropout(weights @ values)"),
        {"test_dropout_in_training": random_results.NOT_THE_WEIGHTS},
    ),
    "another shape": (
        CAUSAL.replace("return weights @ values", "return (weights @ values)[0]"),
        {"test_gradients_with_dropout": "The result is a tensor of shape (7, 6); "
                                        "a tensor of shape (4, 7, 6) is expected."},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WITH_DROPOUT)
def test_dropout_and_gradients_are_not_blamed_for_what_is_wrong_without_them(kind):
    source, words = WITH_DROPOUT[kind]
    assert source != CAUSAL
    with torch.random.fork_rng():
        found = complaints(source)
    assert {name: found.get(name) for name in words} == words


def in_its_cell(body):
    """An answer that does this, as it would stand in a notebook."""
    name = SDPA[1]
    answer = Typed(name, f"def {name}(queries, keys, values):\n    {body}")
    names = {"torch": torch}
    exec(compile(answer.text, f"cell:{name}", "exec"), names)
    answer.answer = names[name]
    return answer


@pytest.mark.parametrize(
    ("body", "compares", "tries_pairs"),
    [
        ("raise NotImplementedError()", False, False),
        ("return queries.absent", True, False),
        ("return 9 * values", True, True),
    ],
    ids=["not written", "an error", "other numbers"],
)
def test_no_mistake_is_looked_for_where_none_can_be_told(monkeypatch, body, compares, tries_pairs):
    """To compare an answer with each known mistake takes a second, and with each two of them several."""
    looked_for, (unit, exercise) = [], SDPA
    monkeypatch.setattr(examiner, "diagnose", lambda *_, is_exact: looked_for.append(not is_exact))
    found = EXAMINER.examine(unit, exercise, candidate_bench(unit, in_its_cell(body)))
    assert EXAMINER.diagnose(unit, exercise, found) is None
    assert looked_for == [tries_pairs] * compares


def test_what_was_learnt_beforehand_no_wrong_answer_waits_for(monkeypatch):
    ready, (unit, exercise), run = Examiner(collect()), SDPA, []
    ready.learn(unit)
    found = ready.examine(unit, exercise, candidate_bench(unit, in_its_cell("return queries.absent")))
    monkeypatch.setattr(examiner, "candidate_bench", lambda _, mistake: run.append(mistake))
    assert ready.diagnose(unit, exercise, found) is None
    assert run == []
