"""Gives up what the superuser may do: a worker that root has started is an ordinary process."""

import ctypes
import os

_CAPABILITY_VERSION_3 = 0x20080522
_SET_DUMPABLE, _SET_NO_NEW_PRIVS, _DROP_FROM_BOUNDING_SET = 4, 38, 24
_LAST_POSSIBLE = 63


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop() -> None:
    """Drops every capability for good, and keeps other processes of this user from looking in; OSError if it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_LAST_POSSIBLE + 1):
        libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)  # refused where there is none to drop
    none = (_Sets * 2)()
    if libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), none) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities cannot be dropped")
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the process cannot be kept from gaining privileges")
    show_to_own_user(False)


def show_to_own_user(shown: bool) -> None:
    """Whether other processes of this user may look at this one in /proc: at a worker the warm parent must."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, int(shown), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
