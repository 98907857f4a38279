"""The list of operations: each gives the same far away as here, and an answer that it cannot give is refused."""

import json

import msgspec
import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.edit_trials import Redefine, TryEdits
from autograder.core.observation import Observation
from autograder.core.operations import (
    OPERATIONS,
    Assemble,
    BlocksCall,
    Build,
    Call,
    FindLostAspect,
    KindOf,
    LoadParameters,
    ManualSeed,
    MeasureCost,
    NamedParameters,
    ProbeDevice,
    Read,
    TimedCall,
    ToDtype,
    TraceRun,
    Train,
)
from autograder.graders.decoding import Answer, decode
from autograder.sandbox.client import Crashed
from autograder.sandbox.worker import protocol
from autograder.sandbox.worker import request_loop as worker
from tests.graders.test_cost_of_answers import answered_with

INPUTS = Arguments((torch.arange(6.0).reshape(2, 3),))
ASKED = [
    KindOf("Linear"),
    ManualSeed(7),
    Build("Linear", Arguments((3, 2), {"bias": True})),
    Call(0, INPUTS),
    Call(0, INPUTS, (torch.ones(2, 2),)),
    NamedParameters(0),
    LoadParameters(0, {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}),
    Call(0, INPUTS),
    ToDtype(0, "float64"),
    Train(0, False),
    Call(0, Arguments((torch.ones(2, 3, dtype=torch.float64),))),
    ProbeDevice("f", INPUTS),
    Assemble({"W": (3, 4), "layer.weight": (2, 3), "layer.bias": (2,)}, {"mask": (3, 3)}, ("W",), {"tied": "W"}),
    Call("frozen", Arguments((2,)), None, ((0, 1),)),
    Call(1, INPUTS),
    ProbeDevice(1, INPUTS),
    Build("Pile", Arguments((2,)), plain=True),
    Call(2, Arguments((torch.ones(2), 1)), part="put"),
    Read(2, Arguments(), part="top"),
    Call("on_top", INPUTS, None, ((1, 2),)),
    Call("on_top", INPUTS, (torch.ones(2, 2),), ((1, 2),)),
    MeasureCost("on_top", INPUTS, None, ((1, 2),), limits={"largest": 6}),
    MeasureCost("joined_twice", Arguments(([torch.ones(2), torch.zeros(1)],)), limits={"alive": 6}, once=True),
    TimedCall("f", INPUTS),
    BlocksCall("summed", Arguments(), blocks=(1, 3, 4)),
    Assemble({"W": (3, 4)}, computes="torch.softmax(x @ x.T, dim=-1) @ x @ W"),
    Call("called", INPUTS, (torch.ones(2, 4),), ((0, 3),)),
    Call("joined_twice", Arguments(([torch.ones(2), torch.zeros(1)],)), once=True),
    FindLostAspect("f", INPUTS, None, None, (), "writes", ("0",)),
    TraceRun("f", INPUTS),
    TraceRun("Linear", INPUTS, (3, 2), {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}),
    Redefine((("f", "def f(x):\n    return x + 1\n", "f", 1),)),
    Call("f", INPUTS),
    TryEdits(
        ((("f", "def f(x):\n    return x\n", "f", 1),), (("f", "def f(x):\n    return y\n", "f", 1),)),
        (Call("f", INPUTS),),
    ),
]


class Pile:
    """A class that is no module."""

    def __init__(self, factor):
        self._factor, self._all = factor, []

    def put(self, one, times):
        self._all += [self._factor * one] * times

    @property
    def top(self):
        return self._all[-1]


NAMES = {
    "Linear": torch.nn.Linear,
    "f": lambda x: x.exp(),
    "Pile": Pile,
    "on_top": lambda x, pile: x @ x.T + pile.top,
    "joined_twice": lambda blocks: (torch.cat(list(blocks)), len(list(blocks))),
    "summed": lambda blocks: sum(block.sum() for block in blocks),
    "called": lambda module, x: module(x.data.mul_(2) * x),
    "frozen": lambda module, factor: factor * sum(not one.requires_grad for one in module.parameters()),
}


OF_THE_WORKER = {"cpu_seconds", "library_calls"}
"""Fields that the worker fills. Which library calls it records depends on what its process has installed."""


def far_away(service, operation):
    """Return the result of an operation that goes to a worker and back, with all its bytes."""
    tensors = {}
    header = json.loads(protocol.encode_header(operation.packed(tensors)))
    answer, payload = service.answer(header, tensors)
    return decode(operation, msgspec.json.decode(protocol.encode_header(answer), type=Answer), payload)


def plain(value):
    """The value, with tensors as what can be compared."""
    if isinstance(value, Observation):
        return {name: plain(getattr(value, name)) for name in vars(value) if name not in OF_THE_WORKER}
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_each_gives_the_same_far_away_as_here():
    assert {type(operation) for operation in ASKED} == {*OPERATIONS.values(), Redefine, TryEdits}
    here, service = Bench(NAMES), worker.Service(None, Bench(NAMES))
    for operation in ASKED:
        assert plain(far_away(service, operation)) == plain(here.ask(operation)), operation


@pytest.mark.parametrize("operation", ASKED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("value", [{"opaque": "a"}, {"list": [1]}, 1.5], ids=str)
def test_an_answer_that_it_cannot_give_is_a_crash(operation, value):
    """A call can return any value; gradients are a list."""
    header = {"value": value, "gradients": {"dict": []} if value == {"list": [1]} else value}
    with answered_with({"parameter_gradients": {"dict": []}, **header}) as code, pytest.raises(Crashed):
        code.ask(operation)


def test_what_is_given_once_can_be_walked_once_and_is_still_compared():
    blocks = Arguments(([torch.ones(2), torch.zeros(1)],))
    bench = Bench(NAMES)
    assert bench.ask(Call("joined_twice", blocks)).value[1] == 2
    assert bench.ask(Call("joined_twice", blocks, once=True)).value[1] == 0

    def overwriting(blocks):
        return [block.zero_() for block in blocks]

    assert Bench({"f": overwriting}).ask(Call("f", blocks, once=True)).changed == [0]
