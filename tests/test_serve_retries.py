"""Submissions whose grading gives no mark: tried a bounded number of times, across restarts, and in nobody's way."""

import contextlib
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import msgspec
import pytest

from autograder import catalogue
from autograder.classroom.assignment import assignment
from autograder.classroom.batch import LocalGrading
from autograder.cluster import worker as cluster_worker
from autograder.cluster.messages import Done as DoneOnWorker
from autograder.cluster.messages import Task, Terms
from autograder.course import digests, settings
from autograder.pool import grading_pool
from autograder.pool.process import GradingProcess, GradingRefused
from autograder.pool.requests import GradeNotebook
from autograder.sandbox.processes import children
from autograder.serving import rate_limit
from autograder.serving.rate_limit import HOUR
from autograder.serving.work_queue import GradingThreads

from .interrupting import in_a_fork
from .recorded_class import UNIT, hand_in
from .test_serve import FIRST, SECOND, THIRD, Serving, attempts, new_course, notebook, released, submit

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
UNISOLATED = msgspec.structs.replace(settings.load(), isolation=settings.Isolation("none", trust_submissions=True))
DEADLY = """import os, signal
def _above(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
os.kill(_above(os.getppid()), signal.SIGKILL)  # the grading process; only without isolation is it in reach
"""


def deadly(text=""):
    """Ends the process that grades it."""
    return notebook(softmax=f"{DEADLY}{catalogue.solutions(UNIT)['softmax'].source()}", why_softmax=text)


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


class Graded(Serving):
    """Serves a unit with real grading processes, which run submissions without isolation."""

    def __init__(self, root, recorded):
        super().__init__(root, recorded)
        self._unit._options = replace(self._unit._options, settings=UNISOLATED)
        self.put_in = []
        pool = grading_pool.pool_for_class(root, root, "cpu", UNISOLATED, 1)
        self._threads = GradingThreads(pool, root, [], lambda: None, self.remarks.append)

    def put(self, submission):
        self.put_in.append(submission[1].student)
        self._threads.put(submission)

    def work_off(self):
        while True:
            for _, graded in self._threads.results():
                self._unit.add(graded)
            self._exchange.collect([UNIT], lambda unit, student: self._unit.is_busy(student))
            again = self._unit.step(look=True, everything=False)
            if again > 1 and not self._unit._in_progress and not self._unit._graded:
                return again
            time.sleep(0.05)

    @property
    def refused(self):
        return [f"{one.name}: {one.reason}" for one in self._unit.refused]

    def __enter__(self):
        self._threads.__enter__().start()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._threads.__exit__(*error)


def tries(root):
    with closing(sqlite3.connect(root / "gradebook.db")) as database:
        return sorted(who for (who,) in database.execute("select student from autograder_try"))


def test_a_submission_that_ends_its_grading_process_is_tried_twice_and_never_again(course, recorded, monkeypatch):
    monkeypatch.setattr(rate_limit, "MOST_FAILED", 2)
    submit(course, "eve", deadly(), FIRST)
    submit(course, "ada", notebook(), FIRST)
    with Graded(course, recorded) as serving:
        serving.work_off()
        assert sorted(serving.put_in) == ["ada", "eve", "eve"]
        assert {(its.student, its.status) for its in serving.told} == {("ada", "graded"), ("eve", "grader_error")}
        page = released(course, "eve")
        assert "The grading process ended while it graded this notebook" in page
        assert "It was tried 2 times. It is not tried again" in page
        assert "which is our fault" not in page  # nobody knows whose it is
        assert "tried 2 times without a mark" in serving.refused[0]
        path = course / "submitted" / "eve" / UNIT / f"{UNIT}.ipynb"
        os.utime(path)  # another file by its look, the same by its digest
        serving.work_off()
        submit(course, "eve", deadly(), SECOND, "y")  # again the same file
        serving.work_off()
        assert sorted(serving.put_in) == ["ada", "eve", "eve"]
        assert tries(course) == ["eve", "eve"]
        assert [who for who, *_ in attempts(course)] == ["ada"]
    submit(course, "bo", notebook(), FIRST)
    with Graded(course, recorded) as serving:  # it is started again
        serving.work_off()
        assert serving.put_in == ["bo"]
        assert serving.refused[0].startswith("eve: grading it was tried 2 times")
        submit(course, "eve", deadly("Another."), THIRD, "z")
        again = serving.work_off()
        assert serving.put_in == ["bo"]
        assert HOUR - 300 < again <= HOUR
        assert [its.status for its in serving.told if its.student == "eve"] == ["waits"]
        assert "could not be graded to its end" in released(course, "eve", "z")
        with closing(sqlite3.connect(course / "gradebook.db")) as database:
            database.execute("update autograder_try set begun_at = begun_at - 3700")
            database.commit()
        submit(course, "eve", notebook(), "2026-01-05 03:04:05 UTC", "a")
        serving.work_off()
        assert serving.put_in == ["bo", "eve"]
        assert (serving.told[-1].status, serving.refused) == ("graded", [])


def test_a_submission_that_ends_serve_itself_is_tried_twice_and_nobody_else_is_blamed(course, recorded):
    for student in ("ada", "eve"):
        hand_in(course, student, notebook(why_softmax=student), FIRST)

    def serve():
        """Ends with a kill whenever eve's is being graded."""
        with Serving(course, recorded) as serving:
            while True:
                again = serving._unit.step(look=True, everything=False)
                if any(hand_in.student == "eve" for _, hand_in in serving._todo):
                    os.kill(os.getpid(), signal.SIGKILL)
                if serving._todo:
                    work, its = serving._todo.pop(0)
                    serving._unit.add(recorded.marked(its, work.submissions))
                elif again > 1:
                    return [(its.student, its.status) for its in serving.told]
                else:
                    time.sleep(again)

    assert recorded.marker.ready  # before a fork hears it
    ends = [in_a_fork(serve)[0] for _ in range(2)]
    assert ends == [-signal.SIGKILL] * 2
    assert tries(course) == ["eve", "eve"]  # the other one was graded, alone, before it was her turn again
    assert in_a_fork(serve) == (0, "[('eve', 'grader_error')]")
    assert "ended the program that grades" in (course / "feedback" / "eve" / UNIT / f"{UNIT}.html").read_text()
    assert in_a_fork(serve) == (0, "[]")


def test_what_is_being_graded_when_somebody_stops_serving_was_not_tried(course, recorded):
    hand_in(course, "ada", notebook(), FIRST)
    with Serving(course, recorded) as serving:
        for _ in range(3):
            serving.work_off(mark=False)
        assert tries(course) == ["ada"]
        serving._unit.forget_tries()
        assert tries(course) == []
    with Serving(course, recorded) as serving:
        serving.work_off()
        assert [its.status for its in serving.told] == ["graded"]
        assert tries(course) == []


def test_a_grader_that_fails_in_one_exercise_is_an_attempt_all_the_same(course, recorded):
    """A student who makes a grader fail sees the results of the other exercises, so this counts as an attempt."""
    submit(course, "ada", notebook(), FIRST)
    with Serving(course, recorded, attempts=1) as serving:
        serving.work_off(mark=False)
        work, its = serving._todo.pop()
        marked = recorded.marked(its, work.submissions)
        first, *others = marked.report.exercises
        failed = msgspec.structs.replace(first, status="grader_error", score=0.0, tests=[])
        report = msgspec.structs.replace(marked.report, status="grader_error", exercises=[failed, *others])
        serving._unit.add(replace(marked, report=report))
        serving.work_off()
        assert [who for who, *_ in attempts(course)] == ["ada"]
        submit(course, "ada", notebook(why_softmax="2"), SECOND, "y")
        serving.work_off()
        assert [its.status for its in serving.told] == ["grader_error", "waits"]


def test_what_ends_an_idle_process_is_no_submissions_fault(tmp_path):
    hand_in(tmp_path, "ada", notebook())
    work = assignment(UNIT, tmp_path, None, None)
    with LocalGrading(work, work.hand_ins, device="cpu", settings=settings.load(), markers=1) as marking:
        process = marking._pool.running(0)
        os.kill(process.pid, signal.SIGKILL)
        process._process.wait()
        assert [one.report.status for one in _started(marking).graded()] == ["graded"]


def _started(marking):
    marking.start()
    return marking


def test_a_process_that_does_not_start_is_started_again_and_ends_nothing(course, recorded, monkeypatch):
    """The only grading process ends, and its first two successors cannot start. Grading goes on with the third."""
    monkeypatch.setattr(grading_pool, "_PAUSE_SECONDS", 0.01)
    submit(course, "ada", notebook(), FIRST)
    with Graded(course, recorded) as serving:
        pool = serving._threads._pool
        new, failures = pool._new_process, []

        def fails_twice(number):
            if len(failures) < 2:
                failures.append(number)
                raise GradingRefused("No grading process can be started: out of memory.")
            return new(number)

        pool._new_process = fails_twice
        process = pool.running(0)
        os.kill(process.pid, signal.SIGKILL)
        process._process.wait()
        serving.work_off()
        assert [its.status for its in serving.told] == ["graded"]
        assert len(failures) == 2
        assert "does not start, and is started again: No grading process" in serving.remarks[0]


def test_on_a_cluster_a_process_that_ends_costs_its_submission_alone(monkeypatch):
    monkeypatch.setattr(cluster_worker, "_of_dask", list)
    monkeypatch.setattr(cluster_worker, "_is_wanted", lambda: True)
    terms = Terms(UNIT, digests.unit_digest(UNIT), "cpu", UNISOLATED)
    asked = [GradeNotebook(str(n), its, UNIT, f"digest {n}") for n, its in enumerate((deadly(), notebook()))]
    try:
        done = msgspec.json.decode(cluster_worker.grade(msgspec.json.encode(Task(terms, asked))), type=DoneOnWorker)
        assert [(report.status, report.submission) for report in done.reports] == [
            ("grader_error", "digest 0"), ("graded", "digest 1"),
        ]  # fmt: skip

        def refuses(terms):
            raise GradingRefused("No grading process can be started.")

        cluster_worker._cached.close()
        monkeypatch.setattr(cluster_worker, "_new_process", _after_one(cluster_worker._new_process, refuses))
        answer = cluster_worker.grade(msgspec.json.encode(Task(terms, asked)))
        done = msgspec.json.decode(answer, type=DoneOnWorker)
        assert [report.submission for report in done.reports] == ["digest 0"]  # it is not asked for again
    finally:
        monkeypatch.undo()
        cluster_worker._cached.close()


def test_on_a_cluster_an_idle_process_ends_and_another_starts(monkeypatch):
    monkeypatch.setattr(cluster_worker, "_of_dask", list)
    monkeypatch.setattr(cluster_worker, "_IDLE_SECONDS", 0.2)
    terms = Terms(UNIT, digests.unit_digest(UNIT), "cpu", UNISOLATED)
    submission = GradeNotebook("0", notebook(), UNIT)
    try:
        with cluster_worker._cached.process(terms) as pool:
            first = pool.running(0)
            assert pool.grade(submission).status == "graded"
        deadline = time.monotonic() + 60
        while first.is_running:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with cluster_worker._cached.process(terms) as pool:
            assert pool.grade(submission).status == "graded"
    finally:
        monkeypatch.undo()
        cluster_worker._cached.close()


def _after_one(first, others):
    calls = []

    def called(terms):
        calls.append(terms)
        return first(terms) if len(calls) == 1 else others(terms)

    return called


def test_a_sandbox_that_is_lost_each_time_costs_its_submission_alone():
    waits = "import time\ntime.sleep(3)\n\n" + catalogue.solutions(UNIT)["softmax"].source()
    with GradingProcess("cpu") as marker:
        assert marker.ready
        over = threading.Event()

        def kill():
            while not over.wait(0.05):
                for pid in children(marker.pid):
                    below = children(pid)  # bwrap alone, killed before it is done, leaves them running
                    for lost in (*below, pid) if below else ():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(lost, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        try:
            report = marker.grade("a.ipynb", notebook(softmax=waits), UNIT)
        finally:
            over.set()
            killing.join()
        assert report.status == "grader_error"
        assert "The sandbox was lost while this notebook was graded" in report.message
        assert marker.grade("b.ipynb", notebook(), UNIT).status == "graded"
