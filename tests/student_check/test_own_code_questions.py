"""`explain` asks about the student's own lines; each question is answered here by running the code without a trace."""

import re

import pytest
import torch

from autograder import catalogue
from autograder.student_check import fault_location
from autograder.student_check.own_code_questions import own_code_questions
from autograder.student_check.unit_data import data_file
from tests import RELEASE
from tests.student_check.test_student_check import Notebook, cell
from tests.typed import stored

UNIT, EXERCISE = "self_attention", "scaled_dot_product_attention"
STORED = stored("own_lines")
ANSWERS = STORED["answers"]
SHAPES = {"three lines": {2: (2, 5, 7), 3: (2, 5, 7), 4: (2, 5, 3)}}
SHAPES["five lines"] = {3: (2, 5, 7), 4: (2, 5, 7), 5: (2, 5, 7), 6: (2, 5, 3)}
FIRST = {"three lines": {"queries": 2, "keys": 2, "values": 4}, "five lines": {"queries": 3, "keys": 3, "values": 6}}


def notebook(source):
    """A notebook in which a cell with this source was run."""
    notebook = Notebook(UNIT)
    exec(cell(source, len(source)), notebook.names)
    return notebook


def asked(source):
    names = notebook(source).names
    return own_code_questions(names, EXERCISE, RELEASE / UNIT / data_file(UNIT))


def result(source):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(2, *shape, generator=generator) for shape in ((5, 6), (7, 6), (7, 3))]
    names = dict(notebook(source).names)
    exec(source, names)
    return names[EXERCISE](*inputs)


def changed(source, old, new):
    """Run the code with a line replaced, and return what changes."""
    right = result(source)
    try:
        edited = result(source.replace(old, new))
    except (RuntimeError, IndexError):
        return "error"
    if edited.shape != right.shape:
        return "shape"
    return "nothing" if torch.allclose(edited, right, atol=1e-5) else "values"


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_answers_are_what_running_the_code_gives(kind):
    source = ANSWERS[kind]
    call, (of_shape, of_use, of_edit) = asked(source)
    assert call.startswith(f"{EXERCISE}(a tensor of shape (2, 5, 6)")
    line, text = re.search(r"line (\d+), `(.*)`", of_shape.text).groups()
    assert source.splitlines()[int(line) - 1].strip() == text
    assert tuple(of_shape.answer) == SHAPES[kind][int(line)]
    assert of_use.answer == FIRST[kind][re.search(r"`(\w+)`", of_use.text)[1]]
    old, new = re.search(r"line \d+, `(.*?)`, by `(.*?)`\. What", of_edit.text).groups()
    assert of_edit.answer == changed(source, old, new)


def test_a_cell_that_asks_gets_the_same_questions():
    """In a kernel the call is in a cell, too, and arguments are copied below it."""
    names = {"asked": asked, "source": ANSWERS["three lines"]}
    exec(cell("there = asked(source)", 1), names)
    assert names["there"] == asked(ANSWERS["three lines"])


def test_the_same_code_gets_the_same_questions_and_other_code_others():
    texts = [[one.text for one in asked(ANSWERS[kind])[1]] for kind in ("three lines", "three lines", "five lines")]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_a_right_answer_is_confirmed_and_a_wrong_one_is_explained():
    of = notebook(ANSWERS["three lines"])
    _, questions = asked(ANSWERS["three lines"])
    printed = of.run(f"module.explain({EXERCISE!r})")[0]
    assert all(question.text in printed for question in questions)
    right = tuple(questions[0].answer)
    assert of.run(f"module.explain({EXERCISE!r}, 1, {right})")[0].startswith("Yes. ")
    printed = of.run(f"module.explain({EXERCISE!r}, 1, (9, 9, 9))")[0]
    assert printed == f"Not quite. {questions[0].because}\n"
    assert "between square brackets" in of.run(f"module.explain({EXERCISE!r}, 1, 'x')")[0]
    assert "have the numbers 1 to 3" in of.run(f"module.explain({EXERCISE!r}, 4, 1)")[0]


def test_an_edit_that_never_ends_leaves_the_other_questions(monkeypatch):
    monkeypatch.setattr(fault_location, "MAX_SECONDS", 0.5)
    loop = "    done = 0\n    while done < 4:\n        done = done + 1\n    return weights"
    source = ANSWERS["three lines"].replace("    return weights", loop)
    _, questions = asked(source)
    assert [type(question.answer) for question in questions] == [list, int]


def test_code_that_does_not_pass_gets_its_check_first():
    wrong = catalogue.misconceptions(UNIT)["divided_by_d_k"]
    of = Notebook(UNIT, **{wrong.exercise: wrong.source()})
    assert f'`check("{wrong.exercise}")` comes first' in of.run(f"module.explain({wrong.exercise!r})")[0]


def test_a_check_that_passes_offers_the_questions_if_there_are_any():
    of = notebook(ANSWERS["three lines"])
    offer = 'Do you know your own lines? `explain("{}")` asks about them.'
    assert of.run(f"module.check({EXERCISE!r})")[0].splitlines()[-1] == offer.format(EXERCISE)
    assert "Do you know" not in of.run("module.check('build_vocab')")[0]


WITH_A_METHOD = STORED["with_a_method"]


def shapes_asked(source, exercise, unit, number=10):
    """The answers of questions on shapes, by line, for the code with comments that change which line is drawn."""
    found = {}
    for draw in range(number):
        of = Notebook(unit)
        drawn = source.replace("\n", f"  # {draw}\n", 1)
        exec(cell(drawn, len(drawn) + 1000), of.names)
        for question in own_code_questions(of.names, exercise, RELEASE / unit / data_file(unit))[1]:
            if match := re.search(r"tensor that line (\d+)", question.text):
                found[int(match[1])] = tuple(question.answer)
    return found


def test_a_line_that_calls_an_own_method_makes_what_the_method_returns():
    """The innermost call of that line, of the layer W_value, makes (2, 6, 18)."""
    found = shapes_asked(WITH_A_METHOD, "CrossAttention", "attention_masks")
    assert found[15] == (2, 3, 6, 6)
    assert set(found) == {15, 17}  # line 14 assigns to two names


BRANCHES = STORED["branches"]


def test_lines_that_the_call_does_not_run_are_not_asked_about():
    of = Notebook("efficient_attention")
    exec(cell(BRANCHES, len(BRANCHES)), of.names)
    data = RELEASE / "efficient_attention" / data_file("efficient_attention")
    call, questions = own_code_questions(of.names, "linear_attention", data)
    assert call.endswith(", True)")  # the call that runs most lines
    lines = [int(line) for one in questions for line in re.findall(r"line (\d+), `", one.text)]
    assert lines
    assert 7 not in lines


def test_edits_that_nobody_makes_are_not_asked_about():
    """Such as another tensor that is added, or `|` replaced by `&` with the parentheses lost."""
    window = "def sliding_window_mask(num_tokens, window):\n    places = torch.arange(num_tokens)\n"
    window += "    d = places[:, None] - places\n    return (d < 0) | (d >= window)\n"
    seen = []
    for draw in range(60):
        of = Notebook("attention_masks")
        source = window.replace("\n", f"  # {draw}\n", 1)
        exec(cell(source, 2000 + draw), of.names)
        data = RELEASE / "attention_masks" / data_file("attention_masks")
        seen += [one.text for one in own_code_questions(of.names, "sliding_window_mask", data)[1]]
    assert any("Replace" in text for text in seen)
    assert not any("d < 0 & d >= window" in text or "d < 0 | d" in text for text in seen)
    assert not any(re.search(r"by `d = places \+ ", text) for text in seen)
