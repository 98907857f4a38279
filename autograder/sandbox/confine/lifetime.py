"""How long a forked process lives: no longer than the one that forked it."""

import ctypes
import signal
import sys

_SET_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Has the system end this process when the thread that forked it ends, however that ends; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
