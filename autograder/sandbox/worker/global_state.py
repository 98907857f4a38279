"""Reset the global switches of Python and its libraries, such as the default dtype, which a notebook may have changed.

Each switch is overwritten before a student's functions are tested. Its value is not read first, because reading may
raise an exception. For example, PyTorch raises one for a default device that this machine lacks.
"""

import bdb
import gc
import io
import locale
import os
import pdb
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import IPython
import matplotlib
import numpy as np
import torch
from IPython.core import debugger
from torch.nn.modules import module

from ...core.bench import seed_generators

# Bound before any cell can replace them.
_c: Any = torch._C
_contexts: Any = torch._GLOBAL_DEVICE_CONTEXT
_numpy: Any = np.random
_environment = os.environ
_hooks = [value for name, value in vars(module).items() if name.startswith("_global") and isinstance(value, dict)]
_empty = torch.empty
_bit_generator = _numpy.get_bit_generator()

_PRECISIONS = [("generic", "all"), *((b, op) for b in ("cuda", "mkldnn") for op in ("all", "matmul", "conv", "rnn"))]
_ATTENTION = (_c._set_sdp_use_flash, _c._set_sdp_use_mem_efficient, _c._set_sdp_use_math, _c._set_sdp_use_cudnn)
_SET_TRACE = "set_trace"
_OTHER_DEBUGGERS = ("ipdb", "pudb")
"""Debuggers that may not be installed here."""
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_BACKEND = "agg"
_DISPLAYS = ("tkagg", "qtagg", "qt5agg", "gtk3agg", "gtk4agg", "wxagg", "macosx", "webagg", "nbagg")

_Overwriting = tuple[Callable[..., Any], tuple[Any, ...]]
_SWITCHES: list[_Overwriting] = [
    (warnings.resetwarnings, ()),
    (warnings.simplefilter, ("ignore",)),
    (_c._set_grad_enabled, (True,)),
    (_c._set_fwd_grad_enabled, (True,)),
    (_c._set_default_tensor_type, (torch.FloatTensor,)),
    (_c._set_default_dtype, (torch.float32,)),
    (_c._set_float32_matmul_precision, ("highest",)),
    (_c.set_anomaly_enabled, (False,)),
    *((_c.set_autocast_enabled, (device, False)) for device in ("cpu", "cuda")),
    (_c.set_num_threads, (1,)),
    (_c.set_flush_denormal, (False,)),
    (sys.settrace, (None,)),
    (sys.setprofile, (None,)),
    (sys.setrecursionlimit, (sys.getrecursionlimit(),)),
]
"""Functions and arguments that reset switches before each call, because an earlier call may have changed them."""
_OTHER_SWITCHES: list[_Overwriting] = [
    (_c._autograd._saved_tensors_hooks_enable, ()),
    (_c._set_multithreading_enabled, (True,)),
    (_c._set_mkldnn_enabled, (True,)),
    *((_c._set_fp32_precision_setter, (*place, "none")) for place in _PRECISIONS),
    (_c._set_float32_matmul_precision, ("highest",)),
    (_c._set_cudnn_allow_tf32, (False,)),
    *((_c.set_autocast_dtype, arguments) for arguments in (("cpu", torch.bfloat16), ("cuda", torch.float16))),
    (_c.set_autocast_cache_enabled, (True,)),
    *((allow, (True,)) for allow in _ATTENTION),
    (torch.backends.mha.set_fastpath_enabled, (True,)),
    (torch.__future__.set_overwrite_module_params_on_conversion, (False,)),
    (torch.__future__.set_swap_module_params_on_conversion, (False,)),
    *((hooks.clear, ()) for hooks in _hooks),
    (partial(np.seterr, **np.geterr()), ()),
    (_numpy.set_bit_generator, (_bit_generator,)),
    (_numpy.seed, (0,)),
    (random.seed, (0,)),
    (threading.settrace, (None,)),
    (threading.setprofile, (None,)),
    (sys.setswitchinterval, (sys.getswitchinterval(),)),
    (sys.set_int_max_str_digits, (sys.get_int_max_str_digits(),)),
    (gc.enable, ()),
    (locale.setlocale, (locale.LC_ALL, locale.setlocale(locale.LC_ALL))),
    (dict.__setitem__, (matplotlib.rcParams, "backend", _BACKEND)),
    *((signal.setitimer, (timer, 0)) for timer in _TIMERS),
]
"""Functions and arguments that reset further switches before the first call of an exercise."""

_entered: list[torch.inference_mode] = []
"""Contexts that switch inference mode off; each lasts as long as its object exists."""


class Nowhere(io.TextIOBase):
    """A stream that discards all output and has nothing to read."""

    encoding = "utf-8"

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> Any:
        return ""

    def read(self, size: int | None = -1, /) -> str:
        return ""

    def write(self, text: str, /) -> int:
        return len(text)


def restore() -> None:
    """Reset, before a call, the switches that an earlier call of a student's function may have changed."""
    if torch.is_inference_mode_enabled():
        _entered.append(torch.inference_mode(mode=False))
        _entered[-1].__enter__()
    _end_modes()
    for overwrite, arguments in _SWITCHES:
        overwrite(*arguments)


class FreshState:
    """The state of all global switches in a fresh notebook."""

    def __init__(self, device: torch.device) -> None:
        """Store the environment variables as they are now. device: for the exercises' tensors."""
        self._device = device
        self._variables = dict(_environment)

    def reset(self) -> None:
        """Reset all switches and seed the random generators, before the first call of an exercise."""
        restore()
        for overwrite, arguments in _OTHER_SWITCHES:
            overwrite(*arguments)
        # Results on a GPU repeat only then; on the CPU they always do.
        _c._set_deterministic_algorithms(self._device.type != "cpu", warn_only=self._device.type != "cpu")
        seed_generators(0, self._device)
        module._global_is_full_backward_hook = None
        sys.breakpointhook = go_on
        sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
        sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
        sys.stdin, sys.stdout, sys.stderr = Nowhere(), Nowhere(), Nowhere()
        os.environ = _environment  # noqa: B003  (a cell may have replaced it)
        if dict(_environment) != self._variables:
            _environment.clear()
            _environment.update(self._variables)


def forget_absent_devices() -> None:
    """Undo a cell's choice of a default device that this machine lacks, or of a matplotlib backend with a display.

    Without that, later cells would fail.
    """
    try:
        _empty(0)
    except Exception:
        _end_modes()
        _c._set_default_tensor_type(torch.FloatTensor)
    backend = dict.get(matplotlib.rcParams, "backend")
    if isinstance(backend, str) and backend.lower().endswith(_DISPLAYS):
        dict.__setitem__(matplotlib.rcParams, "backend", _BACKEND)


def _end_modes() -> None:
    """End default devices and other modes that a cell entered and did not leave."""
    while _c._len_torch_function_stack():
        _c._pop_torch_function_stack()
    while _c._len_torch_dispatch_stack():
        _c._pop_torch_dispatch_stack(None)
    while _c._autograd._top_saved_tensors_default_hooks(True):
        _c._autograd._pop_saved_tensors_default_hooks()
    _contexts.device_context = None


def go_on(*args: Any, **named: Any) -> None:
    """Stand in for a function that would stop the program at a breakpoint."""


def ignore_breakpoints() -> None:
    """Make every usual way to set a breakpoint do nothing, because nobody is there to use a debugger."""
    sys.breakpointhook = go_on
    stubs = [sys.modules.setdefault(name, types.ModuleType(name)) for name in _OTHER_DEBUGGERS]
    for debugging in (pdb, debugger, bdb.Bdb, *stubs):
        setattr(debugging, _SET_TRACE, go_on)
    IPython.embed = go_on
