"""Apply a function to many items in forked processes, one for each processor."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import torch

from ..sandbox.confine.process import end_with_parent

T = TypeVar("T")
R = TypeVar("R")

_tasks: list[Callable[[int], object]] = []
"""The work of the forked processes. They inherit it, because not all that it needs can be pickled."""


class ProcessLost(Exception):
    """A forked process was ended from outside, for example by the system when memory ran out."""


def parallel_map(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the function's result for each item, in their order. The first items are started first.

    Raises what the function raises, and ProcessLost.
    """
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
    if sys.platform != "linux" or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))
