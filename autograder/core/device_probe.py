"""Finds tensors that stay behind when a model moves to another device, without a GPU.

A mask that is not a buffer and a tensor made on the CPU by hand work on every laptop and fail on every GPU. Here the
code is run on tensors that say they are on another device and keep their numbers on the CPU: so it runs to its end,
whatever it decides by the numbers, and what it gives there can be compared with what it gives on the CPU.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch

from .arguments import Arguments, tensors_in
from .operators import OperatorMode, name_of

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


class Devices(OperatorMode):
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
        if func in _BY_INDEX:
            return func(args[0], _with_numbers(args[1]), *args[2:], **named)
        if func not in _OF_NUMBERS:
            return func(*args, **named)
        if func is torch.Tensor.new_tensor and named.get("device") is None:
            named["device"] = args[0].device
        if named.get("device") is None or torch.device(named["device"]).type != DEVICE.type:
            return func(*args, **named)
        return func(*args, **{**named, "device": _CPU}).to(DEVICE)


def _with_numbers(index: Any) -> Any:
    """An index whose lists are tensors: of `x[:, [0]]` PyTorch itself makes one on DEVICE, where numbers are lost."""
    if isinstance(index, tuple):
        return tuple(map(_with_numbers, index))
    is_list = isinstance(index, list) and bool(index) and all(isinstance(one, int) for one in index)
    return torch.tensor(index) if is_list else index


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


OnDevices = TypeVar("OnDevices", bound=Devices)
_TYPES = f"torch.{DEVICE.type}."
_BY_INDEX = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
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
    with Devices():
        return module.to(DEVICE)


def moved_there(arguments: Arguments) -> Arguments:
    """Copies of the arguments, their tensors moved."""
    return arguments.mapped(lambda arg: _away(arg.clone()) if isinstance(arg, torch.Tensor) else arg)


@contextmanager
def as_elsewhere(devices: OnDevices) -> Iterator[OnDevices]:
    """Code that runs within this meets DEVICE as it would meet CUDA."""
    with _standing_in(), _AsOnAnotherDevice(), devices:
        yield devices


Probed = tuple[str, Any]
"""Verdict on code called with inputs on another device, and the value that it returned there.

The verdict is `follows`, `mixed`, `elsewhere` (the output is on another device) or `differs` (from the value on the
CPU). The value has its elements on the CPU, and is None if the code mixed devices.
"""


def probe(call: Callable[..., Any], arguments: Arguments, on_cpu: Callable[[], Any]) -> Probed:
    """Call the code on another device.

    on_cpu: calls the code on the CPU with the same arguments, and draws the same by chance each time. What the code
    raises on the other device it raises here, but where it mixes devices.
    """
    moved_inputs = moved_there(arguments)
    with as_elsewhere(Devices()) as devices:
        try:
            value = moved_inputs.apply(call)
        except Exception:
            if devices.mixed:
                return MIXED, None
            raise
    if devices.mixed:
        return MIXED, None
    how = BY_NUMBERS if devices.by_numbers else ""
    return _verdict(value, on_cpu) + how, _each(value, _brought_here)


def _verdict(value: Any, on_cpu: Callable[[], Any]) -> str:
    away = list(tensors_in(value))
    if not all(isinstance(one, _Away) for one in away):
        return ELSEWHERE
    here, right = list(map(_brought_here, away)), list(tensors_in(on_cpu()))
    if any(one.device != _CPU for one in right):
        return ELSEWHERE
    return FOLLOWS if _alike(here, right) or not _alike(right, list(tensors_in(on_cpu()))) else DIFFERS


def _alike(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(
        one.shape == other.shape
        and torch.allclose(one.detach().double(), other.detach().double(), rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
        for one, other in zip(some, others, strict=True)
    )
