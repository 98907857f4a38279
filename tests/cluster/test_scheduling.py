"""A submission is blamed for lost Dask workers only if it was alone with one, and not the first time."""

from contextlib import nullcontext
from types import SimpleNamespace

import msgspec

from autograder import course
from autograder.classroom.student_folders import Read, Submission
from autograder.cluster import cluster_run, worker
from autograder.cluster.cluster_run import ClusterRun, WorkQueue
from autograder.cluster.worker import Able, Done
from autograder.course import content, settings
from autograder.course.notebook_file import NotebookFile
from autograder.report import ungraded_report
from tests.recorded_class import UNIT

DEADLY = "eve"
CLASS = [Submission(student, "a.ipynb") for student in (DEADLY, "ada", "bo", "cy", "dan", "fay", "gus", "hal")]
AT_FIRST = [DEADLY, "ada", "bo", "cy"]


def students(submissions):
    return [one.student for one in submissions]


def test_each_of_a_task_whose_worker_lost_is_marked_alone_and_who_kills_again_is_told():
    queue, tasks, graded, blamed = WorkQueue(CLASS), [], [], []
    while batch := queue.take(workers=1):
        tasks.append(students(batch))
        if DEADLY not in tasks[-1]:
            graded += tasks[-1]
        elif alone := queue.worker_lost(batch):
            blamed.append(alone.student)
    assert [task for task in tasks if DEADLY in task] == [AT_FIRST, [DEADLY], [DEADLY]]
    assert blamed == [DEADLY]
    assert sorted([*graded, *blamed]) == sorted(students(CLASS))


def test_what_a_worker_gave_back_comes_first_and_suspects_stay_last():
    queue = WorkQueue(CLASS)
    queue.worker_lost(queue.take(workers=1))
    given_back = queue.take(workers=1)
    queue.put_back(given_back)
    tasks = []
    while batch := queue.take(workers=1):
        tasks.append(students(batch))
    assert tasks[0] == students(given_back)
    assert tasks[-4:] == [[student] for student in AT_FIRST]


class Connection:
    """A cluster's stand-in: each worker answers at once, with nonsense if the deadly submission is in its task."""

    def __init__(self, able):
        self._able, self.tasks = able, []

    def workers(self):
        return {f"worker {number}": {} for number in range(5)}

    def submit(self, address, function, message, *, gpu):
        return SimpleNamespace(done=lambda: True, function=function, message=message)

    def wait(self, futures):
        pass

    def answer(self, future):
        if future.function is worker.examine:
            return msgspec.json.encode(self._able)
        submissions = future.message.submissions
        self.tasks.append([one.digest for one in submissions])
        if DEADLY in self.tasks[-1]:
            return b"nonsense"
        reports = [ungraded_report(one.name, "damaged", "", self._able, submission=one.digest) for one in submissions]
        return msgspec.json.encode(Done(reports))


def test_whoever_provokes_answers_that_are_not_valid_costs_no_more_than_three_workers(monkeypatch):
    connection = Connection(Able("cpu", "A", [], content.unit_digest(UNIT), worker.version("torch")))
    monkeypatch.setattr(cluster_run, "connected", lambda scheduler: nullcontext(connection))
    work = SimpleNamespace(
        unit=course.unit(UNIT), root=None,
        files=SimpleNamespace(read=lambda submission: Read(NotebookFile(b"", submission.student), None)),
    )  # fmt: skip
    scheduler = SimpleNamespace(is_safe=lambda address: True, text="a scheduler")
    said = []
    with ClusterRun(work, CLASS, device="cpu", settings=settings.load(), scheduler=scheduler, say=said.append) as run:
        assert run.start().isolation == "A"
        marked = {its.submission.student: its.report for its in run.graded()}
    *said, _ = said
    assert marked.keys() == {one.student for one in CLASS}
    assert {who: its.status for who, its in marked.items() if its.status != "damaged"} == {DEADLY: "grader_error"}
    assert "returned no valid answer" in marked[DEADLY].message
    assert sum(DEADLY in task for task in connection.tasks) == len(said) <= 3
