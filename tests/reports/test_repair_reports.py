"""Repairs in what students and instructors read: feedback pages, result files and the class report."""

import dataclasses
import html
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from bs4 import BeautifulSoup
from msgspec.structs import replace

from autograder.gradebook.nbgrader_course import nbgrader_api
from autograder.grading.repair_search import Step
from autograder.grading.repairs import _changes
from autograder.report import Behaviour, Change, ExerciseReport, Repair
from autograder.reports.class_report import compose, page
from autograder.reports.class_report_schema import ChangedLine
from autograder.reports.exports import gradescope_results, junit_xml
from autograder.reports.mistakes import WrongAnswer, WrongAnswers, line_sample
from autograder.reports.pages import read_report
from autograder.tracing.definitions import Definition
from autograder.tracing.repair_operators import generic_edits
from tests import REPOSITORY
from tests.recorded_class import (
    UNIT,
    RecordedClass,
    feedback_page,
    opened_gradebook,
    put_submission,
    set_due,
    write_settings,
)
from tests.typed import solved

BEFORE = "    return x.exp() / x.exp().sum(0) + 0.1 * (1 < 2)"
"""No known mistake does this."""
AFTER = BEFORE.replace("sum(0)", "sum(-1)")
SHOWN = "instead: return x.exp() / x.exp().sum(-1) + 0.1 * (1 &lt; 2)"
REPAIR = Repair([Change("softmax", 2, "a number", BEFORE, AFTER)])


def notebook(code):
    return solved(UNIT, softmax=code)


class WithRepairs(RecordedClass):
    """Reports the same repair of every unexplained answer; to search one takes seconds."""

    most = 2
    """Submissions after whose search the run is interrupted."""

    def recorded_grading(self, work, submissions, **terms):
        grading = super().recorded_grading(work, submissions, **terms)
        grading.repaired = lambda reports: self.repaired(grading, reports)
        return grading

    def repaired(self, grading, reports):
        for number, graded in enumerate(grading.graded()):
            if number == self.most:
                raise KeyboardInterrupt
            report = reports[graded.submission.student]
            exercises = [replace(one, repairs=[REPAIR]) if one.behaviour else one for one in report.exercises]
            yield dataclasses.replace(graded, report=replace(report, exercises=exercises, repairs_searched=True))


@pytest.fixture(scope="module")
def recorded(grading_process):
    return WithRepairs(grading_process)


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A course without a due date, in which two students gave the same wrong answer."""
    root = tmp_path_factory.mktemp("repairs") / "course"
    for folder in ("source", "release"):
        shutil.copytree(REPOSITORY / folder / UNIT, root / folder / UNIT)
    write_settings(root)
    for student in ("ada", "bob"):
        put_submission(root, student, notebook(f"def softmax(x, dim=-1):\n{BEFORE}\n"))
    return root


@pytest.fixture(scope="module")
def graded(new, recorded, tmp_path_factory):
    root = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(new, root)
    recorded.grade(root, repair=True)
    return root


def repairs(root, student):
    return read_report(root / "autograded" / student / UNIT, UNIT).exercise("softmax").repairs


def test_an_interrupted_search_is_completed_by_the_next_run(new, recorded, tmp_path, monkeypatch):
    root, steps = tmp_path / "course", []
    shutil.copytree(new, root)
    terms = {"on_start": lambda *stage: steps.append(stage), "on_step": lambda: steps.append("step")}
    monkeypatch.setattr(recorded, "most", 1)
    with pytest.raises(KeyboardInterrupt):
        recorded.grade(root, repair=True, **terms)
    assert [repairs(root, student) for student in ("ada", "bob")] == [[REPAIR], []]
    assert steps == [(2, UNIT), "step", "step", (2, f"{UNIT}: search for repairs"), "step"]
    recorded.grade(root)
    assert recorded.asked == []
    assert [row.student for row in recorded.preview(root, repair=True).rows if row.is_new] == ["bob"]
    recorded.grade(root, repair=True)
    assert recorded.asked == ["bob"]
    assert repairs(root, "bob") == [REPAIR]
    recorded.grade(root, repair=True)
    assert recorded.asked == []


def due_is(root, late, extended):
    """Set the due date to some hours ago, and give Bob an extension."""
    set_due(root, datetime.now(UTC) - timedelta(hours=late))
    with opened_gradebook(root) as gradebook:
        gradebook.find_submission(UNIT, "bob").extension = timedelta(hours=extended)
        gradebook.db.commit()


def pages(root):
    texts = {student: feedback_page(root, student).read_text() for student in ("ada", "bob")}
    assert all("softmax" in text for text in texts.values())
    boxes = {student: BeautifulSoup(text, "html.parser").select(".failed .fault") for student, text in texts.items()}
    shown = [student for student, its in boxes.items() if any(SHOWN in str(box) for box in its)]
    assert shown == [student for student, text in texts.items() if SHOWN in text]
    return shown


@pytest.mark.parametrize(("late", "extended", "shown"), [(-1, 0, []), (1, 2, ["ada"]), (3, 2, ["ada", "bob"])])
def test_the_edit_is_shown_after_the_due_date_and_the_extension(graded, recorded, tmp_path, late, extended, shown):
    assert pages(graded) == []  # without a due date
    root = tmp_path / "course"
    shutil.copytree(graded, root)
    due_is(root, late, extended)
    recorded.grade(root)
    assert recorded.asked == []
    assert pages(root) == shown
    shutil.rmtree(root / "feedback")
    assert nbgrader_api(root).generate_feedback(UNIT)["success"]
    assert pages(root) == shown


def test_result_files_for_students_have_no_edit(graded):
    report = read_report(graded / "autograded" / "ada" / UNIT, UNIT)
    assert repairs(graded, "ada") == [REPAIR]
    for content in (gradescope_results(report, "visible"), junit_xml([report])):
        assert b"softmax" in content
        assert b"sum(-1)" not in content


def test_a_repair_lists_each_line_that_it_changes():
    text = "def f(x, m):\n    y = x\n    x = m\n    return y\n"
    definition = Definition("f", "cell", text, 3)
    edits = {definition.edited(edit).text: edit for edit in generic_edits(definition)}
    swap = edits["def f(x, m):\n    x = m\n    y = x\n    return y\n"]
    assert [(one.line, one.before, one.after) for one in _changes(Step(definition, swap))] == [
        (4, "    y = x", "    x = m"), (5, "    x = m", "    y = x"),
    ]  # fmt: skip


def answer(student, before, after="", kind="a number"):
    repairs = [Repair([Change("softmax", 2, kind, before, after)])] if after else []
    report = ExerciseReport("softmax", "failed", 0, 4, None, "", [], behaviour=Behaviour("alike", []), repairs=repairs)
    return WrongAnswer(student, "homework.ipynb", report, f"def softmax(x):\n{before}\n")


def test_the_class_report_groups_equal_repairs():
    answers = [
        answer("ada", "    return x / x.sum(0)", "    return x / x.sum(-1)"),
        answer("bob", "        return x/x.sum( 0 )", "        return x/x.sum( -1 )"),
        answer("cleo", "    return x / x.sum(0)", "    return x / x.sum(1)"),
        answer("dan", "    return x / x.sum(0)", "    return x / x.sum(-1)", "an argument"),
        answer("eve", "    for zoe in x:  # Eve", "    if x.dim() == 2: # Eve", "a statement"),
        *(answer(student, "    return x") for student in ("fay", "gus", "hal")),
    ]
    clusters = WrongAnswers(answers, {"softmax": "1"}, {}, lambda answer, text: "zoe" not in text).clusters()
    assert sorted(cluster.students for cluster in clusters) == [
        ["ada", "bob"], ["cleo"], ["dan"], ["eve"], ["fay", "gus", "hal"],
    ]  # fmt: skip
    repairs = {cluster.students[0]: cluster.repair for cluster in clusters}
    assert repairs["ada"] == [ChangedLine("a number", "return x / x.sum(0)", "return x / x.sum(-1)")]
    assert repairs["eve"] == [ChangedLine("a statement", "", "")]
    assert repairs["fay"] == []


def test_the_class_report_shows_the_repair(graded):
    text = page(compose(graded, UNIT, is_anonymous=True))
    before, after = (html.escape(line.strip()) for line in (BEFORE, AFTER))
    shown = f"With this change all tests pass: a number (<code>{before}</code> becomes <code>{after}</code>)."
    assert shown in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("    for x in y:  # mine", "for x in y:"),
        ("x = 'mine'", "x = '…'"),
        ("pass", ""),
        ("x = (1 +", ""),
        ("else:", ""),
    ],
)
def test_a_line_is_shown_without_comment_and_text(line, shown):
    assert line_sample(line) == shown
