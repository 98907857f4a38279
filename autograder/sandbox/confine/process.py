"""Irreversible settings of a process: its privileges, whom it outlives, and the processor it runs on."""

import contextlib
import ctypes
import os
import signal

_CAPABILITY_VERSION_3 = 0x20080522
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _DROP_FROM_BOUNDING_SET, _SET_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_LAST_POSSIBLE_CAPABILITY = 63


class _Header(ctypes.Structure):
    """struct __user_cap_header_struct, see capset(2)."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    """struct __user_cap_data_struct."""

    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def call_kernel(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0 if it succeeds; raises OSError otherwise."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def drop_privileges() -> None:
    """Drop every capability for good, and hide this process from others of the same user; raises OSError.

    A worker that root has started is an ordinary process from then on.
    """
    for capability in range(_LAST_POSSIBLE_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # the kernel refuses this to a process that has no capability to drop
            call_kernel("prctl", _DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    call_kernel("capset", ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), (_Sets * 2)())
    forbid_new_privileges()
    set_visible(False)


def forbid_new_privileges() -> None:
    """Keep this process from gaining privileges by running another program; raises OSError."""
    call_kernel("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def set_visible(is_visible: bool) -> None:
    """Set whether other processes of this user can read this one's /proc: the fork server watches workers there."""
    call_kernel("prctl", _SET_DUMPABLE, int(is_visible), 0, 0, 0)


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that forked it ends; Linux only."""
    call_kernel("prctl", _SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Let the kernel make this process the parent of descendants whose own parent has ended; Linux only."""
    call_kernel("prctl", _SET_SUBREAPER, 1, 0, 0, 0)


def keep_to_processor(core: int | None) -> None:
    """Keep this process, and those it starts, to one processor; without effect if the system cannot do that.

    A grading process and its worker take turns, one always waiting for the other. On two processors each turn would
    wake a sleeping processor with cold caches, which costs more than most turns.
    """
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
