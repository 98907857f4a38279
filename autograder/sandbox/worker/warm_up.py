"""Preparations in the fork server, so that no worker has to repeat them."""

import contextlib
import gc
import importlib
import io
import socket
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

import torch

from ...core.arguments import Arguments
from ...core.bench import Bench, Operation
from ...core.library_recorders import observe_functions, observe_operators
from ...core.operations import Build, Call, KindOf, ProbeDevice
from ...core.packing import Tensors
from . import global_state, protocol
from .cells import Notebook
from .request_loop import Service

_REPETITIONS = 30
"""Python makes code faster that has run a few times, and workers inherit that."""

_CELL = """
# A function, of which nothing stays.
if True:
    def halved(values, by=2.0):
        \"\"\"The values, halved.\"\"\"
        found = [value / by for value in values if value != (0, 1)]
        return {"found": found, "of": len(values)}

    del halved
"""


class LazyModule:
    """Delays the import of a module, in this process and those it forks, until one of its names is used.

    Few notebooks that are graded alone draw a plot.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module's usual spec with a loader that waits; None for other modules."""
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec

    def load(self) -> ModuleType:
        """Import the module as usual."""
        sys.meta_path.remove(self)
        return importlib.import_module(self._name)


def prepare_for_one(notebook: Notebook, *, cuda: bool) -> None:
    """Do once what is slow the first time, for example a gradient, which imports a thousand modules.

    cuda: compute no gradient. It would start CUDA and a thread for each GPU, neither of which works in a fork.
    """
    global_state.ignore_breakpoints()
    notebook.run("", "pass")
    global_state.restore()  # imports modules that a worker without a search path could not import
    observe_operators()
    bench = Bench({"Linear": torch.nn.Linear})
    layer, inputs = bench.ask(Build("Linear", Arguments((2, 2)))), Arguments((torch.ones(2, 2),))
    with_gradient: list[Operation[Any]] = [Call(layer, inputs, (torch.ones(2, 2),)), ProbeDevice(layer, inputs)]
    _answer(Service(notebook, bench), [Call(layer, inputs)] if cuda else with_gradient)
    importlib.import_module("torch._decomp.decompositions_for_jvp")  # compiles functions whose source is then gone
    observe_functions()  # last, when all is imported


def prepare_for_many(plots: LazyModule, notebook: Notebook, *, cuda: bool) -> None:
    """Import what draws, and draw once; run cells and answer requests as a worker does.

    cuda: as in `prepare_for_one`.
    """
    gc.disable()
    with contextlib.redirect_stderr(io.StringIO()):  # matplotlib warns that it cannot store a list of fonts
        pyplot = plots.load()
    figure, axes = pyplot.subplots()
    figure.colorbar(axes.imshow([[0.0, 1.0]]), label="weight")
    pyplot.close(figure)
    bench = Bench({"scaled": lambda values, dim=-1: (values - values.amax(dim, keepdim=True)).exp() / 2})
    values = torch.ones(2, 3)
    operations: list[Operation[Any]] = [KindOf("scaled"), Call("scaled", Arguments((values.double(), 0)))]
    if not cuda:
        operations += [Call("scaled", Arguments((values,)), (values,)), ProbeDevice("scaled", Arguments((values,)))]
    for _ in range(_REPETITIONS):
        notebook.run("", _CELL)
        _answer(Service(notebook, bench), operations)
    gc.freeze()
    gc.enable()


def _answer(service: Service, operations: Sequence[Operation[Any]]) -> None:
    """Send operations to a service in this process, and receive the answers, as over a worker's connection."""
    near, far = socket.socketpair()
    with near, far:
        for operation in operations:
            tensors: Tensors = {}
            protocol.send(near, operation.packed(tensors), tensors)
            protocol.send(far, *service.answer(*protocol.receive(far)))
            protocol.receive(near)
