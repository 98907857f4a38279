"""Mutants made by machine: their operators, how they are drawn, and the page with their counts.

`python -m benchmarks.mutants` grades them all; here it is tried that each operator makes what it should.
"""

import ast
from itertools import islice
from textwrap import indent

import pytest

from autograder.catalogue import mutation_report
from benchmarks import mutants, mutants_page
from benchmarks.mutation_operators import drawn
from tests.typed import stored

EDITS = stored("mutants")
CODE = {name: tuple("def f(x, m):\n" + indent(body, "    ") for body in pair) for name, pair in EDITS.items()}


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
