"""What the warm parent does once there is a second submission, so that no worker has to from there on."""

import contextlib
import gc
import io
import socket
from typing import Any

import torch

from ...core.arguments import Arguments
from ...core.bench import Bench, Operation
from ...core.operations import Call, KindOf, ProbeDevice
from ...core.packing import Tensors
from . import protocol
from .cells import Notebook
from .lazy_import import Later
from .request_loop import Service

_TIMES = 30
"""Python makes code faster that has run a few times, and a worker keeps what it inherits."""

_CELL = """
# A function, of which nothing stays.
if True:
    def halved(values, by=2.0):
        \"\"\"The values, halved.\"\"\"
        found = [value / by for value in values if value != (0, 1)]
        return {"found": found, "of": len(values)}

    del halved
"""


def for_many(plots: Later, notebook: Notebook, *, cuda: bool) -> None:
    """Imports what draws, and draws once; runs cells and answers requests as a worker does.

    cuda: no gradient is asked for, which would start CUDA and a thread for each GPU. Neither works in a fork.
    """
    gc.disable()
    with contextlib.redirect_stderr(io.StringIO()):  # it says that it can keep no list of fonts
        pyplot = plots.now()
    figure, axes = pyplot.subplots()
    figure.colorbar(axes.imshow([[0.0, 1.0]]), label="weight")
    pyplot.close(figure)
    bench = Bench({"scaled": lambda values, dim=-1: (values - values.amax(dim, keepdim=True)).exp() / 2})
    near, far = socket.socketpair()
    with near, far:
        for _ in range(_TIMES):
            notebook.run("", _CELL)
            for operation in _asked(cuda=cuda):
                _answer(Service(notebook, bench), operation, near, far)
    gc.freeze()
    gc.enable()


def _asked(*, cuda: bool) -> list[Operation[Any]]:
    values = torch.ones(2, 3)
    asked: list[Operation[Any]] = [KindOf("scaled"), Call("scaled", Arguments((values.double(), 0)))]
    if not cuda:
        asked += [Call("scaled", Arguments((values,)), (values,)), ProbeDevice("scaled", Arguments((values,)))]
    return asked


def _answer(service: Service, operation: Operation[Any], near: socket.socket, far: socket.socket) -> None:
    """As it goes between the trusted side and a worker, of which both are here."""
    tensors: Tensors = {}
    protocol.send(near, operation.packed(tensors), tensors)
    answer, payload = service.answer(*protocol.receive(far))
    protocol.send(far, answer, payload)
    protocol.receive(near)
