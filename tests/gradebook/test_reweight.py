"""Other points for an exercise of a graded class: a plain model, and all places that show points."""

import shutil
import signal
from datetime import timedelta
from functools import partial

import msgspec
import pytest
from bs4 import BeautifulSoup
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autograder import course
from autograder.classroom.assignment import assignment
from autograder.cli.class_results import class_in_lines, class_lines
from autograder.gradebook.entry import unmarked
from autograder.gradebook.reweights import BadReweight, Reweighting, as_graded, reweighted
from autograder.grading.scoring import without_score
from autograder.lms.grade_tables import for_spreadsheet, graded_class
from autograder.report import Report
from autograder.reports.class_report import compose
from autograder.serving import served_unit
from tests import REPOSITORY, forked_command, sampling
from tests.commands import refusal, run
from tests.gradebook.test_deadlines import DUE, RIGHT, WRONG, applied, standings
from tests.interrupting import in_a_fork, places, times_in
from tests.recorded_class import (
    UNIT,
    everything,
    feedback_page,
    give_points,
    opened_gradebook,
    put_submission,
    set_due,
    write_roster,
    write_settings,
)
from tests.served_unit import FIRST, Serving, released, submit

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning")
RELEASED = {one.name: one.points for one in course.unit(UNIT).exercises}
WRITTEN = sum(course.unit(UNIT).points.values()) - sum(RELEASED.values())
EXERCISES = [*sorted(RELEASED)[:2], "softmax"]
ANSWERS = {"ada": RIGHT, "bo": WRONG, "cy": b"no notebook", "gone": WRONG}
LATE = "bo"
"""One day late, which costs a tenth of the points."""


def counted(kind, points, score, released):
    """Return the score and the maximum that count by a rule: the plain model."""
    most = {"points": points, "drop": 0.0}.get(kind, released)
    return {"points": score * most / released, "drop": 0.0, "give_full": released}.get(kind, score), most


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """Four students: one is right, one wrong and late, one submitted no notebook, and one took the submission back."""
    root = tmp_path_factory.mktemp("once") / "course"
    root.mkdir()
    write_settings(root)
    (root / "autograder.toml").write_text('[late_penalty]\nrule = "linear"\npercent_a_day = 10\n')
    write_roster(root, "first_name", {student: student for student in (*ANSWERS, "nobody")})
    for student, answer in ANSWERS.items():
        late = timedelta(hours=1 if student == LATE else -1)
        put_submission(root, student, answer, f"{DUE + late:%Y-%m-%d %H:%M:%S UTC}")
    recorded.grade(root)
    set_due(root, DUE)
    recorded.grade(root)
    shutil.rmtree(root / "submitted" / "gone")
    return root


def reweight(root, exercise, kind, points=None):
    return Reweighting(root, course.unit(UNIT, root)).put(exercise, kind, points)


def report_of(root, student):
    return msgspec.json.decode((root / "autograded" / student / UNIT / "report.json").read_bytes(), type=Report)


RULE = st.tuples(
    st.sampled_from(EXERCISES), st.sampled_from(["points", "points", "drop", "give_full", "undo"]),
    st.sampled_from([0.5, 2.0, 3.33, 7.0, 20.0]),
)  # fmt: skip
SCORE = st.tuples(st.sampled_from(sorted(ANSWERS)), st.sampled_from(EXERCISES), st.sampled_from([0.0, 0.7, 2.0, None]))
RUN = st.tuples(st.lists(RULE, max_size=3), st.lists(SCORE, max_size=2), st.sampled_from([None, RIGHT, WRONG]))
"""Rules, scores that a person then gives in formgrader, and what `ada` submits again, before the class is graded."""


@example([([("softmax", "drop", 0.0)], [("bo", "softmax", 2.0)], None), ([("softmax", "undo", 0.0)], [], None)])
@example(
    [
        ([("softmax", "points", 2.0)], [], None),
        ([], [("bo", "softmax", 0.7)], None),
        ([("softmax", "points", 7.0)], [("bo", "softmax", 0.7)], WRONG),
        ([("softmax", "give_full", 0.0)], [], RIGHT),
    ]
)
@given(st.lists(RUN, min_size=1, max_size=3))
@settings(max_examples=8 if sampling.every else 2)
def test_all_places_agree_with_the_model(once, recorded, tmp_path_factory, runs):
    root = shutil.copytree(once, tmp_path_factory.mktemp("class") / "course")
    rules, by_hand, in_force = {}, {}, {}
    of_answer = {
        student: {one.name: one.score for one in report_of(root, student).exercises} for student in ("ada", "bo")
    }
    tests = {"ada": of_answer["ada"], "bo": of_answer["bo"], "cy": {}, "gone": of_answer["bo"]}
    for changes, scores, answer in runs:
        for exercise, kind, points in changes:
            if kind == "undo":
                if exercise in rules:
                    reweight(root, exercise, kind)
                rules.pop(exercise, None)
            else:
                assert reweight(root, exercise, kind, points if kind == "points" else None)
                rules[exercise] = (kind, points)
        for student, exercise, score in scores:
            give_points(root, student, score, f"test_{exercise}")
            kind, points = in_force.get(exercise, ("", 0.0))
            scale = RELEASED[exercise] / points if kind == "points" else 1
            by_hand[student, exercise] = score and score * scale
        if answer is not None:
            put_submission(root, "ada", answer, f"{DUE - timedelta(hours=1):%Y-%m-%d %H:%M:%S UTC}")
            tests["ada"] = of_answer["ada" if answer is RIGHT else "bo"]
        before, untouched = standings(root), everything(root)
        predicted = recorded.preview(root)
        assert everything(root) == untouched
        result = recorded.grade(root)
        in_force = dict(rules)
        agrees_with_model(root, result, rules, tests, by_hand)
        after = standings(root)
        assert {name: mark.shown for name, mark in predicted.after.grades.items()} == {
            name: mark.shown for name, mark in after.grades.items()
        }
        assert predicted.rows == result.rows
        assert applied(before, predicted.changes) == applied(after, [])
        assert recorded.preview(root).changes == []
    for exercise in rules:
        reweight(root, exercise, "undo")
    result = recorded.grade(root)
    agrees_with_model(root, result, {}, tests, by_hand)
    with opened_gradebook(root) as book:
        assert book.db.connection().exec_driver_sql("select * from autograder_counted").all() == []


def agrees_with_model(root, result, rules, tests, by_hand):
    unit = course.unit(UNIT, root)
    table = for_spreadsheet(graded_class(root, [UNIT], None, None)).rows
    export = {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
    of_report = compose(root, UNIT)
    most = {name: counted(*rules.get(name, ("", 0)), 0.0, points)[1] for name, points in RELEASED.items()}
    assert result.grades.max_score == of_report.max_score == pytest.approx(sum(most.values()) + WRITTEN)
    rows = {row.student: row for row in of_report.rows}
    work = assignment(UNIT, root, None, None).unit
    of_json = {line.student: line for line in class_lines(work, result)}
    lines = {str(line).split()[0]: str(line) for line in class_in_lines(work, result)}
    for student in ANSWERS:
        automatic, scores = {}, {}
        for name, worth in RELEASED.items():
            automatic[name] = counted(*rules.get(name, ("", 0)), tests[student].get(name, 0.0), worth)[0]
            person = by_hand.get((student, name))
            scores[name] = automatic[name] if person is None else counted(*rules.get(name, ("", 0)), person, worth)[0]
        score, penalty = sum(scores.values()), sum(scores.values()) / 10 * (student == LATE)
        near = {"abs": 0.0051 * len(RELEASED)}
        mark = result.grades.grades[student]
        assert {n: mark.shown.scores[f"test_{n}"] for n in RELEASED} == pytest.approx(scores, abs=0.0051)
        assert {n: mark.shown.points[f"test_{n}"] for n in RELEASED} == pytest.approx(most)
        assert mark.score == pytest.approx(score - penalty, **near)
        with opened_gradebook(root) as book:
            theirs = book.find_submission(UNIT, student)
            assert (theirs.score, theirs.max_score) == pytest.approx((score, sum(most.values()) + WRITTEN), **near)
            assert theirs.late_submission_penalty == pytest.approx(penalty, **near)
        assert rows[student].score == pytest.approx(mark.score, abs=0.0051)
        assert float(export[student][f"{UNIT}.score"]) == pytest.approx(mark.score, abs=0.0051)
        assert float(export[student][f"{UNIT}.max_score"]) == pytest.approx(mark.shown.max_score, abs=0.0051)
        for name in RELEASED:
            assert float(export[student][f"{UNIT}.{name}"]) == pytest.approx(scores[name], abs=0.0102)
        assert of_json[student].score == pytest.approx(sum(automatic.values()), **near)
        assert of_json[student].max_score == pytest.approx(sum(most.values()))
        assert f"{of_json[student].score:g} / {of_json[student].max_score:g}" in lines[student]
        report = report_of(root, student)
        for one in report.exercises:
            assert (one.score, one.max_score) == pytest.approx((automatic[one.name], most[one.name]), abs=0.0051)
            assert (one.reweighted is not None) == (one.name in rules)
        assert report.score == pytest.approx(sum(automatic.values()), **near)
        page = feedback_page(root, student).read_text()
        assert f"{UNIT}: {round(mark.score, 2):g} of {mark.shown.max_score:g} points" in page
        assert page.count('<p class="reweighted">') == len(rules)
        for exercise in rules:
            assert exercise in " ".join(paragraphs(root, student))
    assert float(export["nobody"][f"{UNIT}.score"]) == of_json["nobody"].score == 0
    assert unit.max_score == sum(RELEASED.values())  # the class's notebooks stay as they were released


# --- what the model leaves out


def paragraphs(root, student):
    page = BeautifulSoup(feedback_page(root, student).read_text(), "html.parser")
    return [p.text for p in page.select("header.top p.reweighted")]


@pytest.mark.parametrize("kind", ["drop", "give_full", "points"])
def test_a_rule_decides_where_a_hidden_test_failed_by_our_fault(root, kind):
    of_class = Reweighting(root, course.unit(UNIT, root))
    rule = of_class.put("softmax", kind, 2.0 if kind == "points" else None)
    failed = without_score(of_class.unit.exercise("softmax"))
    one = Report("", UNIT, "grader_error", "A", "cpu", 0.0, failed.max_score, [failed])
    nothing = msgspec.structs.replace(one, exercises=[], max_score=0.0)
    for report in (one, nothing):
        now = reweighted(report, {"softmax": rule})
        assert unmarked(now)("test_softmax") == (kind == "points")
        assert unmarked(now)(f"test_{EXERCISES[0]}") == (report is nothing)
        assert as_graded(now) == report
    assert not unmarked(reweighted(one, {}))("why_softmax")


def test_nbgraders_own_commands_give_the_same_points_and_page(root, recorded):
    for folder in ("source", "release"):
        shutil.copytree(REPOSITORY / folder / UNIT, root / folder / UNIT)
    reweight(root, "softmax", "points", 9.0)
    reweight(root, EXERCISES[0], "drop")
    result = recorded.grade(root)
    sentences = [
        f"Your instructor removed {EXERCISES[0]} from the unit: it counts in neither your points nor the maximum.",
        f"Your instructor changed the points of softmax from {RELEASED['softmax']:g} to 9.",
    ]
    assert paragraphs(root, "ada") == sorted(sentences, key=lambda text: "softmax" in text)
    before = paragraphs(root, "ada")
    feedback_page(root, "ada").unlink()
    for command in ("autograde", "generate_feedback"):
        forked_command.nbgrader(command, UNIT, "--student", "ada", "--force", cwd=root).check_returncode()
    assert paragraphs(root, "ada") == before
    theirs = standings(root).grades["ada"].shown
    assert (theirs.scores, theirs.points) == (result.grades.grades["ada"].shown.scores, dict(result.grades.points))


def test_points_stay_and_the_student_is_named_if_a_graded_notebook_is_missing(root, recorded):
    shutil.rmtree(root / "autograded" / "gone")
    before = standings(root).grades["gone"].shown.scores
    reweight(root, "softmax", "points", 2.0)
    result = recorded.grade(root)
    (row,) = (row for row in result.rows if row.student == "gone")
    assert "this student's files in autograded/ are missing" in row.problem
    assert standings(root).grades["gone"].shown.scores == before
    put_submission(root, "gone", WRONG)
    assert recorded.grade(root).grades.grades["gone"].shown.scores["test_softmax"] == before["test_softmax"] / 2


def test_a_run_that_is_killed_counts_nobody_twice(root, recorded, tmp_path):
    """Killed before a file or a commit, it leaves what the next run brings to the same points."""
    for student in ("ada", "gone"):
        give_points(root, student, 1.5, f"test_{EXERCISES[0]}")
    reweight(root, EXERCISES[0], "points", RELEASED[EXERCISES[0]] / 2)
    reweight(root, "softmax", "drop")
    reweight(root, EXERCISES[1], "give_full")

    def copied(name):
        return shutil.copytree(root, tmp_path / name / "course")

    def state(root):
        marks = {student: mark.shown for student, mark in standings(root).grades.items()}
        return marks, {student: report_of(root, student) for student in ANSWERS}

    whole = copied("whole")
    recorded.grade(whole)
    assert state(whole)[0]["gone"].scores[f"test_{EXERCISES[0]}"] == 0.75
    each, of_a_kind = times_in(partial(recorded.grade, copied("counted")))
    for moment in each if sampling.every else of_a_kind[::8]:
        killed = copied(str(moment))
        ended, _ = in_a_fork(partial(places, partial(recorded.grade, killed), moment))
        assert ended == -signal.SIGKILL
        assert [row.problem for row in recorded.grade(killed).rows] == [""] * 5
        assert state(killed) == state(whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("softmaxx --drop", f"{UNIT} has no exercise `softmaxx`. There are: "),
        ("why_softmax --drop", "why_softmax is a written question: a person gives its points"),
        ("softmax --points 0", "--points takes a number above 0 with at most 2 digits after the point."),
        ("softmax --points 1.005", "--points takes a number above 0 with at most 2 digits after the point."),
        ("softmax --points nan", "--points takes a number above 0 with at most 2 digits after the point."),
        ("softmax --undo", f"softmax already counts the points that it was released with: {RELEASED['softmax']:g}."),
        ("softmax --drop --undo", "Give an exercise and one of --points, --drop, --give-full and --undo"),
        ("softmax --list", "Give an exercise and one of --points, --drop, --give-full and --undo"),
        ("--drop", "Give an exercise and one of --points, --drop, --give-full and --undo"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(root, arguments, message):
    before = everything(root)
    assert message in refusal("reweight", UNIT, *arguments.split(), "--course", root)
    assert everything(root) == before


def test_nothing_is_reweighted_without_a_gradebook(tmp_path):
    write_settings(tmp_path)
    with pytest.raises(BadReweight, match="Nothing is graded yet"):
        reweight(tmp_path, "softmax", "drop")


def test_the_command_lists_each_change(root):
    for arguments in ("softmax --points 2", "softmax --undo"):
        done = run("reweight", UNIT, *arguments.split(), "--course", root)
        assert f"`autograder grade {UNIT} --dry-run`" in done.stderr
    title, *lines = run("reweight", UNIT, "--list", "--course", root).stdout.splitlines()
    assert title == f"{UNIT}: changes of points: 2"
    released = f"{RELEASED['softmax']:g}"
    assert [line.split("  ", 1)[1] for line in lines] == [
        f"softmax  {released} -> 2 points", f"softmax  undone, {released} points",
    ]  # fmt: skip


def test_serve_counts_by_a_rule_that_comes_while_it_runs(course, recorded, monkeypatch):
    """No submission is graded again for it; one that comes later counts the same."""
    monkeypatch.setattr(served_unit, "OPEN_SECONDS", 0.0)  # for how long an open gradebook is used
    submit(course, "ada", RIGHT, FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off()
        assert f"{UNIT}: 18 of 21 points" in released(course, "ada")
        reweight(course, "softmax", "points", 2.0)
        serving.work_off(everything=True)
        submit(course, "bo", WRONG, FIRST)
        serving.work_off()
        assert serving.marked == ["ada", "bo"]
        assert [(its.score, its.max_score) for its in serving.outcomes] == [(18, 18), (14, 16)]
    assert f"{UNIT}: 16 of 19 points" in released(course, "ada")
    assert f"{UNIT}: 14 of 19 points" in released(course, "bo")
