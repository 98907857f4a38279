"""Use the machine: choose the device that exercises are computed on, and work on all processors.

The imports that take long are made in the functions: a grading process starts its sandbox before them.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..pool.requests import Device
from ..sandbox.confine.process import end_with_parent

T = TypeVar("T")
R = TypeVar("R")

_tasks: list[Callable[[int], object]] = []
"""The work of the forked processes. They inherit it, because not all that it needs can be pickled."""
_NO_CUDA = "There is no CUDA device here. Use --device cpu, or auto to take one where it is."


class NoDevice(Exception):
    """The requested device is not available; `str()` says what to do."""


def may_be_cuda(device: Device) -> bool:
    """Return whether the sandbox needs the GPU's device files, without importing torch.

    Raises NoDevice if the installed torch cannot use a GPU that is required.
    """
    if device == "auto":
        return Path("/dev/nvidiactl").exists() and not _is_torch_of_the_cpu()
    if device == "cuda" and _is_torch_of_the_cpu():
        raise NoDevice(_NO_CUDA)
    return device == "cuda"


def choose_device(device: Device) -> str:
    """Return the requested device, or the best one for `auto`. Raises NoDevice."""
    import torch

    cuda = torch.cuda.is_available()
    if device == "cuda" and not cuda:
        raise NoDevice(_NO_CUDA)
    return device if device != "auto" else "cuda" if cuda else "cpu"


def _is_torch_of_the_cpu() -> bool:
    from importlib import metadata  # takes as long to import as everything else that precedes torch

    return metadata.version("torch").endswith("+cpu")


class ProcessLost(Exception):
    """A forked process was ended from outside, for example by the system when memory ran out."""


def parallel_map(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the function's result for each item, in their order. The first items are started first.

    Raises what the function raises, and ProcessLost.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    processes = min(len(items), _processors())
    if processes < 2:
        return list(map(function, items))
    _tasks[:] = [lambda number: function(items[number])]
    forking = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(processes, forking, initializer=end_with_parent) as pool:
            return list(pool.map(_task, range(len(items))))
    except BrokenProcessPool:
        raise ProcessLost from None
    finally:
        _tasks.clear()


def _task(number: int) -> Any:
    return _tasks[0](number)


def _processors() -> int:
    """Return 1 where a forked process cannot compute gradients, because torch has started threads for a GPU."""
    import torch

    if sys.platform != "linux" or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))
