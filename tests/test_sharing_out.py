"""Who is blamed for a Dask worker that died: nobody who was not alone with one, and nobody the first time."""

from autograder.classroom.hand_in import HandIn
from autograder.cluster.sharing_out import Todo

DEADLY = "eve"
CLASS = [HandIn(student, "a.ipynb") for student in (DEADLY, "ada", "bo", "cy", "dan", "fay", "gus", "hal")]
AT_FIRST = [DEADLY, "ada", "bo", "cy"]


def students(hand_ins):
    return [one.student for one in hand_ins]


def test_each_of_a_task_whose_worker_died_is_marked_alone_and_who_kills_again_is_told():
    todo, tasks, marked, told = Todo(CLASS), [], [], []
    while batch := todo.take(workers=1):
        tasks.append(students(batch))
        if DEADLY not in tasks[-1]:
            marked += tasks[-1]
        elif blamed := todo.worker_died(batch):
            told.append(blamed.student)
    assert [task for task in tasks if DEADLY in task] == [AT_FIRST, [DEADLY], [DEADLY]]
    assert told == [DEADLY]
    assert sorted([*marked, *told]) == sorted(students(CLASS))


def test_what_a_worker_gave_back_comes_first_and_suspects_stay_last():
    todo = Todo(CLASS)
    todo.worker_died(todo.take(workers=1))
    given_back = todo.take(workers=1)
    todo.put_back(given_back)
    tasks = []
    while batch := todo.take(workers=1):
        tasks.append(students(batch))
    assert tasks[0] == students(given_back)
    assert tasks[-4:] == [[student] for student in AT_FIRST]
