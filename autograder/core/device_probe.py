"""Detect, without a GPU, code that leaves tensors on the CPU if its inputs are on another device.

A mask that is not a buffer, or a tensor created on the CPU, works on every laptop and fails on every GPU. The code runs
on tensors that report another device and keep their elements on the CPU. So it runs to its end, even if it branches on
elements, and its result can be compared with that on the CPU.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch

from .arguments import Arguments, tensors_in
from .run_trace import OperatorMode, name_of

FOLLOWS = "follows"
MIXED = "mixed"
ELSEWHERE = "elsewhere"
DIFFERS = "differs"
BY_NUMBERS = ", by its numbers"
"""Suffix of a verdict on code that read single elements of tensors."""

DEVICE = torch.device("meta")
"""Stands for a GPU: besides the CPU, the only device on which every build of PyTorch can differentiate."""
_CPU = torch.device("cpu")
_CLOSE = 1e-3

_CROSSING = {"copy_", "_to_copy"}
"""Operators that accept operands on two devices on CUDA too, such as those of `.to(device)`."""
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
"""Operators that accept indices on the CPU for a tensor on another device, but not the reverse."""


class _Away(torch.Tensor):
    """A tensor that reports DEVICE; `here` is the tensor on the CPU that has its elements."""

    here: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:  # PyTorch refuses this for subclasses, but not for other devices
        return self.here.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        return self.here.numpy(force=True) if force else super().numpy()

    def __format__(self, specification: str) -> str:  # PyTorch formats one element as a number
        return format(self.item(), specification) if self.dim() == 0 else object.__format__(self, specification)

    is_cuda = True  # code that is only for CUDA is right on CUDA
    is_meta = False

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch passes no kwargs if there are none
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _execute(func, args, kwargs or {})  # a tensor that the code kept after the probe


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
    """Notes whether an operator got operands from two devices. As on CUDA, a 0-d CPU tensor fits any device."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = False
        self.by_numbers = False

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.by_numbers = self.by_numbers or name_of(func) == "_local_scalar_dense"
        operands = list(tensors_in((_arguments_of_one_device(func, args), dict(kwargs))))
        devices = {t.device for t in operands if t.dim() > 0 or isinstance(t, _Away)}
        if len(devices) > 1 and name_of(func) not in _CROSSING:
            self.mixed = True
        return _execute(func, args, kwargs)


def _arguments_of_one_device(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments that CUDA requires on one device."""
    if name_of(func) not in _INDEXING or len(args) < 2 or not isinstance(args[0], _Away):
        return args
    indexed, indices, *values = args
    away = [index for index in indices if isinstance(index, _Away)]
    by_mask = all(index is None or index.dtype in (torch.bool, torch.uint8) for index in indices)
    if by_mask and values and isinstance(values[0], torch.Tensor) and values[0].numel() == 1:
        values = values[1:]  # a single element fills the masked positions, from any device
    return (indexed, away, *values)


class _EmulatedCuda(TorchFunctionMode):
    """Lets DEVICE behave like CUDA: new tensors on it keep their elements, and `cuda` is its name."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        args, named = tuple(map(_not_cuda, args)), {name: _not_cuda(value) for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0].to(DEVICE)
        if func is torch.Tensor.type and len(args) > 1 and str(args[1]).startswith(_TYPES):
            return args[0].to(DEVICE, torch.empty(0).type(args[1].replace(_TYPES, "torch.")).dtype)
        if func in _BY_INDEX:
            return func(args[0], _with_numbers(args[1]), *args[2:], **named)
        if func not in _FROM_NUMBERS:
            return func(*args, **named)
        if func is torch.Tensor.new_tensor and named.get("device") is None:
            named["device"] = args[0].device
        if named.get("device") is None or torch.device(named["device"]).type != DEVICE.type:
            return func(*args, **named)
        return func(*args, **{**named, "device": _CPU}).to(DEVICE)


def _with_numbers(index: Any) -> Any:
    """Return an index with tensors instead of lists and ranges: PyTorch would make them on DEVICE, without elements."""
    if isinstance(index, tuple):
        return tuple(map(_with_numbers, index))
    is_list = isinstance(index, list | range) and bool(index) and all(isinstance(one, int) for one in index)
    return torch.tensor(index) if is_list else index


def _not_cuda(value: Any) -> Any:
    is_cuda = isinstance(value, torch.device | str) and re.fullmatch(r"cuda(:\d)?", str(value))
    if not is_cuda:
        return value
    return DEVICE.type if isinstance(value, str) else DEVICE


class _Generator(torch.Generator):
    """A generator on the CPU for any device, because DEVICE has none."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, _CPU)  # type: ignore[call-arg]


@contextmanager
def _patched_torch() -> Iterator[None]:
    """Replace functions of torch that DEVICE lacks."""
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
_FROM_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor)


def _execute(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Compute an operator on the CPU, and return its result on the device where the result belongs."""
    operands = list(tensors_in((args, dict(kwargs))))
    named = kwargs.get("device")
    is_away = any(isinstance(t, _Away) for t in operands) if named is None else torch.device(named).type == DEVICE.type
    on_cpu = dict(kwargs) if named is None else {**kwargs, "device": _CPU}
    result = func(*_map_tensors(args, _to_cpu), **_map_tensors(on_cpu, _to_cpu))
    if torch.Tag.inplace_view in func.tags and isinstance(args[0], _Away):
        with no_dispatch():  # operators such as `squeeze_` change the shape of the tensor itself
            func(*args, **kwargs)
    if name_of(func) == "copy_" or func._schema.is_mutable:
        return _with_operands(func, args, kwargs, result)
    return _map_tensors(result, _away) if is_away else result


def _with_operands(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Return the result of an operator that writes into operands, with these operands instead of their CPU tensors."""
    given = [*zip(func._schema.arguments, args, strict=False)]
    given += [(argument, kwargs[argument.name]) for argument in func._schema.arguments if argument.name in kwargs]
    held = {id(_to_cpu(one)): one for argument, value in given if argument.is_write for one in tensors_in([value])}
    is_away = any(isinstance(t, _Away) for t in tensors_in((args, dict(kwargs))))
    return _map_tensors(result, lambda one: held.get(id(one), _away(one) if is_away else one))


def _to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.here if isinstance(tensor, _Away) else tensor


def _map_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_map_tensors(item, change) for item in value)
    return {key: _map_tensors(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def move_module(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module after `.to(DEVICE)`."""
    with Devices():
        return module.to(DEVICE)


def move_arguments(arguments: Arguments) -> Arguments:
    """Return copies of the arguments with all tensors on DEVICE."""
    return arguments.mapped(lambda arg: _away(arg.clone()) if isinstance(arg, torch.Tensor) else arg)


@contextmanager
def emulated_device(devices: OnDevices) -> Iterator[OnDevices]:
    """Let DEVICE behave like CUDA for the code in this context."""
    with _patched_torch(), _EmulatedCuda(), devices:
        yield devices


Probed = tuple[str, Any]
"""Verdict on code called with inputs on another device, and the value that it returned there.

The verdict is `follows`, `mixed`, `elsewhere` (the output is on another device) or `differs` (from the value on the
CPU). The value has its elements on the CPU, and is None if the code mixed devices.
"""


def probe(call: Callable[..., Any], arguments: Arguments, on_cpu: Callable[[], Any]) -> Probed:
    """Call the code on another device, and return the verdict and the value.

    on_cpu: calls the code on the CPU with the same arguments and the same random numbers. Raises what the code raises
    on the other device, unless it mixes devices.
    """
    moved_inputs = move_arguments(arguments)
    with emulated_device(Devices()) as devices:
        try:
            value = moved_inputs.apply(call)
        except Exception:
            if devices.mixed:
                return MIXED, None
            raise
    if devices.mixed:
        return MIXED, None
    how = BY_NUMBERS if devices.by_numbers else ""
    return _verdict(value, on_cpu) + how, _map_tensors(value, _to_cpu)


def _verdict(value: Any, on_cpu: Callable[[], Any]) -> str:
    away = list(tensors_in(value))
    if not all(isinstance(one, _Away) for one in away):
        return ELSEWHERE
    here, right = list(map(_to_cpu, away)), list(tensors_in(on_cpu()))
    if any(one.device != _CPU for one in right):
        return ELSEWHERE
    return FOLLOWS if _alike(here, right) or not _alike(right, list(tensors_in(on_cpu()))) else DIFFERS


def _alike(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(
        one.shape == other.shape
        and torch.allclose(one.detach().double(), other.detach().double(), rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
        for one, other in zip(some, others, strict=True)
    )
