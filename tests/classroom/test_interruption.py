"""A batch that is stopped, at whatever moment and by whatever, and run again ends as one that was not stopped."""

import resource
import shutil
import signal
import sqlite3
import time
from functools import partial

import pytest

from autograder import catalogue
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import CourseProblem, course_directory, course_lock
from tests import REPOSITORY, forked_command, sampling
from tests.interrupting import in_a_fork, places, times_in
from tests.recorded_class import UNIT, comment, everything, feedback_page, give_points, notebook, put_submission

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A course that has not been graded."""
    root = tmp_path_factory.mktemp("new")
    (root / "roster.csv").write_text("id,first_name\nada,Ada\nbo,Bo\ncy,Cy\nnobody,No\n")
    wrong = catalogue.misconceptions(UNIT)["naive_exponentials"].source()
    put_submission(root, "ada", notebook(softmax=wrong, why_softmax="First answer."), "2026-01-02 03:04:05 UTC")
    put_submission(root, "bo", notebook())
    return root


@pytest.fixture(scope="module")
def begun(new, recorded, tmp_path_factory):
    """The course once graded, also by hand, with new submissions."""
    root = tmp_path_factory.mktemp("begun") / "course"
    shutil.copytree(new, root)
    recorded.grade(root)
    give_points(root, "ada", 1.5)
    comment(root, "ada", "Say why the shares are positive.")
    put_submission(root, "ada", notebook(why_softmax="Second answer."), "2026-01-03 03:04:05 UTC")
    put_submission(root, "cy", b"no notebook")
    return root


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_making_the_gradebook_resumes_after_an_interruption(new, tmp_path, by):
    """At the first or the last commit of some kinds, of which there is one for each cell: all with `pytest --every`.

    nbgrader's own API keeps what interrupts it to itself.
    """
    expected, root = tmp_path / "expected", tmp_path / "course"
    for folder in (expected, root):
        shutil.copytree(new, folder)
    ClassGradebook(course_directory(expected), UNIT).close()
    wanted = everything(expected)

    def make():
        return ClassGradebook(course_directory(root), UNIT)

    _, times = times_in(make)
    assert len(times) > 5
    if not sampling.every:
        times = times[3::12] if by == signal.SIGINT else times[::12]
    for moment in times:
        shutil.rmtree(root)
        shutil.copytree(new, root)
        ended = in_a_fork(partial(places, make, moment, by))
        assert ended == ((3, "") if by == signal.SIGINT else (-signal.SIGKILL, "")), f"at {moment} of {times}"
        make().close()
        assert everything(root) == wanted, f"at {moment} of {times}"


def test_grading_resumes_after_a_kill_before_any_file_or_commit(begun, recorded, tmp_path):
    """A graded class with one new version of a submission, and one first submission.

    From every eighth place in the code the first time or the last; `pytest --every` tries each time.
    """
    expected, root = tmp_path / "expected", tmp_path / "course"
    for folder in (expected, root):
        shutil.copytree(begun, folder)
    recorded.grade(expected)  # the first time here: the reports are made, and modules are imported, before any fork
    wanted = everything(expected)
    each, of_a_kind = times_in(partial(recorded.grade, root))
    times = each if sampling.every else of_a_kind[::8]
    unfinished = 0
    for moment in times:
        shutil.rmtree(root)
        shutil.copytree(begun, root)
        ended, _ = in_a_fork(partial(places, partial(recorded.grade, root), moment))
        assert ended == -signal.SIGKILL
        unfinished += everything(root) != wanted
        recorded.grade(root)
        assert everything(root) == wanted, f"at {moment} of {times}"
    assert unfinished > len(times) / 2


def test_points_and_comments_by_a_person_are_kept(begun, recorded, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(begun, root)
    recorded.grade(root)
    rows, files = everything(root)
    assert ("ada", "why_softmax", None, 1.5, None, 1) in rows["grades"]
    assert ("ada", "why_softmax", None, "Say why the shares are positive.") in rows["comments"]
    assert b"Say why the shares are positive." in files[f"feedback/ada/{UNIT}/{UNIT}.html"][1]
    assert b"Second answer." in files[f"feedback/ada/{UNIT}/{UNIT}.html"][1]


@pytest.mark.parametrize("has_marks", [False, True], ids=["no room for a gradebook", "no room for a notebook"])
def test_a_full_disk_is_an_error_message_and_nothing_is_lost(new, begun, recorded, tmp_path, has_marks):
    expected, root = tmp_path / "expected", tmp_path / "course"
    for folder in (expected, root):
        shutil.copytree(begun if has_marks else new, folder)
    recorded.grade(expected)
    before = everything(root) if has_marks else None

    def grade_with_little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        recorded.grade(root)

    ended, said = in_a_fork(grade_with_little_room)
    assert ended == 2
    assert "the disk not full" in said
    assert before is None or everything(root)[0] == before[0]
    recorded.grade(root)
    assert everything(root) == everything(expected)


def test_a_locked_gradebook_is_an_error_message_and_nothing_is_lost(begun, recorded, tmp_path):
    expected, root = tmp_path / "expected", tmp_path / "course"
    shutil.copytree(begun, expected)
    shutil.copytree(begun, root)
    recorded.grade(expected)
    other = sqlite3.connect(root / "gradebook.db", isolation_level=None)
    other.execute("begin immediate")
    ended, said = in_a_fork(lambda: recorded.grade(root))
    other.close()
    assert ended == 2
    assert "database is locked" in said
    recorded.grade(root)
    assert everything(root) == everything(expected)


def test_a_gradebook_that_is_locked_before_the_unit_is_in_it(begun, tmp_path, capfd):
    root = tmp_path / "course"
    shutil.copytree(begun, root)
    other = sqlite3.connect(root / "gradebook.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(CourseProblem, match="database is locked") as problem:
        ClassGradebook(course_directory(root), "self_attention")
    other.close()
    assert "Exercises can be added" not in str(problem.value)
    assert capfd.readouterr().err == ""
    ClassGradebook(course_directory(root), "self_attention").close()


GRADE = ["grade", UNIT, "--course"]


def test_two_runs_at_once_are_refused(begun, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(begun, root)
    before = everything(root)
    with course_lock(root):
        result = forked_command.autograder(*GRADE, root, cwd=REPOSITORY)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Another `autograder grade`, `import` or `serve` is writing to" in result.stderr
    assert everything(root)[0] == before[0]


def test_grading_resumes_after_an_interrupt(begun, recorded, tmp_path):
    """The command itself, with its graders."""
    root, expected = tmp_path / "course", tmp_path / "expected"
    for folder in (root, expected):
        shutil.copytree(begun, folder)
        for number in range(4):
            put_submission(folder, f"late-{number}", notebook(why_softmax=f"Answer {number}."))
        # Takes a while, so that there is time to interrupt however busy the machine is.
        waits = "import time\ntime.sleep(5)\n" + catalogue.solutions(UNIT)["softmax"].source()
        put_submission(folder, "late-2", notebook(softmax=waits))
    page = feedback_page(root, "late-0")
    run = forked_command.Started("autograder", *GRADE, root, "--markers", "1", cwd=REPOSITORY)
    while run.poll() is None and not page.exists():
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 2
    assert "Interrupted." in said
    assert forked_command.autograder(*GRADE, root, "--markers", "1", cwd=REPOSITORY).returncode == 0
    recorded.grade(expected)
    assert everything(root) == everything(expected)
