"""Mutants made by machine: their operators, how they are drawn, and the page with their counts.

`python -m benchmarks.mutants` grades them all; here it is tried that each operator makes what it should.
"""

import ast
from itertools import islice

import pytest

from autograder.catalogue import mutation_report
from benchmarks import mutants, mutants_page
from benchmarks.mutation_operators import drawn

EDITS = {
    "negate a condition": ("if m:\n        x = m\n    return x", "if not m:\n        x = m\n    return x"),
    "always true": ("return x if m else 0", "return x if True else 0"),
    "never true": ("while m:\n        x = m", "while False:\n        x = m"),
    "and for or": ("return x and m", "return x or m"),
    "drop a condition": ("return x or m", "return m"),
    "another comparison": ("return x is None", "return x is not None"),
    "another operator": ("return x // m", "return x / m"),
    "drop the first operand": ("return x - m", "return m"),
    "assign instead of add": ("x += m\n    return x", "x = m\n    return x"),
    "constant 0": ("return x[2]", "return x[0]"),
    "constant negated": ("return x.sum(dim=2)", "return x.sum(dim=-2)"),
    "drop an index": ("return x[0]", "return x"),
    "drop a bound": ("return x[:, :m]", "return x[:, :]"),
    "training ignored": ("return x.apply(self.training)", "return x.apply(True)"),
    "function of the same family": ("return torch.sin(x)", "return torch.cos(x)"),
    "elements swapped": ("x, m = m.chunk(2)\n    return x", "m, x = m.chunk(2)\n    return x"),
    "one turn less": ("for i in range(m):\n        x = m", "for i in range(m - 1):\n        x = m"),
    "drop an argument": ("return torch.cat(x, 1)", "return torch.cat(x)"),
    "drop a statement": ("y = x * 2\n    return y", "pass\n    return y"),
    "change the dimension": ("return x.sum(dim=-1)", "return x.sum(dim=0)"),
    "another name": ("return x * m", "return m * m"),
    "drop a call": ("return x.exp().sum()", "return x.sum()"),
}
CODE = {name: tuple(f"def f(x, m):\n    {body}" for body in pair) for name, pair in EDITS.items()}


def made(code, seed="1"):
    return list(drawn("unit", "f", "f", code, seed))


@pytest.mark.parametrize("operator", EDITS)
def test_an_operator_makes_code_that_differs_in_its_line(operator):
    before, after = CODE[operator]
    assert after in [mutant.source for mutant in made(before) if mutant.operator == operator]
    for mutant in made(before):
        ast.parse(mutant.source)
        lines = zip(before.splitlines(), mutant.source.splitlines(), strict=True)
        assert [number for number, (one, other) in enumerate(lines, 1) if one != other] == list(mutant.lines)


def test_the_seed_decides_what_is_drawn_first():
    code, _ = CODE["drop a call"]
    assert made(code) == made(code)
    assert made(code) != made(code, "2")
    assert sorted(one.source for one in made(code)) == sorted(one.source for one in made(code, "2"))


def test_operators_take_turns():
    first = [mutant.operator for mutant in islice(made(CODE["negate a condition"][0]), 4)]
    assert len(set(first)) == 4


def test_each_reason_is_about_a_mutant_that_is_drawn():
    unit = "dot_product_attention"
    drawn_now = {mutants_page.described(mutant) for mutant in mutants.mutants(unit)}
    of_unit = {one for one in mutants_page.reasons() if one.startswith(f"{unit} ")}
    assert of_unit
    assert of_unit <= drawn_now


RECORD = {"mutant": "u f 2: x -> y", "exercise": "f", "lines": [2, 3], "diagnosis": "", "reported": [], "raised": []}


@pytest.mark.parametrize(
    ("seen", "column"),
    [
        ({"diagnosis": "halved", "reported": [7]}, "diagnosed"),
        ({"reported": [1, 3]}, "located"),
        ({"reported": [7], "raised": [2]}, "wrong line"),
        ({"raised": [2]}, "error's line"),
        ({"raised": [7]}, "nothing"),
        ({"raised": [7], "mutant": "u f 2: x = 1 -> pass"}, "error's line"),
    ],
)
def test_a_record_counts_as(seen, column):
    assert mutants_page.outcome({**RECORD, **seen}) == column


def test_the_mutation_report_keeps_what_stands_below_its_digest():
    page = f"# Page\n\nAbout the content with the digest `{64 * 'a'}`.\n"
    assert mutation_report.below_digest(page) == ""
    assert mutation_report.below_digest(f"{page}\n## One\n") == "## One\n"
    assert mutation_report.below_digest("## One\n") == ""
