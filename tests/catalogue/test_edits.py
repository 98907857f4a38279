"""Misconceptions are written as edits of a right answer."""

import builtins
import dis
import inspect
import re

import pytest

from autograder import catalogue, course
from autograder.catalogue import Candidate, Code, Edit, EditError, can_be_combined, combined, moved
from autograder.catalogue.candidate import edited, strip_annotations
from autograder.catalogue.known_answers import read_misconceptions

TEXT = """\
def scaled(scores, d_k):
    weights = torch.softmax(scores / d_k**0.5, dim=-1)
    return weights.to("cpu"), weights
"""


def test_what_is_typed_has_no_docstring_annotation_decorator_or_comment():
    source = '''
    @right_answer("Layer")
    class Layer(nn.Module):
        """What it is for."""

        size: int

        def __init__(self, size: int, bias: bool = False) -> None:
            """How it is made."""
            super().__init__()  # first
            self.size: int = size

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """(b, T) # no comment"""
            return x["é"] @ x  # (b, T)
    '''
    assert strip_annotations(source).splitlines() == [
        "class Layer(nn.Module):",
        "    def __init__(self, size, bias = False):",
        "        super().__init__()",
        "        self.size = size",
        "    def forward(self, x):",
        '        return x["é"] @ x',
    ]


@pytest.mark.parametrize("unit", course.unit_names())
def test_a_solution_as_typed_says_no_more_than_its_code(unit):
    for name in catalogue.solutions(unit):
        typed = Code(unit, name, catalogue.known_answers.editable_text(unit, name, "solution"))
        assert not {"->", "#", '"""'} & set(re.findall(r'->|#|"""', typed.base))


def test_an_edit_is_found_by_its_words():
    changed = edited(TEXT, [Edit.parse("d_k ** 0.5 -> d_k"), Edit.parse("to('cpu') -> cpu()")])
    assert changed == TEXT.replace("d_k**0.5", "d_k").replace('to("cpu")', "cpu()")


def test_what_was_found_stands_for_itself_in_the_new_text():
    assert edited(TEXT, [Edit.parse("scores / d_k**0.5 -> ({}).float()")]) == TEXT.replace(
        "scores / d_k**0.5", "(scores / d_k**0.5).float()"
    )


def test_new_lines_are_indented_as_the_line_is():
    changed = edited(TEXT, [Edit.parse("weights = torch ->\nif d_k > 1:\n    d_k = 1\n{}")])
    assert changed.splitlines()[1:4] == ["    if d_k > 1:", "        d_k = 1", TEXT.splitlines()[1]]


def test_an_edit_with_nothing_new_takes_away():
    assert edited(TEXT, [Edit.parse(", weights ->")]) == TEXT.replace(", weights", "")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("weights -> w", "the code must contain `weights` exactly once, but contains it 3 times"),
        ("keys -> values", "the code must contain `keys` exactly once, but contains it 0 times"),
        ("scores to weights", "write an edit as `old -> new`, not `scores to weights`"),
        (" -> weights", "write an edit as"),
    ],
)
def test_what_cannot_be_found_once_is_refused(written, said):
    with pytest.raises(EditError, match="^" + said.replace("*", r"\*")):
        edited(TEXT, [Edit.parse(written)])


def test_a_change_everywhere_is_made_in_each_place():
    assert edited(TEXT, [Edit.parse("weights -> w", everywhere=True)]) == TEXT.replace("weights", "w")
    with pytest.raises(EditError, match="more than once"):
        edited(TEXT, [Edit.parse("d_k**0.5 -> d_k", everywhere=True)])


def test_edits_of_the_same_place_are_refused():
    with pytest.raises(EditError, match="overlap"):
        edited(TEXT, [Edit.parse("scores / d_k -> scores"), Edit.parse("d_k**0.5 -> d_k")])


def wrong(name, *edits):
    return Candidate("scaled", name, f"{name}.", Code("self_attention", "scaled", TEXT, edits), "value", "test_a")


def test_two_mistakes_in_different_places_make_a_third():
    both = combined(
        wrong("unscaled", Edit.parse("scores / d_k**0.5 -> scores")), wrong("pair", Edit.parse(", weights ->"))
    )
    assert (both.name, both.sentence) == ("unscaled and pair", "unscaled. pair.")
    assert both.source().splitlines()[1:] == [
        "    weights = torch.softmax(scores, dim=-1)",
        "    return weights.to('cpu')",
    ]


def test_two_mistakes_in_one_place_make_none():
    one, other = wrong("one", Edit.parse("d_k**0.5 -> d_k")), wrong("other", Edit.parse("0.5 -> 2"))
    with pytest.raises(EditError, match="overlap"):
        combined(one, other)
    with pytest.raises(EditError, match="not edits of the same code"):
        combined(one, Candidate("scaled", "whole", "", Code("self_attention", "scaled", "def scaled(): pass")))


def test_a_mistake_in_another_code_is_made_where_the_first_one_is():
    other_text = TEXT.replace("d_k", "width")
    there = Candidate(
        "scaled", "pair", "pair.", Code("self_attention", "scaled", other_text, (Edit.parse(", weights ->"),)), "value"
    )
    one = wrong("unscaled", Edit.parse("scores / d_k**0.5 -> scores"))
    assert combined(one, there).source().splitlines()[1:] == [
        "    weights = torch.softmax(scores, dim=-1)",
        "    return weights.to('cpu')",
    ]
    assert combined(there, one).source() == combined(one, there).source()
    assert [(own.name, alone.source()) for own, alone in moved(there, one)] == [
        ("pair", wrong("pair", Edit.parse(", weights ->")).source())
    ]
    assert moved(one, wrong("pair", Edit.parse(", weights ->"))) == []
    assert not can_be_combined(there, wrong("width", Edit.parse("d_k**0.5 -> 2"), Edit.parse(", weights ->")))


FILE = """\
exercises: {one: "", two: two_}
value, caught by test_values:
  doubled:
    says: "It is doubled."
    edit: return x -> return 2 * x
"""


def read(tmp_path, content):
    file = tmp_path / "mistakes.yaml"
    file.write_text(content)
    return list(read_misconceptions(file, "self_attention", lambda exercise, of: f"def {exercise}(x):\n    return x\n"))


def test_a_mistake_of_two_exercises_is_written_once(tmp_path):
    found = read(tmp_path, FILE)
    assert [(one.exercise, one.name, one.sentence, one.kind, one.caught_by) for one in found] == [
        ("one", "doubled", "It is doubled.", "value", "test_values"),
        ("two", "two_doubled", "It is doubled.", "value", "test_values"),
    ]
    assert [one.answer(3) for one in found] == [6, 6]
    assert found[1].source() == "def two(x):\n    return 2 * x"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("says:", "say:", "`doubled`: .*unknown field `say`"),
        ("edit: return x -> return 2 * x", "of: solution", "`doubled`: give a mistake either edits or an answer"),
        ("edit: return x -> return 2 * x", "edit: return 2 * x", "`doubled`: write an edit as `old -> new`"),
        ("says:", "edit: a -> b\n    edit:", "`edit` is there twice"),
        ("exercises:", "exercise:", "`exercises` must name the exercise"),
        ("value,", "worth,", "`worth` is not a kind of mistake; the kinds are value, mask,"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path, old, new, said):
    with pytest.raises(EditError, match=rf"mistakes\.yaml: {said}"):
        read(tmp_path, FILE.replace(old, new))


def test_an_edit_that_cannot_be_made_says_where_it_is_written(tmp_path):
    (one, _) = read(tmp_path, FILE.replace("return x ->", "return y ->"))
    with pytest.raises(EditError, match=r"mistakes\.yaml: `doubled`: the code must contain `return y` exactly once"):
        one.source()


def test_what_is_no_answer_is_said():
    for text, said in [
        ("def one(x): return x", "does not define `scaled`"),
        ("def scaled(x): return (", "not one def"),
    ]:
        with pytest.raises(EditError, match=said):
            _ = Code("self_attention", "scaled", text).text


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_entry_is_code_of_its_own(unit):
    known = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
    known += catalogue.solutions(unit).values()
    texts = [(one.exercise, one.source()) for one in known]
    assert [text for text in set(texts) if texts.count(text) > 1] == []


@pytest.mark.parametrize("unit", course.unit_names())
def test_no_mistake_uses_a_name_that_nobody_has(unit):
    """It would show a NameError in place of itself."""
    known = set(dir(builtins))
    if unit in ("dot_product_attention", "self_attention"):
        known.add("X")  # the notebook's six words
    missing = {}
    for one in catalogue.misconceptions(unit).values():
        if names := used_from_outside(compile(one.source(), "", "exec")) - scope_of(one).keys() - known:
            missing[one.name] = names
    assert not missing


def used_from_outside(code):
    """The global names that code looks up, in its functions and classes too."""
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    given = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}
    inner = [one for one in code.co_consts if isinstance(one, type(code))]
    return (own - given - {"__name__"}).union(*map(used_from_outside, inner))


def scope_of(candidate):
    """The names that its code has besides its own."""
    answer = candidate.answer
    functions = vars(answer).values() if isinstance(answer, type) else [answer]
    return next(one.__globals__ for one in functions if inspect.isfunction(one))
