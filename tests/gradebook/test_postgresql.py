"""A gradebook on a PostgreSQL server: killed, cut off and locked as one in a file is, and bad addresses are sentences.

That its rows and pages are those of SQLite is in `test_routes`.
"""

import shutil
import signal
from functools import partial

import psycopg
import pytest
from nbgrader.api import Gradebook, Student

from autograder.classroom.assignment import assignment
from autograder.classroom.class_folder import NotMade, furnish, upgrade_course
from autograder.gradebook import nbgrader_course
from autograder.gradebook.class_gradebook import ClassGradebook, NoGrades, of_units
from autograder.gradebook.nbgrader_course import AlreadyLocked, CourseProblem, course_directory, course_lock
from autograder.gradebook.roster import may_be_graded
from tests import REPOSITORY, forked_command, sampling
from tests.classroom.test_interruption import notebook
from tests.interrupting import in_a_fork, places, times_in
from tests.postgresql_server import PASSWORD, READER
from tests.recorded_class import UNIT, everything, put_submission

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def keeps_at(root, url):
    """Makes a server's database the gradebook of a course, as an instructor does."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.db_url = {url!r}\n")


def state(root):
    """All that a course holds, but for where its gradebook is."""
    rows, files = everything(root)
    files.pop("nbgrader_config.py")
    return rows, files


class Course:
    """A course folder and its database, and copies of both."""

    def __init__(self, server, root, like="template0"):
        self.server, self.root, self.database = server, root, server.new_database(like)
        keeps_at(root, server.url(self.database))

    def copy(self, root):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.root, root)
        return Course(self.server, root, self.database)


@pytest.fixture(scope="module")
def begun(postgresql, recorded, tmp_path_factory):
    """A course after one grading, to which one student has submitted again, and one for the first time."""
    course = Course(postgresql, tmp_path_factory.mktemp("begun") / "course")
    (course.root / "roster.csv").write_text("id,first_name\nada,Ada\nZoe,Zoe\ncy,Cy\nnobody,No\n")
    put_submission(course.root, "ada", notebook(), "2026-01-02 03:04:05 UTC")
    recorded.grade(course.root)
    put_submission(course.root, "ada", notebook(why_softmax="Again."), "2026-01-03 03:04:05 UTC")
    put_submission(course.root, "cy", b"no notebook")
    return course


@pytest.fixture(scope="module")
def wanted(begun, recorded, tmp_path_factory):
    """Contents of the course once it is graded again."""
    course = begun.copy(tmp_path_factory.mktemp("wanted") / "course")
    recorded.grade(course.root)
    return state(course.root)


@pytest.fixture(scope="module")
def moments(begun, recorded, wanted, tmp_path_factory):
    """Moments at which the second grading commits; modules are imported and reports are made by then."""
    course = begun.copy(tmp_path_factory.mktemp("moments") / "course")
    return times_in(partial(recorded.grade, course.root), commits)


COMMITS = psycopg.Connection.commit.__code__


def commits(frame, event, function):
    return event == "call" and frame.f_code is COMMITS


def some(times, most=3):
    """Commits to be killed before: some, from the first to the last, and all of them in `pytest --every`."""
    each, of_a_kind = times
    return each if sampling.every else of_a_kind[:: -(-len(of_a_kind) // (most - 1))] + of_a_kind[-1:]


def test_killed_before_commits_and_run_again(begun, wanted, moments, recorded, tmp_path):
    root = tmp_path / "course"
    times, unfinished = some(moments), 0
    for moment in times:
        begun.copy(root)
        ended, _ = in_a_fork(partial(places, partial(recorded.grade, root), moment, kind=commits))
        assert ended == -signal.SIGKILL
        unfinished += state(root) != wanted
        recorded.grade(root)
        assert state(root) == wanted, f"at {moment} of {times}"
    assert unfinished > len(times) / 2


def test_killed_while_the_gradebook_is_made_and_made_again(postgresql, tmp_path):
    root = tmp_path / "course"

    def make():
        return ClassGradebook(course_directory(root), UNIT).close()

    keeps_at(root, postgresql.url(postgresql.new_database()))
    make()
    rows = everything(root)[0]
    assert rows["schema"] == [(version,) for version in [rows["schema"][0][0]]]
    keeps_at(root, postgresql.url(postgresql.new_database()))
    times = some(times_in(make, commits))
    for moment in times:
        keeps_at(root, postgresql.url(postgresql.new_database()))
        assert in_a_fork(partial(places, make, moment, kind=commits))[0] == -signal.SIGKILL
        make()
        assert everything(root)[0] == rows, f"at {moment} of {times}"


def test_cut_off_in_the_middle_is_a_sentence_and_nothing_is_lost(begun, wanted, moments, recorded, tmp_path):
    root = tmp_path / "course"
    times = some(moments)
    for moment in times:
        course = begun.copy(root)
        cut = partial(course.server.cut, course.database)
        ended, said = in_a_fork(partial(places, partial(recorded.grade, root), moment, cut, commits))
        assert ended == 2, f"at {moment} of {times}"
        assert f"The gradebook postgresql://autograder@/{course.database} cannot be used: " in said
        assert "What was recorded is kept; run the same command again for the rest." in said
        assert "\n" not in said
        recorded.grade(root)
        assert state(root) == wanted


def test_one_writer_at_a_time_from_whatever_folder(begun, recorded, tmp_path):
    """Another machine has the same gradebook and a folder of its own, in which nothing is locked."""
    here = begun.copy(tmp_path / "here")
    there = tmp_path / "there"
    shutil.copytree(here.root, there)
    before = state(here.root)
    with course_lock(here.root):
        refused = forked_command.autograder("grade", UNIT, "--course", there, cwd=REPOSITORY)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is writing to the gradebook postgresql://autograder@/" in refused.stderr
    assert "perhaps on another machine" in refused.stderr
    assert state(here.root) == before
    assert in_a_fork(partial(_killed_with_the_lock, here.root))[0] == -signal.SIGKILL
    with course_lock(there), pytest.raises(AlreadyLocked, match="another machine"), course_lock(here.root):
        pass


def _killed_with_the_lock(root):
    with course_lock(root):
        signal.raise_signal(signal.SIGKILL)


def test_a_role_that_may_only_read(begun, postgresql, recorded, tmp_path):
    """A read-only role can read the grades and preview a run; writing gives an error message."""
    root = tmp_path / "course"
    shutil.copytree(begun.root, root)
    marks = of_units(root, [UNIT])
    keeps_at(root, postgresql.url(begun.database, READER))
    assert of_units(root, [UNIT]) == marks
    predicted = recorded.preview(root)
    assert of_units(root, [UNIT]) == marks
    writer = begun.copy(tmp_path / "writer")
    assert predicted.rows == recorded.grade(writer.root).rows
    assert {one: mark.shown for one, mark in predicted.after.grades.items()} == {
        one: mark.shown for one, mark in of_units(writer.root, [UNIT])[0].grades.items()
    }
    assert may_be_graded(course_directory(root))("ada")
    with pytest.raises(CourseProblem, match=r"permission denied for table \w+") as problem:
        recorded.grade(root)
    assert PASSWORD not in str(problem.value)
    with pytest.raises(NotMade, match=r"is already graded in .*"):
        _upgrade_a_changed(root)


def _upgrade_a_changed(root):
    furnish(root, [])
    made = root / "source" / UNIT
    shutil.copytree(REPOSITORY / "source" / UNIT, made)
    (made / "requirements.txt").write_text("changed")
    upgrade_course(root, [UNIT])


def test_students_are_in_one_order_whatever_the_server_sorts_by(begun, recorded, tmp_path):
    course = begun.copy(tmp_path / "course")
    with Gradebook(course.server.url(course.database)) as opened:
        first = opened.db.query(Student).order_by(Student.id).first()
    assert first.id != "Zoe"
    (units,) = of_units(course.root, [UNIT])
    assert [student.id for student in units.students] == ["Zoe", "ada", "cy", "nobody"]


def test_an_id_that_no_column_holds_is_that_students_problem(postgresql, recorded, tmp_path):
    """On the roster, among the submissions, or both; a server counts characters, not bytes."""
    root, longest = tmp_path / "course", "é" * 64 + "x" * 64
    keeps_at(root, postgresql.url(postgresql.new_database()))
    listed, handed_in_too, new = longest + "l", longest + "h", longest + "n"
    (root / "roster.csv").write_text(f"id,first_name\nada,{'A' * 300}\n{listed},L\n{handed_in_too},H\n{longest},E\n")
    for student in ("ada", longest, handed_in_too, new):
        put_submission(root, student, notebook(), "2026-01-02 03:04:05 UTC")
    result = recorded.grade(root)
    assert {row.student: row.problem for row in result.rows} == {"ada": "", longest: ""}
    assert sorted(one.name for one in result.refused) == sorted([listed, handed_in_too, new])
    assert all("at most 128 characters" in one.reason for one in result.refused)
    allowed = may_be_graded(course_directory(root))
    assert [allowed(name) for name in ("ada", longest, new, "newcomer")] == [True, True, False, True]
    (units,) = of_units(root, [UNIT])
    assert sorted(units.grades) == ["ada", longest]
    shutil.rmtree(root / "submitted")
    assert recorded.grade(root).refused


def test_nothing_there_yet(postgresql, tmp_path):
    name = postgresql.new_database()
    keeps_at(tmp_path, postgresql.url(name))
    with pytest.raises(NoGrades, match=f"there is no postgresql://autograder@/{name}"):
        of_units(tmp_path, [UNIT])
    with pytest.raises(Exception, match="Nobody has submitted"):
        assignment(UNIT, tmp_path, None, None)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://autograder:{secret}@/none?host={folder}", 'database "none" does not exist'),
        ("postgresql://autograder:wr{secret}@/postgres?host={folder}", "password authentication failed"),
        ("postgresql://autograder:{secret}@/postgres?host={folder}/none", "No such file or directory. Is the server"),
        ("postgresql://autograder:{secret}@/postgres?host={folder}&sslmode={secret}", "invalid sslmode"),
        ("postgresql+pg8000://autograder:{secret}@/postgres", "needs a driver that is not installed"),
        ("postgresql://autograder:{secret}@x@localhost/postgres", "write @ as %40"),
        ("postgresql://autograder:{secret}@localhost:{secret}/postgres", "cannot be read"),
        ("postgres://autograder:{secret}@/postgres", "begins with postgres://"),
        ("mysql://autograder:{secret}@/postgres", "begins with mysql://"),
    ],
)
def test_an_address_that_does_not_work_is_a_sentence_without_the_password(postgresql, tmp_path, url, said):
    secret = PASSWORD.replace("/", "%2F").replace(":", "%3A")
    folder = postgresql.url("").partition("host=")[2]
    keeps_at(tmp_path, url.format(secret=secret, folder=folder))
    with pytest.raises(CourseProblem) as problem, nbgrader_course.database_of(tmp_path).reading():
        pass
    sentence = str(problem.value)
    assert said in sentence
    assert "\n" not in sentence
    assert PASSWORD not in sentence
    assert secret not in sentence


def test_a_server_that_is_down_refuses_a_run(autograder, begun, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(begun.root, root)
    begun.server.stop()
    try:
        for command in (["grade", UNIT], ["report", UNIT], ["export", UNIT]):
            refused = autograder(*command, "--course", root)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert "Is the server running" in refused.stderr
            assert PASSWORD not in refused.stderr
            assert "Traceback" not in refused.stderr
    finally:
        begun.server.start()
