"""What a killed run leaves in the temporary folder is removed by the next; nothing else there is touched."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.client.marker import Marker
from autograder.course.settings import Isolation, Settings, load
from autograder.sandbox import temporary
from tests import CHECK, REPOSITORY

from .processes import runs

MAKES = """
import sys, time
from autograder.sandbox import temporary
print(temporary.make(sys.argv[1]), flush=True)
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
    """A process with such a folder, and the folder."""
    command = [sys.executable, "-c", MAKES, prefix]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_run_left_is_removed_and_what_a_live_one_has_is_not(place):
    with maker("build-")[0] as dead, maker("autograder-")[0] as live:
        (dead_folder,) = place.glob("build-*")
        (live_folder,) = place.glob("autograder-*")
        (dead_folder / "deep").mkdir()
        (dead_folder / "deep" / "file").write_text("left")
        temporary.clear()
        assert dead_folder.exists()
        dead.kill()
        dead.wait()
        temporary.clear()
        assert not dead_folder.exists()
        assert live_folder.exists()
        live.kill()
    temporary.clear()
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
    temporary.clear()
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("level", ["A", "B"])
def test_a_grader_that_is_killed_leaves_nothing_for_long(level, place):
    settings = Settings(Isolation(level), load().limits, check=CHECK)
    with Marker("cpu", settings) as marker:
        assert marker.ready
        assert list(place.iterdir())
        os.kill(marker.pid, signal.SIGKILL)
    with Marker("cpu", settings) as marker:
        assert marker.ready
        assert len(list(place.iterdir())) == 1
    assert not list(place.iterdir())


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_worker_does_not_outlive_a_warm_parent_that_is_killed(has_begun):
    from autograder.sandbox.launch import launch
    from autograder.sandbox.server import WarmParent

    with WarmParent(launch("B", load().limits, cuda=False)) as parent:
        worker = parent.fork("cpu")
        (pid,) = parent.processes()
        if has_begun:
            worker.request({"operation": "cell", "cell": "", "source": "pass"}, cpu_seconds=5)
        keeps_open = os.dup(worker._connection.fileno())
        os.kill(parent.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not runs(pid)
        os.close(keeps_open)
        worker.end()
