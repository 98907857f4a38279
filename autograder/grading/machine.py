"""Choose the device (CPU or GPU) that exercises are computed on, and run a function on all processors in parallel.

Slow imports are in the functions, so that a grading process can start its sandbox before them.
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
"""The function that forked processes run. They inherit it, because it may need objects that cannot be pickled."""
_NO_CUDA = "There is no CUDA device here. Use --device cpu, or auto to take one where it is."


class NoDevice(Exception):
    """Raised if the requested device is not available; `str()` says what to do."""


def may_be_cuda(device: Device) -> bool:
    """Return whether workers may need a GPU, for which the sandbox must allow device files. Does not import torch.

    Raises NoDevice if a GPU is required and the installed torch cannot use one.
    """
    if device == "auto":
        return Path("/dev/nvidiactl").exists() and not _is_torch_of_the_cpu()
    if device == "cuda" and _is_torch_of_the_cpu():
        raise NoDevice(_NO_CUDA)
    return device == "cuda"


def choose_device(device: Device) -> str:
    """Return the device to compute on, `cpu` or `cuda`; for `auto`, `cuda` if it is available. Raises NoDevice."""
    import torch

    cuda = torch.cuda.is_available()
    if device == "cuda" and not cuda:
        raise NoDevice(_NO_CUDA)
    return device if device != "auto" else "cuda" if cuda else "cpu"


def _is_torch_of_the_cpu() -> bool:
    from importlib import metadata  # takes as long to import as everything else that precedes torch

    return metadata.version("torch").endswith("+cpu")


class ProcessLost(Exception):
    """Raised if a forked process was ended from outside, for example by the system because memory ran out."""


def parallel_map(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Apply a function to all items in forked processes, the first items first; return the results in their order.

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
    """Return the number of processes to fork; 1 if forks cannot compute gradients, as on a machine with a GPU."""
    import torch

    if sys.platform != "linux" or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))
