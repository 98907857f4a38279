"""A pool's grading processes: tries, refusals, and how they end and start again."""

import threading

import pytest

from autograder import catalogue
from autograder.pool.grading_pool import GradingPool, GradingProcess, GradingRefused, GradingStopped, NotStarted
from autograder.pool.requests import GradeNotebook
from tests.processes import kill
from tests.typed import solved

UNIT = "dot_product_attention"
SLOW = "import time\ntime.sleep(4)\n"


def submission(before=""):
    code = before + catalogue.solutions(UNIT)["softmax"].source()
    return GradeNotebook("a.ipynb", solved(UNIT, softmax=code), UNIT)


def new_process(number):
    return GradingProcess("cpu", unit=UNIT)


@pytest.fixture(scope="module")
def pool():
    with GradingPool(new_process) as pool:
        yield pool


def killed_while_it_grades(pool):
    """A thread that kills the process after a second."""
    pool.ready()
    process = pool.running(0)

    killing = threading.Timer(1, kill, [process.pid])
    killing.daemon = True
    killing.start()
    return killing


@pytest.mark.parametrize(("tries", "status"), [(1, "grader_error"), (2, "graded")])
def test_a_process_that_ends_while_it_grades_is_one_try(pool, tries, status):
    slow = submission(SLOW)
    killing = killed_while_it_grades(pool)
    report = pool.grade(slow, tries=tries)
    killing.join()
    assert report.status == status
    assert pool.grade(submission()).status == "graded"


def test_a_refusal_ends_no_process(tmp_path):
    unusable = tmp_path / "source" / UNIT / f"{UNIT}.ipynb"
    unusable.parent.mkdir(parents=True)
    unusable.write_text("{}")
    with GradingPool(lambda number: GradingProcess("cpu", class_folder=tmp_path)) as pool:
        process = pool.running(0)
        with pytest.raises(GradingRefused, match=UNIT):
            pool.grade(submission())
        assert pool.running(0) is process


def test_a_lone_surrogate_ends_no_process(pool):
    process = pool.running(0)
    with pytest.raises(UnicodeEncodeError):
        pool.grade(GradeNotebook("a.ipynb", b"{}", UNIT, note="\ud800"))
    assert pool.running(0) is process


def test_a_process_that_does_not_start_is_told_from_a_refusal():
    def fails(number):
        raise GradingRefused("No grading process can be started: out of memory.")

    with pytest.raises(NotStarted, match="out of memory"):
        GradingPool(fails).grade(submission())


def test_a_closed_pool_grades_no_more():
    with GradingPool(new_process) as pool:
        pool.close()
        with pytest.raises(GradingStopped):
            pool.grade(submission())
