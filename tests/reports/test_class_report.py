"""The class report: of a class of 100 it says what was put in, in the gradebook's numbers, and to nobody who is who."""

import csv
import html
import json
import re
import shutil
import statistics
import unicodedata
from dataclasses import replace

import msgspec
import pytest

from autograder import course
from autograder.gradebook.roster import Enrolled
from autograder.report import Behaviour, Diagnosis, ExerciseReport
from autograder.reports.class_report import correlation
from autograder.reports.mistakes import Names, NotPython, WrongAnswer, WrongAnswers, code_sample
from tests.browser.chromium import chromium
from tests.class_of_100 import ABSENT, MARKUP, SIGNED, STUDENTS, make, mark_by_hand
from tests.commands import refusal, run
from tests.recorded_class import UNIT, opened_gradebook


@pytest.fixture(scope="module")
def graded(recorded, tmp_path_factory):
    """The class's folder, and what was put in."""
    root = tmp_path_factory.mktemp("class-of-100")
    put = make(root)
    recorded.grade(root)
    mark_by_hand(root)
    return root, put


@pytest.fixture(scope="module")
def written(graded):
    """The report of the class: its page, table and data."""
    root, _ = graded
    run("report", UNIT, "--course", root)
    return [root / "reports" / UNIT / f"report.{kind}" for kind in ("html", "csv", "json")]


@pytest.fixture(scope="module")
def anonymous(graded):
    """The same without names, from the same command."""
    root, _ = graded
    run("report", UNIT, "--course", root, "--anonymous", "--output", root / "shown" / "class.html")
    return [root / "shown" / f"class.{kind}" for kind in ("html", "csv", "json")]


@pytest.fixture(scope="module")
def data(written):
    return json.loads(written[2].read_text())


def test_mistakes_are_ranked_by_students_times_points_lost(graded, data):
    _, put = graded
    found = {one["name"]: one for one in data["mistakes"]}
    assert {name: set(one["students"]) for name, one in found.items()} == put.mistakes
    assert sorted(one["count"] for one in found.values()) == [1, 6, 10, 11, 29, 30]
    rows = {row["student"]: row["cells"] for row in data["rows"]}
    points = {one["name"]: one["points"] for one in data["exercises"]}
    for one in found.values():
        scores = [rows[student][one["exercise"]]["score"] for student in one["students"]]
        assert one["lost"] == pytest.approx(len(scores) * points[one["exercise"]] - sum(scores), abs=0.01)
    for ranked in (data["mistakes"], data["clusters"]):
        lost = [one["lost"] for one in ranked]
        assert lost == sorted(lost, reverse=True)
    assert found["naive_exponentials"]["share"] == 0.29
    first, second, third = data["clusters"]
    assert set(first["students"]) == put.halved
    assert first["specimen"] == {
        "code": "def context_vector(weights, inputs):\n    return 0.5 * (weights @ inputs) + 1",
        "lines": [2],
        "note": "",
    }
    assert (second["exercise"], second["count"], second["step"]) == ("softmax", 2, "exponentials")
    assert second["specimen"]["lines"] == [3]
    assert (third["exercise"], third["count"]) == ("pairwise_scores", 2)
    assert any("<img src=x onerror" in said for said in third["seen"])
    assert [(one["exercise"], one["why"], one["count"]) for one in data["unexplained"]] == [
        ("softmax", "its cell failed", 1)
    ]


def test_one_who_loses_much_outranks_three_who_lose_little():
    def answer(student, exercise, score):
        diagnosis = Diagnosis(f"of_{exercise}", "Compute it.")
        report = ExerciseReport(exercise, "failed", score, 4.0, diagnosis, "", [], behaviour=Behaviour(exercise, []))
        return WrongAnswer(student, "", report, "")

    made = [answer("ada", "cheap", 3.9), answer("bob", "cheap", 3.5), answer("eve", "cheap", 3.9)]
    answers = [*made, answer("ada", "dear", 0.5)]
    headings = {"cheap": "1", "dear": "2"}
    mistakes = WrongAnswers(answers, headings, {}, lambda answer, text: True).mistakes(3)
    assert [(one.exercise, one.count, one.lost) for one in mistakes] == [("dear", 1, 3.5), ("cheap", 3, 0.7)]
    unnamed = [replace(one, report=msgspec.structs.replace(one.report, diagnosis=None)) for one in answers]
    clusters = WrongAnswers(unnamed, headings, {}, lambda answer, text: True).clusters()
    assert [(one.exercise, one.count, one.lost) for one in clusters] == [("dear", 1, 3.5), ("cheap", 3, 0.7)]


def test_the_numbers_are_the_gradebooks(graded, written, data):
    root, put = graded
    with opened_gradebook(root) as gradebook:
        handed_in = gradebook.assignment_submissions(UNIT)
        raw = {one.student.id: one.score for one in handed_in}
        marks = {one.student.id: max(0, one.score - one.late_submission_penalty) for one in handed_in}
        grades = {}
        for one in handed_in:
            for grade in one.notebooks[0].grades:
                if not grade.needs_manual_grade or grade.manual_score is not None:
                    grades.setdefault(grade.name.removeprefix("test_"), {})[one.student.id] = grade.score
        waits = {one.student.id for one in handed_in if one.needs_manual_grade}
        most = gradebook.find_assignment(UNIT).max_score
    rows = {row["student"]: row for row in data["rows"]}
    assert (data["students"], data["handed_in"], data["max_score"]) == (101, 100, most)
    assert {student: rows[student]["score"] for student in marks} == pytest.approx(marks)
    assert {student: rows[student]["raw_score"] for student in raw} == pytest.approx(raw)
    # why_softmax waits, so it is no part of the mean
    without = [mark - grades["why_softmax"].get(student, 0) for student, mark in marks.items()]
    assert min(without) >= 0
    assert data["spread"]["mean"] == pytest.approx(statistics.fmean(without), abs=1e-4)
    assert data["spread"]["mean"] < statistics.fmean(marks.values())
    assert data["spread"]["median"] == pytest.approx(statistics.median(without), abs=1e-4)
    figures = {one["name"]: one for one in data["exercises"]}
    assert figures.keys() == grades.keys()
    assert data["spread"]["max_score"] == most - figures["why_softmax"]["points"]
    for name, scores in grades.items():
        full = figures[name]["points"]
        assert figures[name]["marked"] == len(scores)
        assert figures[name]["mean"] == pytest.approx(statistics.fmean(scores.values()), abs=1e-4), name
        assert figures[name]["passed"] == sum(score >= full for score in scores.values()), name
        lost = sum(max(0, full - score) for student, score in scores.items() if student != put.damaged)
        assert figures[name]["lost"] == pytest.approx(lost, abs=1e-3)
    # why_softmax waits, so it is no part of anyone's other marks; a damaged file is none of the answers
    others = [name for name in grades if name not in ("why_softmax", "softmax")]
    of_softmax = [student for student in raw if student != put.damaged]
    expected = statistics.correlation(
        [grades["softmax"][student] for student in of_softmax],
        [sum(grades[name][student] for name in others) for student in of_softmax],
    )
    assert figures["softmax"]["discrimination"] == pytest.approx(expected, abs=1e-4)
    look = {one["what"]: set(one["students"]) for one in data["to_look_at"]}
    assert 0 < len(look["waiting for a person"]) < 28
    assert look["waiting for a person"] <= waits  # which nbgrader also says of marks that a person has changed
    assert figures["why_softmax"]["waiting"] == len(look["waiting for a person"])
    assert {one["what"]: set(one["students"]) for one in data["to_look_at"]} == look | {
        "damaged": {put.damaged}, "late": put.late, "nothing handed in": {ABSENT},
    }  # fmt: skip
    with written[1].open(newline="") as file:
        table = {row["student"]: row for row in csv.DictReader(file)}
    assert {student: float(table[student]["score"]) for student in marks} == pytest.approx(marks)
    assert table[SIGNED]["dot_product_scores: mistakes"] == "score_divided_by_the_root"
    assert table[ABSENT]["status"] == "not_submitted"


def test_equal_scores_tell_nobody_apart():
    """Binary fractions make the mean of three times 0.1 another number than 0.1."""
    assert correlation([0.1] * 3, [1.0, 2.0, 3.0]) is None
    assert correlation([0.1] * 3, [0.7] * 3) is None
    assert correlation([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]) == 1


def test_the_page_is_one_file_that_needs_nothing(written, data):
    """In a browser without network and script, also in print."""
    text = written[0].read_text()
    assert len(text) < 2_000_000
    assert not re.search(r"https?:|<script|<link|<iframe|@import|src=|url\((?!#)", text.replace("&lt;img src=x", ""))
    assert MARKUP not in text
    assert html.escape(MARKUP) in text
    with chromium() as browser:
        page = browser.new_context(offline=True, java_script_enabled=False).new_page()
        page.goto(written[0].as_uri())
        lecture = page.locator(".lecture li").all_inner_texts()
        assert len(lecture) == 5
        assert "30 of 100 (30%), 60 points lost, in context_vector, section “3. The context vector”" in lecture[0]
        exercises = page.locator("section[aria-labelledby=exercises] tbody tr").all_inner_texts()
        lost = [float(row.split("\t")[1]) for row in exercises]
        assert lost == sorted(lost, reverse=True)
        assert lost[0] > lost[-1]
        assert page.get_by_text("too few grades").count() == sum(one["marked"] < 30 for one in data["exercises"])
        assert page.locator(".map tbody tr").count() == 100
        closed = page.locator("#M6 pre")
        assert not closed.is_visible()
        page.emulate_media(media="print")
        assert closed.is_visible()


def test_without_names_nobody_is_told(graded, anonymous, data):
    root, _ = graded
    names = {name.casefold() for both in STUDENTS.values() for name in both} | {ABSENT}
    for path in anonymous:
        text = unicodedata.normalize("NFC", path.read_text()).casefold()
        assert not [student for student in STUDENTS if student in text]
        assert names.isdisjoint(re.findall(r"[^\W\d_]+", text))
        assert not re.search(rf"{root}|submitted/|timestamp", text)
    bare = json.loads(anonymous[2].read_text())
    assert bare["spread"] == data["spread"]
    assert bare["exercises"] == data["exercises"]
    told = [(one["name"], one["count"], one["students"]) for one in bare["mistakes"]]
    assert told == [(one["name"], one["count"], []) for one in data["mistakes"]]
    # the same answer is shown, whoever gave it; the one that is signed in its code is not
    signed, *others = sorted(zip(bare["mistakes"], data["mistakes"], strict=True), key=lambda one: one[1]["count"])
    assert f"{SIGNED}_scores" in signed[1]["specimen"]["code"]
    assert (signed[0]["specimen"]["code"], signed[0]["specimen"]["note"][:17]) == ("", "No code is shown:")
    assert all(one["specimen"] == other["specimen"] for one, other in others)
    *others, raised = (one["seen"] for one in bare["clusters"])
    assert others == [one["seen"] for one in data["clusters"][:2]]
    assert raised[:2] == data["clusters"][2]["seen"][1:]  # of what was raised in it, with a name, nothing is said
    scores = [row["score"] for row in bare["rows"]]
    assert scores == sorted(scores, reverse=True)


def test_code_says_what_it_computes_and_nothing_else(data):
    (signed,) = (one for one in data["mistakes"] if one["students"] == [SIGNED])
    assert signed["specimen"]["code"] == (
        f"def dot_product_scores(query, inputs):\n    {SIGNED}_scores = query @ inputs.T\n    print('…')\n"
        f"    return {SIGNED}_scores / len(query) ** 0.5"
    )
    shown = code_sample(
        "def f(x):\n    '''Me'''\n    # me\n    y = (x +\n      1)\n    try: 'me'\n    finally: b'me'", {5}
    )
    assert shown.code == "def f(x):\n    y = (x +\n      1)\n    try: '…'\n    finally: b'…'".replace("b'", "'")
    assert shown.lines == [3]
    shown = code_sample("def f(x):\n  return f'{x} of me', '''me,\nmyself''', x + 1\n", {2, 4})
    assert (shown.code, shown.lines) == ("def f(x):\n  return '…', '…', x + 1", [2])
    for strange in (
        "(" * 9000,
        "-" * 9000 + "1",
        "a." * 4900 + "a",
        "'" * 9999,
        "%time x",
        "x = 1\0",
        "\ud800 = 1",
        "",
    ):
        with pytest.raises(NotPython):
            code_sample(strange)
    long = code_sample("\n".join(f"x{number} = 1" for number in range(800)))
    assert (long.code.count("\n"), long.note) == (39, "The rest of it is not shown.")


def test_names_are_found_in_whatever_form():
    student = Enrolled("li", "Li", "Ångström-As", "b.quist@example.org")
    names = Names([student, Enrolled("7", "Ann", "Lee")], "Attention: self.x, and homework")
    for told in (
        "li_scores = 1",
        "scores_by_LI",
        "angstrom2",
        "A\u030angströms",
        "quistian",
        "annlee = 1",
        "my_LeeAnn2",
        "…/x",
    ):
        assert names.is_in(told), told
    for other in ("linear", "x.split()", "def f(b): return b", "with a as homework", "planning", "sleep"):
        assert not names.is_in(other), other
    code = "def f(self): return self.x  # by quentin_2"
    assert names.is_in(code, "Quentin_2.ipynb")
    for tells_nobody in ("return.ipynb", "self.ipynb", "x.ipynb", "other.ipynb", ""):
        assert not names.is_in(code, tells_nobody), tells_nobody


def test_no_file_of_ones_own_takes_the_code_of_others_away(graded, anonymous, tmp_path):
    """Neither by its name, nor by a `return` where none can be."""
    root, put = graded
    bare = json.loads(anonymous[2].read_text())
    halved = sorted(put.halved)[0]
    other = tmp_path / "class"
    shutil.copytree(root, other)
    report_file = other / "autograded" / halved / UNIT / "report.json"
    kept = json.loads(report_file.read_text())
    report_file.write_text(json.dumps({**kept, "notebook": f"{halved}/{UNIT}/weights.ipynb"}))
    run("report", UNIT, "--course", other, "--anonymous")
    again = json.loads((other / "reports" / UNIT / "anonymous.json").read_text())
    assert [one["specimen"]["code"] for one in again["clusters"]] == [
        one["specimen"]["code"] for one in bare["clusters"]
    ]
    assert code_sample("def f(x):\n    return x\nreturn f").code.endswith("return f")


def test_what_cannot_be_reported_is_said_in_a_sentence(graded, tmp_path):
    root, _ = graded
    other = next(name for name in course.unit_names() if name != UNIT)
    for arguments, said in {
        (UNIT, "--course", tmp_path): "Nothing is graded yet: there is no",
        (UNIT, "--course", tmp_path / "nowhere"): "nowhere is not there.",
        (other, "--course", root): f"Nothing of {other} is graded in",
        (UNIT, "--course", root, "--output", root / "roster.csv"): "report.html cannot be written: Not a directory.",
    }.items():
        assert said in refusal("report", *arguments)


def test_a_name_for_what_has_passed_is_no_mistake_of_the_class(graded, data, tmp_path):
    """Half precision may come back as float32: the report says so, and no points are lost."""
    root, put = graded
    other = tmp_path / "class"
    shutil.copytree(root, other)
    right = min(set(STUDENTS) - put.halved - set().union(*put.mistakes.values()) - {put.damaged})
    report_file = other / "autograded" / right / UNIT / "report.json"
    kept = json.loads(report_file.read_text())
    (softmax,) = [one for one in kept["exercises"] if one["name"] == "softmax"]
    assert softmax["status"] == "passed"
    softmax["diagnosis"] = {"name": "half_becomes_float32", "sentence": "Half precision comes back as float32."}
    report_file.write_text(json.dumps(kept))
    run("report", UNIT, "--course", other)
    again = json.loads((other / "reports" / UNIT / "report.json").read_text())
    assert again["mistakes"] == data["mistakes"]
    assert again["rows"] == data["rows"]
