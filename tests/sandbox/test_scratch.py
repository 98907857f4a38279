"""A run removes what a killed run left in the temporary folder, and nothing else there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course.settings import Isolation, Settings, load
from autograder.pool.grading_pool import GradingProcess
from autograder.sandbox.confine import scratch
from autograder.sandbox.fork_server import ForkServer
from autograder.sandbox.isolation import launch
from tests import CHECK, REPOSITORY
from tests.processes import below, runs, wait_until

MAKES = """
import sys, time
from autograder.sandbox.confine import scratch
print(scratch.make_temporary(sys.argv[1]), flush=True)
time.sleep(1000)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A temporary folder for this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


def maker(prefix):
    """A process with a temporary folder, and the folder."""
    command = [sys.executable, "-c", MAKES, prefix]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def test_a_folder_that_another_run_takes_for_nobodys_is_made_anew(place, monkeypatch):
    lock, made = scratch.fcntl.flock, []

    def locks_too_late(descriptor, how):
        monkeypatch.setattr(scratch.fcntl, "flock", lock)
        made.extend(place.iterdir())
        scratch.clear_abandoned()
        lock(descriptor, how)

    monkeypatch.setattr(scratch.fcntl, "flock", locks_too_late)
    folder = scratch.make_temporary("build-")
    assert folder.exists()
    assert made != [folder]
    scratch.remove_temporary(folder)


def test_what_a_killed_run_left_is_removed_and_what_a_live_one_has_is_not(place):
    with maker("build-")[0] as dead, maker("autograder-")[0] as live:
        (dead_folder,) = place.glob("build-*")
        (live_folder,) = place.glob("autograder-*")
        (dead_folder / "deep").mkdir()
        (dead_folder / "deep" / "file").write_text("left")
        scratch.clear_abandoned()
        assert dead_folder.exists()
        dead.kill()
        dead.wait()
        scratch.clear_abandoned()
        assert not dead_folder.exists()
        assert live_folder.exists()
        live.kill()
    scratch.clear_abandoned()
    assert not list(place.iterdir())


def test_what_others_put_there_stays(place):
    """Without a lock of ours, by a link, of another kind, or another user's."""
    target = place / "precious"
    target.mkdir()
    (target / ".owner").write_text("")
    (place / "autograder-abcdefgh").symlink_to(target)
    (place / "autograder-unlocked").mkdir()
    fifo = place / "autograder-withfifo"
    fifo.mkdir()
    os.mkfifo(fifo / ".owner")
    linked = place / "build-withlink"
    linked.mkdir()
    (linked / ".owner").symlink_to(target / ".owner")
    named = place / "autograder-notes"
    named.mkdir()
    (named / ".owner").write_text("")
    before = sorted(place.rglob("*"))
    if os.geteuid() == 0:
        other = place / "autograder-strange1"
        other.mkdir()
        (other / ".owner").write_text("")
        os.chown(other, 54321, 54321)
        before = sorted(place.rglob("*"))
    scratch.clear_abandoned()
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("level", ["A", "B", "none"])
def test_a_grader_that_is_killed_takes_its_sandbox_with_it_and_leaves_nothing_for_long(level, place):
    settings = Settings(Isolation(level, trust_submissions=level == "none"), load().limits, check=CHECK)
    with GradingProcess("cpu", settings) as grading_process:
        assert grading_process.ready.isolation == level
        sandbox = below(grading_process.pid)
        assert sandbox
        assert list(place.iterdir())
        os.kill(grading_process.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(runs, sandbox)))
    next_run = launch("B", load().limits, cuda=False).confined
    assert list(place.iterdir()) == [next_run.folder]
    next_run.process.kill()
    next_run.end(60)
    assert not list(place.iterdir())


def open_sockets():
    """Return the descriptors of this process's sockets."""
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.is_socket()}


def test_a_worker_does_not_outlive_a_fork_server_that_is_killed():
    """Neither one that has been asked something nor one that has just been forked."""
    with ForkServer(launch("B", load().limits, cuda=False)) as parent:
        before = open_sockets()
        workers = [parent.fork("cpu"), parent.fork("cpu")]
        connections = open_sockets() - before
        pids = parent.processes()
        assert len(pids) == 2
        workers[0].request({"operation": "cell", "cell": "", "source": "pass"}, cpu_seconds=5)
        assert len(connections) == 2
        keep_open = [os.dup(int(connection)) for connection in connections]
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not any(map(runs, pids)))
        for kept, worker in zip(keep_open, workers, strict=True):
            os.close(kept)
            worker.end()
