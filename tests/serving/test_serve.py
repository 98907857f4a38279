"""`autograder serve`: each submission is graded at once and once, whatever ends the process, and within its rules."""

import http.client
import json
import os
import pwd
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape
from pathlib import Path

import jsonschema
import msgspec
import pytest

from autograder.cli import serve as cli_serve
from autograder.course import released as released_notebook
from autograder.course.cells import filled_in
from autograder.gradebook.nbgrader_course import AlreadyLocked, course_lock
from autograder.pool.requests import Ready
from autograder.report import Report
from autograder.serving import exchange, http_server, released_pages, served_unit
from autograder.serving.arrivals import Arrivals, FolderWatch
from autograder.serving.released_pages import SHOWN
from autograder.serving.served_unit import KitChanged, Served
from autograder.serving.work_queue import HOUR, wait_until
from tests import REPOSITORY, forked_command, processes, sampling
from tests.interrupting import in_a_fork, places, times_in
from tests.recorded_class import (
    UNIT,
    UNKNOWN_TIME,
    comment,
    everything,
    feedback_page,
    notebook,
    opened_gradebook,
    put_submission,
    set_due,
    wrong,
)
from tests.served_unit import (
    FIRST,
    OVERFLOWS,
    POINTS,
    RIGHT_ON_EXAMPLES,
    SECOND,
    THIRD,
    Serving,
    attempts,
    new_course,
    released,
    serve,
    submit,
)
from tests.typed import solution_sources

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

OTHER = "self_attention"


def test_a_submission_in_the_exchange_is_graded_and_its_page_released(course, recorded):
    submit(course, "ada", wrong(), FIRST)
    put_submission(course, "bo", notebook())
    with Serving(course, recorded) as serving:
        serving.work_off()
        assert sorted(serving.marked) == ["ada", "bo"]
        assert OVERFLOWS in released(course, "ada")
        submit(course, "ada", notebook(), SECOND, "y")
        serving.work_off()
        assert serving.marked[2:] == ["ada"]
        assert OVERFLOWS not in released(course, "ada", "y")
        assert OVERFLOWS in released(course, "ada")
        assert [(its.student, its.status) for its in serving.outcomes] == [(who, "graded") for who in serving.marked]
    assert (course / SHOWN / "bo" / UNIT / f"{UNIT}.html").read_bytes() == feedback_page(course, "bo").read_bytes()
    assert serve(course, recorded) == []


def test_serving_resumes_after_a_kill_before_any_file_or_commit(tmp_path, recorded, monkeypatch):
    """Nothing is lost, what was answered neither, and nothing marked twice; `pytest --every` tries each moment."""
    begun = new_course(tmp_path / "begun")
    submit(begun, "ada", wrong(), FIRST)
    put_submission(begun, "cy", wrong(), FIRST)
    serve(begun, recorded)
    submit(begun, "ada", notebook(why_softmax="Again."), SECOND, "y")
    submit(begun, "bo", wrong(), FIRST)
    monkeypatch.setattr(served_unit, "OPEN_SECONDS", float("inf"))  # how often it commits is no matter of time then
    monkeypatch.setattr(http_server, "now", lambda: datetime(2026, 1, 3, 3, 4, 5, tzinfo=UTC))
    answered = tmp_path / "answered"

    def request(requests):
        """Submit again until the server has answered."""
        if not answered.exists():
            status, _ = requests.put_submission("cy", notebook(why_softmax="By a request."), "?wait=0")
            answered.write_text(str(status))

    serve_request = partial(serve, recorded=recorded, request=request)
    expected, root = tmp_path / "expected", tmp_path / "course"
    for folder in (expected, root):
        shutil.copytree(begun, folder)
    serve_request(expected)
    answered.unlink()
    wanted = everything(expected), attempts(expected)
    assert released(expected, "ada", "y")
    each, of_a_kind = times_in(partial(serve_request, root))
    answered.unlink()
    times, unfinished, count = each if sampling.every else of_a_kind[::12], 0, 0
    for moment in times:
        shutil.rmtree(root)
        shutil.copytree(begun, root)
        ended, _ = in_a_fork(partial(places, partial(serve_request, root), moment))
        assert ended == -signal.SIGKILL, f"at {moment} of {times}"
        unfinished += (everything(root), attempts(root)) != wanted
        counted = [who for who, *_ in attempts(root)]
        count += answered.exists()
        again = serve_request(root)
        assert answered.read_text() == "202"
        assert (everything(root), attempts(root)) == wanted, f"at {moment} of {times}"
        assert sorted(counted + again) == ["ada", "ada", "bo", "cy", "cy"], f"at {moment} of {times}"
        answered.unlink()
    assert unfinished > len(times) / 2
    assert 0 < count < len(times)


def test_put_back_passes_over_a_folder_that_cannot_be_entered(tmp_path):
    for student in ("ada", "bo", "cy"):
        (tmp_path / student / f".{UNIT}.old").mkdir(parents=True)
    closed, *others = tmp_path.iterdir()
    closed.chmod(0)

    def put_back():
        os.chdir(tmp_path)  # the folders above it are this account's alone
        if os.geteuid() == 0:  # who may enter any folder
            nobody = pwd.getpwnam("nobody")
            for other in others:
                os.chown(other, nobody.pw_uid, -1)
            tmp_path.chmod(0o755)
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
        Arrivals(Path(), lambda: None).put_back([UNIT])

    try:
        assert in_a_fork(put_back)[0] == 0
    finally:
        closed.chmod(0o700)
    assert [path.name for other in others for path in other.iterdir()] == [UNIT, UNIT]
    assert [path.name for path in closed.iterdir()] == [f".{UNIT}.old"]


def test_after_a_full_disk_submissions_are_collected_and_pages_released(course, recorded, monkeypatch):
    monkeypatch.setattr(exchange, "FAILED_SECONDS", 0.01)
    monkeypatch.setattr(released_pages, "AGAIN_SECONDS", 0.0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    put_submission(course, "bo", notebook())
    serve(course, recorded)
    submit(course, "ada", notebook(), FIRST)
    feedback = course / "exchange" / "attention" / "feedback"
    with Serving(course, recorded) as serving:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
        try:
            assert serving.collect() < 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "File too large" in serving.remarks[-1]
        assert not list((course / "submitted" / "ada").rglob("*.ipynb"))
        shutil.rmtree(feedback, ignore_errors=True)
        feedback.write_text("A file where a folder should be.")
        time.sleep(0.02)
        serving.work_off()
        assert serving.marked == ["ada"]
        feedback.unlink()
        serving.work_off(everything=True)
        assert released(course, "ada")


def test_a_file_beyond_the_hourly_limit_waits(course, recorded, monkeypatch):
    options = {"attempts": 2}
    for moment, secret in ((FIRST, "a"), (SECOND, "b")):
        submit(course, "ada", wrong(why_softmax=moment), moment, secret)
        assert serve(course, recorded, **options) == ["ada"]
    submit(course, "ada", notebook(), THIRD, "c")
    submit(course, "bo", notebook(), FIRST)
    assert serve(course, recorded, **options) == ["bo"]  # also when it is stopped and started again
    with Serving(course, recorded, **options) as serving:
        again = serving.work_off()
        assert HOUR - 300 < again <= HOUR
        (its,) = serving.outcomes
        assert (its.student, its.status) == ("ada", "waits")
        page = released(course, "ada", "c")
        assert "You have submitted again" in page
        assert f"{its.waits_until:%Y-%m-%d %H:%M} UTC" in page
        assert OVERFLOWS in page
        serving.work_off()
        assert serving.marked == []
        an_hour_later = time.time() + again + 1
        monkeypatch.setattr(served_unit.time, "time", lambda: an_hour_later)
        serving.work_off()
        assert serving.marked == ["ada"]
    assert "You have submitted again" not in released(course, "ada", "c")
    assert OVERFLOWS not in released(course, "ada", "c")


def test_regrading_and_damaged_files_count_as_no_attempt(course, recorded):
    put_submission(course, "ada", b"no notebook")
    serve(course, recorded)
    put_submission(course, "ada", notebook(), FIRST)
    serve(course, recorded)
    recorded.grade(course, regrade=True)
    assert [who for who, *_ in attempts(course)] == ["ada"]


def test_renaming_a_file_causes_no_grading_and_each_grading_is_counted(course, recorded):
    options = {"attempts": 2}
    put_submission(course, "ada", notebook(), FIRST)
    folder = course / "submitted" / "ada" / UNIT
    called = folder / f"{UNIT}.ipynb"
    with Serving(course, recorded, **options) as serving:
        serving.work_off()
        for number in range(3):
            called = called.rename(folder / f"n{number}.ipynb")
            folder.touch()
            serving.work_off()
        assert serving.marked == ["ada"]
    for _ in range(3):  # whatever it is marked again for
        report = course / "autograded" / "ada" / UNIT / "report.json"
        report.chmod(0o644)
        report.write_text("{}")
        serve(course, recorded, **options)
    assert [who for who, *_ in attempts(course)] == ["ada", "ada"]


def test_work_in_a_zip_file_next_to_a_stub_is_served(course, recorded):
    put_submission(course, "ada", (REPOSITORY / "release" / UNIT / f"{UNIT}.ipynb").read_bytes(), FIRST)
    packed = course / "submitted" / "ada" / UNIT / "work.zip"
    with Serving(course, recorded) as serving:
        for content, scores in ((wrong(), [16.0]), (notebook(), [16.0, 18.0])):
            with zipfile.ZipFile(packed, "w") as file:
                file.writestr("a/b.ipynb", content)
            serving.work_off()
            assert [served.score for served in serving.outcomes] == scores
    assert "was graded; the notebook should be called" in feedback_page(course, "ada").read_text()


def test_the_limit_holds_in_any_hour():
    attempts = (10.0, 20.0, 30.0)
    assert wait_until(attempts, 4, 40.0) == 0
    assert wait_until(attempts, 3, 40.0) == HOUR + 10
    assert wait_until(attempts, 3, HOUR + 10) == 0
    assert wait_until(attempts, 1, 40.0) == HOUR + 30
    assert wait_until(attempts, None, 40.0) == 0
    ahead = (99 * HOUR, 40.0 + HOUR, 35.0)  # by a clock that was wrong
    assert wait_until(ahead, 1, 40.0) == 40.0 + 2 * HOUR
    assert wait_until(ahead, 3, 40.0) == 0


def test_the_printed_line_has_the_day_if_it_is_not_today():
    now = datetime.now().astimezone().replace(hour=12)
    waits = Served(now, UNIT, "ada", "waits", waits_until=now + timedelta(hours=1))
    assert cli_serve.submission_line(waits, with_unit=False).endswith(f"until {waits.waits_until:%H:%M:%S}")
    waits = Served(now, UNIT, "ada", "waits", waits_until=now + timedelta(hours=24))
    assert cli_serve.submission_line(waits, with_unit=False).endswith(f"until {waits.waits_until:%Y-%m-%d %H:%M:%S}")


@pytest.mark.parametrize(("show", "named", "public"), [("check", False, True), ("names", True, False)])
def test_pages_hide_points_and_messages_before_the_due_date(course, recorded, show, named, public):
    answers = {
        "normalize_by_sum": "def normalize_by_sum(scores):\n    return scores",
        # By then it has the hidden inputs of the exercises before, and could say them.
        "pairwise_scores": "def pairwise_scores(x):\n    raise ValueError('smuggled')",
    }
    submit(course, "ada", wrong(**answers), FIRST)
    options = {"show": show}
    serve(course, recorded, **options)
    due = (datetime.now(UTC) + timedelta(days=1)).replace(second=0)
    set_due(course, due)
    with Serving(course, recorded, **options) as serving:
        again = serving.work_off()
        assert 0 < again <= 24 * 3600
        page = released(course, "ada")
        assert f"Due: {due:%Y-%m-%d %H:%M} UTC." in page
        report = json.loads((course / "autograded" / "ada" / UNIT / "report.json").read_bytes())
        assert not re.search(POINTS, page)
        assert (OVERFLOWS in page) is named
        hidden = [
            test["message"].splitlines()[0]
            for exercise in report["exercises"]
            for test in exercise["tests"]
            if test["outcome"] == "failed" and not test["public"]
        ]
        assert len(hidden) > 3
        assert not [said for said in hidden if escape(said.partition("`")[0]) in page]
        assert (RIGHT_ON_EXAMPLES in page) is public
        assert ("With leading dimensions, too, each row sums to 1 along the last dimension." in page) is public
        assert "smuggled" not in page
    set_due(course, datetime.now(UTC) - timedelta(days=1))
    assert serve(course, recorded, **options) == []
    assert re.search(POINTS, released(course, "ada"))
    assert released(course, "ada") == feedback_page(course, "ada").read_text()


@pytest.mark.parametrize("show", ["check", "names", "all"])
def test_unwritten_exercises_are_reported_as_not_written(course, recorded, show):
    answers = solution_sources(UNIT)
    del answers["softmax"]
    for student, content in (("ada", released_notebook(UNIT).read_bytes()), ("bo", filled_in(UNIT, answers))):
        submit(course, student, content, FIRST)
    options = {"show": show}
    with Serving(course, recorded, **options) as serving:
        serving.work_off()
        pages = {student: released(course, student) for student in ("ada", "bo")}
        assert [page.count("Nothing is written in the cell") > count for page, count in zip(
            pages.values(), (len(answers), 0), strict=True
        )] == [True, True]  # fmt: skip
        assert "Wrong on the public examples" not in pages["ada"] + pages["bo"]
        lines = {its.student: cli_serve.submission_line(its, with_unit=False) for its in serving.outcomes}
        assert "not written: softmax" in lines["bo"]
        assert lines["ada"].count(",") == len(answers)


def test_the_folder_that_is_served_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder, named in ((tmp_path, f" {tmp_path}. "), (tmp_path / "class", " class. "), (Path("/"), " /. ")):
        cli_serve.announce_start([UNIT], folder, Ready("cpu", "A", []), None)
        assert f"Serving {UNIT} in{named}" in capsys.readouterr().err


def test_a_later_comment_by_a_person_reaches_the_page(course, recorded):
    submit(course, "ada", notebook(why_softmax="Because."), FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off()
        comment(course, "ada", "Say why they are positive.")
        recorded.grade(course)
        serving.work_off(everything=True)
        assert serving.marked == ["ada"]
    assert "Say why they are positive." in released(course, "ada")


def test_a_penalty_follows_the_due_date_and_extensions_while_serving_and_after(course, recorded):
    """Nothing is marked again for it, and no attempt is counted."""

    def change(extension, moment=datetime(2026, 1, 2, 3)):
        set_due(course, moment)
        with opened_gradebook(course) as gradebook:
            gradebook.grant_extension(UNIT, "ada", minutes=extension)

    with (course / "nbgrader_config.py").open("a") as settings_of_course:
        settings_of_course.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    submit(course, "ada", notebook(), FIRST)
    submit(course, "bo", notebook(), FIRST.replace("UTC", "XYZ"))  # no time known for bo
    points = []
    with Serving(course, recorded) as serving:
        serving.work_off()
        for extension in (0, 5, 4):
            change(extension)
            serving.work_off(everything=True)
            points.append(re.search(rf"{UNIT}: ([\d.]+) of", released(course, "ada"))[1])
        assert sorted(serving.marked) == ["ada", "bo"]
        assert {its.student: its.time_stamp for its in serving.outcomes} == {
            "ada": "",
            "bo": FIRST.replace("UTC", "XYZ"),
        }
    assert f"{UNIT}: 18 of 21 points" in released(course, "bo")
    assert UNKNOWN_TIME in released(course, "bo")
    change(5)
    assert serve(course, recorded) == []
    points.append(re.search(rf"{UNIT}: ([\d.]+) of", released(course, "ada"))[1])
    assert [float(of) > 0 for of in points] == [False, True, False, True]
    assert len(attempts(course)) == 2


def test_a_submission_that_grade_has_graded_meanwhile_is_not_recorded_again(course, recorded):
    put_submission(course, "ada", notebook(), FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off(mark=False)
        recorded.grade(course)
        serving.work_off()
        assert serving.outcomes == []
        assert len(attempts(course)) == 1


def test_grades_are_kept_while_another_command_holds_the_lock(course, recorded):
    put_submission(course, "ada", notebook(), FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off(mark=False)
        with course_lock(course), pytest.raises(AlreadyLocked):
            serving.work_off()
        serving.work_off()
        assert [its.student for its in serving.outcomes] == ["ada"]
        assert serving.marked == ["ada"]


def test_a_changed_course_ends_serving(course, recorded, monkeypatch):
    monkeypatch.setattr(served_unit, "KIT_SECONDS", 0.0)
    shutil.copytree(REPOSITORY / "source" / UNIT, course / "source" / UNIT)
    shutil.copytree(REPOSITORY / "release" / UNIT, course / "release" / UNIT)
    with Serving(course, recorded) as serving:
        serving.work_off()
        with (course / "release" / UNIT / f"{UNIT}.ipynb").open("a") as file:
            file.write("\n")
        put_submission(course, "ada", notebook(), FIRST)
        with pytest.raises(KitChanged):
            serving.work_off()


def test_serving_keeps_grades_by_another_version_of_the_autograder(course, recorded):
    put_submission(course, "ada", notebook(), FIRST)
    serve(course, recorded)
    with sqlite3.connect(course / "gradebook.db") as database:
        database.execute("update autograder_mark set kit = 'older'")
    database.close()
    report = course / "autograded" / "ada" / UNIT / "report.json"
    older = {**json.loads(report.read_bytes()), "kit": "older"}
    report.chmod(0o644)
    report.write_text(json.dumps(older))
    assert serve(course, recorded) == []
    recorded.grade(course)
    assert recorded.asked == ["ada"]


def test_only_new_files_and_threads_wake_the_folder_watch(tmp_path):
    deep, flat = tmp_path / "deep" / "ada", tmp_path / "flat"
    deep.mkdir(parents=True)
    (deep / "read").write_text("")
    flat.mkdir()
    with FolderWatch() as watching:
        watching.watch({tmp_path / "deep": True, flat: False})
        list(flat.iterdir())
        (deep / "read").read_text()
        assert watching.sleep(time.monotonic() + 0.3) == set()
        for file in (deep / "it", flat / "folder"):
            file.write_text("")
            assert watching.sleep(time.monotonic() + 60) == {"files"}
            watching.sleep(time.monotonic() + 0.2)
        threading.Timer(0.1, watching.wake, ["done"]).start()
        assert watching.sleep(time.monotonic() + 60) == {"done"}
        assert watching.watch({tmp_path / "deep": True, tmp_path / "not there": False})
        assert not watching.watch({tmp_path / "deep": True, tmp_path / "not there": False})


@pytest.fixture
def started():
    """Starts the command; what still runs at the end is ended."""
    commands = []

    def start(root, *options):
        commands.append(Process(root, *options))
        return commands[-1]

    yield start
    for process in commands:
        process.end(signal.SIGKILL)


class Process:
    """The command itself."""

    def __init__(self, root, *options):
        its = {**os.environ, "AUTOGRADER_COURSE": str(REPOSITORY)}
        self._process = forked_command.Started(
            "autograder", "serve", *options, UNIT, "--course", root, "--json", cwd=REPOSITORY, env=its
        )
        self.begun = self.remark("Serving")

    def remark(self, text):
        """Waits until it says this."""
        while text not in (said := self._process.stderr.readline()):
            assert self._process.poll() is None
        return said

    def line(self):
        return json.loads(self._process.stdout.readline())

    def end(self, by):
        self._process.send_signal(by)
        out, err = ("", "") if self._process.stdout.closed else self._process.communicate()
        return self._process.returncode, out, err


HANGS = dict.fromkeys(("softmax", "context_vector", "pairwise_scores"), "import time\ntime.sleep(9)\n")
"""Half a minute together, in which it computes nothing: each cell waits for less than what ends it."""


def takes_lock(stack, course):
    """Return whether a course could be locked; `serve` locks it for a moment to record a grade."""
    try:
        stack.enter_context(course_lock(course))
    except AlreadyLocked:
        return False
    return True


def test_the_command_grades_next_to_a_hanging_submission_and_after_a_kill(course, recorded, started):
    running = started(course, "--markers", "2", "--port", "0")
    submit(course, "hangs", notebook(**HANGS), FIRST)
    time.sleep(1)
    for student in ("ada", "bo"):
        submit(course, student, notebook(), FIRST)
    assert sorted(running.line()["student"] for _ in range(2)) == ["ada", "bo"]
    assert released(course, "bo")
    refused = forked_command.autograder("serve", UNIT, "--course", course, cwd=REPOSITORY)
    assert refused.returncode == 2
    assert "Another `autograder serve`" in refused.stderr
    token, *beside = (course / ".serving").iterdir()
    assert (stat.S_IMODE(token.stat().st_mode), beside) == (0o600, [])
    its_token, address = token.read_text(), re.search("http://([0-9.]+:[0-9]+)", running.begun)[1]
    (course / "homework.ipynb").write_bytes(notebook())
    (script,) = re.findall(r"^```bash\n(.*?)^```", (REPOSITORY / "docs" / "automation.md").read_text(), re.M | re.S)
    for said, here in {
        "127.0.0.1:8000": address, "self_attention": UNIT, "name=homework.ipynb": "name=a%1bb.ipynb",
    }.items():  # fmt: skip
        assert said in script
        script = script.replace(said, here)
    told, marked = subprocess.run(["bash", "-ec", script], cwd=course, capture_output=True).stdout.splitlines(True)
    assert (json.loads(told)["status"], json.loads(told)["score"]) == ("marked", 18)
    marked = msgspec.json.decode(marked, type=Report)
    expected = recorded.grading_process.grade("a\x1bb.ipynb", notebook())
    assert (marked.notebook, marked.exercises) == (expected.notebook, expected.exercises)
    line = running.line()
    assert line["student"] == "amara"
    jsonschema.validate(line, json.loads((REPOSITORY / "docs" / "serve.schema.json").read_bytes()))
    assert running.end(signal.SIGKILL)[:2] == (-signal.SIGKILL, "")  # in the middle of the one that hangs
    for stranger in ("yan", "zoe"):
        put_submission(course, stranger, released_notebook(OTHER).read_bytes(), FIRST, unit=OTHER)
    running = started(course, "--markers", "1", "--port", "0", OTHER)
    assert token.read_text() != its_token
    with ExitStack() as stack:
        processes.wait_until(lambda: takes_lock(stack, course))
        submit(course, "cy", notebook(), FIRST)
        running.remark(f"Nobody who submitted {OTHER} is on the roster")
        running.remark("new submissions wait until it has ended")
    assert sorted(running.line()["student"] for _ in range(2)) == ["cy", "hangs"]
    with (course / "roster.csv").open("a") as roster:
        roster.write("yan,Yan\nzoe,Zoe\n")
    lines = [running.line() for _ in range(2)]
    assert sorted((line["student"], line["unit"], line["status"]) for line in lines) == [
        ("yan", OTHER, "graded"), ("zoe", OTHER, "graded"),
    ]  # fmt: skip
    ended = running.end(signal.SIGTERM)
    assert ended[:2] == (0, "")
    assert "Stopped." in ended[2]
    assert not token.exists()
    assert [who for who, *_ in attempts(course)] == ["ada", "amara", "bo", "cy", "hangs", "yan", "zoe"]


def test_the_command_can_be_ended_while_it_starts(course, started):
    returned, _, said = started(course, "--markers", "1", OTHER).end(signal.SIGTERM)
    assert returned == 0
    assert re.fullmatch(r"(Serving .*\n)?Stopped\..*\n", said)  # the line in which it is ended is written again


def answered(port):
    """The status of what a stranger is answered there."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().status


def test_with_nbgraders_own_commands(tmp_path, started):
    """A student submits and fetches feedback; nobody collects, grades or releases."""
    root, home = tmp_path / "course", tmp_path / "student"
    home.mkdir()
    made = forked_command.autograder("new-course", root, UNIT, cwd=REPOSITORY)
    assert made.returncode == 0
    theirs = {"CourseDirectory.course_id": "attention", "Exchange.root": str(root / "exchange")}
    of_student = "".join(f"c.{name} = {value!r}\n" for name, value in theirs.items())
    (home / "nbgrader_config.py").write_text(f"c = get_config()\n{of_student}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "JUPYTER_PREFER_ENV_PATH": "1", "JUPYTER_DATA_DIR": str(tmp_path / "j")}

    def nbgrader(command, where):
        done = forked_command.nbgrader(command, UNIT, cwd=where, env=environment)
        assert done.returncode == 0, done.stderr

    running = started(root, "--markers", "1", "--port", "0")  # before there is a folder to hand in to
    port = int(re.search("http://127.0.0.1:([0-9]+)", running.begun)[1])
    assert answered(port) == 401
    nbgrader("release_assignment", root)
    nbgrader("fetch_assignment", home)
    (home / UNIT / f"{UNIT}.ipynb").write_bytes(wrong())
    nbgrader("submit", home)
    assert running.line()["status"] == "graded"
    nbgrader("fetch_feedback", home)
    (page,) = (home / UNIT / "feedback").rglob("*.html")
    assert OVERFLOWS in page.read_text()
    with (root / "release" / UNIT / f"{UNIT}.ipynb").open("a") as file:
        file.write("\n")
    time.sleep(served_unit.KIT_SECONDS)
    put_submission(root, "bo", notebook())
    running.remark("starting again")
    port = int(re.search("http://127.0.0.1:([0-9]+)", running.remark("Serving"))[1])
    assert answered(port) == 401
    assert running.line()["student"] == "bo"
    (root / "submitted" / "-r").mkdir()
    (root / "submitted" / "-r" / UNIT).mkdir()
    running.remark("NOT GRADED: -r")
    assert running.end(signal.SIGTERM)[0] == 0
