"""Extensions and penalties for lateness: rules against a plain model, and all places that show them."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import nbformat
import pytest
from bs4 import BeautifulSoup
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.apps.api import NbGraderAPI
from nbgrader.preprocessors import AssignLatePenalties

from autograder import course
from autograder.classroom.class_folder import upgrade_course
from autograder.cli.class_results import class_in_lines, class_lines, class_table
from autograder.course.settings import BadSettings, LatePenalty, Step, duration, of_late_penalty
from autograder.gradebook.lateness import Extensions, LatePenalties, exactly, in_words, late_days
from autograder.gradebook.nbgrader_course import CourseProblem, course_directory
from autograder.lms.grade_tables import for_spreadsheet, graded_class
from tests import REPOSITORY, forked_command, sampling
from tests.commands import refusal, run
from tests.gradebook.test_deadlines import (
    BERLIN,
    DUE,
    FULL,
    HALF,
    RIGHT,
    WRONG,
    ZERO,
)
from tests.recorded_class import UNIT, opened_gradebook, put_submission, set_due, write_roster, write_settings
from tests.typed import stored

pytestmark = [
    pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),  # of the recorded class, if an example fails
]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STAMP = "%Y-%m-%d %H:%M:%S UTC"
STORED = stored("extensions")
SETTINGS = 'percent_a_day = 10\nrule = "linear"'


def toml(rule):
    """The rule as it is written in autograder.toml."""
    steps = [", ".join(f"{name} = {value!r}" for name, value in _fields(step)) for step in rule.steps]
    lines = [f"{name} = {value!r}" for name, value in _fields(rule) if name != "steps"]
    lines += [f"steps = [{', '.join(f'{{ {step} }}' for step in steps)}]"] if steps else []
    return "\n".join(["[late_penalty]", *lines, ""])


def _fields(struct):
    return [(name, value) for name, value in msgspec.structs.asdict(struct).items() if value is not None]


def model(rule, score, late, left):
    """Return the penalty and the late days spent: each number of days is tried."""
    days = 0
    while days * DAY < late:
        days += 1

    def cost(delay):
        begun = sum(delay > day * DAY for day in range(400))
        of_steps = [step for step in rule.steps if delay > duration(step.later_than)]
        amount = {
            "none": 0,
            "zero": 100 * (begun > 0),
            "linear": begun * (rule.percent_a_day or rule.points_a_day or 0),
            "steps": max((step.percent or step.points or 0 for step in of_steps), default=0) if begun else 0,
        }[rule.rule]
        return amount if is_points else min(amount, 100)

    is_points = rule.points_a_day or any(step.points is not None for step in rule.steps)
    costs = [cost(late - spent * DAY) for spent in range(min(days, left) + 1)]
    return min(score, min(costs) if is_points else score * min(costs) / 100), costs.index(min(costs))


@st.composite
def rules(draw):
    late_days = draw(st.integers(0, 5))
    kind = draw(st.sampled_from(["none", "zero", "linear", "linear points", "steps", "steps points"]))
    if kind in ("none", "zero"):
        return LatePenalty(kind, late_days=late_days if kind == "zero" else 0)
    unit = "points" if kind.endswith("points") else "percent"
    if kind.startswith("linear"):
        a_day = {f"{unit}_a_day": draw(st.sampled_from([0.5, 3.0, 10.0, 40.0]))}
        return LatePenalty("linear", **a_day, late_days=late_days)
    hours = sorted(draw(st.sets(st.sampled_from([0, 1, 12, 24, 36, 48, 72, 120]), min_size=1, max_size=4)))
    costs = sorted(
        draw(st.sets(st.sampled_from([1.0, 5.0, 12.5, 50.0, 100.0]), min_size=len(hours), max_size=len(hours)))
    )
    steps = [Step(f"{hour}h", **{unit: cost}) for hour, cost in zip(hours, costs, strict=True)]
    return LatePenalty("steps", steps=tuple(steps), late_days=late_days)


def delays(least=-2, most=9):
    """Times around the full days, where a rule changes, and others."""
    near = st.builds(
        lambda day, off: day * DAY + off * timedelta(seconds=1), st.integers(least, most), st.integers(-2, 2)
    )
    return near | st.integers(least * 86400, most * 86400).map(lambda seconds: timedelta(seconds=seconds))


@given(rules(), st.floats(0, 50), delays(), st.integers(0, 6))
@settings(max_examples=300)
def test_a_rule_takes_what_a_plain_model_takes(rule, score, late, left):
    assert rule.fault() == ""
    spent = rule.days_spent(late, left)
    assert (rule.points(score, late - spent * DAY), spent) == (pytest.approx(model(rule, score, late, left)[0]), model(
        rule, score, late, left
    )[1])  # fmt: skip


# --- late days of several units, by nbgrader's own step and by the autograder's


@pytest.fixture(scope="module")
def four_units(tmp_path_factory):
    """A gradebook with four assignments of ten points."""
    root = tmp_path_factory.mktemp("units") / "course"
    root.mkdir()
    course_directory(root)
    with Gradebook(f"sqlite:///{root}/gradebook.db", "attention") as book:
        book.add_student("ada")
        book.add_student("bo")
        for name in "abcd":
            book.add_assignment(name)
            book.add_notebook(name, name)
            book.add_grade_cell("cell", name, name, max_score=10, cell_type="code")
            book.add_submission(name, "ada")
    return root


SUBMITTED = st.tuples(
    st.integers(0, 6) | st.none(), delays(0, 6), delays() | st.none(), st.sampled_from([0.0, 7.0, 10.0])
)
"""Days until the due date, if there is one; the extension; the delay after the unit's due date; the score."""


IN_TIME = (None, timedelta(), None, 0.0)
EXTENDED_PAST_THE_NEXT = [(0, 5 * DAY, 6 * DAY, 10.0), (2, timedelta(), DAY, 7.0), IN_TIME, IN_TIME]


@example(LatePenalty("linear", percent_a_day=10.0, late_days=1), EXTENDED_PAST_THE_NEXT)
@given(rules(), st.lists(SUBMITTED, min_size=4, max_size=4))
@settings(max_examples=40)
def test_late_days_are_spent_in_the_order_of_due_dates(four_units, rule, submitted):
    (four_units / "autograder.toml").write_text(toml(rule))
    units = dict(zip("abcd", submitted, strict=True))
    expected, days, left = {}, {}, rule.late_days
    dates = {name: (days is not None and (DUE + days * DAY)) for name, (days, *_) in units.items()}
    for name in sorted("abcd", key=lambda name: (dates[name] + units[name][1] if dates[name] else DUE, name)):
        _, extension, delay, score = units[name]
        expected[name] = 0.0
        if dates[name] and delay is not None and delay > extension:
            expected[name], spent = model(rule, score, delay - extension, left)
            left -= spent
            days[name] = (spent, left)
        elif dates[name]:
            days[name] = (0, left)
    directory = course_directory(four_units)
    address = f"sqlite:///{four_units}/gradebook.db"
    with Gradebook(address, "attention") as book:
        for name, (_, extension, delay, score) in units.items():
            row = book.find_submission(name, "ada")
            row.assignment.duedate = dates[name] or None
            row.extension = extension
            row.timestamp = None if delay is None else (dates[name] or DUE) + delay
            book.find_grade("cell", name, name, "ada").auto_score = score
        book.db.commit()
        ours = {
            name: LatePenalties(directory, book, name).penalty(
                "ada", units[name][3], timedelta(seconds=book.find_submission(name, "ada").total_seconds_late)
                if dates[name] else timedelta(),
            ) or 0.0
            for name in units
        }  # fmt: skip
        assert ours == pytest.approx(expected)
        assert {name: its["ada"] for name in units if (its := late_days(book.db, rule, name))} == days
        # Without a submission, those are left that the units with an earlier due date have left.
        assert {its["bo"] for name in units if (its := late_days(book.db, rule, name))} <= {(0, rule.late_days)}
    for name in units:
        if dates[name]:  # without a due date nbgrader's own step ends in an error if there is an extension
            step = AssignLatePenalties(config=directory.config)
            about = {"notebook": name, "assignment": name, "student": "ada", "db_url": address}
            step.preprocess(nbformat.v4.new_notebook(), {"nbgrader": about})
    with Gradebook(address, "attention") as book:
        theirs = {name: book.find_submission(name, "ada").late_submission_penalty for name in units if dates[name]}
    assert theirs == pytest.approx({name: penalty for name, penalty in expected.items() if dates[name]})


# --- a class: gradebook, table, JSON, page, export and dry run


ANSWERS = {"s0": RIGHT, "s1": WRONG, "s2": RIGHT, "s3": WRONG}


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """Four students in time, `nobody` without a submission, and another unit that was due ten days before."""
    root = tmp_path_factory.mktemp("once") / "course"
    root.mkdir()
    write_settings(root, BERLIN)
    write_roster(root, "first_name", {student: student for student in (*ANSWERS, "nobody")})
    for student, answer in ANSWERS.items():
        put_submission(root, student, answer, f"{DUE - HOUR:{STAMP}}")
    recorded.grade(root)
    set_due(root, DUE)
    with opened_gradebook(root) as book:
        book.add_assignment("earlier", duedate=f"{DUE - 10 * DAY:{STAMP}}")
        book.add_notebook("earlier", "earlier")
        for student in ANSWERS:
            book.add_submission("earlier", student)
    return root


@pytest.fixture(scope="module")
def changing(once, tmp_path_factory):
    """A course that the examples of a test change one after the other."""
    return shutil.copytree(once, tmp_path_factory.mktemp("changing") / "course")


OF_STUDENT = st.tuples(
    delays(), st.none() | st.integers(1, 8 * 24 * 60).map(lambda n: timedelta(minutes=n)), st.integers(0, 3)
)
"""The delay after the unit's due date, the extension, and the late days that the earlier unit takes."""


@given(rules(), st.fixed_dictionaries(dict.fromkeys((*ANSWERS, "nobody"), OF_STUDENT)))
@settings(max_examples=8 if sampling.every else 4)
def test_gradebook_table_page_export_and_dry_run_agree_with_the_model(changing, recorded, rule, students):
    root = changing
    (root / "autograder.toml").write_text(toml(rule))
    extensions = Extensions(root, UNIT)
    extensions.put({student: extension for student, (_, extension, _) in students.items()})
    with opened_gradebook(root) as book:
        for student in ANSWERS:
            book.find_submission("earlier", student).timestamp = DUE - (10 - students[student][2]) * DAY
        book.db.commit()
    for student in ANSWERS:
        put_submission(root, student, ANSWERS[student], f"{DUE + students[student][0]:{STAMP}}")
    predicted = recorded.preview(root)
    result = recorded.grade(root)
    lines = {str(line).split()[0]: str(line) for line in class_in_lines(course.unit(UNIT, root), result)}
    of_json = {line.student: line for line in class_lines(course.unit(UNIT, root), result)}
    table = for_spreadsheet(graded_class(root, [UNIT], None, None)).rows
    export = {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
    for student, (delay, extension, of_earlier) in students.items():
        words = exactly(extension or timedelta())
        assert (f"Extended by {words}." in lines[student]) == bool(extension)
        assert of_json[student].extension_seconds == (extension or timedelta()).total_seconds()
        hours = float(export[student][f"{UNIT}.extension_hours"])
        assert hours == pytest.approx((extension or timedelta()) / HOUR, abs=0.00501)
        days = of_json[student].late_days_left
        assert lines[student].endswith(f" Late days left: {days}.") == bool(rule.late_days)
        if student == "nobody":
            assert days == (rule.late_days or None)
            assert export[student][f"{UNIT}.status"] == "not_submitted"
            assert "nobody" not in result.grades.grades
            continue
        score = FULL - 4 * (ANSWERS[student] is WRONG)
        _, spent = model(rule, score, of_earlier * DAY, rule.late_days)
        late = max(timedelta(), delay - (extension or timedelta()))
        penalty, spent_here = model(rule, score, late, rule.late_days - spent)
        left = rule.late_days - spent - spent_here
        assert days == (left if rule.late_days else None)
        mark = result.grades.grades[student]
        assert (mark.shown.late_penalty, mark.score) == (pytest.approx(penalty), pytest.approx(score - penalty))
        assert predicted.after.grades[student] == mark
        assert ("Late by" in lines[student]) == bool(late)
        assert re.findall(r", (\d+) late days? spent", lines[student]) == ([str(spent_here)] if spent_here else [])
        assert (f"{mark.shown.late_penalty:g} points deducted" in lines[student]) == bool(penalty)
        assert of_json[student].late_penalty == mark.shown.late_penalty
        assert float(export[student][f"{UNIT}.late_penalty"]) == pytest.approx(penalty, abs=0.00501)
        assert float(export[student][f"{UNIT}.score"]) == pytest.approx(score - penalty, abs=0.00501)
        page = (root / "feedback" / student / UNIT / f"{UNIT}.html").read_text()
        assert f"{UNIT}: {round(mark.score, 2):g} of" in page
        taken = re.search("([0-9.]+) points? (?:was|were) taken off because it came late[.]", page)
        assert (taken and taken[1]) == (f"{round(mark.shown.late_penalty, 2):g}" if penalty else None)
        theirs = (DUE + (extension or timedelta())).replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin"))
        assert f"Due: {theirs:%Y-%m-%d %H:%M} CEST." in page
        assert re.findall("You submitted (.+) late[.]", page) == ([in_words(late)] if late else [])
        took = f"this submission took {spent_here}; " if spent_here else ""
        assert (f"Late days: {took}{left} of {rule.late_days} left for units that are due later." in page) == bool(
            rule.late_days
        )
        assert (f"Your due date was {words} later than the class's." in page) == bool(extension)
    assert recorded.preview(root).changes == []


def test_the_page_of_nbgraders_own_command_has_the_same_deadline(root, recorded):
    _has_unit(root)
    (root / "autograder.toml").write_text(toml(LatePenalty("linear", points_a_day=1.0, late_days=3)))
    Extensions(root, UNIT).put({"s0": DAY})
    for student, late in (("s0", 3 * DAY), ("s1", 5 * DAY), ("s2", -DAY)):
        put_submission(root, student, ANSWERS[student], f"{DUE + late:{STAMP}}")
    recorded.grade(root)
    pages = {student: root / "feedback" / student / UNIT / f"{UNIT}.html" for student in ("s0", "s1", "s2")}
    before = {student: _top(page) for student, page in pages.items()}
    assert before == {
        "s0": [
            "Due: 2026-07-02 18:00 CEST. Your due date was 1 day later than the class's. You submitted 2 days late.",
            "Late days: this submission took 2; 1 of 3 left for units that are due later.",
        ],
        "s1": [
            "Due: 2026-07-01 18:00 CEST. You submitted 5 days late.",
            "2 points were taken off because it came late.",
            "Late days: this submission took 3; 0 of 3 left for units that are due later.",
        ],
        "s2": ["Due: 2026-07-01 18:00 CEST.", "Late days: 3 of 3 left for units that are due later."],
    }
    for page in pages.values():
        page.unlink()
    forked_command.nbgrader("generate_feedback", UNIT, "--force", cwd=root).check_returncode()
    assert {student: _top(page) for student, page in pages.items()} == before


def _top(page):
    """Return the paragraphs at the top of a page on the deadline."""
    top = BeautifulSoup(page.read_text(), "html.parser").select_one("header.top")
    return [" ".join(p.text.split()) for p in top.select("p.deadline, p.late-penalty, p.late-days")]


def test_the_table_has_late_days_only_if_the_class_has_any(root, recorded):
    unit = course.unit(UNIT, root)
    assert "late days left" not in [column.header for column in class_table(unit, recorded.grade(root)).columns]
    (root / "autograder.toml").write_text(toml(LatePenalty("zero", late_days=2)))
    put_submission(root, "s1", ANSWERS["s1"], f"{DUE + HOUR:{STAMP}}")
    columns = {
        column.header: list(map(str, column.cells)) for column in class_table(unit, recorded.grade(root)).columns
    }
    assert dict(zip(columns["student"], columns["late days left"], strict=True)) == {
        "nobody": "2", "s0": "2", "s1": "1", "s2": "2", "s3": "2",
    }  # fmt: skip
    set_due(root, None)
    result = recorded.grade(root)
    assert {line.late_days_left for line in class_lines(unit, result)} == {None}
    assert _top(root / "feedback" / "s1" / UNIT / f"{UNIT}.html") == []


# --- an extension before there is a submission


def _has_unit(root):
    for folder in ("source", "release"):
        shutil.copytree(REPOSITORY / folder / UNIT, root / folder / UNIT)


def formgrader(root):
    """Return formgrader's list of submissions, its averages, and the page of the student `nobody`."""
    api = NbGraderAPI(course_directory(root))
    (notebook,) = api.get_notebooks(UNIT)
    return {
        "submissions": [one["student"] for one in api.get_submissions(UNIT)],
        "count": (api.get_assignment(UNIT)["num_submissions"], notebook["num_submissions"]),
        "averages": [api.get_assignment(UNIT)[f"average{kind}_score"] for kind in ("", "_code", "_written")],
        "of student": [one["submitted"] for one in api.get_student_submissions("nobody")],
        "notebooks": api.get_student_notebook_submissions("nobody", UNIT),
        "students": {one["id"]: one["score"] for one in api.get_students()},
    }


def test_an_extension_alone_looks_like_no_submission(root, recorded):
    _has_unit(root)
    before, kept = formgrader(root), recorded.grade(root).grades
    Extensions(root, UNIT).put({"nobody": 2 * DAY})
    assert Extensions(root, UNIT).given == {"nobody": 2 * DAY}
    assert formgrader(root) == before
    assert before["averages"][0] > 0
    predicted, result = recorded.preview(root), recorded.grade(root)
    assert (predicted.changes, recorded.asked, result.grades.grades) == ([], [], kept.grades)
    (row,) = (row for row in result.rows if row.student == "nobody")
    assert row.report.status == "not_submitted"
    Extensions(root, UNIT).put({"nobody": None})
    with opened_gradebook(root) as book:
        assert book.db.query(SubmittedAssignment).filter_by(student_id="nobody").count() == 0


def test_an_extension_alone_does_not_keep_a_unit_from_an_upgrade(tmp_path):
    root = tmp_path / "course"
    run("new-course", root, UNIT)
    write_roster(root, "first_name", {"ada": "Ada"})
    set_due(root, DUE)
    Extensions(root, UNIT).put({"ada": DAY})
    notebook = root / "release" / UNIT / f"{UNIT}.ipynb"
    notebook.write_text(notebook.read_text() + "\n")
    assert upgrade_course(root).changed == [UNIT]
    assert Extensions(root, UNIT).given == {"ada": DAY}


@pytest.mark.parametrize("command", ["autograder grade", "nbgrader autograde"])
def test_the_extension_counts_for_the_submission_that_comes(root, recorded, command):
    write_settings(root, BERLIN, ZERO)
    Extensions(root, UNIT).put({"nobody": 2 * DAY})
    put_submission(root, "nobody", RIGHT, f"{DUE + DAY:{STAMP}}")
    if command == "autograder grade":
        recorded.grade(root)
    else:
        _has_unit(root)
        forked_command.nbgrader("autograde", UNIT, "--student", "nobody", cwd=root).check_returncode()
    with opened_gradebook(root) as book:
        submission = book.find_submission(UNIT, "nobody")
        assert (submission.extension, submission.late_submission_penalty) == (2 * DAY, 0)
        assert (submission.score, len(submission.notebooks)) == (FULL, 1)
    Extensions(root, UNIT).put({"nobody": None})
    recorded.grade(root)
    with opened_gradebook(root) as book:
        assert book.find_submission(UNIT, "nobody").late_submission_penalty == FULL


def test_another_unit_whose_penalties_late_days_changed_is_named(root, recorded):
    """The earlier unit's penalty is recorded as one without late days, and two are left for it."""
    (root / "autograder.toml").write_text(toml(LatePenalty("linear", points_a_day=1.0, late_days=2)))
    with opened_gradebook(root) as book:
        book.add_grade_cell("cell", "earlier", "earlier", max_score=10, cell_type="code")
        book.db.commit()
        book.find_submission("earlier", "s0").timestamp = DUE - 9 * DAY
        book.find_submission_notebook("earlier", "earlier", "s0").late_submission_penalty = 1.0
        book.find_submission("earlier", "s1").timestamp = DUE - 9 * DAY
        book.db.commit()
    assert recorded.grade(root).outdated == {"earlier": ["s0"]}


# --- the command


@pytest.fixture(scope="module")
def refusing(once, tmp_path_factory):
    root = shutil.copytree(once, tmp_path_factory.mktemp("refusing") / "course")
    Extensions(root, UNIT).put({"s3": DAY})
    tables = {
        "both": "student,until,by\ns0,2026-07-03 18:00,2d\n",
        "none": "student,by\ns0,\n",
        "twice": "student,by\ns0,1d\ns0,2d\n",
        "columns": "id,by\ns0,1d\n",
        "empty": "",
    }
    for name, text in tables.items():
        (root / f"{name}.csv").write_text(text)
    (root / "binary.csv").write_bytes(b"\xff\xfe\x00")
    return root


@pytest.mark.parametrize(("arguments", "message"), STORED["refused_commands"])
def test_what_cannot_be_meant_changes_nothing(refusing, arguments, message):
    assert message in refusal("extend", *arguments, "--course", refusing, cwd=refusing)
    assert Extensions(refusing, UNIT).given == {"s3": DAY}


def test_extensions_are_given_listed_replaced_and_removed(root):
    def extend(*arguments):
        return run("extend", UNIT, *arguments, "--course", root)

    done = extend("s1", "nobody", "--until", "2026-07-03 18:00")
    assert done.stdout == "s1  2026-07-03 18:00 CEST  2 days\nnobody  2026-07-03 18:00 CEST  2 days\n"
    assert " ".join(done.stderr.split()) == f"`autograder grade {UNIT}` updates penalties and feedback pages."
    (root / "table.csv").write_text("Student;Until;By\ns0;;36h\ns1;2026-07-03 12:00 -0400;\n", encoding="utf-8-sig")
    given = extend("--csv", root / "table.csv").stdout
    assert given == "s0  2026-07-03 06:00 CEST  1 day 12 hours\ns1  2026-07-03 18:00 CEST  2 days\n"
    assert extend("s1", "--by", "1d 1h").stdout == "s1  2026-07-02 19:00 CEST  1 day 1 hour  (before: 2 days)\n"
    assert extend("s0", "--remove").stdout == "s0  2026-07-01 18:00 CEST\n"
    assert extend("--list").stdout.splitlines() == [
        f"{UNIT}: due 2026-07-01 18:00 CEST, extensions: 2",
        "nobody  2026-07-03 18:00 CEST  2 days",
        "s1  2026-07-02 19:00 CEST  1 day 1 hour",
    ]


def test_a_student_of_the_roster_need_not_be_in_the_gradebook(root):
    write_roster(root, "first_name", {"new": "Nia"})
    Extensions(root, UNIT).put({"new": DAY})
    with opened_gradebook(root) as book:
        assert (book.find_student("new").first_name, book.find_submission(UNIT, "new").extension) == ("Nia", DAY)


# --- the settings


@pytest.mark.parametrize(("lines", "message"), STORED["refused_penalties"])
def test_settings_that_say_nothing_certain_are_refused(tmp_path, lines, message):
    (tmp_path / "autograder.toml").write_text(f"[late_penalty]\n{lines}\n")
    with pytest.raises(BadSettings, match=re.escape(message)) as refused:
        of_late_penalty(tmp_path)
    assert str(tmp_path / "autograder.toml") in str(refused.value)


@pytest.mark.parametrize(
    ("of_nbgrader", "message"), [(ZERO, "is set twice: [late_penalty] in autograder.toml"), (HALF, "the plugin Half")]
)
def test_a_penalty_that_is_set_twice_is_refused(root, recorded, of_nbgrader, message):
    write_settings(root, BERLIN, of_nbgrader)
    (root / "autograder.toml").write_text(f"[late_penalty]\n{SETTINGS}\n")
    with pytest.raises(CourseProblem, match=re.escape(message)):
        recorded.grade(root)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-07-08 18:00", datetime(2026, 7, 8, 16)),
        ("2026-07-08 18:00 UTC", datetime(2026, 7, 8, 18)),
        ("2026-10-25 02:30", None),
    ],
)
def test_a_due_date_is_in_the_class_s_time_zone(root, text, moment):
    done = forked_command.run("nbgrader", "db", "assignment", "add", UNIT, "--duedate", text, cwd=root)
    assert ("twice or never" in done.stderr) == (done.returncode != 0) == (moment is None)
    with opened_gradebook(root) as book:
        assert book.find_assignment(UNIT).duedate == (moment or DUE)
