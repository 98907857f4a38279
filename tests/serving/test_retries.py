"""Submissions whose grading gives no mark: tried a bounded number of times, across restarts, and in nobody's way."""

import contextlib
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import distributed
import msgspec
import pytest

from autograder import catalogue
from autograder.classroom.assignment import assignment
from autograder.classroom.batch import LocalGrading
from autograder.cluster import worker as cluster_worker
from autograder.cluster.worker import Done as DoneOnWorker
from autograder.cluster.worker import Task, Terms
from autograder.course import content, settings
from autograder.pool import grading_pool
from autograder.pool.grading_pool import GradingProcess, GradingRefused
from autograder.pool.requests import GradeNotebook
from autograder.sandbox.client import children
from autograder.serving import work_queue
from autograder.serving.work_queue import HOUR, GradingThreads
from tests.interrupting import in_a_fork
from tests.processes import kill, started_by, wait_until
from tests.recorded_class import UNIT, feedback_page, notebook, put_submission
from tests.served_unit import FIRST, SECOND, THIRD, Serving, attempts, released, submit

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


class Graded(Serving):
    """Serves a unit with real grading processes, which run submissions without isolation."""

    settings = UNISOLATED

    def __init__(self, root, recorded):
        super().__init__(root, recorded)
        self.put_in = []
        self.pool = grading_pool.pool_for_class(root, root, "cpu", UNISOLATED, 1)
        self.threads = GradingThreads(self.pool, root, [], lambda: None, self.remarks.append)

    def put(self, submission):
        self.put_in.append(submission[1].student)
        self.threads.put(submission)

    def work_off(self):
        while True:
            for _, graded in self.threads.results():
                self.marked.append(graded.submission.student)
                self.unit.add(graded)
            self.collect()
            again = self.unit.step(look=True, everything=False)
            if again > 1 and len(self.marked) == len(self.put_in):
                return again
            time.sleep(0.05)

    @property
    def refused(self):
        return [f"{one.name}: {one.reason}" for one in self.unit.refused]

    def __enter__(self):
        self.threads.__enter__().start()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.threads.__exit__(*error)


def test_repairs_are_reported_after_the_grade_and_are_no_attempt(course, recorded):
    two_mistakes = """def softmax(scores, dim=-1):
    biggest = scores.amax(dim=dim, keepdim=True)
    scores -= biggest
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)
"""
    submit(course, "ada", notebook(softmax=two_mistakes), FIRST)
    with Graded(course, recorded) as serving:
        serving.work_off()
        (outcome,) = serving.outcomes
        graded = attempts(course)

        def has_repair():
            for _, its in serving.threads.results():
                assert its.report.score == outcome.score
                serving.unit.add(its)
            serving.unit.step(look=False, everything=False)
            return "which was tried" in released(course, "ada")

        wait_until(has_repair)
        assert serving.outcomes == [outcome]
        assert attempts(course) == graded
        assert len(graded) == 1


def tries(root):
    with closing(sqlite3.connect(root / "gradebook.db")) as database:
        return sorted(who for (who,) in database.execute("select student from autograder_try"))


def test_a_submission_that_ends_its_grading_process_is_tried_twice_and_never_again(course, recorded, monkeypatch):
    monkeypatch.setattr(work_queue, "MOST_FAILED", 2)
    submit(course, "eve", deadly(), FIRST)
    submit(course, "ada", notebook(), FIRST)
    with Graded(course, recorded) as serving:
        serving.work_off()
        assert sorted(serving.put_in) == ["ada", "eve", "eve"]
        assert {(its.student, its.status) for its in serving.outcomes} == {("ada", "graded"), ("eve", "grader_error")}
        page = released(course, "eve")
        assert "The grading process ended while it graded this notebook" in page
        assert "Grading was tried 2 times. It is tried again only if" in page
        assert "which is our fault" not in page  # nobody knows whose it is
        assert "tried 2 times without a grade" in serving.refused[0]
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
        assert serving.refused[0].startswith("eve: grading was tried 2 times")
        submit(course, "eve", deadly("Another."), THIRD, "z")
        again = serving.work_off()
        assert serving.put_in == ["bo"]
        assert HOUR - 300 < again <= HOUR
        assert [its.status for its in serving.outcomes if its.student == "eve"] == ["waits"]
        assert "could not be graded to the end" in released(course, "eve", "z")
        with closing(sqlite3.connect(course / "gradebook.db")) as database:
            database.execute("update autograder_try set begun_at = begun_at - 3700")
            database.commit()
        submit(course, "eve", notebook(), "2026-01-05 03:04:05 UTC", "a")
        serving.work_off()
        assert serving.put_in == ["bo", "eve"]
        assert (serving.outcomes[-1].status, serving.refused) == ("graded", [])


def test_a_submission_that_ends_serve_is_tried_twice_and_no_other_is_blamed(course, recorded):
    for student in ("ada", "eve"):
        put_submission(course, student, notebook(why_softmax=student), FIRST)

    def serve():
        """Ends with a kill whenever eve's is being graded."""
        with Serving(course, recorded) as serving:
            while True:
                again = serving.unit.step(look=True, everything=False)
                if any(submission.student == "eve" for _, submission in serving.todo):
                    os.kill(os.getpid(), signal.SIGKILL)
                if serving.todo:
                    serving.grade_next()
                elif again > 1:
                    return [(its.student, its.status) for its in serving.outcomes]
                else:
                    time.sleep(again)

    assert recorded.grading_process.ready  # before a fork hears it
    ends = [in_a_fork(serve)[0] for _ in range(2)]
    assert ends == [-signal.SIGKILL] * 2
    assert tries(course) == ["eve", "eve"]  # the other one was graded, alone, before it was her turn again
    assert in_a_fork(serve) == (0, "[('eve', 'grader_error')]")
    assert "ended the program that grades" in feedback_page(course, "eve").read_text()
    assert in_a_fork(serve) == (0, "[]")


def test_stopping_serve_counts_no_try(course, recorded):
    put_submission(course, "ada", notebook(), FIRST)
    with Serving(course, recorded) as serving:
        for _ in range(3):
            serving.work_off(mark=False)
        assert tries(course) == ["ada"]
        serving.unit.forget_tries()
        assert tries(course) == []
    with Serving(course, recorded) as serving:
        serving.work_off()
        assert [its.status for its in serving.outcomes] == ["graded"]
        assert tries(course) == []


def test_a_hidden_test_that_fails_itself_still_counts_as_an_attempt(course, recorded):
    """A student who makes a grader fail sees the results of the other exercises, so this counts as an attempt."""
    submit(course, "ada", notebook(), FIRST)
    with Serving(course, recorded, attempts=1) as serving:
        serving.work_off(mark=False)
        work, its = serving.todo.pop()
        marked = recorded.marked(its, work.files)
        first, *others = marked.report.exercises
        failed = msgspec.structs.replace(first, status="grader_error", score=0.0, tests=[])
        report = msgspec.structs.replace(marked.report, status="grader_error", exercises=[failed, *others])
        serving.unit.add(replace(marked, report=report))
        serving.work_off()
        assert [who for who, *_ in attempts(course)] == ["ada"]
        submit(course, "ada", notebook(why_softmax="2"), SECOND, "y")
        serving.work_off()
        assert [its.status for its in serving.outcomes] == ["grader_error", "waits"]


def test_the_end_of_an_idle_process_is_blamed_on_no_submission(tmp_path):
    put_submission(tmp_path, "ada", notebook())
    work = assignment(UNIT, tmp_path, None, None)
    terms = {"device": "cpu", "settings": settings.load(), "process_count": 1}
    with contextlib.ExitStack() as ending:
        marking, (process,) = started_by(lambda: ending.enter_context(LocalGrading(work, work.submissions, **terms)))
        marking.start()
        kill(process)
        assert [one.report.status for one in marking.graded()] == ["graded"]


def test_a_process_that_does_not_start_is_started_again(course, recorded, monkeypatch):
    """The only grading process ends, and its first two successors cannot start. Grading goes on with the third."""
    monkeypatch.setattr(grading_pool, "PAUSE_SECONDS", 0.01)
    submit(course, "ada", notebook(), FIRST)
    failures = []

    def fails_twice(*terms, **more):
        if len(failures) < 2:
            failures.append(terms)
            raise GradingRefused("No grading process can be started: out of memory.")
        return GradingProcess(*terms, **more)

    with Graded(course, recorded) as serving:
        monkeypatch.setattr(grading_pool, "GradingProcess", fails_twice)
        kill(serving.pool.running(0).pid)
        serving.work_off()
        assert [its.status for its in serving.outcomes] == ["graded"]
        assert len(failures) == 2
        assert "does not start, and is started again: No grading process" in serving.remarks[0]


@pytest.fixture
def dask_worker(monkeypatch, tmp_path):
    """The Dask worker that this process takes itself for: its task is still wanted."""
    task = SimpleNamespace(state="executing")
    worker = SimpleNamespace(
        security=SimpleNamespace(tls_worker_key=None),
        local_directory=str(tmp_path),
        state=SimpleNamespace(tasks={"task": task}),
        get_current_task=lambda: "task",
    )
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    yield worker
    cluster_worker.cached_pool.close()


def test_on_a_cluster_the_end_of_a_process_costs_only_its_submission(dask_worker, monkeypatch):
    terms = Terms(UNIT, content.unit_digest(UNIT), "cpu", UNISOLATED)
    submissions = [GradeNotebook(str(n), its, UNIT, f"digest {n}") for n, its in enumerate((deadly(), notebook()))]
    task = msgspec.json.encode(Task(terms, submissions))
    done = msgspec.json.decode(cluster_worker.grade(task), type=DoneOnWorker)
    assert [(report.status, report.submission) for report in done.reports] == [
        ("grader_error", "digest 0"), ("graded", "digest 1"),
    ]  # fmt: skip
    cluster_worker.cached_pool.close()
    starts = []

    def starts_once(*terms, **more):
        starts.append(terms)
        if len(starts) > 1:
            raise GradingRefused("No grading process can be started.")
        return GradingProcess(*terms, **more)

    monkeypatch.setattr(cluster_worker, "GradingProcess", starts_once)
    done = msgspec.json.decode(cluster_worker.grade(task), type=DoneOnWorker)
    assert [report.submission for report in done.reports] == ["digest 0"]  # it is not sent again


def test_on_a_cluster_an_idle_process_ends_and_another_starts(dask_worker, monkeypatch):
    monkeypatch.setattr(cluster_worker, "IDLE_SECONDS", 0.2)
    terms = Terms(UNIT, content.unit_digest(UNIT), "cpu", UNISOLATED)
    submission = GradeNotebook("0", notebook(), UNIT)
    with cluster_worker.cached_pool.process(terms) as pool:
        first = pool.running(0)
        assert pool.grade(submission).status == "graded"
    wait_until(lambda: not first.is_running)
    with cluster_worker.cached_pool.process(terms) as pool:
        assert pool.grade(submission).status == "graded"


def test_a_sandbox_lost_at_each_try_costs_only_its_submission():
    waits = "import time\ntime.sleep(3)\n\n" + catalogue.solutions(UNIT)["softmax"].source()
    with GradingProcess("cpu") as grading_process:
        assert grading_process.ready
        over = threading.Event()

        def kill():
            while not over.wait(0.05):
                for pid in children(grading_process.pid):
                    below = children(pid)  # bwrap alone, killed before it is done, leaves them running
                    for lost in (*below, pid) if below else ():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(lost, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        try:
            report = grading_process.grade("a.ipynb", notebook(softmax=waits), UNIT)
        finally:
            over.set()
            killing.join()
        assert report.status == "grader_error"
        assert "The sandbox was lost while this notebook was graded" in report.message
        assert grading_process.grade("b.ipynb", notebook(), UNIT).status == "graded"
