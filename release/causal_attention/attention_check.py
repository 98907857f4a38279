"""`check("attention_scores")` tries your function on examples; `check()` shows how far you are.

`example("attention_scores", 2)` gives you the arguments of the second example and the right result, to play with.
It needs nothing but torch. The hidden tests that decide the points ask the same with other numbers.
The files beside it hold the examples and, as numbers, what common mistakes show on them and what is right on the way.
"""

import base64
import contextlib
import copy
import gzip
import inspect
import io
import json
import linecache
import os
import random
import re
import signal
import struct
import sys
import threading
import time
import torch
import traceback
import types
import warnings
import zlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from functools import cache
from functools import cached_property
from functools import lru_cache
from html import escape
from itertools import chain
from itertools import combinations
from itertools import islice
from itertools import permutations
from pathlib import Path
from statistics import NormalDist
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from types import FrameType
from typing import Any
from typing import NamedTuple


def check(exercise: str | None = None) -> float | None:
    """Try one exercise on its examples; returns the share of its points that they would give.

    Without a name: how far you are in the whole notebook.
    """
    names = sys._getframe(1).f_globals
    exercises, mistakes = _read(EXAMPLES), _read(MISTAKES)
    if exercises is None or mistakes is None:
        return None
    written = json.loads(exercises.pop(WRITTEN, "{}"))
    if exercise is not None and (not isinstance(exercise, str) or exercise not in exercises):
        print(f"The name of an exercise is wanted, as in check({next(iter(exercises))!r}). They are:")
        print(", ".join(exercises))
        return None
    wanted = list(exercises) if exercise is None else [exercise]
    try:
        with as_in_a_new_notebook():
            outcomes = [
                outcome(names, name, _examples(exercises[name]), json.loads(mistakes.get(name, "[]")))
                for name in wanted
            ]
            if exercise is not None and outcomes[0].goes_wrong:
                outcomes[0].whereabouts = line_told(names, exercise, Path(__file__).with_name(STEPS))
    except KeyboardInterrupt:
        print("The check was interrupted, so it says nothing. Run its cell again when you like.")
        return None if exercise is None else 0.0
    if exercise is not None:
        return tell(outcomes[0], not_what_was_run(names, exercise))
    summed(outcomes, written)
    return None


def example(exercise: str, number: int = 1, call: int = 1) -> Any:
    """What an exercise's example calls it with, and the right result: `args, right = example("scaled_softmax", 2)`.

    Examples count from 1, as the check shows them, and so do the calls of one that makes several.
    """
    exercises = _read(EXAMPLES)
    if exercises is None:
        return None
    exercises.pop(WRITTEN, None)
    if exercise not in exercises:
        print(f"The name of an exercise is wanted; they are: {', '.join(exercises)}.")
        return None
    examples = _examples(exercises[exercise])["examples"]
    steps = examples[number - 1]["steps"] if number in range(1, len(examples) + 1) else []
    calls = calls_with_results(steps)
    if call not in range(1, len(calls) + 1):
        with_result = [str(at) for at, one in enumerate(examples, start=1) if calls_with_results(one["steps"])]
        print(f"There is no such call with a result. The examples of {exercise} with one: {', '.join(with_result)}.")
        return None
    step = calls[call - 1]
    return tuple(as_value(arg) for arg in step.get("args", ())), as_value(step["result"])


def _read(name: str) -> dict[str, str] | None:
    """What a file says of each exercise, as JSON."""
    try:
        path = Path(__file__).with_name(name)
        return dict(_by_exercise(path, path.stat().st_mtime_ns if path.exists() else 0))
    except (OSError, ValueError):
        print(f"{name} is missing beside {Path(__file__).name}, or damaged: fetch the assignment's files again.")
        return None


@lru_cache(maxsize=2)
def _by_exercise(path: Path, _changed: int) -> dict[str, str]:
    # To read a whole file takes longer than to try an exercise. As text, because the code that is tried may write into
    # what it is called with.
    return {exercise: json.dumps(of) for exercise, of in read_data(path).items()}


def _examples(text: str) -> dict[str, Any]:
    of: dict[str, Any] = json.loads(text)
    for one in of["examples"]:
        one["steps"] = in_full(one["steps"])
    return of


class Arguments(NamedTuple):
    """What a function or a class is called with."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def mapped(self, change: Callable[[Any], Any]) -> "Arguments":
        """The same arguments, each of them changed."""
        return Arguments(
            tuple(change(value) for value in self.positional),
            {name: change(value) for name, value in self.named.items()},
        )

    def apply(self, function: Callable[..., Any]) -> Any:
        """Calls the function."""
        return function(*self.positional, **self.named)


MAX_DEPTH = 8
MAX_TENSORS = 500
"""Of so many in one value notice is taken."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and dicts, down to MAX_DEPTH."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, depth + 1)


class OperatorMode(TorchDispatchMode):
    """A dispatch mode that takes every operator and costs little."""

    supports_higher_order_operators = True  # torch.cond and its kin

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and PyTorch's wrapper imports its compiler and doubles what a call costs."""
        return False


def name_of(operator: Any) -> str:
    """The operator's name without its overload; those of higher order have none."""
    name: str = getattr(operator, "overloadpacket", operator).__name__
    return name


FOLLOWS = "follows"
MIXED = "mixed"
ELSEWHERE = "elsewhere"
DIFFERS = "differs"
BY_NUMBERS = ", by its numbers"
"""Stands behind a verdict on code that took single numbers out of tensors on its way."""

DEVICE = torch.device("meta")
"""The only other device that every build of PyTorch can differentiate on."""
_CPU = torch.device("cpu")
_CLOSE = 1e-3

_CROSSING = {"copy_", "_to_copy"}
"""These may meet operands of two devices on CUDA too: `.to(device)` is how one follows."""
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
"""Of these, indices may stay on the CPU where what they point into is elsewhere, and not the other way round."""


class _Away(torch.Tensor):
    """A tensor that says it is on DEVICE; `here` has its numbers."""

    here: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:  # which PyTorch refuses for subclasses, and not for another device
        return self.here.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        return self.here.numpy(force=True) if force else super().numpy()

    def __format__(self, specification: str) -> str:  # likewise: of one number it is that number's
        return format(self.item(), specification) if self.dim() == 0 else object.__format__(self, specification)

    is_cuda = True  # what is written for CUDA alone is right on CUDA
    is_meta = False

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch gives no kwargs where there are none
        cls,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return _carried_out(func, args, kwargs or {})  # one that was kept, and is used later


def _away(here: torch.Tensor) -> _Away:
    away: _Away = torch.Tensor._make_wrapper_subclass(
        _Away,
        here.shape,
        strides=here.stride(),
        storage_offset=here.storage_offset(),
        dtype=here.dtype,
        layout=here.layout,
        device=DEVICE,
        requires_grad=here.requires_grad,
    )
    away.here = here
    return away


class _Devices(OperatorMode):
    """Notes whether an operator got operands from two devices. A 0-d CPU tensor may go anywhere, as on CUDA."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = False
        self.by_numbers = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.by_numbers = self.by_numbers or name_of(func) == "_local_scalar_dense"
        operands = list(tensors_in((_one_device_of_these(func, args), dict(kwargs or {}))))
        devices = {t.device for t in operands if t.dim() > 0 or isinstance(t, _Away)}
        if len(devices) > 1 and name_of(func) not in _CROSSING:
            self.mixed = True
        return _carried_out(func, args, kwargs or {})


def _one_device_of_these(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments that CUDA wants on one device."""
    if name_of(func) not in _INDEXING or len(args) < 2 or not isinstance(args[0], _Away):
        return args
    indexed, indices, *values = args
    away = [index for index in indices if isinstance(index, _Away)]
    by_mask = all(index is None or index.dtype in (torch.bool, torch.uint8) for index in indices)
    if by_mask and values and isinstance(values[0], torch.Tensor) and values[0].numel() == 1:
        values = values[1:]  # one number wherever the mask is: it is filled in, from whatever device
    return (indexed, away, *values)


class _AsOnAnotherDevice(TorchFunctionMode):
    """Has DEVICE do what CUDA does: keep the numbers that a tensor is made of, be what is called `cuda`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        args, named = tuple(map(_not_cuda, args)), {name: _not_cuda(value) for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0].to(DEVICE)
        if func is torch.Tensor.type and len(args) > 1 and str(args[1]).startswith(_TYPES):
            return args[0].to(DEVICE, torch.empty(0).type(args[1].replace(_TYPES, "torch.")).dtype)
        if func not in _OF_NUMBERS:
            return func(*args, **named)
        if func is torch.Tensor.new_tensor and named.get("device") is None:
            named["device"] = args[0].device
        if named.get("device") is None or torch.device(named["device"]).type != DEVICE.type:
            return func(*args, **named)
        return func(*args, **{**named, "device": _CPU}).to(DEVICE)


def _not_cuda(value: Any) -> Any:
    is_cuda = isinstance(value, torch.device | str) and re.fullmatch(r"cuda(:\d)?", str(value))
    if not is_cuda:
        return value
    return DEVICE.type if isinstance(value, str) else DEVICE


class _Generator(torch.Generator):
    """DEVICE has none of its own; what is drawn with it is drawn on the CPU."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, _CPU)  # type: ignore[call-arg]


@contextmanager
def _standing_in() -> Iterator[None]:
    """Puts what DEVICE lacks where a student's code looks for it."""
    generator, autocast = torch.Generator, torch.autocast.__init__

    def autocast_of_the_cpu(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        autocast(self, "cpu" if device_type == DEVICE.type else device_type, *args, **kwargs)

    torch.Generator, torch.autocast.__init__ = _Generator, autocast_of_the_cpu  # type: ignore[misc, method-assign]
    try:
        yield
    finally:
        torch.Generator, torch.autocast.__init__ = generator, autocast  # type: ignore[misc, method-assign]


_TYPES = f"torch.{DEVICE.type}."
_OF_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor)


def _carried_out(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What the operator gives, computed on the CPU, on the device where it should be."""
    operands = list(tensors_in((args, dict(kwargs))))
    named = kwargs.get("device")
    is_away = any(isinstance(t, _Away) for t in operands) if named is None else torch.device(named).type == DEVICE.type
    on_cpu = dict(kwargs) if named is None else {**kwargs, "device": _CPU}
    result = func(*_each(args, _brought_here), **_each(on_cpu, _brought_here))
    if torch.Tag.inplace_view in func.tags and isinstance(args[0], _Away):
        with no_dispatch():  # `squeeze_` and its kin give the tensor itself another shape
            func(*args, **kwargs)
    if name_of(func) == "copy_" or func._schema.is_mutable:
        return _as_given(func, args, kwargs, result)
    return _each(result, _away) if is_away else result


def _as_given(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Any:
    """What an operator gives that writes into operands: those very operands, on whatever device they are."""
    given = [*zip(func._schema.arguments, args, strict=False)]
    given += [(argument, kwargs[argument.name]) for argument in func._schema.arguments if argument.name in kwargs]
    held = {
        id(_brought_here(one)): one for argument, value in given if argument.is_write for one in tensors_in([value])
    }
    is_away = any(isinstance(t, _Away) for t in tensors_in((args, dict(kwargs))))
    return _each(result, lambda one: held.get(id(one), _away(one) if is_away else one))


def _brought_here(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.here if isinstance(tensor, _Away) else tensor


def _each(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The value with each tensor in it changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_each(item, change) for item in value)
    return {key: _each(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def moved(module: torch.nn.Module) -> torch.nn.Module:
    """The module, moved as `.to(device)` does it."""
    with _Devices():
        return module.to(DEVICE)


def probe(call: Callable[..., Any], arguments: Arguments, on_cpu: Callable[[], Any]) -> str:
    """One of `follows`, `mixed`, `elsewhere` (the output), `differs` (from what it gives on the CPU).

    on_cpu: calls the code on the CPU with the same arguments, and draws the same by chance each time. What the code
    raises on the other device it raises here, but where it mixes devices.
    """
    moved_inputs = arguments.mapped(lambda arg: _away(arg.clone()) if isinstance(arg, torch.Tensor) else arg)
    with _standing_in(), _AsOnAnotherDevice(), _Devices() as devices:
        try:
            value = moved_inputs.apply(call)
        except Exception:
            if devices.mixed:
                return MIXED
            raise
    if devices.mixed:
        return MIXED
    how = BY_NUMBERS if devices.by_numbers else ""
    outputs = list(tensors_in(value))
    if not all(isinstance(output, _Away) for output in outputs):
        return ELSEWHERE + how
    here = [_brought_here(output) for output in outputs]
    right = list(tensors_in(on_cpu()))
    if any(output.device != _CPU for output in right):
        return ELSEWHERE + how
    if _alike(here, right) or not _alike(right, list(tensors_in(on_cpu()))):
        return FOLLOWS + how
    return DIFFERS + how


def _alike(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(
        one.shape == other.shape
        and torch.allclose(one.detach().double(), other.detach().double(), rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
        for one, other in zip(some, others, strict=True)
    )


# Bound before any cell can put something else in its place.
_cpu_generator = torch.default_generator


def seed_generators(seed: int, device: torch.device) -> None:
    """Seeds the CPU's generator, and the device's."""
    _cpu_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def seed_in_use(seed: int) -> None:
    """Seeds the generators of the devices that this process computes on."""
    seed_generators(seed, torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))


DRAWN_DIGITS = 3
USUAL = "float32"
"""The dtype of values that do not say theirs."""


def drawn(rule: Sequence[float], shape: Sequence[int]) -> torch.Tensor:
    """Numbers in float64 that are the same on every machine: [seed, mean, spread], or [seed] for 0.1 to 1.1."""
    return _drawn(tuple(rule), tuple(shape)).clone()


@cache
def _drawn(rule: tuple[float, ...], shape: tuple[int, ...]) -> torch.Tensor:
    seed, *bell = rule
    numbers, count = random.Random(int(seed)), torch.Size(shape).numel()
    if bell:
        normal = NormalDist(*bell)
        made = [normal.inv_cdf(numbers.random() or 0.5) for _ in range(count)]
    else:
        made = [0.1 + numbers.random() for _ in range(count)]
    rounded = [round(number, DRAWN_DIGITS) for number in made]
    return torch.tensor(rounded, dtype=torch.float64).reshape(shape)


def identity(size: int, shape: Sequence[int]) -> torch.Tensor:
    """Identity matrices of this size, as often side by side as there is room for."""
    *_, rows, columns = shape
    distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
    return (distance % size == 0).double().expand(*shape)


_PACKED = {"float32": "f", "float64": "d"}


def packed(numbers: Sequence[float], dtype: str = "float32") -> str:
    """Numbers as text, in less than half of the room."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}{_PACKED[dtype]}", *numbers)).decode()


def unpacked(text: str, dtype: str = "float32") -> list[float]:
    """The numbers again."""
    held = base64.b85decode(text)
    code = _PACKED[dtype]
    return list(struct.unpack(f"<{len(held) // struct.calcsize(code)}{code}", held))


def shortened(steps: Sequence[Any]) -> list[Any]:
    """Steps, with the number of an earlier one in the place of one that is the same, and without the usual dtype."""
    first = [steps.index(step) for step in steps]
    return [_usual(step) if at == first[at] else {"again": first[at]} for at, step in enumerate(steps)]


def _usual(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return [_usual(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    left_out = "shape" in plain and plain.get("dtype") == USUAL
    return {name: _usual(one) for name, one in plain.items() if not (left_out and name == "dtype")}


def in_full(steps: Sequence[Any]) -> list[Any]:
    """The steps again."""
    return [steps[step["again"]] if "again" in step else step for step in steps]


def as_value(plain: Any) -> Any:
    """A value as it was before it was written down as JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(as_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    shape, kind = plain["shape"], plain.get("dtype", USUAL)
    dtype = getattr(torch, kind)
    if "drawn" in plain:
        made = drawn(plain["drawn"], shape).to(dtype)
    elif "identity" in plain:
        made = identity(plain["identity"], shape).to(dtype)
    elif "packed" in plain:
        made = torch.tensor(unpacked(plain["packed"], kind), dtype=dtype).reshape(shape)
    else:
        values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a word
        made = torch.tensor(values, dtype=dtype).reshape(shape)
    return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()


Step = Mapping[str, Any]


class Wrong(Exception):
    """The code did not do what was asked; `str()` is a sentence."""

    odd_shape = False
    """Whether the numbers are right, and only the shape is not."""


@dataclass
class Call:
    """One call, and what it showed."""

    step: Step
    function: Callable[..., Any]
    args: list[Any]
    named: dict[str, Any]
    value: Any = None
    changed: list[int] = field(default_factory=list)
    """The arguments that it wrote into, by number."""
    gradients: list[Any] = field(default_factory=list)
    """One for each argument, None where none arrived."""
    parameter_gradients: dict[str, Any] = field(default_factory=dict)
    whole: Any = None
    """What the same call gives where nothing is dropped by chance, if the step asks for it."""
    verdict: str = ""
    """Where the step asks whether the code follows its inputs to another device."""


@dataclass
class Trial:
    """The steps of one example on their way; `printed` holds what the code itself printed in its last call."""

    names: Mapping[str, Any]
    instances: list[Any] = field(default_factory=list)
    built: list[Callable[[], Any]] = field(default_factory=list)
    seed: int = 0
    """For the instance that is built next."""
    printed: io.StringIO = field(default_factory=io.StringIO)
    now: Call | None = None
    """The call that was made last, which may not have come back."""

    def take(self, step: Step) -> Any:
        """What comes of a step: a `Call`, or an instance's parameters by name, or nothing."""
        match step["operation"]:
            case "manual_seed":
                seed_in_use(step["seed"])
                self.seed = step["seed"]
            case "build":
                self._build(step)
            case "load":
                load(self.instances[step["instance"]], {n: as_value(v) for n, v in step["values"].items()})
            case "to":
                self.instances[step["instance"]].to(getattr(torch, step["dtype"]))
            case "train":
                self.instances[step["instance"]].train(step["mode"])
            case "parameters":
                return {n: p.detach() for n, p in self.instances[step["instance"]].named_parameters()}
            case "call" | "probe":
                return self._call(step)
        return None

    def _build(self, step: Step) -> None:
        args, named = [as_value(arg) for arg in step.get("args", ())], step.get("named", {})
        seed, self.seed = self.seed, 0

        def build() -> Any:
            seed_in_use(seed)
            with self._listening():
                return self.names[step["name"]](*args, **named)

        instance = build()
        if not isinstance(instance, torch.nn.Module):
            raise Wrong(f"`{step['name']}` does not inherit from torch.nn.Module.")
        self.instances.append(instance)
        self.built.append(build)

    def _call(self, step: Step) -> Call:
        own = self.names[step["name"]] if "name" in step else self.instances[step["instance"]]
        call = self.now = Call(step, own, [as_value(arg) for arg in step.get("args", ())], dict(step.get("named", {})))
        with self._listening():
            if step["operation"] == "probe":
                call.verdict = self._followed(call)
                return call
            if "whole" in step:
                call.whole = _whole(call)
            given, before = copied(call.args), copied(call.args)
            for arg in given:
                if isinstance(arg, torch.Tensor):
                    arg.requires_grad_("cotangents" in step and arg.is_floating_point())
            call.value = own(*given, **call.named)
        call.changed = [number for number, held in enumerate(before) if not is_unwritten(held, given[number])]
        if "cotangents" in step:
            self._flow_back(call, given)
        return call

    def _flow_back(self, call: Call, given: list[Any]) -> None:
        """The gradients at arguments and parameters of some loss, of which the cotangents are that at each output."""
        own = call.function
        parameters = dict(own.named_parameters()) if isinstance(own, torch.nn.Module) else {}
        cotangents = [as_value(one) for one in call.step["cotangents"]]
        outputs = list(call.value) if isinstance(call.value, tuple | list) else [call.value]
        pairs = [(one, by) for one, by in zip(outputs, cotangents, strict=False)
                 if isinstance(one, torch.Tensor) and one.shape == by.shape and one.requires_grad]  # fmt: skip
        leaves = [one for one in [*given, *parameters.values()] if isinstance(one, torch.Tensor) and one.requires_grad]
        found: Iterator[Any] = iter([None] * len(leaves))
        if pairs and len(outputs) == len(cotangents):
            losses = [(one * by.to(one)).real.sum() for one, by in pairs]
            found = iter(torch.autograd.grad(losses, leaves, allow_unused=True))
        call.gradients = [next(found) if isinstance(a, torch.Tensor) and a.requires_grad else None for a in given]
        call.parameter_gradients = {n: next(found) if p.requires_grad else None for n, p in parameters.items()}

    def _followed(self, call: Call) -> str:
        here = away = call.function
        if "instance" in call.step:  # new ones: one that has been called may hold anything
            here, away = (self._another(call.step["instance"]) for _ in range(2))
            away = moved(away)

        def on_cpu() -> Any:
            seed_in_use(0)
            return here(*copied(call.args), **call.named)

        seed_in_use(0)
        return probe(away, Arguments(tuple(call.args), call.named), on_cpu)

    def _another(self, number: int) -> Any:
        instance = self.built[number]()
        instance.train(self.instances[number].training)
        return instance

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            yield


def load(instance: Any, values: Mapping[str, torch.Tensor]) -> None:
    """Gives the parameters these values; raises Wrong where names or shapes are others."""
    own = dict(instance.named_parameters())
    if own.keys() != values.keys():
        has = ", ".join(sorted(own)) or "no parameters at all"
        raise Wrong(f"Its parameters should be {', '.join(sorted(values))}; it has {has}.")
    for name, parameter in own.items():
        if parameter.shape != values[name].shape:
            shapes = f"{tuple(values[name].shape)}, here it is {tuple(parameter.shape)}"
            raise Wrong(f"The parameter `{name}` should have shape {shapes}.")
        parameter.data.copy_(values[name])


def _whole(call: Call) -> Any:
    """A function's first argument; what a module gives in evaluation."""
    if call.step["whole"] == "argument":
        return call.args[0]
    was = call.function.training  # type: ignore[attr-defined]
    call.function.eval()  # type: ignore[attr-defined]
    try:
        return call.function(*copied(call.args), **call.named)
    finally:
        call.function.train(was)  # type: ignore[attr-defined]


def copied(args: Sequence[Any]) -> list[Any]:
    """Arguments of their own for one call."""
    # To copy a tensor deeply takes ten times as long as to clone it.
    return [arg.clone() if isinstance(arg, torch.Tensor) else copy.deepcopy(arg) for arg in args]


def is_unwritten(one: Any, other: Any) -> bool:
    """Whether nothing was written into a value."""
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())


_LONGEST_ARGUMENT = 60


def calls_with_results(steps: list[Any]) -> list[Any]:
    """Those of a function: a module would need its parameters."""
    return [step for step in steps if "name" in step and "result" in step]


def to_play_with(call: Call, exercise: str, number: int, example: Mapping[str, Any]) -> str:
    """How to get at the call's arguments and the right result; nothing where that cannot be."""
    calls = calls_with_results(example["steps"])
    at = next((at for at, step in enumerate(calls, start=1) if step is call.step), 0)
    which = f", call={at}" if at > 1 else ""
    return f'args, right = example("{exercise}", {number}{which})' if at else ""


def in_words(call: Call, example: Mapping[str, Any]) -> str:
    """What was called, with what."""
    step = call.step
    if "name" in step:
        return f"{step['name']}({_arguments(call.function, call.args, call.named)})"
    builds = [one for one in example["steps"] if one["operation"] == "build"]
    build = builds[step["instance"]]
    made = _arguments(None, [as_value(arg) for arg in build.get("args", ())], build.get("named", {}))
    mode = "in training" if call.function.training else "after eval()"  # type: ignore[attr-defined]
    forward = getattr(call.function, "forward", None)
    return f"{build['name']}({made})({_arguments(forward, call.args, call.named)}), {mode}"


def _arguments(function: Any, args: list[Any], named: Mapping[str, Any]) -> str:
    try:
        names = list(inspect.signature(function).parameters) if function is not None else []
    except (TypeError, ValueError):
        names = []
    words = [_argument(names[number] if number < len(names) else "", arg) for number, arg in enumerate(args)]
    return ", ".join([*words, *(_argument(name, arg) for name, arg in named.items())])


def _argument(name: str, arg: Any) -> str:
    if isinstance(arg, torch.Tensor):
        dtype = "" if arg.dtype == torch.float32 else f" and {arg.dtype}"
        return f"{name or 'a tensor'} of shape {tuple(arg.shape)}{dtype}"
    said = repr(arg)
    said = said if len(said) <= _LONGEST_ARGUMENT else f"{said[:_LONGEST_ARGUMENT]}…"
    return f"{name}={said}" if name else said


def read_data(path: Path) -> Any:
    """What the file says; raises OSError or ValueError where it is missing or damaged."""
    if not path.exists() and path.with_suffix("").exists():
        return json.loads(path.with_suffix("").read_text(encoding="utf-8"))  # unpacked by a browser that fetched it
    try:
        return json.loads(gzip.decompress(path.read_bytes()))
    except EOFError as error:
        raise ValueError(str(error)) from error


def data_of(value: Any) -> bytes:
    """The file's content."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)


_first_tried: dict[str, tuple[str, float]] = {}
"""By exercise the text of the cell that was tried last, and when it was tried first."""


def not_what_was_run(names: dict[str, Any], exercise: str) -> str:
    """A sentence where it is not; nothing where it is, or where that cannot be told."""
    tried = _cell_of(names.get(exercise))
    if not tried:
        return ""
    definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(exercise)}\b", re.M)
    run = [text for text in names.get("In", ()) if isinstance(text, str) and definition.search(text)]
    if run and run[-1].strip() != tried and tried in [text.strip() for text in run]:
        return (
            f"When its cell was run last, it ended in an error before `{exercise}` was defined: "
            "what is tried here is the version before."
        )
    text, since = _first_tried.get(exercise, ("", 0.0))
    if text != tried:
        _first_tried[exercise] = tried, time.time()
        return ""
    saved = _saved(names, exercise, since)
    if saved and saved != tried:
        return "Its cell has changed since it was run: run it again, then this check."
    return ""


def _cell_of(thing: Any) -> str:
    """The text of the cell that defined it."""
    file = file_of(thing)
    return "".join(linecache.getlines(file)).strip() if file else ""


def file_of(thing: Any) -> str:
    """What the kernel calls the code of a function or class: the cell's name in the place of a file's."""
    functions = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
    codes = [code for one in functions if inspect.iscode(code := getattr(one, "__code__", None))]
    return codes[0].co_filename if codes else ""


def _saved(names: dict[str, Any], exercise: str, since: float) -> str:
    """The cell's text in the notebook's file, if that was saved since then."""
    path = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    try:
        file = Path(str(path))
        if not path or file.stat().st_mtime <= since:
            return ""
        cells = json.loads(file.read_text())["cells"]
        found = [one for one in cells if one["metadata"].get("nbgrader", {}).get("grade_id") == exercise]
        return "".join(found[0]["source"]).strip() if found else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


MAX_MADE = 300
"""Tensors of one run that are kept."""
MAX_NUMBERS = 4_000
"""In one tensor: the telling cases are small."""
MAX_ALL_NUMBERS = 60_000
MAX_INPUTS = 16
MAX_RESULTS = 8
_PRINTING = torch._tensor_str.__file__

Own = Callable[[str], bool]
"""Whether code of this file is that whose lines are looked for."""
_WITHOUT_NUMBERS = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "uniform_", "normal_", "rand", "randn",
    "random_", "detach", "alias", "lift_fresh", "resize_", "set_",
}  # fmt: skip
"""What these give holds no numbers yet, or numbers of chance, or the tensor that was there before."""


@dataclass(frozen=True)
class Made:
    """One tensor that a run made, as it was then."""

    file: str
    line: int
    operator: str
    values: torch.Tensor
    """In float64, and no part of what the run goes on with."""
    inputs: tuple[int, ...] = ()
    """The numbers of the tensors that it was made of."""
    place: int = 0
    """Tells one call from another in a line; in a loop it is the same each time."""


@dataclass
class Run:
    """What one run showed."""

    made: list[Made] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None
    """What ended it."""
    returned: tuple[str, int] | None = None
    """File and line of the last `return` of the code that is looked at, in a run in which nothing is replaced."""


class _Call(NamedTuple):
    file: str
    line: int
    place: int
    operator: str
    inputs: tuple[int, ...]


class Watch(TorchDispatchMode):
    """Notes what each operator gives; puts what is to be replaced in its place."""

    supports_higher_order_operators = True

    def __init__(self, own: Own, replaced: Mapping[int, torch.Tensor], *, in_shape: bool = False) -> None:
        """in_shape: replace nothing by what has another shape, for which some of torch's functions end the process."""
        super().__init__()
        self._in_shape = in_shape
        self.made: list[Made] = []
        self.of: dict[int, int] = {}
        """The number of the tensor that was made last with this id; the tensors are kept, so no id is used twice."""
        self.own = own
        self.replaces = bool(replaced)
        self._replaced = replaced
        self._kept: list[torch.Tensor] = []
        self._written: dict[int, list[int]] = {}
        """What was written into the same memory, in place or into a view of it."""
        self._room = MAX_ALL_NUMBERS

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "overloadpacket", func).__name__
        inputs = {number for one in _tensors((args, kwargs or {})) for number in self._behind(one)}
        given = func(*args, **(kwargs or {}))
        if name in _WITHOUT_NUMBERS:
            if "empty" in name:
                given.zero_()  # what stood in that memory differs from run to run
            return given
        noted = _Call(*self._place(), name, tuple(sorted(inputs)[:MAX_INPUTS]))
        if isinstance(given, torch.Tensor):
            return self._noted(given, noted)
        if isinstance(given, tuple | list):
            each = [self._noted(one, noted) if isinstance(one, torch.Tensor) else one for one in given]
            return type(given)(each) if type(given) in (tuple, list) else given
        return given

    def _behind(self, tensor: torch.Tensor) -> list[int]:
        memory = _memory(tensor)
        number = self.of.get(id(tensor))
        written = self._written.get(memory, [])
        return written if number is None else [number, *(one for one in written if one > number)]

    def _noted(self, tensor: torch.Tensor, call: "_Call") -> torch.Tensor:
        number = len(self.made)
        if number >= MAX_MADE or not call.line:
            return tensor
        new = self._replaced.get(number)
        if new is not None and (new.shape == tensor.shape or not self._in_shape):
            new = new.to(tensor.dtype)
            if not call.operator.endswith("_"):
                tensor = new.clone()
            elif tensor.shape == new.shape:
                tensor.copy_(new)
        numbers = tensor.numel()
        if numbers > MAX_NUMBERS or numbers > self._room or tensor.is_complex() or tensor.layout != torch.strided:
            values = torch.empty(0, dtype=torch.float64)
        else:
            self._room -= numbers
            values = tensor.detach().to("cpu", torch.float64, copy=True).contiguous()
        self.made.append(Made(call.file, call.line, call.operator, values, call.inputs, call.place))
        self._kept.append(tensor)
        if call.operator.endswith("_"):
            self._written.setdefault(_memory(tensor), []).append(number)
        self.of[id(tensor)] = number
        return tensor

    def _place(self) -> tuple[str, int, int]:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == _PRINTING:
                break  # what is computed to print a tensor is no part of the way
            if self.own(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti
            frame = frame.f_back
        return "", 0, 0


def watched(call: Callable[[], Any], watch: Watch) -> Run:
    """Runs the call, which gives what is compared; an error of the code is part of what it shows."""
    run = Run(watch.made)

    def returning(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and watch.own(frame.f_code.co_filename):
            run.returned = frame.f_code.co_filename, frame.f_lineno

    before = sys.getprofile()
    try:
        with torch.no_grad(), watch:
            if not watch.replaces:  # it takes as long as all the rest of a run
                sys.setprofile(returning)
            try:
                run.result = call()
            finally:
                sys.setprofile(before)
    except Exception as error:
        run.error = error
    return run


def made_ready(
    thing: Callable[..., Any],
    built: tuple[Any, ...] | None,
    parameters: Mapping[str, torch.Tensor] | None,
    arguments: tuple[Any, ...],
) -> Callable[[], Any]:
    """The call that is watched: of a function; or of an instance, which is built and gets its numbers within it."""

    def call() -> Any:
        target = thing
        if built is not None:
            target = thing(*built)
            _load(target, parameters or {})
        return target(*(arg.clone() if isinstance(arg, torch.Tensor) else copy.deepcopy(arg) for arg in arguments))

    return call


def _load(instance: Any, values: Mapping[str, torch.Tensor]) -> None:
    own = dict(instance.named_parameters())
    if own.keys() != values.keys():
        raise TypeError("it has other parameters")
    for name, parameter in own.items():
        parameter.data = values[name].clone().view(parameter.shape)


def _memory(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for item in value for one in _tensors(item)] if isinstance(value, tuple | list) else []


@dataclass(frozen=True)
class TellingCase:
    """What is called, and with what."""

    exercise: str
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    """What an instance is built with, where a class is asked for."""
    parameters: Mapping[str, torch.Tensor] | None = None
    """The numbers that it gets then."""


TOLERANCE = 2e-5
_INFINITE = 1e6
"""Numbers further out are all as one: some hide a score by minus infinity, others by -1e9."""
LARGE = 1e5
"""Further out than any number that is computed: it stands for infinity."""
_NAN = 12345678.0


@dataclass(frozen=True)
class Right:
    """One tensor of a right run."""

    values: torch.Tensor
    operator: str
    number: int | None = None
    """Its number in the solution's run; None in that of another right answer."""
    step: str = ""
    """What the solution calls it."""
    is_part: bool = False
    """Whether it is a slice of one that was made whole: of one head, or of one sequence."""

    @cached_property
    def is_mask(self) -> bool:
        """As `is_mask` says of its numbers."""
        return is_mask(self.values)


@dataclass
class Reference:
    """What is known to be right of one telling case."""

    case: TellingCase
    result: list[torch.Tensor]
    rights: list[Right]
    before: dict[int, frozenset[int]]
    """What each tensor of the solution's run was made of, and that of, to the beginning."""
    inputs: dict[int, list[int]]
    """What each tensor of the solution's run was made of, as far as it tells anything."""
    scaled: list[torch.Tensor]
    """What the solution scales later, scaled already."""
    _by_shape: dict[tuple[int, ...], tuple[torch.Tensor, list[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes: dict[tuple[int, ...], list[int]] = {}
        for number, right in enumerate(self.rights):
            shapes.setdefault(without_ones(right.values.shape), []).append(number)
        for shape, numbers in shapes.items():
            self._by_shape[shape] = torch.stack([comparable(self.rights[n].values).flatten() for n in numbers]), numbers

    @cached_property
    def lengths(self) -> list[int]:
        """How many rows what is right can have."""
        return sorted({size for right in self.rights for size in right.values.shape[:1]})

    @cached_property
    def hidden(self) -> list[torch.Tensor]:
        """The places that a mask hides: of masks, and of what has nothing, or minus infinity, in some places."""
        found = list[torch.Tensor]()
        for right in self.rights:
            if right.is_part or right.values.dim() < 2:
                continue
            values = right.values.squeeze()
            for hidden in (values != 0,) if is_mask(values) else (values == 0, values <= -LARGE):
                is_new = not any(torch.equal(one, hidden) for one in found)
                if is_new and bool(hidden.any()) and not bool(hidden.all()):
                    found.append(hidden)
        return found

    def known(self, values: torch.Tensor) -> list[int]:
        """Which of the right ones have exactly these numbers in these places."""
        stacked, numbers = self._by_shape.get(without_ones(values.shape), (None, []))
        if stacked is None:
            return []
        one = comparable(values).flatten()
        close = ((stacked - one).abs() <= TOLERANCE * (1 + one.abs())).all(dim=1)
        return [number for number, is_close in zip(numbers, close.tolist(), strict=True) if is_close]

    def is_scaled(self, values: torch.Tensor) -> bool:
        """Whether it is something right times a number that the solution multiplies with later."""
        squeezed = values.squeeze()
        return any(one.shape == squeezed.shape and same(one, squeezed) for one in self.scaled)

    def is_right(self, run: Run) -> bool:
        """Whether a run ended with the right result."""
        if run.error is not None:
            return False
        found = list(tensors_in(run.result))
        return len(found) == len(self.result) and all(
            one.shape == other.shape and not one.is_complex() and same(one, other)
            for one, other in zip(found, self.result, strict=True)
        )


def comparable(values: torch.Tensor) -> torch.Tensor:
    """The numbers as they are compared: whatever stands for infinity is one number."""
    return values.double().clamp(-_INFINITE, _INFINITE).nan_to_num(_NAN)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of as many numbers have the same ones."""
    first, second = comparable(one.detach()).flatten(), comparable(other.detach()).flatten()
    return bool(((first - second).abs() <= TOLERANCE * (1 + second.abs())).all())


def distinct(rights: Iterable[Right]) -> list[Right]:
    """Each tensor once, of the solution's run where it is there, and with a name where it has one.

    Two that differ in the last of the digits compared may both stay.
    """
    found: dict[tuple[tuple[int, ...], bytes], Right] = {}
    for right in rights:
        if right.values.numel():
            digits = comparable(right.values).round(decimals=4) + 0.0  # of minus zero: zero
            key = tuple(right.values.shape), digits.numpy().tobytes()
            if key not in found or (right.step and not found[key].step):
                found[key] = right
    return list(found.values())


def parts_of(rights: list[Right]) -> list[Right]:
    """One head's, one sequence's and one token's share of what is right."""
    parts: list[Right] = []
    for right in rights:
        for values in _slices(right.values):
            parts.append(Right(values, right.operator, is_part=True))
    return parts


def _slices(values: torch.Tensor, first: int = 0, depth: int = 2) -> Iterable[torch.Tensor]:
    for dim in range(first, values.dim() - 1) if depth else ():
        for index in range(values.shape[dim] if values.shape[dim] > 1 else 0):
            one = values.select(dim, index)
            yield one
            yield from _slices(one, dim, depth - 1)


def all_before(made: Sequence[Made]) -> dict[int, frozenset[int]]:
    """What each tensor of a run was made of, and that of, to the beginning."""
    before: dict[int, frozenset[int]] = {}
    for number, one in enumerate(made):
        before[number] = frozenset(one.inputs).union(*(before[other] for other in one.inputs if other < number))
    return before


def alone_fits(needed: torch.Tensor, made: torch.Tensor) -> bool:
    """Whether no other numbers would do as well: what a softmax takes may be hidden later, and large ones shifted."""
    return not bool((needed.abs() > LARGE).any()) or bool((made.isinf() & needed.isinf()).any())


def is_mask(values: torch.Tensor) -> bool:
    """Whether there are but two numbers in it, one of them nothing."""
    if values.numel() < 2 or values.dim() < 2:
        return False
    found = comparable(values).unique()
    return len(found) == 2 and bool((found == 0).any())


def without_ones(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape but for the dimensions of size 1."""
    return tuple(size for size in shape if size != 1)


_FINITE = 1e6
_MAKE_NEW = ("_like", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "fill_", "zero_")
"""How the operators are called that take only a shape of what they are given."""
SHAPING = {
    "view", "_unsafe_view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "clone", "slice",
    "select", "split", "unbind", "_to_copy", "as_strided", "_reshape_alias", "split_with_sizes", "movedim", "chunk",
}  # fmt: skip
_CUTTING = {"slice", "select", "split", "split_with_sizes", "unbind", "chunk", "max", "min"}
_ALIKE = 1e-6
_MOST_DIMS, _MOST_PLACES = 4, 3

Place = tuple[slice, ...]
"""Where in a tensor a block of it stands."""


class Standing:
    """What is known of the tensors of one run, by their numbers in it."""

    def __init__(self, reference: Reference, made: Sequence[Made]) -> None:
        self._reference = reference
        self.made = made
        self.before = all_before(made)
        self.known = [[] if _tells_nothing(one.values) else reference.known(one.values) for one in made]
        """Which of the right ones each is."""
        self.neutral = list[bool]()
        self.mask = list[bool]()
        for one in made:
            self.neutral.append(self._is_neutral(one))
            self.mask.append(self._is_mask(one))
        self.scaled = [
            not known and reference.is_scaled(one.values) for known, one in zip(self.known, made, strict=True)
        ]
        self.comes_right = self._vouched()
        """What something right was made of: it is right, whether known or not."""
        self.well_used = self._well_used()
        """Whether all that was made of it is right."""
        self._call_of = _calls(made)
        self._calls: dict[tuple[int | str, ...], list[int]] = {}
        for number, call in enumerate(self._call_of):
            self._calls.setdefault(call, []).append(number)
        self._plausible = dict[int, bool]()

    def turns(self, number: int) -> list[int]:
        """The tensors that the same call made, in a loop or in a function that is called more than once."""
        return self._calls[self._call_of[number]]

    def taken_from(self, numbers: Sequence[int]) -> list[tuple[int, list[Place]]]:
        """Which of the right ones all of these were taken out of, and from which places."""
        found: list[tuple[int, list[Place]]] = []
        blocks = [self.made[number].values.squeeze() for number in numbers]
        for which, right in enumerate(self._reference.rights):
            if right.is_part or right.is_mask:
                continue
            places = list[Place]()
            for block in blocks:
                place = _place_of(right.values, block)
                if place is None:
                    break
                places.append(place)
            else:
                found.append((which, places))
        return found

    def apart(self, number: int) -> list[int]:
        """Those that one call took apart from here on, as where a loop goes through the rows of an argument.

        Where several are taken apart in turn by the same call, as by zip, only one's.
        """
        alike = self._taken_apart(number)
        for length in self._reference.lengths if len(alike) > 1 else ():
            whole = alike[:length]
            if len(whole) == length > 1 and self._reference.known(torch.stack([self.made[n].values for n in whole])):
                return whole
        return []

    def is_shaping(self, number: int) -> bool:
        """Whether it has the numbers of what it was made of, in other places."""
        return self.made[number].operator in SHAPING

    def is_new(self, number: int) -> bool:
        """Whether it takes but a shape of what it was made of."""
        return _makes_new(self.made[number])

    def is_unknown(self, number: int) -> bool:
        """Whether nothing speaks for it."""
        fine = self.known[number] or self.neutral[number] or self.scaled[number]
        return not fine and number not in self.comes_right

    def may_be_wrong(self, number: int) -> bool:
        """Whether it is not known for right: what is only like something right, or overflows, may be what is wrong."""
        if self.known[number] or self.neutral[number] or self.mask[number]:
            return False
        is_finite = bool(self.made[number].values.abs().le(_FINITE).all())
        return number not in self.comes_right or not is_finite

    def is_plausible(self, number: int) -> bool:
        """Whether it is like something right: scaled early, cut out of it, or with its dimensions in another order."""
        if number not in self._plausible:
            values = self.made[number].values
            self._plausible[number] = self.scaled[number] or self._is_rearranged(values) or self._is_cut(values)
        return self._plausible[number]

    def is_known_mask(self, number: int) -> bool:
        """Whether it is a mask that is right, or is so the other way round, for all that it is made for alike."""
        values = self.made[number].values
        if not self.mask[number]:
            return False
        one = values.reshape(-1, *values.shape[-2:])[0]
        hidden = (one != 0).double()
        is_alike = bool((values == one).all())
        return is_alike and any(self._reference.known(way) for way in (one, hidden, 1 - hidden))

    def is_only_a_part(self, number: int) -> bool:
        """Whether it is a slice of what is right, and nothing that is right as a whole."""
        known = self.known[number]
        return bool(known) and all(self._reference.rights[one].is_part for one in known)

    def _vouched(self) -> set[int]:
        found = set[int]()
        for number in reversed(range(len(self.made))):
            is_right = self.known[number] and not self.neutral[number] and not self.mask[number]
            # A piece that is right says nothing of the other pieces.
            if (is_right or number in found) and self.made[number].operator not in _CUTTING:
                found.update(self.made[number].inputs)
        return found

    def _well_used(self) -> list[bool]:
        users = [list[int]() for _ in self.made]
        for number, one in enumerate(self.made):
            for other in one.inputs:
                users[other].append(number)
        found = [False] * len(self.made)
        for number in reversed(range(len(self.made))):
            found[number] = bool(users[number]) and all(
                found[one] if self.is_shaping(one) else bool(self.known[one]) or one in self.comes_right
                for one in users[number]
            )
        return found

    def _taken_apart(self, number: int) -> list[int]:
        """Those that the same call gave from here on."""
        first = self.made[number]
        found = list[int]()
        if first.operator not in ("unbind", "select"):
            return found
        for one in range(number, len(self.made)):
            other = self.made[one]
            if (other.line, other.place, other.operator, other.inputs) != (
                first.line, first.place, first.operator, first.inputs
            ) or other.values.shape != first.values.shape:  # fmt: skip
                break
            found.append(one)
        return found

    def _is_neutral(self, made: Made) -> bool:
        """Whether it tells nothing: a number alone, or the same one everywhere that was made of nothing that tells."""
        values = made.values
        if not values.numel():
            return True
        if values.numel() == 1:
            return bool(values == values.round()) and all(self.neutral[one] for one in made.inputs)
        if bool((values != values.flatten()[0]).any()):
            return max(values.shape) == values.numel() and _counts(values)
        return _makes_new(made) or all(self.neutral[one] for one in made.inputs)

    def _is_mask(self, made: Made) -> bool:
        """Whether it is a mask, and none that only looks like one because numbers made of the arguments overflow."""
        if not is_mask(made.values):
            return False
        if not bool((made.values > _FINITE).any()) or _makes_new(made):
            return True
        return bool(made.inputs) and all(self.neutral[one] or self.mask[one] for one in made.inputs)

    def _is_rearranged(self, values: torch.Tensor) -> bool:
        numbers = values.flatten().sort().values
        return any(
            right.values.numel() == values.numel()
            and values.numel() > 1
            and not right.is_part
            and not right.is_mask
            and same(numbers, right.values.flatten().sort().values)
            and any(same(one, values) for one in rearranged(right.values, values.shape))
            for right in self._reference.rights
        )

    def _is_cut(self, values: torch.Tensor) -> bool:
        rights = (right.values for right in self._reference.rights if not right.is_part and not right.is_mask)
        return any(_place_of(one, values.squeeze()) is not None for one in rights)


def rearranged(values: torch.Tensor, shape: torch.Size) -> Iterator[torch.Tensor]:
    """The tensor with its dimensions in other orders, neighbours merged where the shape asks for that."""
    squeezed = values.squeeze()
    if squeezed.dim() > _MOST_DIMS or values.numel() != shape.numel():
        return
    for order in permutations(range(squeezed.dim())):
        turned = squeezed.permute(order)
        if _merges(tuple(turned.shape), tuple(size for size in shape if size != 1)):
            yield turned.reshape(shape)


def _merges(sizes: tuple[int, ...], into: tuple[int, ...]) -> bool:
    left = list(sizes)
    for size in into:
        product = 1
        while product < size and left:
            product *= left.pop(0)
        if product != size:
            return False
    return not left


def _place_of(values: torch.Tensor, block: torch.Tensor) -> Place | None:
    """Where the block stands in the tensor, each of its dimensions along one of the tensor's, in their order."""
    if not block.numel() or block.dim() > min(values.dim(), _MOST_DIMS):
        return None
    first = block.flatten()[0]
    starts = torch.nonzero((values - first).abs() <= TOLERANCE * (1 + first.abs()))
    for start in starts.tolist() if len(starts) <= _MOST_PLACES else ():
        for dims in combinations(range(values.dim()), block.dim()):
            sizes = dict(zip(dims, block.shape, strict=True))
            place = tuple(slice(at, at + sizes.get(dim, 1)) for dim, at in enumerate(start))
            cut = values[place]
            if cut.numel() == block.numel() and same(cut, block):
                return place
    return None


def _tells_nothing(values: torch.Tensor) -> bool:
    """Whether it is alike to others by chance: the same number everywhere, or overflown."""
    if bool(values.isposinf().any()) or bool(values.isnan().any()):
        return True
    first = values.flatten()[:1]
    return values.numel() > 1 and bool(((values == first) | ((values - first).abs() <= _ALIKE)).all())


def _makes_new(made: Made) -> bool:
    return any(part in made.operator for part in _MAKE_NEW)


def _counts(values: torch.Tensor) -> bool:
    return bool((values.flatten() == torch.arange(values.numel(), dtype=values.dtype)).all())


def _calls(made: Sequence[Made]) -> list[tuple[int | str, ...]]:
    """For each tensor, the call that made it, the same in each turn of a loop, and its number among what that gave."""
    calls: list[tuple[int | str, ...]] = []
    for number, one in enumerate(made):
        before = made[number - 1] if number else None
        same_call = before is not None and (one.line, one.place, one.operator, one.inputs) == (
            before.line, before.place, before.operator, before.inputs
        )  # fmt: skip
        place = int(calls[-1][-1]) + 1 if same_call and one.inputs else 0
        calls.append((one.line, one.place, one.operator, place))
    return calls


@dataclass(frozen=True)
class Located:
    """The line, or the two lines, and what is known of them."""

    file: str
    lines: tuple[int, ...]
    """In the order in which they run: one; or two that do not fit each other, as where a mask is made and where it is
    used the other way round, or where what is right is made and where it should be used."""
    made: torch.Tensor | None
    """What is there; None where that is no tensor."""
    step: str
    """What the solution calls it; empty where that is not known."""
    expected: torch.Tensor | None
    """What should be there."""
    right_so_far: dict[str, int]
    """The solution's steps that were made as they should be by then, with their lines."""
    how: str
    """`mended`; `missing`: a step may be left out; `mask`: right the other way round; `swapped`: two in each other's
    places; `another`: right, but in the wrong place; `unused`: made and not used; `returned`: not the result;
    `of another kind`: not as many tensors as are asked for; `first of two`: a later line is wrong too; `one line`: all
    that goes in is right."""
    sound: frozenset[int]
    """The lines of which nothing that they make is wrong."""
    is_inner: bool = False
    """Whether `made` is only on the way to what the line makes."""
    results: int | None = None
    """How many tensors are returned, where others are asked for."""
    wanted: int | None = None
    """How many should be."""


class Telling:
    """What stands beside a line of one run, once it is found."""

    def __init__(self, reference: Reference, standing: Standing) -> None:
        self._reference = reference
        self._standing = standing
        self._made = standing.made

    def located(
        self,
        lines: Iterable[int],
        file: str,
        until: int,
        how: str,
        made: torch.Tensor | None,
        expected: torch.Tensor | None = None,
        *,
        step: str = "",
        proven: frozenset[int] = frozenset(),
        **more: Any,
    ) -> Located:
        """These lines. until: the steps that were made before this tensor are told with them."""
        own = [number for number, one in enumerate(self._made) if one.file == file]
        doubtful = {self._made[one].line for one in own if one not in proven and self._speaks_against(one)}
        sound = frozenset(self._made[one].line for one in own) - doubtful
        places = tuple(dict.fromkeys(lines))
        return Located(file, places, made, step, expected, self._steps(until, file), how, sound, **more)

    def is_inner(self, number: int, same_line: Sequence[int]) -> bool:
        """Whether the line goes on to make something else of it."""
        standing = self._standing
        return any(number in standing.before[one] and not standing.is_shaping(one) for one in same_line)

    def _speaks_against(self, number: int) -> bool:
        """Whether it is not known for right, be it a mask."""
        standing = self._standing
        is_unknown_mask = standing.mask[number] and not standing.known[number] and number not in standing.comes_right
        return standing.may_be_wrong(number) or is_unknown_mask

    def _steps(self, until: int, file: str) -> dict[str, int]:
        steps: dict[str, int] = {}
        for number, known in enumerate(self._standing.known[:until]):
            for one in known if self._made[number].file == file else ():
                if step := self._reference.rights[one].step:
                    steps.setdefault(step, self._made[number].line)
        return steps


def instead_of(reference: Reference, standing: Standing, number: int) -> Iterator[tuple[Right, torch.Tensor]]:
    """What could be meant in the place of a tensor that is known, of which nothing right was made."""
    if standing.well_used[number]:
        return
    made = standing.made[number]
    for right in _unrelated(reference, standing.known[number]):
        yield from ((right, values) for values in rearranged(right.values, made.values.shape))
        # Another argument may have other sizes.
        if made.operator in SHAPING and right.operator == "given" and right.values.dim() == made.values.dim():
            yield right, right.values


def pieces_of(reference: Reference, standing: Standing, group: list[int]) -> Iterator[tuple[Right, list[torch.Tensor]]]:
    """Where a loop goes through something known: the same pieces of what could be meant in its place."""
    if any(not standing.known[one] for one in group) and not standing.is_shaping(group[0]):
        return
    if all(standing.well_used[one] for one in group):
        return
    for which, places in standing.taken_from(group):
        of = reference.rights[which].values
        for right in _unrelated(reference, [which]):
            if right.values.shape == of.shape:
                shapes = [standing.made[one].values.shape for one in group]
                yield right, [right.values[at].reshape(to) for at, to in zip(places, shapes, strict=True)]
            elif right.operator == "given" and right.values.shape[:1] == of.shape[:1] == (len(group),):
                yield right, list(right.values)


def swapped(
    reference: Reference, standing: Standing, group: list[int]
) -> Iterator[tuple[Right, dict[int, torch.Tensor]]]:
    """Known ones, of which nothing right was made, in the places of others of the same line, and these in theirs."""
    if any(not standing.known[one] or standing.well_used[one] for one in group):
        return
    made, first = standing.made, group[0]
    for later in range(group[-1] + 1, len(made)):
        others = standing.apart(later) or [later]
        if made[later].line != made[first].line:
            return
        if len(others) != len(group) or any(not standing.known[n] or standing.well_used[n] for n in others):
            continue
        if first in standing.before[later] or made[later].values.shape != made[first].values.shape:
            continue
        pairs = list(zip(group, others, strict=True))
        if not all(same(made[one].values, made[other].values) for one, other in pairs):
            new = {one: made[other].values for one, other in pairs} | {other: made[one].values for one, other in pairs}
            yield reference.rights[standing.known[later][0]], new


def _unrelated(reference: Reference, known: list[int]) -> list[Right]:
    """What neither comes of what is known nor is what it comes of."""
    numbers = [n for one in known if (n := reference.rights[one].number) is not None]
    is_given = any(_is_given(reference, reference.rights[one]) for one in known)
    found = list[Right]()
    for right in reference.rights:
        if right.is_part or right.is_mask:
            continue
        if is_given and _is_given(reference, right):
            found.append(right)
        elif right.number is not None and numbers:
            before = reference.before[right.number]
            if all(n != right.number and n not in before and right.number not in reference.before[n] for n in numbers):
                found.append(right)
    return found


def _is_given(reference: Reference, right: Right) -> bool:
    """Whether it is an argument or a parameter, or one in another shape."""
    if right.operator == "given":
        return True
    if right.number is not None:
        return right.operator in SHAPING and not reference.before[right.number]
    given = (one.values for one in reference.rights if one.operator == "given" and not one.is_part)
    return any(one.shape == right.values.shape and same(one, right.values) for one in given)


another = types.SimpleNamespace(instead_of=instead_of, pieces_of=pieces_of, swapped=swapped)


MOST_ATTEMPTS, MOST_OF_A_SHAPE = 24, 6
"""In one place."""
MOST_TURNS, MOST_STEPS = 4, 6
"""Of a loop whose turns each make another step."""


@dataclass(frozen=True)
class Replacement:
    """One attempt."""

    number: int
    """Of the tensor that is tried."""
    right: Right
    values: torch.Tensor
    """What is put in its place."""
    replaced: dict[int, torch.Tensor]
    """All that is put in some place."""
    is_swap: bool = False
    """Whether two that are right change places."""


def replacements(reference: Reference, standing: Standing, number: int) -> Iterator[Replacement]:
    """What could be right in the place of this tensor, likely ones first; of one made in a loop, in that of all."""
    turns = standing.turns(number)
    found: Iterator[Replacement] = iter(())
    group = standing.apart(number) or (turns if len(turns) > 1 and number == turns[0] else [])
    if group:
        pieces = another.pieces_of(reference, standing, group)
        if any(map(standing.is_unknown, group)):
            pieces = chain(_in_their_places(reference, standing, group), pieces)
        found = (Replacement(number, right, some[0], dict(zip(group, some, strict=True))) for right, some in pieces)
    if len(turns) == 1 or standing.is_shaping(number):
        alone = (
            Replacement(number, right, values, {number: values})
            for right, values in _in_its_place(reference, standing, number)
        )
        found = chain(found, alone)
    swapped = (
        Replacement(number, right, new[number], new, is_swap=True)
        for right, new in another.swapped(reference, standing, group or [number])
    )
    return islice(chain(found, swapped), MOST_OF_A_SHAPE if _only_reshapes(standing, number) else MOST_ATTEMPTS)


def _only_reshapes(standing: Standing, number: int) -> bool:
    """Whether it has the numbers of what is unknown too: what could be right there was tried already."""
    return standing.is_shaping(number) and any(map(standing.is_unknown, standing.made[number].inputs))


Pieces = tuple[Right, list[torch.Tensor]]


def _in_their_places(reference: Reference, standing: Standing, turns: list[int]) -> Iterator[Pieces]:
    """What could be right in the places of all that a loop made: something right, cut up."""
    made = [standing.made[one].values for one in turns]
    shape = made[0].shape
    is_even = all(one.shape == shape for one in made)
    if is_even:
        yield from _steps_in_turn(reference, shape, len(turns))
        if len(turns) == len(reference.result) and all(one.shape == shape for one in reference.result):
            yield Right(reference.result[0], ""), reference.result
    wholes = [right for right in reference.rights if not right.is_part and not right.is_mask]
    for right in wholes if is_even else ():
        if right.values.numel() != len(turns) * shape.numel():
            continue
        squeezed = right.values.squeeze()
        for order in permutations(range(squeezed.dim())):
            turned = squeezed.permute(order)
            if turned.shape[turned.dim() - len(without_ones(shape)) :] == without_ones(shape):
                yield right, list(turned.reshape(len(turns), *shape))
    for right in wholes:
        for dim, size in enumerate(right.values.shape):
            if size == len(turns) and (pieces := _cut_to(right.values.split(1, dim), dim, made)):
                yield right, pieces


def _cut_to(slices: Sequence[torch.Tensor], dim: int, made: list[torch.Tensor]) -> list[torch.Tensor]:
    """The beginning of each slice, as large as what was made there; nothing where one is too small."""
    found = list[torch.Tensor]()
    for piece, there in zip(slices, made, strict=True):
        whole = piece if piece.dim() == there.dim() else piece.squeeze(dim)
        sizes = there.shape
        if whole.dim() != len(sizes) or any(size > of for size, of in zip(sizes, whole.shape, strict=True)):
            return []
        found.append(whole[tuple(slice(size) for size in sizes)])
    return found


def _steps_in_turn(reference: Reference, shape: torch.Size, turns: int) -> Iterator[Pieces]:
    """Steps of the solution, one for each turn, as queries, keys and values are often made."""
    steps = [right for right in reference.rights if right.step and right.values.numel() == shape.numel()]
    if not 1 < turns <= MOST_TURNS or len(steps) > MOST_STEPS:
        return
    for some in combinations(sorted(steps, key=lambda one: one.number or 0), turns):
        if len({right.values.shape for right in some}) != 1:
            continue
        for order in permutations(range(some[0].values.dim())):
            turned = [right.values.permute(order) for right in some]
            if without_ones(turned[0].shape) == without_ones(shape):
                yield some[0], [one.reshape(shape) for one in turned]
        if some[0].values.shape != shape:
            yield some[0], [right.values for right in some]


def _in_its_place(reference: Reference, standing: Standing, number: int) -> Iterator[tuple[Right, torch.Tensor]]:
    """What could be right in the place of a tensor, likely ones first."""
    made = standing.made[number]
    if standing.mask[number] or _is_last_constant(standing, number):
        yield from _masks(reference, made)
        return
    if standing.neutral[number]:
        if standing.is_new(number) and made.values.numel() > 1:  # what a sum begins with
            filled = (torch.full_like(made.values, one) for one in (0.0, 1.0))
            yield from ((Right(one, ""), one) for one in filled if not torch.equal(one, made.values))
        return
    if standing.scaled[number]:
        yield from ((Right(one, "mul"), one.reshape(made.values.shape)) for one in _scaled_alike(reference, made))
        return
    if number in standing.comes_right and not standing.known[number]:
        return
    seen = [made.values]
    if standing.known[number]:
        ways = another.instead_of(reference, standing, number)
    else:
        ways = ((right, one) for right in _likely(reference, standing, made) for one in _arrangements(right, made))
    for right, values in ways:
        if not any(one.shape == values.shape and same(one, values) for one in seen):
            seen.append(values)
            yield right, values


def _likely(reference: Reference, standing: Standing, made: Made) -> list[Right]:
    """The solution's own first, and of them those that are not there and that the same operator makes."""
    present = {right for known in standing.known for right in known}
    wanted = [(n, right) for n, right in enumerate(reference.rights) if not right.is_part and not right.is_mask]
    wanted.sort(key=lambda one: (one[1].number is None, one[0] in present, one[1].operator != made.operator))
    scaled = [Right(one, "mul") for one in reference.scaled if one.numel() == made.values.numel()]
    own = [right for _, right in wanted if right.number is not None]
    return [*own, *scaled, *(right for _, right in wanted if right.number is None)]


def _scaled_alike(reference: Reference, made: Made) -> list[torch.Tensor]:
    """What is scaled too, and has nothing to do with this one: with a mask in it, it would still have most of it."""
    squeezed = made.values.squeeze()
    alike = [one for one in reference.scaled if one.shape == squeezed.shape]
    return [one for one in alike if not bool(torch.isclose(one, squeezed, rtol=1e-4, atol=1e-6).any())]


def _is_last_constant(standing: Standing, number: int) -> bool:
    """Whether it is the same everywhere, as a mask never is, and no mask was made of it."""
    made = standing.made[number]
    if made.values.dim() < 2 or made.values.numel() < 2 or not standing.neutral[number]:
        return False
    return not any(
        number in standing.before[later] and standing.mask[later] for later in range(number + 1, len(standing.made))
    )


def _masks(reference: Reference, made: Made) -> Iterator[tuple[Right, torch.Tensor]]:
    seen = [made.values]
    shape = without_ones(made.values.shape)
    there = made.values[made.values != 0].flatten()[:1].tolist() or [1.0]
    # Of one that is added, infinity with the wrong sign is as likely as the wrong places.
    fills = [there[0], -there[0]] if abs(there[0]) > LARGE else there
    for hidden in reference.hidden:
        if tuple(hidden.shape) != shape[max(len(shape) - hidden.dim(), 0) :]:
            continue
        for filled in fills:
            for one in (hidden, ~hidden):
                values = torch.where(one, filled, 0.0).to(made.values.dtype).expand(shape).reshape(made.values.shape)
                if not any(torch.equal(other, values) for other in seen):
                    seen.append(values)
                    yield Right(hidden, ""), values


def _arrangements(right: Right, made: Made) -> Iterator[torch.Tensor]:
    """What is right, as it would stand in the place of what was made."""
    values, shape = right.values, made.values.shape
    turned = list(rearranged(values, shape))
    yield from turned
    if values.shape != shape and (turned or values.numel() == shape.numel() or right.operator == made.operator):
        yield values


MAX_RUNS = 120
"""Of one answer, all attempts together."""
_MAX_FIRST = 16
"""Attempts at what is replaced first, where one alone does not do."""

Again = Callable[[Mapping[int, torch.Tensor]], Run]
"""Runs the answer once more, with some of the tensors that it makes replaced."""


@dataclass(frozen=True)
class Mended:
    """A replacement with which the run came right."""

    by: Replacement
    proven: frozenset[int]
    """What is right because it went into the right result."""
    is_last: bool
    """Whether it was the result itself that was put in: that proves nothing of what came before."""


class Mending:
    """The attempts on one answer."""

    def __init__(self, reference: Reference, run: Run, standing: Standing, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._standing = standing
        self._again = again
        self._left = MAX_RUNS

    @property
    def is_over(self) -> bool:
        """Whether there were too many attempts to say what the others would have come to."""
        return self._left <= 0

    def at(self, number: int) -> Mended | None:
        """What makes the run right in the place of this tensor; of one made in a loop, in that of all of them."""
        for one in replacements(self._reference, self._standing, number):
            run = self._attempt(one.replaced)
            if run is None:
                return None
            if self._reference.is_right(run):
                return Mended(one, *self._flow(run, one))
        return None

    def comes_right(self, replaced: Mapping[int, torch.Tensor]) -> bool:
        """Whether the run does, with these in their places."""
        run = self._attempt(replaced)
        return run is not None and self._reference.is_right(run)

    def at_first(self, numbers: Iterable[int]) -> Replacement | None:
        """What has to be replaced at one of these before something later is, for the run to come right.

        The lines between the two must make something right of it.
        """
        attempts = 0
        for number in numbers:
            for one in replacements(self._reference, self._standing, number):
                attempts += 1
                run = self._attempt(one.replaced)
                if run is None or attempts > _MAX_FIRST:
                    return None
                if run.error is None and self._comes_right_later(run, one):
                    return one
        return None

    def _comes_right_later(self, run: Run, first: Replacement) -> bool:
        standing = Standing(self._reference, run.made)
        if not any(self._is_newly_right(number, standing, first) for number in range(first.number + 1, len(run.made))):
            return False
        for number in range(first.number + 1, len(run.made)):
            if not standing.is_unknown(number) or first.number not in standing.before[number]:
                continue
            for one in replacements(self._reference, standing, number):
                again = self._attempt({**first.replaced, **one.replaced})
                if again is None:
                    return False
                if self._reference.is_right(again):
                    return True
        return False

    def _is_newly_right(self, number: int, standing: Standing, first: Replacement) -> bool:
        made = standing.made[number]
        if not standing.known[number] or standing.neutral[number] or standing.mask[number]:
            return False
        if standing.is_shaping(number) or first.number not in standing.before[number]:
            return False
        is_new = number >= len(self._run.made) or not self._standing.known[number]
        return is_new and made.line != self._run.made[first.number].line

    def _attempt(self, replaced: Mapping[int, torch.Tensor]) -> Run | None:
        if self._left <= 0:
            return None
        self._left -= 1
        return self._again(replaced)

    def _flow(self, run: Run, by: Replacement) -> tuple[frozenset[int], bool]:
        """What the right result of a run was made of, beside what was put in; and whether that alone is the result."""
        pending = made_last(run)
        is_last = any(number in by.replaced for number in pending)
        proven = set[int]()
        while pending:
            number = pending.pop()
            if number not in by.replaced and number not in proven:
                proven.add(number)
                pending += run.made[number].inputs
        before = self._run.made
        is_same = [
            (one.line, one.place) == (other.line, other.place) for one, other in zip(run.made, before, strict=False)
        ]
        return frozenset(one for one in proven if one < len(is_same) and is_same[one]), is_last


def made_last(run: Run) -> list[int]:
    """The tensors that have the numbers of the result."""
    results = list(tensors_in(run.result))
    return [
        number
        for number, made in enumerate(run.made)
        if any(one.shape == made.values.shape and same(one, made.values) for one in results)
    ]


_MAX_UNUSED = 4


def locate(reference: Reference, again: Again) -> Located | None:
    """The line where the answer goes wrong on the reference's case; None where it does not, or no line can be told."""
    run = again({})
    return None if reference.is_right(run) else _Search(reference, run, again).found()


class _Search:
    def __init__(self, reference: Reference, run: Run, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._made = run.made
        self._standing = Standing(reference, run.made)
        self._mending = Mending(reference, run, self._standing, again)
        self._telling = Telling(reference, self._standing)

    def found(self) -> Located | None:
        return self._of_another_kind() or self._unused() or self._by_mending()

    def _by_mending(self) -> Located | None:
        mended: Mended | None = None
        before = self._standing.before
        for number in range(len(self._made)):
            if mended and (before[number].intersection(mended.by.replaced) or not self._is_apart(number, mended)):
                continue
            mended = self._mending.at(number) or mended
            if mended and len(mended.by.replaced) == 1:
                break  # of a loop, what goes into a later turn is still to be tried
        if self._mending.is_over:
            return self._in_the_only_line() if mended is None else None
        located = (mended and self._located(mended)) or self._in_the_only_line() or self._returned_too_early()
        if located is None and (mended is None or mended.is_last):
            return self._first_of_two()
        return located

    def _is_apart(self, number: int, mended: Mended) -> bool:
        """Whether it may be wrong beside what was mended, or instead of it: it is not known and in no loop with it."""
        standing = self._standing
        went_in = any(number in standing.before[one] for one in mended.by.replaced)
        return not standing.known[number] and not (went_in and len(standing.turns(number)) > 1)

    def _located(self, mended: Mended) -> Located | None:
        standing, right = self._standing, mended.by.right
        number, made = mended.by.number, self._made[mended.by.number]
        before = frozenset().union(*(standing.before[one] for one in mended.by.replaced))
        elsewhere = {one for one in before if self._place(one) != self._place(number)}
        if any(self._stays_doubtful(one, mended) for one in elsewhere):
            return None
        is_mask_turned, is_another = standing.is_known_mask(number), bool(standing.known[number])
        concerned = [number]
        if is_mask_turned:
            # It is right for those who use it the other way round: the two do not fit, and either may be meant.
            chain = [one for one in standing.before[number] if standing.mask[one]] + sorted(self._users(number))
            concerned += [one for one in chain if not (standing.mask[one] and standing.is_shaping(one))]
        if mended.by.is_swap:
            concerned += [user for one in mended.by.replaced for user in self._first_users(one)]
        places = list(dict.fromkeys(map(self._place, sorted(concerned))))
        if len(places) > 2 or any(file != made.file for file, _ in places):
            return None  # it may be in another cell
        is_alone = len(standing.turns(number)) == 1 == len(places)
        is_missing = is_alone and not is_another and self._is_missing_before(right)
        if is_missing:
            places = list(dict.fromkeys([*self._last_known(elsewhere, made.file), *places]))
        how = "swapped" if mended.by.is_swap else "mask" if is_mask_turned else "another" if is_another else "mended"
        there, needed, step, is_inner = self._in_the_end(number, mended)
        return self._telling.located(
            [line for _, line in places], made.file, number, "missing" if is_missing else how, there, needed,
            step=step, is_inner=is_inner, proven=mended.proven,
        )  # fmt: skip

    def _last_known(self, among: Iterable[int], file: str) -> list[tuple[str, int]]:
        """Where the last of these was made that is known for right."""
        standing = self._standing
        known = [n for n in among if standing.known[n] and not standing.mask[n] and not standing.neutral[n]]
        return [self._place(max(own))] if (own := [n for n in known if self._made[n].file == file]) else []

    def _place(self, number: int) -> tuple[str, int]:
        """The file and the line that it was made in."""
        return self._made[number].file, self._made[number].line

    def _in_the_end(self, number: int, mended: Mended) -> tuple[torch.Tensor, torch.Tensor | None, str, bool]:
        """What the line makes, what it should if that is known, the solution's step that this is, if it is one, and
        whether the line makes more of it."""
        made, needed, right = self._made[number], mended.by.values, mended.by.right.values
        named = self._next_step(mended.by.right)
        later_turn = min((turn for turn in self._standing.turns(number) if turn > number), default=len(self._made))
        same_line = [n for n in range(number, later_turn) if self._place(n) == self._place(number)]
        for last in reversed(same_line):
            one = self._made[last]
            # Better than what is on the way to it: the step itself, if the line makes that.
            if named and one.values.shape == named.values.shape and _are_alike(one.operator, named.operator):
                told = named.values if alone_fits(named.values, one.values) else None
                return one.values, told, named.step, self._telling.is_inner(last, same_line)
        for last in reversed(same_line) if needed.shape == made.values.shape else ():
            one = self._made[last]
            if one.values.numel() == needed.numel() and same(one.values, made.values):
                # A library's function works in a shape that the student never sees.
                made, needed, number = one, needed.reshape(one.values.shape), last
                break
        is_step = named is not None and named.number == mended.by.right.number
        # What has its dimensions in another order may be needed so or otherwise: that is not told.
        is_turned = right.numel() == needed.numel() and without_ones(right.shape) != without_ones(made.values.shape)
        is_told = not is_turned and alone_fits(needed, made.values)
        step = named.step if named and is_step else ""
        return made.values, needed if is_told else None, step, self._telling.is_inner(number, same_line)

    def _stays_doubtful(self, number: int, mended: Mended) -> bool:
        """Whether what came before may be where it went wrong."""
        if not self._standing.may_be_wrong(number) or number in mended.proven:
            return False
        # What the mended line was computed with has the sizes that are needed. A line that reshapes proves less.
        is_computed = not self._standing.is_shaping(mended.by.number)
        return mended.is_last or not is_computed or not self._standing.is_plausible(number)

    def _is_missing_before(self, right: Right) -> bool:
        """Whether what the solution makes it of was not made either: then a step is missing, in whichever line."""
        if right.number is None:
            return False
        there = {self._reference.rights[one].number for known in self._standing.known for one in known}
        return any(one not in there for one in self._reference.inputs[right.number])

    def _next_step(self, right: Right) -> Right | None:
        """The first of the solution's steps that this is, or that is made of it."""
        if right.number is None:
            return None
        before = self._reference.before
        steps = [one for one in self._reference.rights if one.step and one.number is not None]
        later = [one for one in steps if one.number == right.number or right.number in before[one.number or 0]]
        return min(later, key=lambda one: one.number or 0, default=None)

    def _first_users(self, number: int) -> list[int]:
        """What is computed with it, be it in another shape."""
        shapes, found = {number}, list[int]()
        for later in range(number + 1, len(self._made)):
            if shapes.intersection(self._made[later].inputs):
                (shapes.add if self._standing.is_shaping(later) else found.append)(later)
        return found

    def _users(self, number: int) -> set[int]:
        """What comes of a mask, up to what is none itself."""
        masks, users = {number}, set[int]()
        for later in range(number + 1, len(self._made)):
            if masks.intersection(self._made[later].inputs):
                users.add(later)
                if self._standing.mask[later]:
                    masks.add(later)
        return users

    def _in_the_only_line(self) -> Located | None:
        """Where all that the result is made of is known to be right, but for what one line makes."""
        if self._run.error is not None:
            return None
        standing, last = self._standing, made_last(self._run)
        behind = set(last).union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
        doubtful = sorted(
            number
            for number in behind
            if standing.may_be_wrong(number) or (standing.mask[number] and number not in standing.comes_right)
        )
        if not doubtful and all(standing.neutral[number] for number in behind):
            doubtful = sorted(number for number in behind if not standing.is_new(number))
        if not doubtful or len({self._place(number) for number in doubtful}) > 1:
            return None
        if any(self._goes_through_parts(number) for number in doubtful):
            return None  # another may have been taken apart
        made = self._made[doubtful[-1]]
        return self._telling.located([made.line], made.file, doubtful[0], "one line", made.values)

    def _goes_through_parts(self, number: int) -> bool:
        """Whether it is made in a loop, of slices that another line made."""
        standing, made = self._standing, self._made[number]
        if standing.is_shaping(number) or len(standing.turns(number)) == 1:
            return False
        return any(standing.is_only_a_part(one) and self._made[one].line != made.line for one in made.inputs)

    def _first_of_two(self) -> Located | None:
        """Where the run comes right once this line and a later one are mended."""
        if self._run.error is not None:
            return None
        standing = self._standing
        frontier = [
            number
            for number in range(len(self._made))
            if standing.is_unknown(number) and not any(map(standing.may_be_wrong, standing.before[number]))
        ]
        if not frontier:
            return None
        line = self._made[frontier[0]].line
        first = self._mending.at_first(number for number in frontier if self._made[number].line == line)
        if first is None or not alone_fits(first.values, self._made[first.number].values):
            return None
        made = self._made[first.number]
        is_inner = self._telling.is_inner(
            first.number, [n for n in range(len(self._made)) if self._made[n].line == line]
        )
        return self._telling.located(
            [line], made.file, first.number, "first of two", made.values, first.values, is_inner=is_inner
        )

    def _unused(self) -> Located | None:
        """Where something right is made, and what follows uses that of which it was made."""
        standing = self._standing
        last = set(made_last(self._run))
        used = last.union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
        left = _MAX_UNUSED
        for number, made in enumerate(self._made):
            if number in used or not standing.known[number] or standing.neutral[number] or standing.mask[number]:
                continue
            for one in made.inputs:
                later = [n for n in used if n > number and one in self._made[n].inputs]
                if not later or standing.neutral[one] or standing.mask[one] or left <= 0:
                    continue
                left -= 1
                if self._mending.comes_right({one: made.values}):
                    there, user = self._made[one].values, self._made[min(later)]
                    if user.file != made.file:
                        return None
                    return self._telling.located(
                        [made.line, user.line], made.file, number, "unused", there, made.values
                    )
        return None

    def _of_another_kind(self) -> Located | None:
        """Where what is returned is not as many tensors as it should be, and nothing speaks against what was made."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) == len(self._reference.result):
            return None
        file, line = self._run.returned
        doubtful = {one.line for number, one in enumerate(self._made) if self._standing.may_be_wrong(number)}
        if results and doubtful - {line}:
            return None
        first = results[0].detach() if results else None
        return self._telling.located(
            [line], file, len(self._made), "of another kind", first,
            results=len(results), wanted=len(self._reference.result),
        )  # fmt: skip

    def _returned_too_early(self) -> Located | None:
        """Where what is returned is right as far as it goes, or has nothing of the arguments in it."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) != len(self._reference.result):
            return None
        standing, last = self._standing, made_last(self._run)
        behind = set(last).union(*(standing.before[number] for number in last))
        if any(standing.may_be_wrong(number) for number in behind):
            return None
        if any(standing.is_only_a_part(number) for number in behind.difference(last)):
            return None
        if any(map(self._adds_up, behind)) or self._is_one_result_twice(results):
            return None
        for one, right in zip(results, self._reference.result, strict=True):
            if one.shape == right.shape and same(one, right):
                continue
            if (
                is_mask(one)
                or self._is_an_argument(one, behind)
                or not (self._reference.known(one) or (behind and all(map(standing.is_new, behind))))
            ):
                return None
            file, line = self._run.returned
            return self._telling.located([line], file, len(self._made), "returned", one, right)
        return None

    def _adds_up(self, number: int) -> bool:
        """Whether it is made in a loop, of what an earlier turn made: then a turn may be missing."""
        standing = self._standing
        return not standing.is_shaping(number) and any(one in standing.before[number] for one in standing.turns(number))

    def _is_one_result_twice(self, results: list[torch.Tensor]) -> bool:
        """Whether two results are alike that should not be: then one was made wrong, before it is returned."""
        found = [set(self._reference.known(one)) for one in results]
        return any(one & other for one, other in combinations(found, 2))

    def _is_an_argument(self, one: torch.Tensor, behind: set[int]) -> bool:
        """Whether it is what went in, though more than one line worked on it."""
        is_given = any(self._reference.rights[n].operator == "given" for n in self._reference.known(one))
        return is_given and len({self._made[number].line for number in behind}) > 1


def _are_alike(one: str, other: str) -> bool:
    """Whether two operators do the same: compute alike, or but put numbers into another shape."""
    return one == other or {one, other} <= SHAPING


MAX_LINE = 100
"""Characters of a line that is quoted."""
_SHOWN = 4
_SMALL = 1e-3
_ASSIGNED = re.compile(r"([\w.,\s*]+?)(?::[^=]*)?\s*(?:[-+*/@]|\*\*)?=(?!=)")

Source = Callable[[str, int], str]
"""The text of a line of a file; empty where it is not known."""


def told(located: Located, case: TellingCase, source: Source) -> str:
    """Lines of plain text, as wide as they must be; no number in them is of a hidden case."""
    wrong = located.lines[-1:] if located.how == "missing" else located.lines

    def text(line: int) -> str:
        return source(located.file, line)

    rows = _right_before(located, text)
    if len(wrong) > 1:
        rows.append((_lines(wrong), "do not fit together"))
    elif located.step in _assigned(text(wrong[0])):
        rows.append((located.step, f"not as it should be  ({_lines(wrong)})"))
    else:
        does = "returns" if located.how in ("returned", "of another kind") else "makes"
        rows.append((f"what {_lines(wrong)} {does}", "not as it should be"))
    width = max(len(name) for name, _ in rows)
    said = [f"{name:{width}}  {how}" for name, how in rows]
    said += [f"  line {line}: {quoted}" for line in located.lines if (quoted := _quoted(text(line)))]
    said += _meaning(located)
    said += _beside(located)
    said += [f"  {one}" for one in _seen(located)]
    return "\n".join([f"Where it goes wrong, tried on {_case(case)}", *said])


def _right_before(located: Located, text: Callable[[int], str]) -> list[tuple[str, str]]:
    """What was right by then: a step by its name where the line gives something that name, else the whole line."""
    found = list[tuple[str, str]]()
    whole = set[int]()
    for step, line in located.right_so_far.items():
        if line in located.lines:
            continue
        if step in _assigned(text(line)):
            if step != located.step:
                found.append((step, f"as it should be      (line {line})"))
        elif line in located.sound - whole:
            found.append((f"what line {line} makes", "as it should be"))
            whole.add(line)
    return found


def _assigned(line: str) -> set[str]:
    """The names that a line gives to what it makes."""
    lefts = (_ASSIGNED.match(statement) for statement in line[:MAX_LINE].split(";"))
    return {name for left in lefts if left for name in re.findall(r"\w+", left[1])}


def _meaning(located: Located) -> list[str]:
    """What the lines have to do with each other, and where to look, in a sentence or two."""
    first, second = located.lines[0], located.lines[-1]
    is_one = first == second
    match located.how:
        case "missing" if not is_one:
            where = (
                f"A step of line {second} is wrong, or one is missing before it."
                if second == first + 1
                else f"Look at line {second}, and at what stands between the two: a step there is wrong, or missing."
            )
            return [f"What line {first} makes is right; what line {second} makes of it is not. {where}"]
        case "unused" if not is_one:
            return [
                f"What line {first} makes is right, but line {second} does not use it: "
                f"it goes on with what line {first} was given."
            ]
        case "mask" if not is_one:
            return [_of_mask(located)]
        case "swapped":
            where = f"between line {first} and line {second}" if not is_one else "in this line"
            return [f"Two tensors, each right in itself, stand in each other's places {where}: look at their order."]
        case "another":
            return ["What is there is right in itself, but it is the wrong one for this place: are two names mixed up?"]
        case "returned":
            return [
                "What goes into it is right, but it is not the result that is asked for: does it return too early, is "
                "a last step left out, or is another name meant?"
            ]
        case "of another kind":
            asked = _tensors_in_told(located.wanted)
            return [
                f"It returns {_tensors_in_told(located.results)}; {asked} {'is' if located.wanted == 1 else 'are'} asked for."
            ]
        case "first of two":
            return ["To mend this line is not enough: a later one goes wrong too, perhaps for the same reason."]
        case "one line":
            return ["Any tensor that goes into this line is right: look at the line, and at what else it uses."]
    return []


def _of_mask(located: Located) -> str:
    first, second = located.lines
    made, needed = located.made, located.expected
    if made is not None and needed is not None and torch.equal(made == 0, needed == 0):
        return (
            f"The mask of line {first} is right in its places; what line {second} does with it needs other numbers "
            "there. Change one of the two lines."
        )
    return (
        f"Line {first} makes a mask, and line {second} takes it the other way round: what should be hidden is kept, "
        "and what should be kept is hidden. Change one of the two lines."
    )


def _tensors_in_told(number: int | None) -> str:
    return "no tensor" if not number else "one tensor" if number == 1 else f"{number} tensors"


def _lines(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"


def _quoted(line: str) -> str:
    line = line.strip()
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def _case(case: TellingCase) -> str:
    args = ", ".join(map(_argument_in_told, case.arguments))
    built = "" if case.built is None else f"({', '.join(map(str, case.built))})"
    return f"`{case.exercise}{built}` with {args}." if built else f"`{case.exercise}({args})`."


def _argument_in_told(arg: Any) -> str:
    return f"a tensor of shape {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else repr(arg)[:MAX_LINE]


def _beside(located: Located) -> list[str]:
    """What was made above what is needed; a few of the numbers, from where they begin to differ."""
    made, needed, start = located.made, located.expected, 0
    above = ["On the way to its result, the line makes:"] if located.is_inner and made is not None else []
    if made is not None and needed is not None and made.shape == needed.shape and made.numel():
        apart = (comparable(made) - comparable(needed)).abs().flatten() > TOLERANCE * (
            1 + comparable(needed).abs().flatten()
        )
        start = int(apart.long().argmax())
    rows = above if made is None else [*above, f"  made:   {_tensor(made, start)}"]
    return rows if needed is None else [*rows, f"  needed: {_tensor(needed, start)}"]


def _tensor(values: torch.Tensor, start: int) -> str:
    if values.dim() == 0:
        return f"the number {float(values):.4g}"
    numbers = ", ".join(f"{number:.4g}" for number in (values + 0.0).flatten()[start : start + _SHOWN].tolist())
    more = ", …" if values.numel() > start + _SHOWN else ""
    place = [int(at) for at in torch.unravel_index(torch.tensor(start), values.shape)] if start else []
    where = f"from {place} on" if start else "beginning with"
    return f"shape {tuple(values.shape)}, {where} {numbers}{more}" if numbers else f"shape {tuple(values.shape)}"


def _seen(located: Located) -> list[str]:
    """What can be said of the numbers without knowing the code."""
    made, needed = located.made, located.expected
    if made is None or needed is None or made.shape != needed.shape or made.dim() == 0 or not made.numel():
        return []
    made, needed = made.double(), needed.double()
    if bool(made.isnan().any()) and not bool(needed.isnan().any()):
        of = "infinity - infinity, 0 * infinity, 0 / 0 and the root of a negative number"
        return [f"There are NaN in it: {of} give them."]
    if is_mask(made) or is_mask(needed):
        is_turned = located.how == "mask" and torch.equal(made == 0, needed != 0)
        return ["It is the other way round: 0 where something else is needed, and the reverse."] if is_turned else []
    return [*_of_rows(made, needed), *_of_a_factor(made, needed)]


def _of_rows(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    sums = torch.stack([made, needed]).sum(dim=-1)
    if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return []
    largest, should = float(made.amax(dim=-1).mean()), float(needed.amax(dim=-1).mean())
    if abs(largest - should) < 0.02 or not torch.equal(made == 0, needed == 0):
        return []
    how = "too even" if largest < should else "too uneven"
    if made.dim() == 1:
        return [f"They sum to 1, but are {how}: the largest is {largest:.2f}, and should be {should:.2f}."]
    return [f"Each row sums to 1, but they are {how}: the largest of a row is {largest:.2f}, and should be {should:.2f}"
            ", on average."]  # fmt: skip


def _of_a_factor(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    there = needed.isfinite() & made.isfinite() & (needed.abs() > 1e-6)
    if int(there.sum()) < 2 or not torch.equal(needed.isfinite(), made.isfinite()):
        return []
    ratio = made[there] / needed[there]
    factor = float(ratio[0])
    if (
        not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3)
        or abs(factor) < _SMALL
        or abs(factor - 1) < _SMALL
    ):
        return []
    return [f"It is {factor:.4g} times what is needed."]


BY_HAND: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shifted": lambda values: values - values.amax(dim=-1, keepdim=True),
    "exponentials": torch.exp,
    "sums": lambda values: values.sum(dim=-1, keepdim=True),
}
"""What a softmax by hand makes of scores."""
OUT_OF_SCALE = {-(2**23): -torch.inf, 2**23 - 1: torch.inf, 1 - 2**23: torch.nan}
"""What no number of 24 bits can say."""
LARGEST = 2**23 - 2


def read_reference(written: Mapping[str, Any], operators: Sequence[str], case: TellingCase) -> Reference:
    """The reference again. operators: their names, which stand in what is written as numbers."""
    given = given_in(case)
    rights: list[Right] = []
    for one in written["rights"]:
        operator = operators[one["operator"]]
        rights.append(Right(read_tensor(one, given, rights), operator, one.get("number"), one.get("step", "")))
    return Reference(
        case,
        [read_tensor(one, given, rights) for one in written["result"]],
        distinct([*rights, *parts_of(rights)]),
        {number: frozenset(numbers) for number, numbers in enumerate(written["before"])},
        dict(enumerate(written["inputs"])),
        [rights[of].values.squeeze() * by for of, by in written["scaled"]],
    )


def given_in(case: TellingCase) -> list[torch.Tensor]:
    """The tensors that an answer is given: arguments and parameters."""
    found = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)] + list((case.parameters or {}).values())
    return [one.double() for one in found]


def read_tensor(written: Mapping[str, Any], given: Sequence[torch.Tensor], earlier: Sequence[Right]) -> torch.Tensor:
    """One tensor, in float64."""
    if "given" in written or "of" in written:
        values = given[written["given"]] if "given" in written else earlier[written["of"]].values
        return _made_of(values, written)
    if "whole" in written:
        return torch.tensor(written["whole"], dtype=torch.float64).reshape(written["shape"])
    return numbers_in(written).reshape(written["shape"])


def _made_of(values: torch.Tensor, written: Mapping[str, Any]) -> torch.Tensor:
    """What is said to be another tensor: a part of it, filled in, turned, scaled, or made of it by hand."""
    if "by hand" in written:
        return BY_HAND[written["by hand"]](values)
    if "part" in written:
        values = values.narrow(*written["part"])
    if "order" in written:
        values = values.squeeze().permute(written["order"])
    values = values.reshape(written.get("shape", values.shape)) * written.get("times", 1.0)
    if "filled" in written:
        hidden = torch.tensor([digit == "1" for digit in f"{int(written['hidden'], 16):0{values.numel()}b}"])
        values = torch.where(hidden.reshape(values.shape), float(written["filled"]), values)
    return values


def numbers_in(written: Mapping[str, Any]) -> torch.Tensor:
    """Numbers that are written out: 24 bits each, as so many of a unit; or as float32, where there is none."""
    held = torch.frombuffer(bytearray(base64.b85decode(written["packed"])), dtype=torch.uint8)
    if "unit" not in written:
        return held.view(torch.float32).double()
    first, second, third = held.reshape(-1, 3).long().unbind(1)
    counts = first + (second << 8) + (third << 16) - 2**23
    values: torch.Tensor = counts.double() * float(written["unit"])
    for count, said in OUT_OF_SCALE.items():
        values[counts == count] = said
    return values


LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"

_PATTERNS = {
    LIBRARY_SOFTMAX: re.compile(r"\w*(soft(max|min)|log(cum)?sumexp)\w*", re.I),
    LIBRARY_ATTENTION: re.compile(
        r"\w*(attention|attn|sdpa_dense|_sfdp_pattern)\w*|_transformer_encoder_layer_fwd", re.I
    ),
}
_CLASSES = {
    LIBRARY_SOFTMAX: re.compile(r"soft(max|min)|stickbreaking", re.I),
    LIBRARY_ATTENTION: re.compile(r"attention|attn", re.I),
}
LIBRARIES = _PATTERNS.keys()
"""What an exercise may forbid."""
_NOT_ATTENTION = re.compile(r"(register|activate|restore|list|current)_\w*")
"""These choose a kernel, and run none."""

_seen_in_library_calls: set[str] = set()


@cache
def library_of(name: str) -> str | None:
    """The library that an operator or a function of this name belongs to, if it is one of those that are noted."""
    if _NOT_ATTENTION.fullmatch(name):
        return None
    return next((library for library, pattern in _PATTERNS.items() if pattern.fullmatch(name)), None)


def library_of_class(name: str) -> str | None:
    """The library that a class of this name computes what belongs to, as a `SoftmaxTransform` and its kin do."""
    return next((library for library, pattern in _CLASSES.items() if pattern.search(name)), None)


def note(library: str) -> None:
    """One of the library's functions begins to run."""
    _seen_in_library_calls.add(library)


def taken() -> list[str]:
    """The libraries that ran since this was last asked."""
    found = sorted(_seen_in_library_calls)
    _seen_in_library_calls.clear()
    return found


def _noted(name: str) -> None:
    library = library_of(name)
    if library:
        note(library)


class _OperatorsWatched(OperatorMode):
    """Operators, whoever calls them: autograd and methods of tensors too."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(name_of(func))
        return func(*args, **(kwargs or {}))


class _FunctionsWatched(TorchFunctionMode):
    """Functions of torch's that end in operators of other names."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


@contextmanager
def libraries_watched(found: set[str]) -> Iterator[None]:
    """Adds to `found` the libraries that run meanwhile."""
    taken()
    with _FunctionsWatched(), _OperatorsWatched():
        yield
    found.update(taken())


class Expected:
    """A reference value, and how close to it a right answer comes."""

    def __init__(self, value: Any, tolerance: float) -> None:
        self.value = value
        self.tolerance = tolerance

    def __getitem__(self, index: Any) -> "Expected":
        return Expected(self.value[index], self.tolerance)


ORDINALS = ("first", "second", "third", "fourth")


def expecting(value: Any, tolerance: float) -> Any:
    """The value with every tensor in it as one that is expected."""
    if isinstance(value, tuple | list):
        items = [expecting(item, tolerance) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: expecting(item, tolerance) for key, item in value.items()}
    return Expected(value.detach(), tolerance) if isinstance(value, torch.Tensor) else value


def close(one: torch.Tensor, other: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Where two tensors of one shape have the same numbers, or the same infinity, or none."""
    return torch.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def difference(
    actual: Any,
    expected: Any,
    named: Callable[[Any], str],
    told: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], str],
    *,
    tolerance: float | None = None,
    what: str = "The result",
) -> str | None:
    """How a value differs from what is expected, one tensor or a tuple of them; None where it does not.

    named: what a value is. told: how two tensors differ, given where they are close. tolerance: in the place of the
    expected values' own.
    """
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"{what} is {named(actual)}; {len(expected)} tensors are expected."
        each = (
            difference(one, other, named, told, tolerance=tolerance, what=f"The {nth} result")
            for nth, one, other in zip(ORDINALS, actual, expected, strict=False)
        )
        return next(filter(None, each), None)
    shape = tuple(expected.value.shape)
    if not isinstance(actual, torch.Tensor):
        return f"{what} is {named(actual)}; a tensor of shape {shape} is expected."
    if actual.shape != shape:
        return f"{what} has shape {tuple(actual.shape)}; {shape} is expected."
    if actual.is_complex():
        return f"{what} is complex; real numbers are expected."
    tolerance = expected.tolerance if tolerance is None else tolerance
    actual, right = actual.detach().to("cpu", torch.float64), expected.value.double()
    if bool(((actual - right).abs() < tolerance * (1 + right.abs())).all()):
        return None  # as mostly; what follows takes ten times as long, and knows infinity and NaN
    alike = close(actual, right, tolerance)
    return None if bool(alike.all()) else f"{what} {told(actual, right, alike)}"


def oddly_shaped(actual: Any, expected: Any, tolerance: float | None = None) -> bool:
    """Whether the numbers are right, and stand in a shape with a dimension of size 1 too many or too few."""
    if isinstance(expected, tuple):
        several = isinstance(actual, tuple | list) and len(actual) == len(expected)
        return several and all(
            _same(one, other, tolerance) or oddly_shaped(one, other, tolerance)
            for one, other in zip(actual, expected, strict=True)
        )
    if not isinstance(actual, torch.Tensor) or actual.shape == expected.value.shape:
        return False
    return _same(actual.squeeze(), Expected(expected.value.squeeze(), expected.tolerance), tolerance)


def _same(actual: Any, expected: Any, tolerance: float | None) -> bool:
    return difference(actual, expected, str, lambda *_: "differs", tolerance=tolerance) is None


SAME_WEIGHTS = "The weights are the same under every seed: is one set inside the class?"
RAISES_NOTHING = "It raises nothing."
_NO_MORE_THAN_HALF = "As long as this fails, the exercise gives no more than half of its points."
_OF_LIBRARIES = {
    LIBRARY_SOFTMAX: "a library's softmax, or a part of one such as logsumexp",
    LIBRARY_ATTENTION: "a library's attention",
}
_OF_DEVICES = {
    MIXED: "It mixes devices: a tensor that it makes stays on the CPU when the inputs are elsewhere.",
    ELSEWHERE: "The result is not on the inputs' device.",
    DIFFERS: "On another device it gives another result than on the CPU.",
}


def argument(number: int) -> str:
    """What an argument is called, by its place."""
    return f"the {ORDINALS[number]} argument"


def detached(where: str) -> str:
    """A gradient that is None."""
    return f"No gradient arrives at {where}: is it left unused, or the result detached from it somewhere?"


def no_parameter(name: str) -> str:
    """A layer that is called otherwise."""
    return f"It has no parameter `{name}`."


def of_another_shape(found: str, shape: Sequence[int]) -> str:
    """A result that is no tensor of the shape that is expected. found: what it is."""
    return f"The result is {found}; a tensor of shape {tuple(shape)} is expected."


def not_finite(where: str) -> str:
    """A gradient with NaN or infinity."""
    return f"The result is right, but the gradient of {where} has NaN or infinite values."


def writes_into(arguments: Sequence[int]) -> str:
    """Arguments that are not as they were, by their places."""
    which = " and ".join(f"the {ORDINALS[number]}" for number in arguments)
    return f"It writes into {which} argument. Operations ending in `_`, `+=`, `/=` and `x[i] = ...` work in place."


def changed_by_the_future(token: int) -> str:
    """A result that later tokens have a part in."""
    return f"The result of token {token} changes when only later tokens do: something of the future gets into it."


def calls_forbidden(libraries: Sequence[str]) -> str:
    """Library functions that an exercise forbids."""
    named = " and ".join(_OF_LIBRARIES.get(one, one) for one in libraries)
    return f"It calls {named}; this exercise asks you to write that step yourself."


def halves_the_points(complaint: str) -> str:
    """A complaint of what makes a module another one, where the exercise would give more than half of its points."""
    return f"{complaint}{'' if complaint.endswith(('.', '?', '!')) else '.'} {_NO_MORE_THAN_HALF}"


def of_devices(verdict: str) -> str | None:
    """What a probe of devices found; None where it found nothing wrong."""
    return _OF_DEVICES.get(verdict.removesuffix(BY_NUMBERS))


def other_parameters(found: Mapping[str, Sequence[int]]) -> str:
    """The parameters that there are, and their shapes, where others are expected."""
    return f"Found: {', '.join(f'{name} {tuple(shape)}' for name, shape in found.items()) or 'none'}."


NOT_FINITE = "Some weights are NaN or infinite. Is a whole row hidden, or something divided by 0?"
NONE_DROPPED = "No weight is dropped: none is 0."
ALL_DROPPED = "Every weight is dropped."
TURNED_ROUND = "A share of 1-p is dropped, and p is kept: it is the other way round."
ANOTHER_SHARE = "The share of the weights that is dropped is not p."
NOT_RESCALED = "The kept weights are as they were; divide them by 1-p, so that their sum stays as it was."
CHANGED = "Not all of the kept weights are divided by 1-p."
NOT_THE_WEIGHTS = "Numbers of the values or of the result are dropped; it is weights that should be."
WRONG_ALREADY = "The result is wrong in evaluation already, where nothing should be dropped; mend that first."
DETACHED = "No gradient arrives at the weights: is the result detached from them somewhere?"


def always_as_many(calls: int) -> str:
    """The number of weights that fall is no chance."""
    return (
        f"In {calls} calls the same number of weights is dropped each time. Each weight is dropped with probability p, "
        "whatever becomes of the others: how many fall is chance."
    )


def mistakes_alike(
    names: dict[str, Any], examples: list[Any], passed: list[bool], mistakes: list[dict[str, Any]]
) -> list[str]:
    """The sentences on the common mistakes that show, number for number, what this code shows; mostly none or one."""
    shown = numbers(names, public(examples))
    pattern = as_pattern(examples, passed)
    for mistake in mistakes:
        if mistake.get("passes", pattern) == pattern and alike(shown, mistake["shows"]):
            return list(mistake["sentences"])
    return []


def public(examples: list[Any]) -> list[Any]:
    """The examples on which mistakes are known by numbers."""
    return [example for example in examples if example.get("public", True)]


def as_pattern(examples: list[Any], passed: list[bool]) -> str:
    """Which examples pass, but for those on devices: a tensor that is left on the CPU hides no other mistake."""
    tried = zip(examples, passed, strict=True)
    return "".join("01"[right] for example, right in tried if "device" not in example.get("looks_at", ()))


def numbers(names: dict[str, Any], examples: list[Any], dtype: torch.dtype | None = None) -> list[list[float]]:
    """What the code shows on the examples: a row of numbers for each.

    A row describes every call in turn: a checksum of all that is exact (shapes, dtypes, what was written into, which
    gradients arrive, the kind of an error), then a few sums over the values and the gradients.
    """
    rows = []
    for example in examples:
        row: list[float] = []
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's own, of which the student has read already
                for step, function, args in _calls_in_known(names, example["steps"], dtype):
                    row += _observed(function, args, step.get("named", {}))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row.append(_checksum(type(error).__name__))
        rows.append([number if isinstance(number, int) else round(number, 5) for number in row])
    return rows


def alike(one: list[list[float]], other: list[list[float]]) -> bool:
    """Whether two pieces of code show the same, but for the last digits."""
    return all(
        len(row) == len(other_row) and all(map(near, row, other_row)) for row, other_row in zip(one, other, strict=True)
    )


def sums(value: Any) -> list[float]:
    """Some sums over the numbers of a value, by which one is told from another."""
    return _described(value)[1]


def near(one: float, other: float) -> bool:
    """Whether two numbers are the same but for the last digits; of whole ones, all of them."""
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _calls_in_known(
    names: dict[str, Any], steps: list[Any], dtype: torch.dtype | None = None
) -> Iterator[tuple[Any, Callable[..., Any], list[Any]]]:
    """The calls that an example makes, each with what is called and its arguments (floats in another dtype, if given).

    Randomness starts at the same place each time.
    """
    seed_in_use(0)
    built: list[Any] = []
    for step in steps:
        args = [_in(as_value(arg), dtype) for arg in step.get("args", ())]
        if step["operation"] == "manual_seed":
            seed_in_use(step["seed"])
        elif step["operation"] == "build":
            called = names[step["name"]](*args, **step.get("named", {}))
            built.append(called if dtype is None else called.to(dtype))
        elif step["operation"] == "load":
            load(built[step["instance"]], {name: as_value(value) for name, value in step["values"].items()})
        else:
            yield step, names[step["name"]] if "name" in step else built[step.get("instance", -1)], args


def _observed(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> list[float]:
    """One call: its result, the arguments that it wrote into, its gradients, and its dtype for float64 arguments."""
    held = copied(args)
    unused = copy.deepcopy(function)  # afterwards it may hold tensors that cannot be copied
    exact, sums = _described(function(*args, **named))
    changed = [not is_unwritten(before, after) for before, after in zip(held, args, strict=True)]
    wide = [_in(arg, torch.float64) for arg in copied(held)]
    wider = _attempt(lambda: _described(_widened(unused)(*wide, **named))[0])
    gradients = _attempt(lambda: _gradient_sums(function, held, named))
    flows, flow_sums = gradients if isinstance(gradients, tuple) else (gradients, [])
    return [_checksum(repr((exact, changed, wider, flows))), *sums, *flow_sums]


def _gradient_sums(
    function: Callable[..., Any], args: list[Any], named: dict[str, Any]
) -> tuple[list[bool], list[float]]:
    """At which arguments and parameters a gradient arrives, and their sums."""
    args = [arg.clone().requires_grad_() if _is_float(arg) else arg for arg in args]
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    leaves = [leaf for leaf in [*args, *parameters] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    result = function(*args, **named)
    outputs = [one for one in (result if isinstance(result, tuple | list) else [result]) if _is_float(one)]
    reached = [_weighed(one.double()).sum() for one in outputs if one.requires_grad]
    found = torch.autograd.grad(reached, leaves, allow_unused=True) if reached else [None] * len(leaves)
    sums = [number for gradient in found if gradient is not None for number in _described(gradient)[1]]
    return [gradient is not None for gradient in found], sums


def _described(value: Any) -> tuple[Any, list[float]]:
    """A value as what is exact about it, and some sums over its numbers."""
    if isinstance(value, tuple | list):
        parts = [_described(item) for item in value]
        return (type(value).__name__, [exact for exact, _ in parts]), [number for _, sums in parts for number in sums]
    if isinstance(value, dict):
        return sorted(map(repr, value.items())), []
    if isinstance(value, int | float):
        return (type(value).__name__, []), _described(torch.tensor(float(value)))[1]
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, []
    flat = value.detach().flatten().double()
    broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # beside one huge number the others still count
    return (list(value.shape), str(value.dtype), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]


def _weighed(values: torch.Tensor) -> torch.Tensor:
    """Each number times one of its own, so that their sum tells which stands where."""
    places = torch.arange(1, values.numel() + 1, dtype=torch.float64).reshape(values.shape)
    return values * torch.cos(places * 2.399963)  # the golden angle: the cosines never repeat


def _checksum(exact: str) -> int:
    return zlib.crc32(exact.encode())


def _attempt(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error).__name__


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.double() if isinstance(function, torch.nn.Module) else function


def _in(value: Any, dtype: torch.dtype | None) -> Any:
    return value.to(dtype) if dtype is not None and _is_float(value) else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


_SIGMAS = 6


def weights_dropped(call: Call) -> None:
    """Each weight falls with probability p, on its own, and what is kept is divided by 1 - p."""
    rule = call.step["dropped"]
    if not isinstance(call.value, torch.Tensor) or not isinstance(call.whole, torch.Tensor):
        raise Wrong(f"The result is a {type(call.value).__name__}; a tensor is expected.")
    right = rule.get("evaluation", {})
    expected = tuple(right.get("shape", call.whole.shape))
    if call.value.shape != expected:
        raise Wrong(f"The result has shape {tuple(call.value.shape)}; {expected} is expected.")
    if call.whole.shape != expected:
        raise Wrong(WRONG_ALREADY)
    if call.value.is_complex():
        raise Wrong("The result is complex; real numbers are expected.")
    p, shape, names = rule["p"], [size for _, size in rule["view"]], [name for name, _ in rule["view"]]
    result, whole = (one.detach().double().reshape(shape) for one in (call.value, call.whole))
    if not bool(result.isfinite().all() & whole.isfinite().all()):
        raise Wrong(NOT_FINITE)
    if right and not all(map(near, sums(call.whole), right["sums"])):
        raise Wrong(WRONG_ALREADY)
    seen, gone = whole != 0, result == 0
    if bool((~seen & ~gone).any()):
        raise Wrong("In training the result is not 0 in places where it is 0 in evaluation.")
    if "copy" in names:
        copies = names.index("copy")
        if not torch.equal(gone, gone.roll(1, copies)):
            raise Wrong(NOT_THE_WEIGHTS)
    share = float(gone[seen].double().mean())
    if share in (0.0, 1.0):
        raise Wrong(ALL_DROPPED if share else NONE_DROPPED)
    for dim, name in enumerate(names):
        both = seen & seen.roll(1, dim)
        if name != "copy" and bool(both.any()) and bool((gone == gone.roll(1, dim))[both].all()) and shape[dim] > 1:
            raise Wrong(f"Every {name} has the same places dropped; each weight is dropped on its own.")
    entries = int(seen.sum()) / (2 if "copy" in names else 1)
    if _far(share, p, entries):
        if not _far(share, 1 - p, entries):
            raise Wrong(TURNED_ROUND)
        raise Wrong(ANOTHER_SHARE)
    kept = seen & ~gone
    if not torch.allclose(result[kept], whole[kept] / (1 - p), rtol=1e-4, atol=0):
        if torch.allclose(result[kept], whole[kept], rtol=1e-4, atol=0):
            raise Wrong(NOT_RESCALED)
        raise Wrong(CHANGED)
    if rule.get("freely"):
        _freely(gone, names)
    if call.gradients and not _flows(call):
        raise Wrong("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")


def _far(share: float, wanted: float, entries: float) -> bool:
    return bool(abs(share - wanted) > _SIGMAS * (wanted * (1 - wanted) / entries) ** 0.5)


def _freely(gone: torch.Tensor, names: list[str]) -> None:
    counts = gone.sum(-1)
    if not bool(gone.diagonal(dim1=-2, dim2=-1).any()):
        raise Wrong("The diagonal is never dropped; each weight is dropped on its own.")
    if bool((counts == counts.flatten()[0]).all()):
        raise Wrong("Every row loses the same number of weights; each weight is dropped on its own.")
    if gone.shape[-1] == gone.shape[-2] and torch.equal(gone, gone.mT):
        raise Wrong("What is dropped is the same on both sides of the diagonal; each weight is dropped on its own.")
    share = float(gone.double().mean())
    for dim, name in enumerate(names):
        half = gone.shape[dim] // 2
        for one, other in (
            (range(0, 2 * half, 2), range(1, 2 * half, 2)),
            (range(half), range(half, 2 * half)),
            (range(half), range(gone.shape[dim] - 1, gone.shape[dim] - 1 - half, -1)),
        ):
            both = gone.index_select(dim, torch.tensor(one)) & gone.index_select(dim, torch.tensor(other))
            if _far(float(both.double().mean()), share**2, both.numel()):
                raise Wrong(f"One {name} tells what is dropped at another; each weight is dropped on its own.")


def not_counted_out(calls: list[Call]) -> None:
    """Of weights that stand alone not always as many fall: how many do is chance."""
    fallen = {int((call.value == 0).sum()) for call in calls}
    if len(fallen) == 1:
        raise Wrong(always_as_many(len(calls)))


def _flows(call: Call) -> bool:
    gradient, weights = call.gradients[0], call.args[0]
    if gradient is None:
        raise Wrong(DETACHED)
    return bool(torch.allclose(gradient.double() * weights.double(), call.value.detach().double(), rtol=1e-4))


_USUAL = 1e-4
"""How close a result must come where an example does not say."""


_FAR = 1e6
"""Numbers from here on are written with a power of ten."""


def judged(names: Mapping[str, Any], example: Mapping[str, Any], trial: Trial | None = None) -> Trial:
    """Tries the example; raises Wrong where it fails, or whatever the code raises."""
    looks_at = set(example.get("looks_at", ["value"]))
    trial = trial or Trial(names)
    calls: list[Call] = []
    parameters: list[Any] = []
    seed_in_use(0)  # randomness starts at the same place each time
    for step in example["steps"]:
        found = _taken(trial, step)
        if isinstance(found, Call):
            calls.append(found)
            for aspect, (part, judge) in _OF_A_CALL.items():
                if aspect in looks_at and (part in step or not part):
                    judge(found)
        elif step["operation"] == "parameters":
            parameters.append(found)
            if "parameters" in looks_at:
                _parameters(found, step["right"])
    if "other parameters" in looks_at and _all_alike(parameters):
        raise Wrong(SAME_WEIGHTS)
    if "steady" in looks_at:
        _steady(calls)
    if "counted" in looks_at:
        not_counted_out([call for call in calls if call.step["dropped"].get("lone")])
    if "anew" in looks_at and _any_alike([call.value for call in calls]):
        raise Wrong("Two calls give exactly the same: nothing is dropped, or a seed is set, or a draw kept, inside.")
    return trial


def _taken(trial: Trial, step: Step) -> Any:
    """The step; what should be refused may raise only one of the errors that say so."""
    if "refuses" not in step:
        return trial.take(step)
    try:
        trial.take(step)
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not kinds & set(step["refuses"]) or is_stub(error):
            raise
        return None
    raise Wrong(RAISES_NOTHING)


def is_stub(error: BaseException) -> bool:
    """Whether this is what an exercise raises that is not written yet."""
    return isinstance(error, NotImplementedError) and not str(error)


def _value(call: Call) -> None:
    right, close = as_value(call.step["result"]), call.step.get("close", _USUAL)
    problem = difference_of(call.value, right, close)
    if problem:
        wrong = Wrong(problem)
        if isinstance(right, tuple | torch.Tensor) and oddly_shaped(call.value, expecting(right, close)):
            wrong = Wrong(f"{problem} Its numbers are right.")
            wrong.odd_shape = True
        raise wrong


def difference_of(actual: Any, expected: Any, close: float, what: str = "The result") -> str | None:
    """How two values differ, in a sentence; None where they do not."""
    if isinstance(expected, tuple | torch.Tensor):
        return difference(actual, expecting(expected, close), _called, _first_place, what=what)
    if isinstance(actual, dict) and isinstance(expected, dict):
        return _entries(actual, expected)
    if type(actual) is type(expected) and actual == expected:
        return None
    return f"{what} is {str(actual)[:200]!r}; {expected!r} is expected."


def _entries(actual: dict[Any, Any], expected: dict[Any, Any]) -> str | None:
    for key in expected:
        if key not in actual:
            return f"The result has no entry for {key!r}; {expected!r} is expected."
    for key, value in actual.items():
        if key not in expected:
            return f"The result has an entry for {str(key)[:60]!r}; {expected!r} is expected."
        if type(value) is not type(expected[key]) or value != expected[key]:
            return f"The result has {str(value)[:60]} for {key!r}; {expected!r} is expected."
    return None


def _first_place(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    place = tuple((~close).nonzero()[0].tolist())
    got, wanted = (_number(one[place].item()) for one in (actual, expected))
    for digits in (6, 8, 10, 12):
        if got == wanted:
            got, wanted = (f"{one[place].item():.{digits}g}" for one in (actual, expected))
    said = f"{got} where {wanted} is expected."
    if not place:
        return f"is {said}"
    return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(place)}, is {said}"


def _number(value: float) -> str:
    if not abs(value) < _FAR:
        return f"{value:.5g}"
    short = f"{value:.4f}".removesuffix(".0000")
    return "0" if short == "-0" else short


def _called(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _gradients(call: Call) -> None:
    close = call.step.get("close", _USUAL)
    right = [as_value(one) for one in call.step["gradients"]]
    named = {name: as_value(one) for name, one in call.step.get("parameter_gradients", {}).items()}
    pairs = [(argument(n), call.gradients[n], one) for n, one in enumerate(right)]
    pairs += [(f"`{name}`", call.parameter_gradients.get(name), one) for name, one in named.items()]
    for where, gradient, expected in pairs:
        if expected is None:
            continue
        if gradient is None:
            raise Wrong(detached(where))
        if problem := difference_of(gradient, expected, close, f"The gradient of {where}"):
            raise Wrong(problem)


def _arrives(call: Call) -> None:
    values = call.value if isinstance(call.value, tuple | list) else [call.value]
    if len(values) != len(call.step["cotangents"]):
        raise Wrong(of_another_shape(_called(call.value), call.step["cotangents"][0]["shape"]))
    for value, cotangent in zip(values, call.step["cotangents"], strict=True):
        is_tensor = isinstance(value, torch.Tensor)
        if not is_tensor or list(value.shape) != list(cotangent["shape"]):  # nothing could flow back from it
            found = f"a tensor of shape {tuple(value.shape)}" if is_tensor else _called(value)
            raise Wrong(of_another_shape(found, cotangent["shape"]))
    arrived = {argument(n): call.gradients[n] for n in call.step["arrives_at"]}
    arrived |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
    for where, gradient in arrived.items():
        if gradient is None:
            raise Wrong(detached(where))


def _finite(call: Call) -> None:
    found = {argument(number): gradient for number, gradient in enumerate(call.gradients)}
    found |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
    for where, gradient in found.items():
        if gradient is not None and not bool(gradient.isfinite().all()):
            raise Wrong(not_finite(where))


def _changed(call: Call) -> None:
    if call.changed:
        raise Wrong(writes_into(call.changed))


def _dtype(call: Call) -> None:
    values = call.value if isinstance(call.value, tuple | list) else [call.value]
    wanted = getattr(torch, call.step["dtype"])
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise Wrong(f"The result is {_called(value)}, not a tensor.")
        if value.dtype != wanted:
            raise Wrong(f"The result is {value.dtype}; {wanted} is expected.")


def _device(call: Call) -> None:
    if complaint := of_devices(call.verdict):
        raise Wrong(complaint)


def _parameters(found: Mapping[str, torch.Tensor], right: Mapping[str, list[int]]) -> None:
    shapes = {name: list(parameter.shape) for name, parameter in found.items()}
    if shapes != dict(right):
        raise Wrong(other_parameters(shapes))


def _all_alike(parameters: list[Any]) -> bool:
    first, *others = parameters
    return bool(first) and all(
        one.keys() == first.keys() and all(_identical(first[name], one[name]) for name in first) for one in others
    )


def _any_alike(values: list[Any]) -> bool:
    return any(_identical(one, other) for number, one in enumerate(values) for other in values[:number])


def _identical(one: Any, other: Any) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.dtype == other.dtype and torch.equal(one, other)


def _steady(calls: list[Call]) -> None:
    """Wherever the right results of two calls are the same, the code's must be the same too."""
    first, *others = calls
    right = as_value(first.step["result"])
    for call in calls:
        if not isinstance(call.value, torch.Tensor):
            raise Wrong(f"The result is {_called(call.value)}, not a tensor.")
        if call.value.shape != right.shape:
            raise Wrong(f"The result has shape {tuple(call.value.shape)}; {tuple(right.shape)} is expected.")
    for call in others:
        stays = torch.isclose(right, as_value(call.step["result"]), rtol=1e-6, atol=1e-6)
        alike = torch.isclose(first.value.double(), call.value.double(), rtol=1e-5, atol=1e-5, equal_nan=True)
        if bool((stays & ~alike).any()):
            if bool(stays.all()):
                raise Wrong("Two calls with the same input differ: is something drawn by chance in it?")
            token = (stays & ~alike).nonzero()[0, -2].item()
            raise Wrong(changed_by_the_future(int(token)))


_OF_A_CALL: dict[str, tuple[str, Callable[[Call], None]]] = {
    "value": ("result", _value),
    "gradients": ("gradients", _gradients),
    "arrival": ("arrives_at", _arrives),
    "finite": ("cotangents", _finite),
    "unchanged": ("", _changed),
    "dtype": ("dtype", _dtype),
    "device": ("", _device),
    "dropped": ("dropped", weights_dropped),
}
"""By aspect, the part of a step without which it is not asked of that call, and who judges it."""


NOT_DEFINED, NOT_WRITTEN = "not defined yet", "not written yet"
SECONDS = 8.0
"""How long one example may take; right answers take a hundredth of a second."""
_LONGEST = 200


class TimeUp(BaseException):
    """An example took too long; no `except Exception` of the student's catches it."""


@dataclass
class Tried:
    """One example, and what was found."""

    example: Mapping[str, Any]
    problem: str = ""
    """What is wrong, in a sentence; nothing where the example passes."""
    call: Call | None = None
    """The call that was made last."""
    printed: str = ""
    """What the student's code printed in it."""
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    """Of an error: the function, the line in its cell and that line's text, for each of the student's own frames."""
    odd_shape: bool = False
    """Its numbers are right, and only the shape is not: half of what it weighs."""
    skipped: bool = False
    """Not tried, because an example before it took too long."""

    @property
    def share(self) -> float:
        """Of what the example weighs, how much it gives."""
        return 0.5 if self.odd_shape else 0.0 if self.problem or self.skipped else 1.0


@dataclass
class Outcome:
    """What came of an exercise."""

    exercise: str
    points: float
    missing: str = ""
    """`not defined yet` or `not written yet`; then nothing was tried."""
    tried: list[Tried] = field(default_factory=list)
    not_tried: list[str] = field(default_factory=list)
    """The statements of which the check tries nothing."""
    calls: list[str] = field(default_factory=list)
    """The libraries that it calls and may not."""
    mistakes: list[str] = field(default_factory=list)
    """The sentences on the common mistakes that do exactly the same."""
    whereabouts: str = ""
    """Where it goes wrong, in lines, if that is known."""

    @property
    def failed(self) -> list[Tried]:
        """The examples that do not pass."""
        return [one for one in self.tried if one.problem or one.skipped]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong, as far as it is tried."""
        return not (self.missing or self.failed or self.calls)

    @property
    def score(self) -> float:
        """What a mark would give for these examples, by the rules that it has."""
        if self.missing or self.calls:
            return 0.0
        return self.points and round(self.points * (0.5 if self.halved else self._share), 2)

    @property
    def halved(self) -> bool:
        """Whether it would give more, did not something fail without which it gives no more than half of its points."""
        return self._share > 0.5 and any(one.example.get("essential") for one in self.failed)

    @property
    def _share(self) -> float:
        # What passes nothing but released results, or what chance could pass, earns nothing by the rest.
        hidden = [one for one in self.tried if not one.example.get("property") and not one.example.get("public", True)]
        shown = not hidden or any(one.share for one in hidden)
        weights = [one.example.get("weight", 1.0) for one in self.tried]
        earned = sum(
            one.share * weight
            for one, weight in zip(self.tried, weights, strict=True)
            if shown or one.problem or not one.example.get("property")
        )
        return float(earned / sum(weights))

    @property
    def goes_wrong(self) -> bool:
        """Whether a result is not right, and how it comes about can be looked at."""
        late = any(one.skipped or one.problem == _TOO_LONG for one in self.tried)
        wrong = any(one.problem and not one.example.get("property") for one in self.tried)
        return wrong and not (self.missing or self.calls or late)


def outcome(names: dict[str, Any], exercise: str, of: Mapping[str, Any], mistakes: list[Any]) -> Outcome:
    """What the notebook's answer to an exercise shows on its examples."""
    found = Outcome(exercise, float(of["points"]), not_tried=list(of.get("not_tried", ())))
    if exercise not in names:
        found.missing = NOT_DEFINED
        return found
    libraries, forbids = set[str](), set(of.get("forbids", ()))
    # Watching takes as long as what is watched, and is left out where nothing is looked for.
    with warnings.catch_warnings(), libraries_watched(libraries) if forbids else contextlib.nullcontext():
        warnings.simplefilter("ignore")  # PyTorch's own, of which the student has read already
        late = False
        for example in of["examples"]:
            one = Tried(example, skipped=True) if late else _tried(names, example)
            found.tried.append(one)
            if one.problem == NOT_WRITTEN:
                found.missing = NOT_WRITTEN
                return found
            late = late or one.problem == _TOO_LONG
    found.calls = sorted(libraries & forbids)
    if mistakes and not late and not found.calls:
        with limited():
            passed = [not one.problem for one in found.tried]
            found.mistakes = mistakes_alike(names, of["examples"], passed, mistakes)
    return found


_TOO_LONG = f"It did not come back within {SECONDS:g} seconds. Does a loop in it never end?"


def _tried(names: dict[str, Any], example: Mapping[str, Any]) -> Tried:
    trial, one = Trial(names), Tried(example)
    try:
        with limited():
            judged(names, example, trial)
    except KeyboardInterrupt:
        raise
    except Wrong as wrong:
        one.problem, one.odd_shape = str(wrong), wrong.odd_shape
    except TimeUp:
        one.problem = _TOO_LONG
    except BaseException as error:  # SystemExit too
        one.problem = NOT_WRITTEN if is_stub(error) else _said(error)
        one.frames = _frames(error)
    one.call, one.printed = trial.now, trial.printed.getvalue()
    return one


def _said(error: BaseException) -> str:
    try:
        first_line = str(error).strip().partition("\n")[0]
    except Exception:
        first_line = ""
    return f"It raised {type(error).__name__}: {first_line[:_LONGEST]}"


def _frames(error: BaseException) -> list[tuple[str, int, str]]:
    """Those in cells, which come before anything that a library does with what it was given."""
    found = traceback.extract_tb(error.__traceback__)
    return [(one.name, one.lineno or 0, (one.line or "").strip()) for one in found if is_cell(one.filename)][-3:]


def is_cell(file: str) -> bool:
    """Whether the kernel calls a cell's code by this name."""
    return "ipykernel_" in file or file.startswith("<ipython-input")


@contextlib.contextmanager
def limited(seconds: float | None = None) -> Iterator[None]:
    """Ends what takes too long by TimeUp, where the system can interrupt it."""
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not possible:
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds or SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def as_in_a_new_notebook() -> Iterator[None]:
    """With torch's switches as the hidden tests have them, and the random state put back afterwards."""
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(state)


SECONDS_TO_LOOK = 5.0
"""For all runs of one answer; most take a tenth of a second together."""


def line_told(names: Mapping[str, Any], exercise: str, steps: Path) -> str:
    """What `told` says of the answer; nothing where no line can be told, or where it is in another cell.

    steps: the file that says what is right. What the code prints meanwhile is not shown.
    """
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), limited(SECONDS_TO_LOOK):
            warnings.simplefilter("ignore")
            return _told(names[exercise], known_right(steps, steps.stat().st_mtime_ns, exercise))
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit and TimeUp too
        return ""


@cache
def known_right(steps: Path, _changed: int, exercise: str) -> list[Reference]:
    """What the file says of an exercise, read again only when the file has changed; nothing where it has no case."""
    of = read_data(steps).get(exercise, {"cases": []})
    return [read_reference(one, of["operators"], _case_in_line_told(exercise, one)) for one in of["cases"]]


def _told(answer: Any, known: Sequence[Reference]) -> str:
    file = file_of(answer)
    if not linecache.getlines(file):
        return ""
    for right in known:
        looking = _Looking(answer, file, right)
        if right.is_right(looking.first):
            continue
        located = locate(right, looking.again)
        return told(located, right.case, linecache.getline) if located and looking.is_own(located) else ""
    return ""


def _case_in_line_told(exercise: str, written: Mapping[str, Any]) -> TellingCase:
    arguments = tuple(as_value(arg) for arg in written["args"])
    if "built" not in written:
        return TellingCase(exercise, arguments)
    parameters = {name: as_value(one) for name, one in written["parameters"].items()}
    return TellingCase(exercise, arguments, tuple(written["built"]), parameters)


class _Looking:
    """Runs of one answer on one case."""

    def __init__(self, answer: Any, file: str, right: Reference) -> None:
        self._answer = answer
        self._file = file
        self._case = right.case
        self.first = self._run({})

    def again(self, replaced: Mapping[int, torch.Tensor]) -> Run:
        return self._run(replaced) if replaced else self.first

    def is_own(self, located: Located) -> bool:
        """Whether the lines are the answer's own, and their text is known."""
        lines = {one.line for one in self.first.made if one.file == self._file}
        lines |= {self.first.returned[1]} if self.first.returned else set()
        texts = [linecache.getline(self._file, line) for line in located.lines]
        return located.file == self._file and lines.issuperset(located.lines) and all(map(str.strip, texts))

    def _run(self, replaced: Mapping[int, torch.Tensor]) -> Run:
        torch.default_generator.manual_seed(0)
        case = self._case
        call = made_ready(self._answer, case.built, case.parameters, case.arguments)
        return watched(call, Watch(lambda file: file == self._file or is_cell(file), replaced, in_shape=True))


EXAMPLES, MISTAKES, STEPS = "public_examples.json.gz", "known_mistakes.json.gz", "right_steps.json.gz"
WRITTEN = "written questions"
"""Among the exercises: the points of the questions that a person marks."""


_MOST = 8
"""Rows and columns that are shown."""
_LARGE = 1e4


@dataclass
class Beside:
    """A matrix of the student's and the expected one; `wrong` says where they differ."""

    where: str
    own: list[list[str]]
    right: list[list[str]]
    wrong: list[list[bool]]
    cut: bool
    """Whether there is more of them."""


def beside(call: Call | None) -> Beside | None:
    """The first matrix in which the call's result differs; None where there is none to show."""
    if call is None or "result" not in call.step:
        return None
    pairs: list[tuple[Any, Any]] = [(call.value, as_value(call.step["result"]))]
    if isinstance(pairs[0][1], tuple) and isinstance(call.value, tuple | list):
        pairs = list(zip(call.value, pairs[0][1], strict=False))
    for own, right in pairs:
        both = isinstance(own, torch.Tensor) and isinstance(right, torch.Tensor)
        if not both or own.shape != right.shape or not own.dim() or not own.numel() or own.is_complex():
            continue
        found = _first(own.detach().double(), right.double(), call.step.get("close", 1e-4))
        if found:
            return found
    return None


def _first(own: torch.Tensor, right: torch.Tensor, tolerance: float) -> Beside | None:
    wrong = ~close(own, right, tolerance)
    if not bool(wrong.any()):
        return None
    leading = tuple(wrong.nonzero()[0].tolist())[:-2] if own.dim() > 2 else ()
    own, right, wrong = ((one[leading] if leading else one).reshape(-1, one.shape[-1]) for one in (own, right, wrong))
    row, column = (max(0, int(place) - _MOST + 1) for place in wrong.nonzero()[0])
    part = slice(row, row + _MOST), slice(column, column + _MOST)
    cut = own.shape[0] > _MOST or own.shape[1] > _MOST
    where = [f"[{', '.join(map(str, leading))}]"] if leading else []
    if cut:
        where.append(f"from row {row} and column {column} on")
    own, right, wrong = own[part], right[part], wrong[part]
    return Beside(", ".join(where), _numbers(own), _numbers(right), wrong.tolist(), cut)


def _numbers(matrix: torch.Tensor) -> list[list[str]]:
    """With as many digits everywhere, so that they can be compared from row to row."""
    finite = matrix[matrix.isfinite()]
    whole = bool((finite == finite.round()).all())
    digits = ".4g" if bool((finite.abs() >= _LARGE).any()) else ".0f" if whole else ".4f"
    return [[f"{number:{digits}}" for number in row] for row in matrix.tolist()]


_STYLE = """<style>
.acheck{max-width:60em;line-height:1.45;overflow-wrap:anywhere;font-size:.95em}
.acheck .t{font-weight:600;margin:.2em 0 .5em}
.acheck ul{list-style:none;margin:0;padding:0}
.acheck li{margin:.25em 0;padding-left:6.2em;text-indent:-6.2em}
.acheck li>*{text-indent:0}
.acheck .m{display:inline-block;width:5.7em;margin-right:.5em;font-weight:600;text-indent:0}
.acheck .ok .m{color:#1a7f37}.acheck .no .m{color:#cf222e}
.acheck .p{border-left:3px solid #cf222e;padding-left:.6em;margin:.15em 0}
.acheck .b{border:2px solid #bf8700;border-radius:4px;background:rgba(191,135,0,.12);padding:.4em .7em;margin:.6em 0}
.acheck .w{border:2px dashed #bf8700;border-radius:4px;padding:.4em .7em;margin:.3em 0}
.acheck pre,.acheck code{white-space:pre-wrap;overflow-wrap:anywhere;background:rgba(127,127,127,.12);color:inherit}
.acheck pre{margin:.15em 0;padding:.3em .6em;max-height:12em;overflow:auto}
.acheck pre.b{max-height:none;margin:.6em 0;font-family:var(--jp-code-font-family,monospace)}
.acheck .two{display:flex;flex-wrap:wrap;gap:.4em 1.6em;margin:.3em 0}
.acheck .two>div{max-width:100%;overflow-x:auto}
.acheck .two table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em;color:inherit}
.acheck .two td{padding:.1em .5em;text-align:right;border:1px solid rgba(127,127,127,.35);background:none;color:inherit}
.acheck .two td.x{background:rgba(207,34,46,.2);font-weight:700;text-decoration:underline}
.acheck .s td,.acheck .s th{text-align:left;padding:.15em .8em .15em 0}
.acheck .s{border-collapse:collapse;color:inherit}
@media (prefers-color-scheme:dark){.acheck .ok .m{color:#3fb950}.acheck .no .m{color:#ff7b72}}
[data-jp-theme-light="true"] .acheck .ok .m{color:#1a7f37}[data-jp-theme-light="true"] .acheck .no .m{color:#cf222e}
[data-jp-theme-light="false"] .acheck .ok .m{color:#3fb950}[data-jp-theme-light="false"] .acheck .no .m{color:#ff7b72}
</style>"""
_MARKS = {"passed": ("ok", "✓ passed"), "FAILED": ("no", "✗ failed"), "not tried": ("", "– not tried")}


def as_page(said: Any) -> str:
    """An `Account` as HTML."""
    parts = [f'<p class="w">{escape(said.warning)}</p>'] if said.warning else []
    parts.append(f'<p class="t">{escape(said.title)}</p>')
    if said.box:
        sentences = "".join(f"<div>{_prose(sentence)}</div>" for sentence in said.box)
        parts.append(f'<div class="b"><b>{escape(said.box_title)}</b>{sentences}</div>')
    if said.whereabouts:
        parts.append(f'<pre class="b">{escape(said.whereabouts)}</pre>')
    if said.lines:
        parts.append(f"<ul>{''.join(map(_item, said.lines))}</ul>")
    parts += [f"<p>{_prose(one)}</p>" for one in [*said.asides, said.sum.rstrip(":") + "." if said.sum else ""] if one]
    return f'{_STYLE}<div class="acheck">{"".join(parts)}</div>'


def page_of_summary(rows: list[tuple[str, str, str]], below: list[str]) -> str:
    """The whole notebook's exercises as a table."""
    lines = "".join(f"<tr><th scope='row'><code>{escape(name)}</code></th><td>{escape(_mark(said) + said)}</td>"
                    f"<td>{escape(score)}</td></tr>" for name, said, score in rows)  # fmt: skip
    text = "".join(f"<p>{escape(one)}</p>" for one in below)
    return f'{_STYLE}<div class="acheck"><table class="s">{lines}</table>{text}</div>'


def _mark(said: str) -> str:
    if said == "passes":
        return "✓ "
    return "– " if said.startswith("not ") else "✗ "


def _item(line: Any) -> str:
    kind, mark = _MARKS[line.mark]
    inside = f'<span class="m">{mark}</span>{_prose(line.statement)}'
    if line.problem:
        below = _prose(line.problem)
        below += f"<div>In the call <code>{escape(line.call)}</code></div>" if line.call else ""
        below += f"<div>To play with it: <code>{escape(line.to_play_with)}</code></div>" if line.to_play_with else ""
        below += "".join(f"<div><code>{escape(frame)}</code></div>" for frame in line.frames)
        inside += f'<div class="p">{below}</div>'
    if line.beside:
        inside += _two(line.beside)
    if line.printed:
        inside += f"<div>Your code printed:</div><pre>{escape(line.printed)}</pre>"
    return f'<li class="{kind}">{inside}</li>'


def _prose(text: str) -> str:
    """Plain text, with what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _two(beside: Any) -> str:
    where = f" {escape(beside.where)}" if beside.where else ""
    own = [[_cell(*one) for one in zip(*row, strict=True)] for row in zip(beside.own, beside.wrong, strict=True)]
    right = [[_cell(number) for number in row] for row in beside.right]
    return f'<div class="two">{_table(f"yours{where}", own)}{_table(f"expected{where}", right)}</div>'


def _table(title: str, cells: list[list[str]]) -> str:
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<div>{title}<table>{rows}</table></div>"


def _cell(number: str, wrong: bool = False) -> str:
    return f'<td class="x">{escape(number)} ≠</td>' if wrong else f"<td>{escape(number)}</td>"


_WHAT_TO_DO = {
    NOT_DEFINED: "run its cell first",
    NOT_WRITTEN: "its stub still raises NotImplementedError",
}
_BY_A_PERSON = "not marked yet: a person reads it"
_MOST_PRINTED = 600
MOST_SHOWN = 3
"""Failed examples of which more is said than what is wrong."""


@dataclass
class Line:
    """One example, in words."""

    mark: str
    """`passed`, `FAILED` or `not tried`."""
    statement: str
    problem: str = ""
    call: str = ""
    to_play_with: str = ""
    """What gives the call's arguments and the right result."""
    printed: str = ""
    frames: list[str] = field(default_factory=list)
    beside: Beside | None = None


@dataclass
class Account:
    """All that is said of one exercise."""

    title: str
    warning: str
    lines: list[Line]
    box_title: str
    box: list[str]
    whereabouts: str
    asides: list[str]
    sum: str


def account(found: Outcome, warning: str) -> Account:
    """What is said of what was found. warning: what stands above all."""
    if found.missing:
        title = f"{found.exercise} is {found.missing}: {_WHAT_TO_DO[found.missing]}."
        return Account(title, warning, [], "", [], "", [], "")
    title = f"{found.exercise} passes on the public examples." if found.whole else f"{found.exercise} is not right yet."
    more = [id(one) for one in found.tried if one.problem][:MOST_SHOWN]
    lines = [
        _line(found.exercise, number, one, with_more=id(one) in more) for number, one in enumerate(found.tried, start=1)
    ]
    for line, one in zip(lines, found.tried, strict=True) if found.halved else ():
        if line.problem and one.example.get("essential"):
            line.problem = halves_the_points(line.problem)
    box_title, box = "", list(found.mistakes)
    if box:
        if found.whole:
            box_title = f"But so does {'a common mistake' if len(box) == 1 else 'each of these common mistakes'}:"
        elif len(box) == 1:
            box_title = "A common mistake looks just like this:"
        else:
            box_title = "Several common mistakes look like this; yours may be one of them:"
    asides = [f"Not tried here: {statement}" for statement in found.not_tried]
    if found.calls:
        asides.insert(0, calls_forbidden(found.calls))
    if any(line.to_play_with for line in lines):
        asides.append(f"`from {__name__} import example` gives you `example`.")
    asides.append("The hidden tests ask the same with other numbers.")
    return Account(
        title, warning, lines, box_title, box, found.whereabouts, asides,
        f"On the public examples that is {found.score:g} of {found.points:g} points:",
    )  # fmt: skip


def _line(exercise: str, number: int, one: Tried, *, with_more: bool) -> Line:
    mark = "not tried" if one.skipped else "FAILED" if one.problem else "passed"
    line = Line(mark, one.example["statement"], one.problem)
    if not with_more:
        return line
    if one.call is not None:
        line.call = in_words(one.call, one.example)
        line.to_play_with = to_play_with(one.call, exercise, number, one.example)
        line.beside = beside(one.call) if "value" in one.example.get("looks_at", ["value"]) and not one.frames else None
    line.frames = [f"line {at} of the cell, in {name}: {text}" for name, at, text in one.frames]
    printed = one.printed.strip()
    line.printed = printed if len(printed) <= _MOST_PRINTED else f"{printed[:_MOST_PRINTED]}…"
    return line


def as_text(said: Account) -> str:
    """The account in plain text."""
    text = [said.warning] if said.warning else []
    if not said.lines:
        return "\n".join([*text, said.title])
    for line in said.lines:
        text.append(f"{line.mark}  {line.statement}")
        below = [line.problem] if line.problem else []
        below += [f"In the call {line.call}"] if line.call else []
        below += [f"To play with it: {line.to_play_with}"] if line.to_play_with else []
        below += line.frames
        below += ["Your code printed:", *line.printed.splitlines()] if line.printed else []
        text += [f"        {one}" for one in below]
    text.append(said.title)
    if said.box:
        text += [said.box_title, *(f"        {sentence}" for sentence in said.box)]
    if said.whereabouts:
        text += [said.whereabouts]
    return "\n".join([*text, *said.asides, said.sum])


class Shown(float):
    """A score as nbgrader wants it, which Jupyter shows as a page."""

    page: str

    def _repr_html_(self) -> str:
        return self.page


def tell(found: Outcome, warning: str) -> float:
    """Tells what was found: in Jupyter by how the score is shown, elsewhere in print."""
    said = account(found, warning)
    if not in_jupyter():
        print(as_text(said))
        return found.score
    shown = Shown(found.score)
    shown.page = as_page(said)
    return shown


def in_jupyter() -> bool:
    """Whether what a cell gives is shown as HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def summed(outcomes: list[Outcome], written: dict[str, float]) -> None:
    """Tells how far the whole notebook is; written: the points of the questions that a person marks."""
    rows = [_row(found) for found in outcomes]
    rows += [(question, _BY_A_PERSON, f"– of {points:g}") for question, points in written.items()]
    total, by_hand = sum(found.score for found in outcomes), sum(written.values())
    points = sum(found.points for found in outcomes) + by_hand
    whole = sum(found.whole for found in outcomes)
    below = [f"{whole} of {len(outcomes)} exercises pass: {total:g} of {points:g} points on the public examples."]
    if written:
        below.append(f"{by_hand:g} of these points are not given here: a person reads what you write in words.")
    below.append("The hidden tests ask the same with other numbers.")
    if in_jupyter():
        from IPython.display import HTML, display

        display(HTML(page_of_summary(rows, below)))
        return
    for name, said, score in rows:
        print(f"{name:<32}{said:<44}{score:>10}")
    print("\n".join(below))


def _row(found: Outcome) -> tuple[str, str, str]:
    right = len(found.tried) - len(found.failed)
    said = found.missing or ("passes" if found.whole else f"{right} of {len(found.tried)} examples pass")
    if found.calls:
        said = f"calls {' and '.join(found.calls)}"
    elif found.mistakes:
        said += ", but so does a mistake" if found.whole else ", a common mistake"
    return found.exercise, said, f"{found.score:g} of {found.points:g}"
