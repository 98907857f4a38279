"""A written answer reaches the person who grades, wherever in the notebook it was written."""

import json

import pytest

from autograder import course
from autograder.course import notebook
from autograder.course.cells import written_answers
from autograder.gradebook.clean_notebook import clean
from tests.typed import solved

UNIT = "causal_attention"
QUESTION = "why_mask_before_softmax"
ANSWER = "Because weights that are set to zero afterwards no longer sum to one."


def solved_cells():
    return json.loads(solved(UNIT))["cells"]


def words(text, kind="markdown", **fields):
    return {"cell_type": kind, "metadata": {}, "source": text, **fields}


def code(text, **fields):
    return words(text, "code", outputs=[], execution_count=None, **fields)


def place_of(cells):
    return next(at for at, cell in enumerate(cells) if cell["metadata"].get("nbgrader", {}).get("grade_id") == QUESTION)


def insert(offset, *new):
    def change(cells):
        at = place_of(cells) + offset
        cells[at:at] = new

    return change


def turn(kind, text, **metadata):
    def change(cells):
        cell = cells[place_of(cells)]
        cell.update(cell_type=kind, source=text)
        cell["metadata"].update(metadata)

    return change


def both(*changes):
    def change(cells):
        for one in changes:
            one(cells)

    return change


def delete(cells):
    del cells[place_of(cells)]


def without_metadata(cells):
    for cell in cells:
        cell["metadata"] = {}


def without_ids(cells):
    for cell in cells:
        cell.pop("id", None)


def below_the_question(cells):
    cells[place_of(cells) - 1]["source"] += f"\n\n{ANSWER}"


def unfinished(cells):
    """The placeholder written again: with blanks, a line end, in bold."""
    cells[place_of(cells)]["source"] = "\n **YOUR ANSWER HERE** <br>\n"


FOUND = {
    "a cell below": insert(1, words(ANSWER)),
    "a cell above": insert(0, words(ANSWER)),
    "two cells below": insert(1, words("Because weights"), words(ANSWER)),
    "a cell above and one below": both(insert(1, words(ANSWER)), insert(0, words("Because weights"))),
    "a raw cell": insert(1, words(ANSWER, "raw")),
    "a comment in a cell of code": insert(1, code(f"# {ANSWER}")),
    "a text in a cell of code": insert(1, code(f'"""{ANSWER}"""')),
    "a text that has a name": insert(1, code(f'answer = "{ANSWER}"')),
    "a text that is printed": insert(1, code(f'print("{ANSWER}")')),
    "words in a cell of code": insert(1, code(ANSWER)),
    "a question in a cell of code": insert(1, code(f"Why?\n\n{ANSWER[:-1]}, is that so?\n# {ANSWER}")),
    "a cell of code with a magic": insert(1, code(f"%%markdown\n{ANSWER}")),
    "its cell turned into code": turn("code", ANSWER, outputs=[]),
    "its cell turned into code, as a comment": turn("code", f"# {ANSWER}"),
    "its cell turned into code, which runs": turn("code", f"x = 1  # {ANSWER}"),
    "its cell turned into a raw cell": turn("raw", ANSWER),
    "a copy of its cell": lambda cells: cells.insert(
        place_of(cells), {**cells[place_of(cells)], "source": ANSWER, "id": "copy"}
    ),
    "below the question's text": below_the_question,
    "below the question's text, without ids": both(without_ids, below_the_question),
    "above the text below its cell": lambda cells: cells[place_of(cells) + 1].update(
        source=f"{ANSWER}\n\n{cells[place_of(cells) + 1]['source']}"
    ),
    "a cell in place of its own": both(insert(1, words(ANSWER)), delete),
    "a cell of code in place of its own": both(insert(1, code(ANSWER)), delete),
    "a cell below, and its own cleared": both(insert(1, words(ANSWER)), turn("markdown", "")),
    "a cell below, and the placeholder written again": both(insert(1, words(ANSWER)), unfinished),
    "a cell below, among code": insert(1, code("x = 1"), words(ANSWER), code("%matplotlib inline")),
    "its cell without metadata": both(turn("markdown", ANSWER), without_metadata),
    "its cell without metadata or id": both(turn("markdown", ANSWER), without_metadata, without_ids),
    "a picture in a cell below": insert(1, words(f"![{ANSWER}](data:image/png;base64,AAAA)")),
}


def parsed(cells):
    return notebook.parse(json.dumps({"nbformat": 4, "cells": cells}).encode())


def changed(change):
    cells = solved_cells()
    change(cells)
    return parsed(cells)


def question_in(cleaned):
    (cell,) = (cell for cell in cleaned.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == QUESTION)
    return cell


@pytest.mark.parametrize("change", FOUND.values(), ids=list(FOUND))
def test_an_answer_is_found_wherever_it_was_written(change):
    submission = changed(change)
    answer = written_answers(submission, course.unit(UNIT))[QUESTION]
    assert (answer.status, bool(answer.found_in)) == ("answered", True)
    assert ANSWER in answer.text
    cell = question_in(clean(submission, UNIT))
    assert (cell.cell_type, cell.source.count(ANSWER)) == ("markdown", 1)
    assert answer.found_in in cell.source


@pytest.mark.parametrize("change", FOUND.values(), ids=list(FOUND))
def test_what_is_kept_has_the_same_answer(change):
    """Nbgrader's autograde grades the notebook that was cleaned."""
    cleaned = clean(changed(change), UNIT)
    again = written_answers(parsed(json.loads(json.dumps(cleaned))["cells"]), course.unit(UNIT))[QUESTION]
    assert again.status == "answered"
    assert ANSWER in again.text


BLANK = {
    "as released": lambda _: None,
    "cleared": turn("markdown", ""),
    "of blanks": turn("markdown", " \n\t\u200b\n&nbsp;<br>"),
    "the placeholder written again": unfinished,
    "turned into code": turn("code", "YOUR ANSWER HERE"),
    "turned into code, as a comment": turn("code", "# YOUR ANSWER HERE"),
    "beside code": insert(1, code("x = 1"), code("!pip install torch"), code("def f(:\n    x")),
    "beside an empty cell": insert(1, words(" "), code("")),
    "beside a part of the question's text": lambda cells: insert(1, words(cells[place_of(cells) - 1]["source"]))(cells),
    "far from what is written": lambda cells: cells.insert(3, words("My notes.")),
}


@pytest.mark.parametrize("change", BLANK.values(), ids=list(BLANK))
def test_a_blank_answer_is_blank(change):
    submission = changed(change)
    assert written_answers(submission, course.unit(UNIT))[QUESTION].status == "unanswered"
    assert question_in(clean(submission, UNIT)).source == "YOUR ANSWER HERE"


def test_an_answer_that_was_deleted_is_missing():
    assert written_answers(changed(delete), course.unit(UNIT))[QUESTION].status == "missing"


def test_an_answer_in_its_own_cell_stays_as_it_was_written():
    submission = changed(both(turn("markdown", f"YOUR ANSWER HERE\n\n{ANSWER}"), insert(1, words("My notes."))))
    answer = written_answers(submission, course.unit(UNIT))[QUESTION]
    assert (answer.text, answer.found_in, answer.moved) == (f"YOUR ANSWER HERE\n\n{ANSWER}", "", frozenset())
    assert [cell.source for cell in clean(submission, UNIT).cells].count("My notes.") == 1


def test_words_in_the_place_of_a_text_cell_are_not_run(grading_process):
    content = json.dumps({"nbformat": 4, "cells": parsed_cells(turn("code", ANSWER))}).encode()
    report = grading_process.grade("ada", content, UNIT)
    assert (report.status, report.score) == ("graded", course.unit(UNIT).max_score)
    assert [(one.status, one.found_in) for one in report.written] == [("answered", "its cell, turned into code")]


def parsed_cells(change):
    cells = solved_cells()
    change(cells)
    return cells
