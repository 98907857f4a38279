"""Does the same for each of many things in processes forked from this one, where it has several processors."""

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


class ProcessLost(Exception):
    """A process was ended from outside before it was done, as the system does where memory runs out."""


def each(made: Callable[[T], R], of: Sequence[T]) -> list[R]:
    """What is made of each, in their order; what one raises is raised, or ProcessLost. The first are begun first."""
    processes = min(len(of), _processors())
    if processes < 2:
        return [made(one) for one in of]
    _forked[:] = [lambda number: made(of[number])]
    forking = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(processes, forking, initializer=end_with_parent) as pool:
            return list(pool.map(_of_number, range(len(of))))
    except BrokenProcessPool:
        raise ProcessLost from None
    finally:
        _forked.clear()


_forked: list[Callable[[int], object]] = []
"""What the forked processes do. They have it by being forked, because not all that it needs can be sent to them."""


def _of_number(number: int) -> Any:
    return _forked[0](number)


def _processors() -> int:
    """How many can be used: one alone where a fork cannot compute gradients, for which a GPU has threads begun."""
    if sys.platform != "linux" or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))
