"""A class marked on a real Dask cluster: a scheduler and two workers, each a process of its own, over TLS."""

import contextlib
import os
import shutil
import signal
import sys
import threading
from functools import partial

import msgspec
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from autograder import catalogue, course
from autograder.classroom.assignment import assignment
from autograder.classroom.grade import grade
from autograder.cli.console import batch_grading_at
from autograder.cluster.cluster_run import Address, ClusterRun
from autograder.cluster.worker import MOST_BYTES, Able, BadAnswer, CannotGrade, Done, Expected, Terms, Unable
from autograder.course import content, settings
from autograder.gradebook.nbgrader_course import CourseProblem
from autograder.pool.grading_pool import GradingRefused
from autograder.pool.requests import GradeNotebook
from tests import REPOSITORY, forked_command, sampling
from tests.classroom import test_routes
from tests.dask_cluster import DaskCluster, worker_that_runs_threads
from tests.interrupting import in_a_fork, places, times_in
from tests.recorded_class import UNIT, everything, feedback_page, notebook, put_submission
from tests.typed import stored

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
_THREADS = 40
DEADLY = f"""import threading, time
threads = [threading.Thread(target=time.sleep, args=(4,)) for _ in range({_THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def deadly():
    """A right answer that can be seen from outside while it runs: whoever looks on may kill its Dask worker."""
    return notebook(softmax=DEADLY + catalogue.solutions(UNIT)["softmax"].source())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    dask = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        yield dask
    finally:
        dask.close()


@pytest.fixture
def with_two(cluster):
    """Has the cluster's two workers started."""
    assert cluster.two


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A class that is soon marked."""
    root = tmp_path_factory.mktemp("small")
    (root / "roster.csv").write_text("id\nada\nbo\ncy\nnobody\n")
    wrong = catalogue.misconceptions(UNIT)["naive_exponentials"].source()
    put_submission(root, "ada", notebook(softmax=wrong, why_softmax="An answer."), "2026-01-02 03:04:05 UTC")
    put_submission(root, "bo", notebook())
    put_submission(root, "cy", b"no notebook")
    return root


@pytest.fixture
def whole(tmp_path):
    """The class of `test_routes`, and four with more that can be wrong."""
    root = tmp_path / "whole"
    test_routes.hand_in_the_class(root)
    put_submission(root, "eve", deadly())
    put_submission(root, "fay", notebook(softmax="import time\ntime.sleep(60)"))
    put_submission(root, "gus", notebook(softmax="raise ValueError('/home/gus/work.txt')"))
    own = root / "submitted" / "gus" / UNIT
    (own / f"{UNIT}.ipynb").rename(own / "my own.ipynb")
    put_submission(root, "hal", b"")
    (root / "submitted" / "hal" / UNIT / f"{UNIT}.ipynb").unlink()
    (root / "submitted" / "hal" / UNIT / f"{UNIT}.ipynb").symlink_to(root / "roster.csv")
    with (root / "roster.csv").open("a") as roster:
        roster.write("\n" + "\n".join(["eve", "fay", "gus", "hal"]))
    return root


def on(cluster, root, say=lambda sentence: None, device="cpu", **terms):
    """Grade a course folder as `autograder grade --scheduler` does."""
    with cluster.spoken_to() as address:
        marking = partial(ClusterRun, scheduler=address, say=say)
        work = assignment(UNIT, root, None, None)
        return grade(work, device=device, settings=settings.load(), process_count=1, new_batch=marking, **terms)


@contextlib.contextmanager
def killing(cluster, times, killed):
    """Kills the Dask worker that marks the deadly answer, each time that it runs."""
    ended = threading.Event()

    def watch():
        while len(killed) < times and not ended.wait(0.1):
            found = worker_that_runs_threads(cluster.two, _THREADS)
            if found is not None and found not in killed:
                os.kill(found, signal.SIGKILL)
                killed.append(found)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def local(root, recorded, tmp_path):
    """All that the local run makes of the class, and a copy of the class that nothing is made of."""
    expected, copy = tmp_path / "expected", tmp_path / "class"
    for folder in (expected, copy):
        shutil.copytree(root, folder, symlinks=True)
    recorded.grade(expected)
    return everything(expected), copy


STORED = stored("cluster_messages")
LIES = STORED["lies"]


def test_only_honest_workers_with_the_same_course_get_submissions(cluster, small, recorded, tmp_path):
    """The first one with this cluster, which has no other workers until these are refused."""
    wanted, root = local(small, recorded, tmp_path)
    other = tmp_path / "other"
    (other / "autograder").mkdir(parents=True)
    for name in ("exercises", "solutions", "source", "release"):
        (other / name).symlink_to(REPOSITORY / name)
    for name in ("hidden", "misconceptions", "right_answers"):
        (other / "autograder" / name).symlink_to(REPOSITORY / "autograder" / name)
    changed = (REPOSITORY / "autograder.toml").read_text().replace("call_cpu_seconds = 4", "call_cpu_seconds = 5")
    (other / "autograder.toml").write_text(changed)
    (tmp_path / "lies.py").write_text(LIES)
    refused = [
        cluster.workers(1, "--no-nanny", course=other),
        cluster.workers(1, "--no-nanny", "--preload", "lies", path=str(tmp_path)),
    ]
    with cluster.spoken_to() as address:
        _wait_for_workers(address, 2)
    said = []
    with pytest.raises(GradingRefused, match="has no worker that can grade"):
        on(cluster, root, said.append, device="cuda")
    assert ["the worker offers no GPU" in sentence for sentence in said] == [True, True]
    said.clear()

    def say(sentence):
        said.append(sentence)
        if len(said) == 2:
            for process in refused:
                os.killpg(process.pid, signal.SIGTERM)
            assert cluster.two

    on(cluster, root, say)
    assert everything(root) == wanted
    told = "\n".join(said[:2])
    assert "the worker's version of the autograder or of dot_product_attention differs" in told
    assert "a report has another submission's name or digest" in told
    assert said[2].startswith("Graded at isolation level ")
    assert len(said) == 3


def _wait_for_workers(address, count):
    from distributed import Client

    with Client(address.text, security=address.security, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def test_a_class_is_graded_as_locally_though_a_worker_is_killed(with_two, cluster, whole, recorded, tmp_path):
    """The report and the tables are compared too, as in `test_routes`."""
    killed, said, results = [], [], []

    def mark(root, recorded):
        said.append([])
        with killing(cluster, 1, killed):
            results.append(on(cluster, root, said[-1].append))

    found = test_routes.by(test_routes.Route(mark), whole, tmp_path / "course", recorded, None)
    assert len(killed) == 1
    test_routes.is_the_same(found, test_routes.by(test_routes.USUAL, whole, tmp_path / "usual", recorded, None))
    assert {row.student: row.report.status for row in results[0].rows}["fay"] == "timed_out"
    (told,) = said[0]
    assert told.startswith("Graded at isolation level ")
    assert sum(int(part.partition(")")[0]) for part in told.split("(")[1:]) == 13


def test_a_submission_that_ends_each_worker_is_a_grader_error_until_it_is_graded(
    with_two, cluster, small, recorded, tmp_path
):
    put_submission(small, "eve", deadly())
    wanted, root = local(small, recorded, tmp_path)
    shutil.rmtree(small / "submitted" / "eve")
    killed = []
    with killing(cluster, 9, killed):
        result = on(cluster, root)
    assert len(killed) >= 2
    reports = {row.student: row.report for row in result.rows}
    assert [student for student, report in reports.items() if report.status == "grader_error"] == ["eve"]
    assert "that was given this file by itself" in reports["eve"].message
    rows, files = everything(root)
    assert [row for row in rows["grades"] if row[0] != "eve"] == [row for row in wanted[0]["grades"] if row[0] != "eve"]
    assert {row[2] for row in rows["grades"] if row[0] == "eve" and row[1].startswith("test_")} == {None}
    page = f"feedback/ada/{UNIT}/{UNIT}.html"
    assert files[page] == wanted[1][page]
    on(cluster, root)
    assert everything(root) == wanted


def has_all(root, wanted):
    """Return whether the class is completely graded. The gradebook may be missing, or lack tables."""
    with contextlib.suppress(CourseProblem):
        return (root / "gradebook.db").exists() and everything(root) == wanted
    return False


def test_a_cluster_run_resumes_after_an_end_before_a_file_or_commit(with_two, cluster, small, recorded, tmp_path):
    """The coordinator is ended, the only one that writes. `pytest --every` tries each moment."""
    wanted, root = local(small, recorded, tmp_path)
    before = tmp_path / "before"
    shutil.copytree(root, before)
    each, of_a_kind = times_in(partial(recorded.grade, root))
    times = each if sampling.every else of_a_kind[len(of_a_kind) // 3 :: len(of_a_kind) // 3][:2]
    unfinished = 0
    for moment, by in zip(times, [signal.SIGKILL, signal.SIGINT] * len(times), strict=False):
        shutil.rmtree(root)
        shutil.copytree(before, root)
        ended, _ = in_a_fork(partial(places, partial(on, cluster, root), moment, by))
        assert ended == (3 if by == signal.SIGINT else -signal.SIGKILL)
        unfinished += not has_all(root, wanted)
        on(cluster, root)
        assert everything(root) == wanted, f"at {moment} of {times}"
    assert unfinished


@pytest.fixture(scope="module")
def expected():
    terms = Terms(UNIT, content.unit_digest(UNIT), "cpu", settings.load())
    return Expected(course.unit(UNIT), terms)


@pytest.fixture(scope="module")
def honest(grading_process, expected):
    """An answer of a worker's, what it was asked, and what the worker had said of itself."""
    wrong = catalogue.misconceptions(UNIT)["naive_exponentials"].source()
    report = grading_process.grade("0", notebook(softmax=wrong), UNIT, digest="digest")
    able = Able(report.device, report.isolation, report.enforced, expected.terms.kit, report.torch)
    return Done([report]), [GradeNotebook("0", b"", UNIT, "digest")], able


EXERCISE = {
    "no number": {"score": 1e999},
    "another exercise's": {"name": "other"},
    "more than the unit gives": {"max_score": 99.0},
}
WHOLE = STORED["whole"]


def test_an_honest_answer_is_taken(honest, expected):
    done, asked, able = honest
    assert expected.reports(msgspec.json.encode(done), asked, able) == done.reports
    assert expected.able(msgspec.json.encode(able)) == able


@pytest.mark.parametrize("changes", [*EXERCISE.values(), *WHOLE.values()], ids=[*EXERCISE, *WHOLE])
def test_a_forged_report_is_refused(honest, expected, changes):
    done, asked, able = honest
    forged = msgspec.to_builtins(done)
    (report,) = forged["reports"]
    (failed,) = [exercise for exercise in report["exercises"] if exercise["status"] == "failed" and exercise["score"]]
    if changes in EXERCISE.values():
        failed.update(changes)
    else:
        report.update(changes)
    answer = msgspec.json.encode(forged)
    with pytest.raises(BadAnswer):
        expected.reports(answer, asked, able)


def test_malformed_answers_are_refused(honest, expected):
    done, asked, able = honest
    answer = msgspec.json.encode(done)
    twice = msgspec.json.encode(Done(done.reports * 2))
    for bad in (
        b"",
        b"{}",
        b"[" * 100_000,
        answer[:-1],
        answer.decode(),
        done,
        None,
        twice,
        b" " * MOST_BYTES + answer,
    ):
        with pytest.raises(BadAnswer):
            expected.reports(bad, asked, able)
    with pytest.raises(BadAnswer):
        expected.reports(msgspec.json.encode(Done([])), asked, able)
    with pytest.raises(BadAnswer):
        expected.able(answer)
    with pytest.raises(CannotGrade, match="No bwrap"):
        expected.able(msgspec.json.encode(Unable("No bwrap.")))
    for change, why in [
        ({"isolation": "none"}, "its isolation level is none"), ({"device": "cuda"}, "it computes on cuda"),
        ({"torch": "1.0"}, "it has torch 1.0"), ({"kit": "other"}, "its version of the autograder or of the course "
            "differs"),
    ]:  # fmt: skip
        with pytest.raises(CannotGrade, match=why):
            expected.able(msgspec.json.encode(msgspec.structs.replace(able, **change)))


@given(st.binary() | st.text().map(str.encode), st.integers(0, 100_000), st.integers(0, 30))
def test_any_changed_answer_is_taken_or_refused(honest, expected, inserted, place, dropped):
    done, asked, able = honest
    answer = msgspec.json.encode(done)
    place %= len(answer)
    changed = answer[:place] + inserted + answer[place + dropped :]
    with contextlib.suppress(BadAnswer, CannotGrade):
        expected.reports(changed, asked, able)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://10.1.2.3:8786", "If nobody else uses the network, pass --plain-tcp"),
        ("tcp://no-such-host.invalid:8786", "--plain-tcp"),
        ("inproc://10.1.2.3/1/1", "is not the address of a scheduler"),
        ("ws://127.0.0.1:8786", "is not the address of a scheduler"),
        ("tls://127.0.0.1", "is not the address of a scheduler"),
        ("127.0.0.1:8786", "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY: they are not set"),
    ],
)
def test_addresses_that_are_refused(address, why):
    with pytest.raises(GradingRefused, match=why):
        Address(address)


def test_plain_tcp_is_only_for_this_machine_unless_required():
    here = Address("tcp://localhost:8786")
    assert here.is_safe("tcp://[::1]:1")
    assert here.is_safe("tls://10.1.2.3:1")
    assert not here.is_safe("tcp://10.1.2.3:1")
    assert Address("tcp://10.1.2.3:8786", plain_tcp=True).is_safe("tcp://10.1.2.4:1")


def test_without_dask_the_error_message_names_what_to_install(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "autograder.cluster.cluster_run")
    monkeypatch.setitem(sys.modules, "distributed.security", None)
    with pytest.raises(typer.Exit) as end:
        batch_grading_at("127.0.0.1:8786", plain_tcp=False)
    assert end.value.exit_code == 2
    assert capsys.readouterr().err.strip().endswith("pip install 'attention-autograder[cluster]'.")


def test_received_grades_survive_the_loss_of_the_scheduler(tmp_path):
    students = [f"student{number}" for number in range(8)]
    (tmp_path / "roster.csv").write_text("\n".join(["id", *students]))
    for student in students:
        put_submission(tmp_path, student, notebook())
    work = assignment(UNIT, tmp_path, None, None)
    (tmp_path / "dask").mkdir()
    dask = DaskCluster(tmp_path / "dask")
    dask.workers(1)
    come, said = [], []
    with contextlib.ExitStack() as ending:
        ending.callback(dask.close)
        scheduler = ending.enter_context(dask.spoken_to())
        run = ClusterRun(
            work, work.submissions, device="cpu", settings=settings.load(), scheduler=scheduler, say=said.append
        )
        ending.enter_context(run)
        run.start()
        graded = run.graded()
        come.append(next(graded))
        waiting = len(run.results)
        dask.close()
        with pytest.raises(GradingRefused, match="no longer answers"):
            come.extend(graded)
    assert waiting > 0
    assert [one.report.status for one in come] == ["graded"] * (1 + waiting)


def test_a_lost_scheduler_is_an_error_message_and_recorded_grades_stay(with_two, cluster, small, recorded, tmp_path):
    """The last one with this cluster, whose scheduler is killed."""
    put_submission(small, "eve", deadly())
    wanted, root = local(small, recorded, tmp_path)
    page = feedback_page(root, "ada")

    over = threading.Event()

    def end_it():
        while not (page.exists() and worker_that_runs_threads(cluster.two, _THREADS)):
            if over.wait(0.1):
                return
        cluster.scheduler.kill()

    ending = threading.Thread(target=end_it, daemon=True)
    ending.start()
    result = forked_command.autograder(
        "grade", UNIT, "--course", root, "--device", "cpu", "--scheduler", cluster.address.removeprefix("tls://"),
        cwd=REPOSITORY, env={**os.environ, **cluster.environment},
    )  # fmt: skip
    over.set()
    ending.join()
    assert result.returncode == 2
    assert f"The Dask scheduler at {cluster.address} no longer answers" in result.stderr
    assert "Traceback" not in result.stderr
    assert page.exists()
    recorded.grade(root)
    assert everything(root) == wanted
    assert "ada" not in recorded.asked
