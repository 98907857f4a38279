"""Ends a run at a moment of one's choice: before a file is put in its place, or before a commit."""

import os
import signal
import sqlite3
import sys
import traceback

from autograder.gradebook.nbgrader_course import CourseProblem


def in_a_fork(do):
    """Runs it in a process of its own; how that ended, and what it said."""
    near, far = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(far, str(do()).encode())
            os._exit(0)
        except CourseProblem as problem:
            os.write(far, str(problem).encode())
            os._exit(2)
        except KeyboardInterrupt:
            os._exit(3)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(far)
    with os.fdopen(near, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def places(do, stop_at=None, by=signal.SIGKILL, kind=None):
    """Does it, and says from where it is about to put a file in its place or to commit: a number for each time.

    The number is that of the way through the code. stop_at: the time at which it gets a signal, or `by` is called.
    kind: what tells such a time, if not `makes_it_last`.
    """
    found = []
    kind = kind or makes_it_last

    def look(frame, event, function):
        if kind(frame, event, function):
            if len(found) == stop_at:
                by() if callable(by) else os.kill(os.getpid(), by)
            way = [(caller.f_code, line) for caller, line in traceback.walk_stack(frame)]
            found.append(str(hash(tuple(way))))

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    sys.setprofile(look)
    do()
    sys.setprofile(None)
    return " ".join(found)


def makes_it_last(frame, event, function):
    """Return whether a function makes a change last that is there however the run ends."""
    if event != "c_call":
        return False
    commits = function.__name__ == "commit" and isinstance(function.__self__, sqlite3.Connection)
    return commits or function in (os.rename, os.replace)


def times_in(do, kind=None):
    """Return all moments before a new file or a commit, and of each line of code the first or the last one."""
    ended, said = in_a_fork(lambda: places(do, kind=kind))
    assert ended == 0
    found = said.split()
    of_each = [(found.index(place), len(found) - 1 - found[::-1].index(place)) for place in dict.fromkeys(found)]
    return range(len(found)), sorted(ends[number % 2] for number, ends in enumerate(of_each))
