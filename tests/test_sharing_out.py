"""A submission is blamed for lost Dask workers only if it was alone with one, and not the first time."""

import asyncio
from types import SimpleNamespace

import msgspec

from autograder import course
from autograder.classroom.hand_in import HandIn, Read
from autograder.client.requests import Ready
from autograder.cluster import on_worker
from autograder.cluster.at_workers import AtWorkers
from autograder.cluster.checking import Expected
from autograder.cluster.messages import Able, Done, Task, Terms
from autograder.cluster.sharing_out import Todo
from autograder.course import settings
from autograder.handed_in.notebook_file import NotebookFile
from autograder.report import without_marks

from .recorded_class import UNIT

DEADLY = "eve"
CLASS = [HandIn(student, "a.ipynb") for student in (DEADLY, "ada", "bo", "cy", "dan", "fay", "gus", "hal")]
AT_FIRST = [DEADLY, "ada", "bo", "cy"]


def students(hand_ins):
    return [one.student for one in hand_ins]


def test_each_of_a_task_whose_worker_lost_is_marked_alone_and_who_kills_again_is_told():
    todo, tasks, marked, told = Todo(CLASS), [], [], []
    while batch := todo.take(workers=1):
        tasks.append(students(batch))
        if DEADLY not in tasks[-1]:
            marked += tasks[-1]
        elif blamed := todo.worker_lost(batch):
            told.append(blamed.student)
    assert [task for task in tasks if DEADLY in task] == [AT_FIRST, [DEADLY], [DEADLY]]
    assert told == [DEADLY]
    assert sorted([*marked, *told]) == sorted(students(CLASS))


def test_what_a_worker_gave_back_comes_first_and_suspects_stay_last():
    todo = Todo(CLASS)
    todo.worker_lost(todo.take(workers=1))
    given_back = todo.take(workers=1)
    todo.put_back(given_back)
    tasks = []
    while batch := todo.take(workers=1):
        tasks.append(students(batch))
    assert tasks[0] == students(given_back)
    assert tasks[-4:] == [[student] for student in AT_FIRST]


class Connection:
    """In the place of a cluster: each worker answers at once, with nonsense if the deadly one is in its task."""

    scheduler = SimpleNamespace(is_safe=lambda address: True, text="a scheduler")

    def __init__(self, able):
        self._able, self.tasks = able, []

    async def workers(self):
        return {f"worker {number}": {} for number in range(5)}

    async def answer(self, address, function, data, gone, *, gpu):
        if function is on_worker.examined:
            return msgspec.json.encode(self._able)
        asked = msgspec.json.decode(data, type=Task).submissions
        self.tasks.append([one.digest for one in asked])
        if any(one.digest == DEADLY for one in asked):
            return b"nonsense"
        reports = [without_marks(one.name, "damaged", "", self._able, submission=one.digest) for one in asked]
        return msgspec.json.encode(Done(reports))


def test_whoever_provokes_answers_that_are_not_valid_costs_no_more_than_three_workers():
    terms = Terms(UNIT, "kit", "cpu", settings.load())
    expected = Expected(course.unit(UNIT), terms, frozenset())
    ready = Ready("cpu", "A", [])
    connection = Connection(Able(ready.device, ready.isolation, [], terms.kit, on_worker.version("torch")))
    marked, said = {}, []
    run = AtWorkers(
        connection, expected, CLASS,
        read=lambda hand_in: Read(NotebookFile(b"", hand_in.student), None),
        on_able=lambda able: None,
        on_marked=lambda its: marked.update({its.hand_in.student: its.report}),
        may_go_on=lambda: True, say=said.append,
    )  # fmt: skip
    asyncio.run(asyncio.wait_for(run.run(), 60))
    assert marked.keys() == {one.student for one in CLASS}
    assert {who: its.status for who, its in marked.items() if its.status != "damaged"} == {DEADLY: "grader_error"}
    assert "gave no valid answer" in marked[DEADLY].message
    assert sum(DEADLY in task for task in connection.tasks) == len(said) <= 3
