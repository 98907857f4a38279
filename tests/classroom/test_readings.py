"""Written answers shared out among readers: each at one reader, and what is recorded from the filled sheets."""

import csv
import shutil
from collections import Counter
from io import StringIO
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import course
from autograder.classroom.readings import QUESTIONS, share_out
from tests.commands import refusal, run
from tests.recorded_class import (
    UNIT,
    everything,
    feedback_page,
    give_points,
    notebook,
    opened_gradebook,
    put_submission,
    write_roster,
    write_settings,
)

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning")
STUDENTS = {"ada": "g", "bo": "g", "cy": "", "di": "", "eve": "", "flo": ""}
"""The group of each student."""
SUBMITTED = [student for student in STUDENTS if student not in ("bo", "flo")]
QUESTION, *OTHERS = [name for name in course.unit(UNIT).points if not name.startswith("test_")]
ANSWERS = st.sets(st.tuples(st.sampled_from("pqr"), st.integers(0, 40).map(str)))
READERS = st.sets(st.sampled_from(["anna", "ben", "cleo", "dan"]), min_size=1)


def differ_by_one(counts, readers):
    numbers = [counts[reader] for reader in readers]
    return max(numbers) - min(numbers) <= 1


@given(ANSWERS, READERS)
def test_each_answer_is_at_one_reader_and_readers_have_equally_many(answers, readers):
    shared = share_out(answers, readers, {})
    assert shared.keys() == answers
    assert set(shared.values()) <= readers
    assert differ_by_one(Counter(shared.values()), readers)
    for question in "pqr":
        assert differ_by_one(Counter(reader for (name, _), reader in shared.items() if name == question), readers)
    assert share_out(sorted(answers, reverse=True), sorted(readers, reverse=True), {}) == shared


@given(ANSWERS, READERS, ANSWERS, READERS)
def test_an_answer_stays_at_its_reader(answers, readers, new, present):
    before = share_out(answers, readers, {})
    after = share_out(answers | new, present, before)
    assert after.keys() == answers | new
    assert all(after[answer] == reader for answer, reader in before.items() if reader in present)
    assert set(after.values()) <= present
    if readers == present:
        assert differ_by_one(Counter(after.values()), readers)


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """A graded class: bo is in ada's group, and flo left the question blank."""
    root = tmp_path_factory.mktemp("once") / "course"
    root.mkdir()
    write_settings(root)
    write_roster(root, "group", STUDENTS)
    for student in SUBMITTED:
        put_submission(root, student, notebook(why_softmax=f"=Weights of {student.upper()[::-1]},\nand more."))
    put_submission(root, "flo", notebook(why_softmax=released_text()))
    recorded.grade(root)
    return root


def released_text():
    from autograder.course.units import released_cells

    return next(cell.text for cell in released_cells(UNIT) if cell.grade_id == QUESTION)


def read(root, *arguments, code=0):
    """Run `autograder read` in a course; return what it prints, or its message if it ends with another code than 0."""
    done = run("read", UNIT, "--course", root, *arguments, code=code, cwd=root)
    return done.stderr if code else done.stdout


def sheet_rows(folder):
    texts = [path.read_text(encoding="utf-8-sig") for path in sorted(folder.glob("*.csv"))]
    return [row for text in texts for row in csv.DictReader(StringIO(text))]


def share(root, to="sheets", readers="anna,ben", *options):
    read(root, "--readers", readers, "--to", to, *options)
    return sheet_rows(root / to)


def fill(root, rows, name="filled.csv", separator=","):
    with (root / name).open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)
    return name


def points(root):
    """Return the points and comments that persons gave, by student."""
    with opened_gradebook(root) as gradebook:
        return {
            student: (
                gradebook.find_grade(QUESTION, UNIT, UNIT, student).manual_score,
                gradebook.find_comment(QUESTION, UNIT, UNIT, student).manual_comment,
            )
            for student in STUDENTS
        }


def test_sheets_have_each_answer_once_and_no_name_if_names_are_hidden(root):
    assert OTHERS == []
    rows = share(root)
    assert sorted(row["student"] for row in rows) == ["ada, bo", "cy", "di", "eve"]
    assert Counter(row["reader"] for row in rows) == {"anna": 2, "ben": 2}
    assert {row["answer"] for row in rows} == {f"'=Weights of {name[::-1].upper()},\nand more." for name in SUBMITTED}
    assert "One point each for:" in (root / "sheets" / QUESTIONS).read_text()
    hidden = share(root, "hidden", "ben,anna", "--hide-names")
    assert [(row["reader"], row["key"]) for row in hidden] == [(row["reader"], row["key"]) for row in rows]
    text = "".join(path.read_text() for path in (root / "hidden").iterdir())
    assert not [student for student in STUDENTS if student in text.replace("and more", "").split('"')]
    assert all(row["student"] == row["key"].partition("-")[0] for row in hidden)


def test_a_folder_with_files_is_refused(root):
    share(root)
    before = everything(root)
    message = read(root, "--readers", "anna", "--to", "sheets", code=2)
    assert "sheets is not an empty folder." in message
    assert everything(root) == before


def test_answers_stay_at_their_readers_when_a_submission_comes_late(root, recorded):
    before = {row["key"]: row["reader"] for row in share(root)}
    put_submission(root, "flo", notebook(why_softmax="Late."))
    recorded.grade(root)
    after = {row["key"]: row["reader"] for row in share(root, "later")}
    assert len(after) == 5
    assert before.items() <= after.items()


def test_filled_sheets_are_recorded_in_any_order(root, tmp_path, recorded):
    rows = share(root, "sheets", "anna,ben", "--hide-names")
    for number, row in enumerate(rows):
        row |= {"points": "1,5" if number else "", "comment": f"Number {number}." if number == 1 else ""}
    sheets = [
        fill(root, rows[:2], "first.csv", ";"), fill(root, rows[2:], "second.csv"), fill(root, rows[::-1], "all.csv")
    ]  # fmt: skip
    results = []
    for number, order in enumerate(permutations(sheets)):
        copy = shutil.copytree(root, tmp_path / str(number))
        for sheet in order[: 1 + number % 2]:
            read(copy, sheet)
        printed = read(copy, *order)
        assert printed.splitlines()[1:] == [f"Answers still without points, {rows[0]['reader']}: 1."]
        results.append((points(copy), everything(copy)[0]["grades"]))
    assert all(result == results[0] for result in results)
    assert sorted(str(score) for score, _ in results[0][0].values()).count("1.5") in (3, 4)  # one may be of the group
    assert Counter(comment for _, comment in results[0][0].values())["Number 1."] in (1, 2)
    assert results[0][0]["ada"] == results[0][0]["bo"]
    recorded.grade(copy)
    student = next(student for student, its in results[0][0].items() if its[1] == "Number 1.")
    assert "Number 1." in feedback_page(copy, student).read_text()


def test_nothing_is_replaced_silently(root):
    first, second, third, fourth = share(root)
    for row in (first, second, third):
        row["points"] = "1"
    other = {**first, "reader": "cleo", "points": "2"}
    message = read(root, fill(root, [first, second]), fill(root, [other], "other.csv"), code=1)
    assert "marked twice and differently: " in message
    assert f"{first['reader']} gives 1 and cleo gives 2" in message or "cleo gives 2 and" in message
    before = points(root)
    assert [score for score, _ in before.values()].count(None) >= 4  # only that of `second` is recorded
    read(root, fill(root, [first]))
    message = read(root, "other.csv", code=1)
    assert f"points from {first['reader']}, which are kept; cleo gives 2." in message
    assert points(root)[first["student"].partition(",")[0]][0] == 1
    read(root, fill(root, [{**first, "points": "3", "comment": "Right."}]))  # the reader's own correction
    assert points(root)[first["student"].partition(",")[0]] == (3, "Right.")
    student = third["student"].partition(",")[0]
    give_points(root, student, 2.5)
    message = read(root, fill(root, [third]), code=1)
    assert "has 2.5 points from a person in formgrader, which are kept" in message
    assert points(root)[student][0] == 2.5
    assert fourth["reader"] in read(root)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": "4"}, "`4` is not a number of points from 0 to 3."),
        ({"points": "nan"}, "`nan` is not a number"),
        ({"points": "two"}, "`two` is not a number"),
        ({"points": "", "comment": "Hm."}, "there is a comment, but no points."),
        ({"reader": ""}, "the column reader is empty."),
        ({"question": "why"}, "no answer with this key."),
        ({"key": "a123-456"}, "no answer with this key."),
    ],
)
def test_a_row_that_is_not_recorded(root, change, message):
    row, *_ = share(root)
    before = points(root)
    assert message in read(root, fill(root, [{**row, "points": "1", **change}]), code=1)
    assert points(root) == before


def test_points_for_an_answer_that_has_changed_are_not_recorded(root, recorded):
    row = next(row for row in share(root) if row["student"] == "cy")
    put_submission(root, "cy", notebook(why_softmax="Another."))
    recorded.grade(root)
    message = read(root, fill(root, [{**row, "points": "1"}]), code=1)
    assert "has changed the answer since the sheet was written" in message
    assert points(root)["cy"][0] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--readers", "anna"], "Give readers and a folder"),
        (["--hide-names"], "Give readers and a folder"),
        (["--readers", "anna,anna", "--to", "new"], "Name each reader once"),
        (["--readers", "anna,", "--to", "new"], "Name each reader once"),
        (["--readers", "anna", "--to", "-"], "Name a folder."),
        (["--readers", "anna", "--to", "roster.csv"], "is not an empty folder"),
        (["--readers", "anna", "--to", "new", "--section", "Mon"], "No student on the roster has a section"),
        (["roster.csv"], "it has no column reader"),
    ],
)
def test_a_request_that_changes_nothing(root, arguments, message):
    before = everything(root)
    assert message in refusal("read", UNIT, "--course", root, *arguments, cwd=root)
    assert everything(root)[0] == before[0]
