"""Harmless rewrites of misconceptions: their kinds, their effect on hidden tests, and how a record counts.

`python -m benchmarks.rewrites` grades 200 of them.
"""

import ast
from random import Random

import pytest

from autograder import catalogue
from autograder.catalogue import Candidate, Code, Edit
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner
from benchmarks import rewrites
from benchmarks.rewrite_operators import KINDS

REWRITES = {
    "other variable names": ("y = x @ m\n    return y", "v1 = x @ m\n    return v1"),
    "a helper": ("return x.abs()", "return helper(x)\n\ndef helper(x):\n    return x.abs()"),
    "a product written out": ("return x @ m", "return torch.stack([row @ m for row in x])"),
    "dead code": ("return x", "assert True\n    return x"),
    "another order": ("y = x[0]\n    z = m[0]\n    return y + z", "z = m[0]\n    y = x[0]\n    return y + z"),
    "a variable more": ("return x.sum() + m", "part = x.sum()\n    return part + m"),
    "a variable less": ("y = x.sum()\n    return y + m", "return x.sum() + m"),
}
KEPT = {
    "other variable names": "return x @ m",
    "a product written out": "return x * m",
    "another order": "y = x[0]\n    z = y[0]\n    return z",
    "a variable less": "y = x.sum()\n    return y + y",
}
"""Code of which there is no rewrite of the kind."""
UNIT = "causal_attention"


def made(kind, body):
    trees = [tree for seed in range(9) for tree in KINDS[kind](ast.parse(f"def f(x, m):\n    {body}"), Random(seed))]
    return [ast.unparse(ast.fix_missing_locations(tree)) for tree in trees]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_makes(kind):
    before, after = REWRITES[kind]
    assert f"def f(x, m):\n    {after}" in made(kind, before)


@pytest.mark.parametrize("kind", KEPT)
def test_a_kind_leaves(kind):
    assert made(kind, KEPT[kind]) == []


def test_a_helper_of_a_class_is_a_method():
    code = "class A:\n\n    def f(self, x):\n        return self.layer(x)"
    (tree,) = KINDS["a helper"](ast.parse(code), Random(1))
    assert "return self.helper(x)" in ast.unparse(tree)
    assert "    def helper(self, x):\n        return self.layer(x)" in ast.unparse(tree)


@pytest.fixture(scope="module")
def examiner():
    return Examiner(collect())


@pytest.mark.parametrize("kind", KINDS)
def test_a_rewrite_is_harmless_and_differs(kind, examiner):
    wrong = catalogue.misconceptions(UNIT)["DropoutOnTheValues"]
    one = rewrites.rewritten(examiner, UNIT, wrong, [kind], Random(3))
    before, after = (
        rewrites.examined(examiner, UNIT, wrong.exercise, code) for code in (wrong.source(), one["source"])
    )
    assert [verdict.outcome for verdict in after.verdicts] == [verdict.outcome for verdict in before.verdicts]
    assert "failed" in [verdict.outcome for verdict in after.verdicts]
    assert one["source"] != wrong.source()
    edited = [one["source"].splitlines()[line - 1] for line in one["lines"]]
    assert any("self.dropout(" in line for line in edited)


@pytest.mark.parametrize(
    ("code", "is_alike"),
    [
        ("(inputs @ inputs.T) * 2", True),
        ("(inputs @ inputs.T) * 3", False),  # though it fails the same tests
        ("(inputs @", False),
    ],
)
def test_answers_are_alike(code, is_alike, examiner):
    one, other = (
        rewrites.examined(
            examiner, "dot_product_attention", "pairwise_scores", f"pairwise_scores = lambda inputs: {text}"
        )
        for text in ("2 * inputs @ inputs.T", code)
    )
    assert rewrites.are_alike(one, other) == is_alike


def test_a_harmful_rewrite_is_drawn_again(examiner):
    wrong = catalogue.misconceptions(UNIT)["DropoutOnTheValues"]
    one = rewrites.rewritten(examiner, UNIT, wrong, ["a product written out"], Random(3))
    assert "[row @ " not in one["source"]  # does not fit several texts
    assert set(one["harmful"]) == {"a product written out"}


def test_an_error_is_no_harmless_rewrite(examiner):
    name, codes = "hunt_causal_softmax", ("return None", "raise ValueError")
    one, other = (rewrites.examined(examiner, UNIT, name, f"def {name}():\n    {code}") for code in codes)
    assert [verdict.outcome for verdict in one.verdicts] == [verdict.outcome for verdict in other.verdicts]
    assert not rewrites.are_alike(one, other)


def test_dead_code_needs_no_argument():
    trees = [
        tree for seed in range(9) for tree in KINDS["dead code"](ast.parse("def f():\n    return 1"), Random(seed))
    ]
    assert "unused = __name__" in "".join(map(ast.unparse, trees))


def test_the_seed_decides_what_is_drawn(examiner):
    first, again, other = ([*rewrites.rewrites(examiner, seed, 2)] for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
    assert first[0]["kind"] != first[1]["kind"]


@pytest.mark.parametrize(
    ("edit", "lines"),
    [(Edit("b = 2", "b = 3"), {3}), (Edit("b = 2", "b = 2; b = 4"), {4}), (Edit("    b = 2\n", ""), {2, 3})],
)
def test_edited_lines_are(edit, lines):
    code = Code("u", "f", "def f():\n    a = 1\n    b = 2\n    return a + b\n", (edit,))
    assert rewrites.edited_lines(Candidate("f", "wrong", "", code), "u") == lines


RECORD = {"mistake": "halved", "lines": [2, 3], "diagnosis": [], "reported": []}


@pytest.mark.parametrize(
    ("seen", "column"),
    [
        ({"diagnosis": ["halved"]}, "diagnosed"),
        ({"diagnosis": ["doubled", "halved"]}, "diagnosed"),
        ({"diagnosis": ["doubled"], "reported": [2]}, "other diagnosis"),
        ({"reported": [1, 3]}, "located"),
        ({"reported": [1]}, "lost"),
        ({}, "lost"),
    ],
)
def test_a_record_counts_as(seen, column):
    assert rewrites.outcome({**RECORD, **seen}) == column
