"""How a worker can be lost in the middle of what it was asked, and what is said of that."""

import signal

import msgspec

from .confine.scratch import Excess
from .limits import Limits

_NEARLY = 0.9
"""Of the memory that a worker may have: what it asked for at last, and did not get, may have been a large piece."""


class TimedOut(Exception):
    """The student's code used up its CPU or wall time; the worker has been ended.

    `str()` is a sentence for the student that says more; empty where there is no more to say.
    """


class Crashed(Exception):
    """The worker is gone, or said what the protocol does not allow; it has been ended.

    `str()` is a sentence for the student that says why; empty where it ended of itself.
    """


class SandboxLost(Exception):
    """The warm parent is gone, and with it the worker. A confined submission cannot do that: it is no fault of its."""


class Ending(msgspec.Struct):
    """What the warm parent says of a worker that it has ended: `warm_parent.Ending`."""

    ended_by: int = 0
    was_running: bool = False
    most_memory: int = 0
    excess: Excess = ""


def loss(ending: Ending, limits: Limits) -> TimedOut | Crashed:
    """What became of a worker that has hung up, or whose answer was none."""
    if ending.ended_by == signal.SIGXCPU:
        return TimedOut()
    if ending.excess:
        return Crashed(limits.said(ending.excess))
    if ending.ended_by == signal.SIGXFSZ:
        return Crashed(limits.said("file"))
    if ending.ended_by and ending.most_memory > _NEARLY * limits.of_worker().memory_bytes:
        return Crashed(limits.said("memory"))
    return Crashed("What came back from it could not be read." if ending.was_running else "")
