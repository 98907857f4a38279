"""The operations that hidden tests can request of a student's code, each with its execution.

An operation is data: the trusted side sends it, and the worker executes it on its bench. A new operation needs code
only here, and a method in `graders.proxy`.
"""

import copy
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Literal, TypeVar

import torch

from . import cost, device_probe, lost_aspects, run_trace
from .arguments import (
    MAX_TENSORS,
    Arguments,
    Assembled,
    InstancePositions,
    positions_of_others,
    tensors_in,
    with_instances,
    with_iterators,
)
from .bench import PLAIN, Bench, Operation, Target
from .countable import SealedCostCounter
from .observation import Observation, Unusable, compute_gradients, is_cell, student_code
from .packing import Tensors, unpack

T = TypeVar("T")
Kind = Literal["function", "class"]


@dataclass(frozen=True)
class KindOf(Operation[Kind]):
    """Return whether a name is a function or a class; raises Missing or Unusable."""

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
    """Set the random seed for the next operations. An instance that is built without a seed gets 0."""

    tag = "manual_seed"
    seed: int

    def on(self, bench: Bench) -> None:
        bench.next_seed = self.seed
        bench.seed(self.seed)


@dataclass(frozen=True)
class Build(Operation[int]):
    """Build an instance of a student's class, and return the instance's number.

    It is built on the CPU, where a seed has the same result on all machines, and then moved to the device.
    """

    tag = "build"
    form = int
    name: str
    arguments: Arguments
    plain: bool = False
    """True if the class need not be an nn.Module; then the instance is not moved."""

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
        """Return a new instance of the student's class."""
        return self.arguments.apply(bench.find(self.name))


@dataclass(frozen=True)
class Assemble(Operation[int]):
    """Build an nn.Module without the student's classes, as input for the student's code, and return its number."""

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
        """Return a new nn.Module with these parameters."""
        return Assembled(self.parameters, self.buffers, self.frozen, self.shared, self.computes, self.others)


@dataclass(frozen=True)
class Call(Operation[Observation[Any]]):
    """Call a function, an instance's forward, or a method of an instance, on copies of the arguments.

    With cotangents (the gradients of a loss with respect to each output), gradients flow back to each float argument
    and each parameter. Positions of arguments in the observation count instances too.
    """

    tag = "call"
    target: Target
    arguments: Arguments
    cotangents: tuple[torch.Tensor, ...] | None = None
    held: InstancePositions = ()
    part: str = ""
    """Name of the method; empty to call the target itself."""
    once: bool = False
    """True if lists and tuples are passed as iterators, which can be read only once."""

    @property
    def arity(self) -> int:
        """Number of positional arguments, counting instances of the student's classes."""
        return len(self.arguments.positional) + len(self.held)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        arguments = self.arguments.mapped(lambda arg: self._placed(arg, bench.device))
        inputs = arguments.positional
        before = [[tensor.detach().clone() for tensor in tensors_in(arg)] for arg in inputs]
        with student_code():
            value = arguments.apply(self._called(function, bench))
        at = positions_of_others(self.held, len(inputs))
        changed = [at[i] for i, held in enumerate(before) if not all(map(_same, held, tensors_in(inputs[i])))]
        types = sorted({leaf.device.type for leaf in islice(tensors_in(value), MAX_TENSORS)})
        devices = types if len(types) > 1 else []
        if self.cotangents is None:
            return Observation(value, changed, devices, [], {})
        parameters = dict(function.named_parameters()) if isinstance(function, torch.nn.Module) else {}
        found, of_parameters = compute_gradients(value, self.cotangents, inputs, parameters)
        by_place = dict(zip(at, found, strict=True))
        return Observation(value, changed, devices, [by_place.get(place) for place in range(self.arity)], of_parameters)

    def _called(self, function: Any, bench: Bench) -> Callable[..., Any]:
        own = getattr(function, self.part) if self.part else function
        return with_instances(with_iterators(own, self.once), self.held, bench.instances)

    def _placed(self, arg: Any, device: torch.device) -> Any:
        placed = _placed(arg, device)
        wanted = self.cotangents is not None and isinstance(placed, torch.Tensor) and placed.is_floating_point()
        return placed.requires_grad_() if wanted else placed


@dataclass(frozen=True)
class Read(Call):
    """Read an attribute of an instance."""

    tag = "read"

    def _called(self, function: Any, bench: Bench) -> Callable[..., Any]:
        return lambda: getattr(function, self.part)


@dataclass(frozen=True)
class MeasureCost(Call):
    """Call as `Call` does, and count the cost of the call: see `cost`.

    limits: the hidden test's limits, see `cost.Limits`. once: lists and tuples are passed as generators of copies.
    """

    tag = "cost"
    limits: Mapping[str, int] = field(default_factory=dict)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        arguments = self.arguments.mapped(lambda arg: _placed(arg, bench.device))
        with student_code():
            called = with_instances(function, self.held, bench.instances)
            spent, value = cost.measure_cost(
                called,
                arguments,
                function,
                is_cell,
                once=self.once,
                counting=SealedCostCounter if isinstance(self.target, str) and not self.held else cost.CostCounter,
            )
        return Observation(value, gradients=[], parameter_gradients={}, cost=spent.packed())


@dataclass(frozen=True)
class TimedCall(Call):
    """Call as `Call` does, and measure the CPU time; for a worker, it is measured from outside."""

    tag = "timed_call"

    def on(self, bench: Bench) -> Observation[Any]:
        began = time.process_time()
        seen = super().on(bench)
        return replace(seen, cpu_seconds=time.process_time() - began)


@dataclass(frozen=True)
class BlocksCall(Call):
    """Call a function with a generator of random blocks of scores, which never exist all at the same time.

    blocks: seed, number and length of the blocks, see `drawn_blocks`.
    """

    tag = "blocks_call"
    blocks: tuple[int, int, int] = (0, 1, 1)

    def on(self, bench: Bench) -> Observation[Any]:
        function = bench.target(self.target)
        with student_code():
            value = function(drawn_blocks(*self.blocks))
        return Observation(value, gradients=[], parameter_gradients={})


def drawn_blocks(seed: int, number: int, length: int) -> Iterator[torch.Tensor]:
    """Yield a row of scores in `number` blocks, (length,) each; the largest score is in the middle block."""
    drawn = torch.randn(length, generator=torch.Generator().manual_seed(seed))
    for block in range(number):
        yield drawn.roll(block).sub_(min(abs(block - number // 2), 40))  # PyTorch computes exp(-90) slowly


@dataclass(frozen=True)
class NamedParameters(Operation[dict[str, torch.Tensor]]):
    """Return the instance's parameters by name, in the order of creation."""

    tag = "named_parameters"
    instance: int

    def on(self, bench: Bench) -> dict[str, torch.Tensor]:
        return {name: p.detach() for name, p in bench.instances[self.instance].named_parameters()}


@dataclass(frozen=True)
class LoadParameters(Operation[None]):
    """Set the values of parameters, in their own dtype. Raises Unusable if a name is missing or a shape differs.

    A layer with a zero bias equals one without bias. So a bias that only the instance has becomes zero, and a bias that
    only `values` has is skipped. Other parameters that only the instance has keep their values. exactly: no name may
    differ.
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
            raise Unusable(f"The module should have the parameters {', '.join(sorted(self.values))}; it has {has}.")
        for (
            name,
            parameter,
        ) in own.items():  # in the order of creation, so that errors do not depend on the order of `values`
            if name not in self.values and not is_bias(name):
                continue
            value = self.values[name] if name in self.values else torch.zeros_like(parameter)
            if parameter.shape != value.shape:
                shapes = f"{tuple(value.shape)}; it has {tuple(parameter.shape)}"
                raise Unusable(f"The parameter `{name}` should have shape {shapes}.")
            parameter.data.copy_(value)


def is_bias(name: str) -> bool:
    """Return whether a parameter of this name is the bias of a layer."""
    return name.endswith(".bias")


@dataclass(frozen=True)
class ToDtype(Operation[None]):
    """Execute `instance.to(dtype)`. dtype: its name in torch."""

    tag = "to_dtype"
    instance: int
    dtype: str

    def on(self, bench: Bench) -> None:
        with student_code():
            bench.instances[self.instance].to(getattr(torch, self.dtype))


@dataclass(frozen=True)
class Train(Operation[None]):
    """Execute `instance.train(mode)`."""

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
                # New instances, because a moved one is lost for the CPU, and a called one may have any state.
                here, away = (_rebuilt(bench, self.target) for _ in range(2))
                away = device_probe.move_module(away)
            bench.seed(0)
            return device_probe.probe(away, self.arguments, on_cpu)


@dataclass(frozen=True)
class TraceRun(Operation[run_trace.PackedRun]):
    """Trace a run of a function, or of a new instance: see `run_trace`.

    built, parameters, through: see `run_trace.TracedCall`. numbers, replaced: indices of the tensors to replace,
    and their replacements.
    """

    tag = "watch_run"
    name: str
    arguments: Arguments
    built: tuple[Any, ...] | None = None
    parameters: Mapping[str, torch.Tensor] | None = None
    through: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    replaced: tuple[torch.Tensor, ...] = ()

    def on(self, bench: Bench) -> run_trace.PackedRun:
        bench.seed(0)
        new = dict(zip(self.numbers, self.replaced, strict=True))
        watch = run_trace.RunTracer(is_cell, new)
        thing, given = bench.find(self.name), self.arguments.positional
        call = run_trace.TracedCall(thing, given, self.built, self.parameters, self.through)
        return run_trace.pack_run(run_trace.trace_run(call.run, watch))


@dataclass(frozen=True)
class FindLostAspect(Operation[str]):
    """Find the line that loses an aspect of the answer, such as its dtype: see `lost_aspects.find_lost_aspect`.

    Result: line, way and file, separated by spaces; empty if no line is proven.
    """

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
        asked = run_trace.TracedCall(thing, given, self.built, self.parameters, self.through)
        with student_code():
            found = lost_aspects.find_lost_aspect(self.aspect, self.details, asked, is_cell)
        return f"{found.line} {found.how} {found.file}" if found else ""


def _placed(arg: Any, device: torch.device) -> Any:
    return arg.detach().to(device, copy=True) if isinstance(arg, torch.Tensor) else copy.deepcopy(arg)


def _rebuilt(bench: Bench, number: int) -> Any:
    """Build an instance like the one of this number, in the same mode, each time with the same parameters."""
    built = bench.built[number]
    bench.seed(0)
    instance = built.made(bench)
    instance.train(bench.instances[number].training)  # not chained, because a student's `train` may return None
    return instance


_KINDS: tuple[type[Operation[Any]], ...] = (*Operation.__subclasses__(), *Call.__subclasses__())
OPERATIONS = {kind.tag: kind for kind in _KINDS}
"""All operations by their names in a header."""


def unpacked(header: Mapping[str, Any], tensors: Tensors) -> Operation[Any]:
    """Return the operation of a header: the inverse of `Operation.packed`."""
    kind = OPERATIONS[header["operation"]]
    packed = {each.name: header[each.name] for each in fields(kind)}
    values = {name: value if type(value) in PLAIN else unpack(value, tensors) for name, value in packed.items()}
    return kind(**{name: Arguments(*value) if name == "arguments" else value for name, value in values.items()})


# Bound before any cell can replace them.
_equal, _nan_to_num = torch.equal, torch.nan_to_num


def _same(before: torch.Tensor, after: torch.Tensor) -> bool:
    # A student may also resize an input in place, or change its dtype through `.data`.
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return _equal(before, after) or _equal(_nan_to_num(before), _nan_to_num(after.detach()))  # NaN equals nothing
