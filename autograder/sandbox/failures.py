"""Errors by which a worker is lost during a request, and their explanation to the student."""

import signal

from .limits import Limits
from .worker.protocol import Ending

_NEARLY = 0.9
"""Share of its memory that a worker had before it failed to get more: the last request may have been a large one."""


class TimedOut(Exception):
    """The student's code used up its CPU or wall time, so the worker was ended.

    `str()` is a sentence for the student with more detail, or empty.
    """


class Crashed(Exception):
    """The worker ended, or sent what the protocol does not allow and was ended.

    `str()` is a sentence for the student that gives the reason; empty if the worker ended by itself.
    """


class SandboxLost(Exception):
    """The fork server ended, and its workers with it. A confined submission cannot cause that."""


def failure(ending: Ending, limits: Limits) -> TimedOut | Crashed:
    """Return the error for a worker that closed its connection, or whose answer could not be read."""
    if ending.ended_by == signal.SIGXCPU:
        return TimedOut()
    if ending.excess:
        return Crashed(limits.explain(ending.excess))
    if ending.ended_by == signal.SIGXFSZ:
        return Crashed(limits.explain("file"))
    if ending.ended_by and ending.most_memory > _NEARLY * limits.worker.memory_bytes:
        return Crashed(limits.explain("memory"))
    return Crashed("The answer that came back could not be read." if ending.was_running else "")
