"""Does the same for each of many things in processes forked from this one, where it has several processors."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def each(made: Callable[[T], R], of: Sequence[T]) -> list[R]:
    """What is made of each, in their order; what one raises is raised. The first are begun first."""
    processes = min(len(of), _processors())
    if processes < 2:
        return [made(one) for one in of]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.map(made, of, chunksize=1)


def _processors() -> int:
    """How many can be used: one alone where a fork cannot compute gradients, for which a GPU has threads begun."""
    if sys.platform != "linux" or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))
