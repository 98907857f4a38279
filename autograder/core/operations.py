"""What the graders can ask of a student's code: the one list of operations, each with how it is carried out.

An operation is data: the trusted side sends it, and the worker carries it out on its bench. A new one needs no word
anywhere else, but for the method that graders call it by (`graders.proxy`).
"""

import copy
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Literal, TypeVar

import torch

from . import cost, device_probe, lost_aspects, tracing
from .arguments import MAX_TENSORS, Arguments, Held, places_of_others, tensors_in, walking_once, with_held
from .assembled import Assembled
from .bench import PLAIN, Bench, Operation, Target
from .countable import Countable
from .faults import Unusable, is_cell, student_code
from .gradients import gradients
from .observation import Observation
from .packing import Tensors, unpack

T = TypeVar("T")
Kind = Literal["function", "class"]


@dataclass(frozen=True)
class KindOf(Operation[Kind]):
    """Whether a name is a function or a class; raises Missing or Unusable."""

    tag = "kind"
    form = Kind
    name: str

    def on(self, bench: Bench) -> Kind:
        thing = bench.find(self.name)
        if inspect.isclass(thing):
            return "class"
        if callable(thing):
            return "function"
        raise Unusable(f"`{self.name}` is not a function or a class but {type(thing).__name__}.")


@dataclass(frozen=True)
class ManualSeed(Operation[None]):
    """The seed for what comes next; an instance that is built without one gets 0."""

    tag = "manual_seed"
    seed: int

    def on(self, bench: Bench) -> None:
        bench.next_seed = self.seed
        bench.seed(self.seed)


@dataclass(frozen=True)
class Build(Operation[int]):
    """Builds an instance on the CPU, where seeds mean the same everywhere, then moves it to the device; its number."""

    tag = "build"
    form = int
    name: str
    arguments: Arguments
    plain: bool = False
    """It need be no module, and is not moved."""

    def on(self, bench: Bench) -> int:
        bench.seed(bench.next_seed)
        bench.next_seed = 0
        with student_code():
            instance = self.made(bench)
        if self.plain:
            return bench.add(instance, self)
        if not isinstance(instance, torch.nn.Module):
            raise Unusable(f"`{self.name}` does not inherit from torch.nn.Module.")
        with student_code():
            instance.to(bench.device)
        return bench.add(instance, self)

    def made(self, bench: Bench) -> Any:
        """What the student's class gives."""
        return self.arguments.apply(bench.find(self.name))


@dataclass(frozen=True)
class Assemble(Operation[int]):
    """Makes a module for the student's code to work on, of none of the student's classes; its number."""

    tag = "assemble"
    form = int
    parameters: Mapping[str, tuple[int, ...]]
    buffers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    computes: str = ""
    others: tuple[str, ...] = ()

    def on(self, bench: Bench) -> int:
        bench.seed(0)
        return bench.add(self.made(bench).to(bench.device), self)

    def made(self, bench: Bench) -> Assembled:
        """See there."""
        return Assembled(self.parameters, self.buffers, self.frozen, self.shared, self.computes, self.others)


@dataclass(frozen=True)
class Call(Operation[Observation[Any]]):
    """Calls a function, an instance's forward or a method of one on fresh copies of the arguments.

    With cotangents (the gradient of some loss with respect to each output), gradients flow back to
    every float argument and every parameter. Where arguments are told by their places, instances count among them.
    """

    tag = "call"
    target: Target
    arguments: Arguments
    cotangents: tuple[torch.Tensor, ...] | None = None
    held: Held = ()
    part: str = ""
    """The method's name."""
    once: bool = False
    """Lists and tuples are given as iterators, which can be walked once."""

    @property
    def arity(self) -> int:
        """How many arguments there are, of which an observation tells by their places."""
        return len(self.arguments.positional) + len(self.held)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        arguments = self.arguments.mapped(lambda arg: self._placed(arg, bench.device))
        inputs = arguments.positional
        before = [[tensor.detach().clone() for tensor in tensors_in(arg)] for arg in inputs]
        with student_code():
            value = arguments.apply(self._called(function, bench))
        at = places_of_others(self.held, len(inputs))
        changed = [at[i] for i, held in enumerate(before) if not all(map(_same, held, tensors_in(inputs[i])))]
        types = sorted({leaf.device.type for leaf in islice(tensors_in(value), MAX_TENSORS)})
        devices = types if len(types) > 1 else []
        if self.cotangents is None:
            return Observation(value, changed, devices, [], {})
        parameters = dict(function.named_parameters()) if isinstance(function, torch.nn.Module) else {}
        found, of_parameters = gradients(value, self.cotangents, inputs, parameters)
        by_place = dict(zip(at, found, strict=True))
        return Observation(value, changed, devices, [by_place.get(place) for place in range(self.arity)], of_parameters)

    def _called(self, function: Any, bench: Bench) -> Callable[..., Any]:
        own = getattr(function, self.part) if self.part else function
        return with_held(walking_once(own, self.once), self.held, bench.instances)

    def _placed(self, arg: Any, device: torch.device) -> Any:
        placed = _placed(arg, device)
        wanted = self.cotangents is not None and isinstance(placed, torch.Tensor) and placed.is_floating_point()
        return placed.requires_grad_() if wanted else placed


@dataclass(frozen=True)
class Read(Call):
    """Reads an attribute of an instance."""

    tag = "read"

    def _called(self, function: Any, bench: Bench) -> Callable[..., Any]:
        return lambda: getattr(function, self.part)


@dataclass(frozen=True)
class MeasureCost(Call):
    """Calls as `Call` does, and counts what the call costs: see `cost`.

    limits: what the hidden test holds the cost to, by the names in `core.cost_limits`.
    once: lists and tuples are given as generators of copies.
    """

    tag = "cost"
    limits: Mapping[str, int] = field(default_factory=dict)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        arguments = self.arguments.mapped(lambda arg: _placed(arg, bench.device))
        with student_code():
            called = with_held(function, self.held, bench.instances)
            spent, value = cost.of_call(
                called,
                arguments,
                function,
                is_cell,
                once=self.once,
                counting=Countable if isinstance(self.target, str) and not self.held else cost.Counting,
            )
        return Observation(value, gradients=[], parameter_gradients={}, cost=spent.packed())


@dataclass(frozen=True)
class TimedCall(Call):
    """Calls as `Call` does; whoever asks a worker measures the CPU time of the call from outside."""

    tag = "timed_call"

    def on(self, bench: Bench) -> Observation[Any]:
        began = time.process_time()
        seen = super().on(bench)
        return replace(seen, cpu_seconds=time.process_time() - began)


@dataclass(frozen=True)
class BlocksCall(Call):
    """Calls a function with a generator of blocks, which are drawn as it goes and need never be held all at once.

    blocks: the seed, number and length of the blocks: see `drawn_blocks`.
    """

    tag = "blocks_call"
    blocks: tuple[int, int, int] = (0, 1, 1)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        with student_code():
            value = function(drawn_blocks(*self.blocks))
        return Observation(value, gradients=[], parameter_gradients={})


def drawn_blocks(seed: int, number: int, length: int) -> Iterator[torch.Tensor]:
    """Generate the blocks of a row of scores, (length,) each; the largest score comes in the middle."""
    drawn = torch.randn(length, generator=torch.Generator().manual_seed(seed))
    for block in range(number):
        yield drawn.roll(block).sub_(min(abs(block - number // 2), 40))  # PyTorch computes exp(-90) slowly


@dataclass(frozen=True)
class NamedParameters(Operation[dict[str, torch.Tensor]]):
    """The instance's parameters by name, in the order of creation."""

    tag = "named_parameters"
    instance: int

    def on(self, bench: Bench) -> dict[str, torch.Tensor]:
        return {name: p.detach() for name, p in bench.instances[self.instance].named_parameters()}


@dataclass(frozen=True)
class LoadParameters(Operation[None]):
    """Give the parameters these values, in their own dtype. Raises Unusable if a name is missing or a shape differs.

    A layer's bias that only one side has becomes zero or is left out, because a layer with a bias of zero equals one
    without. Other parameters that only the instance has keep their values. exactly: no name may differ.
    """

    tag = "load_parameters"
    instance: int
    values: Mapping[str, torch.Tensor]
    exactly: bool = False

    def on(self, bench: Bench) -> None:
        own = dict(bench.instances[self.instance].named_parameters())
        if any(not is_bias(name) for name in self.values.keys() - own.keys()) or (
            self.exactly and own.keys() != self.values.keys()
        ):
            has = ", ".join(sorted(own)) or "no parameters at all"
            raise Unusable(f"Its parameters should be {', '.join(sorted(self.values))}; it has {has}.")
        for name, parameter in own.items():  # in the order of creation: `values` may have come in any other
            if name not in self.values and not is_bias(name):
                continue
            value = self.values[name] if name in self.values else torch.zeros_like(parameter)
            if parameter.shape != value.shape:
                shapes = f"{tuple(value.shape)}, here it is {tuple(parameter.shape)}"
                raise Unusable(f"The parameter `{name}` should have shape {shapes}.")
            parameter.data.copy_(value)


def is_bias(name: str) -> bool:
    """Whether a parameter of this name is the bias of a layer."""
    return name.endswith(".bias")


@dataclass(frozen=True)
class ToDtype(Operation[None]):
    """`instance.to(dtype)`, the dtype by its name in torch."""

    tag = "to_dtype"
    instance: int
    dtype: str

    def on(self, bench: Bench) -> None:
        with student_code():
            bench.instances[self.instance].to(getattr(torch, self.dtype))


@dataclass(frozen=True)
class Train(Operation[None]):
    """`instance.train(mode)`."""

    tag = "train"
    instance: int
    mode: bool

    def on(self, bench: Bench) -> None:
        with student_code():
            bench.instances[self.instance].train(self.mode)


@dataclass(frozen=True)
class ProbeDevice(Operation[device_probe.Probed]):
    """Test whether the code works on the device of its inputs, and return its value there: see `device_probe`."""

    tag = "probe_device"
    target: Target
    arguments: Arguments

    def on(self, bench: Bench) -> device_probe.Probed:
        here = away = bench.target(self.target)

        def on_cpu() -> Any:
            bench.seed(0)
            return self.arguments.mapped(copy.deepcopy).apply(here)

        with student_code():
            if isinstance(self.target, int):
                # New instances: one that is moved is lost for the CPU, and one that has been called may hold anything.
                here, away = (_rebuilt(bench, self.target) for _ in range(2))
                away = device_probe.moved(away)
            bench.seed(0)
            return device_probe.probe(away, self.arguments, on_cpu)


@dataclass(frozen=True)
class WatchRun(Operation[tracing.Packed]):
    """Runs a function, or an instance built for it, and gives every tensor that it makes, with its line: `tracing`.

    replaced: what is put in the place of the tensors of these numbers.
    """

    tag = "watch_run"
    name: str
    arguments: Arguments
    built: tuple[Any, ...] | None = None
    parameters: Mapping[str, torch.Tensor] | None = None
    through: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    replaced: tuple[torch.Tensor, ...] = ()

    def on(self, bench: Bench) -> tracing.Packed:
        bench.seed(0)
        new = dict(zip(self.numbers, self.replaced, strict=True))
        watch = tracing.Watch(is_cell, new)
        thing, given = bench.find(self.name), self.arguments.positional
        call = tracing.made_ready(thing, self.built, self.parameters, given, self.through)
        return tracing.packed(tracing.watched(call, watch))


@dataclass(frozen=True)
class LineOfAspect(Operation[str]):
    """The line that loses an aspect, how, and its file, with spaces between; empty where it cannot be told."""

    tag = "line_of_aspect"
    form = str
    name: str
    arguments: Arguments
    built: tuple[Any, ...] | None
    parameters: Mapping[str, torch.Tensor] | None
    through: tuple[str, ...]
    aspect: str
    details: tuple[str, ...]

    def on(self, bench: Bench) -> str:
        bench.seed(0)
        thing, given = bench.find(self.name), self.arguments.positional
        asked = lost_aspects.Asked(thing, given, self.built, self.parameters, self.through)
        with student_code():
            found = lost_aspects.where_lost(self.aspect, self.details, asked, is_cell)
        return f"{found.line} {found.how} {found.file}" if found else ""


def _placed(arg: Any, device: torch.device) -> Any:
    return arg.detach().to(device, copy=True) if isinstance(arg, torch.Tensor) else copy.deepcopy(arg)


def _rebuilt(bench: Bench, number: int) -> Any:
    """An instance built as the one of this number was, and in its mode; each time with the same numbers."""
    built = bench.built[number]
    bench.seed(0)
    instance = built.made(bench)
    instance.train(bench.instances[number].training)  # which may be the student's own, and return nothing
    return instance


_KINDS: tuple[type[Operation[Any]], ...] = (*Operation.__subclasses__(), *Call.__subclasses__())
OPERATIONS = {kind.tag: kind for kind in _KINDS}
"""All of them, by the names that they have in a header."""


def unpacked(header: Mapping[str, Any], tensors: Tensors) -> Operation[Any]:
    """The operation that `packed` made the header of."""
    kind = OPERATIONS[header["operation"]]
    asked = {each.name: header[each.name] for each in fields(kind)}
    given = {field: value if type(value) in PLAIN else unpack(value, tensors) for field, value in asked.items()}
    return kind(**{field: Arguments(*value) if field == "arguments" else value for field, value in given.items()})


# Bound before any cell can put something else in their place.
_equal, _nan_to_num = torch.equal, torch.nan_to_num


def _same(before: torch.Tensor, after: torch.Tensor) -> bool:
    # A student may also resize an input in place, or change its dtype through `.data`.
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return _equal(before, after) or _equal(_nan_to_num(before), _nan_to_num(after.detach()))  # NaN equals nothing
