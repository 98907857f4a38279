"""Submissions whose grading gives no mark: tried a bounded number of times, and in nobody's way."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import distributed
import msgspec
import pytest

from autograder import catalogue
from autograder.classroom.assignment import LocalGrading, assignment
from autograder.cluster import worker as cluster_worker
from autograder.cluster.worker import Done as DoneOnWorker
from autograder.cluster.worker import Task, Terms
from autograder.course import content, settings
from autograder.pool import grading_pool
from autograder.pool.grading_pool import GradingProcess, GradingRefused
from autograder.pool.requests import GradeNotebook
from autograder.sandbox.client import children
from autograder.serving import served_unit, work_queue
from autograder.serving.work_queue import HOUR, GradingThreads
from tests.processes import kill, started_by, wait_until
from tests.recorded_class import UNIT, notebook, put_submission
from tests.served_unit import FIRST, SECOND, Serving, attempts, released, submit

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

    def put(self, work, submission):
        self.put_in.append(submission.student)
        self.threads.put(work, submission)

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
        self.pool.start()
        self.threads.start()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.pool.close()


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


def test_a_submission_that_ends_its_grading_process_is_tried_twice_and_at_the_next_start(course, recorded):
    submit(course, "eve", deadly(), FIRST)
    submit(course, "ada", notebook(), FIRST)
    with Graded(course, recorded) as serving:
        first = serving.pool.running(0).pid
        serving.work_off()
        assert sorted(serving.put_in) == ["ada", "eve"]
        assert {(its.student, its.status) for its in serving.outcomes} == {("ada", "graded"), ("eve", "grader_error")}
        assert serving.pool.running(0).pid != first
        page = released(course, "eve")
        assert "The grading process ended while it graded this notebook" in page
        assert "Grading was tried 2 times. It is tried again only if" in page
        assert "which is our fault" not in page  # nobody knows whose it is
        assert "tried 2 times without a grade" in serving.refused[0]
        serving.work_off()
        assert sorted(serving.put_in) == ["ada", "eve"]
        assert [who for who, *_ in attempts(course)] == ["ada"]
    with Graded(course, recorded) as serving:  # it is started again
        serving.work_off()
        assert serving.put_in == ["eve"]
        assert serving.refused[0].startswith("eve: grading was tried 2 times")
        submit(course, "eve", notebook(), SECOND, "y")
        serving.work_off()
        assert (serving.outcomes[-1].status, serving.refused) == ("graded", [])


def test_after_four_files_without_a_grade_the_next_one_waits(course, recorded, monkeypatch):
    def failed(submission, files):
        graded = marked(submission, files)
        report = msgspec.structs.replace(graded.report, status="grader_error", exercises=[], message="It ended.")
        return replace(graded, report=report)

    marked = recorded.marked
    with Serving(course, recorded) as serving:
        monkeypatch.setattr(recorded, "marked", failed)
        for number in range(work_queue.MOST_FAILED):
            submit(course, "eve", notebook(why_softmax=str(number)), made(number), str(number))
            serving.work_off()
        submit(course, "eve", notebook(), made(9), "next")
        again = serving.work_off()
        assert HOUR - 300 < again <= HOUR
        assert [its.status for its in serving.outcomes] == ["grader_error"] * work_queue.MOST_FAILED + ["waits"]
        assert "could not be graded to the end" in released(course, "eve", "next")
        monkeypatch.setattr(recorded, "marked", marked)
        an_hour_later = time.time() + again + 1
        monkeypatch.setattr(served_unit.time, "time", lambda: an_hour_later)
        serving.work_off()
        assert serving.outcomes[-1].status == "graded"


def made(number):
    """The time of a student's submission with this number."""
    return f"2026-01-05 03:04:0{number} UTC"


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
