"""Breakpoints are ignored: nobody is there to talk to a debugger."""

import bdb
import pdb
import sys
import types
from typing import Any

import IPython
from IPython.core import debugger

_SET_TRACE = "set_trace"
_OTHERS = ("ipdb", "pudb")
"""Debuggers that may not be installed here."""


def go_on(*args: Any, **named: Any) -> None:
    """Stand in for a function that would stop the program at a breakpoint."""


def ignore() -> None:
    """Make every usual way to set a breakpoint do nothing."""
    sys.breakpointhook = go_on
    for place in (pdb, debugger, bdb.Bdb):
        setattr(place, _SET_TRACE, go_on)
    IPython.embed = go_on
    for name in _OTHERS:
        stub = sys.modules.setdefault(name, types.ModuleType(name))
        setattr(stub, _SET_TRACE, go_on)
