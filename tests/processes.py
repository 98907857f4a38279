"""Facts about other processes, and waiting for them."""

import contextlib
import os
import signal
import time
from pathlib import Path

from autograder.sandbox.client import children


def runs(pid):
    """Return whether a process runs: not if it has ended and nobody has waited for it, though it is still listed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def below(pid):
    """Return all processes below this one."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def started_by(act):
    """Call a function; return its result and the ids of the child processes that it started."""
    before = set(children(os.getpid()))
    result = act()
    return result, set(children(os.getpid())) - before


def kill(pid):
    """Kill a process and wait until it has ended; if it is a child, until its parent can see that.

    A process with threads is listed as ended as soon as its first thread is, and its pipes are still open then.
    """
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # not a child, or another thread has waited for it
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    wait_until(lambda: not runs(pid))


def wait_until(holds, seconds=60):
    """Wait until a condition returns something true, and return that; fail if it takes too long."""
    end = time.monotonic() + seconds
    while not (result := holds()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return result
