"""Find the line that makes an answer fail in an aspect other than the values of its result.

The aspects: write into no argument, return the right dtype, let gradients reach all arguments, and follow the inputs to
another device. A line is reported only if a traced run, or a run in which the line's effect is undone, proves it.

Example: `find_lost_aspect(OF_WRITING, ["0"], traced, is_cell)` returns the line `x += 1` that writes into argument 0.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from .arguments import Arguments, tensors_in
from .device_probe import Devices, emulated_device, move_arguments, move_module
from .run_trace import IsOwnFile, OperatorMode, TracedCall, memory_id, name_of, own_line

OF_VALUE, OF_FORM, OF_COUNTING = "value", "form", "counting"
OF_WRITING, OF_DTYPE, OF_GRADIENT, OF_DEVICE = "writes", "dtype", "gradient", "device"
BY_CAST, OF_NOTHING, OF_OTHERS = "cast", "new", "made"
"""Ways to get a wrong dtype or device: by a conversion, in a new tensor, or as the result of an operator."""
CUT_BY_DETACH, CUT_BY_DATA, CUT_BY_NO_GRAD, CUT_BY_NUMBERS = "detach", "data", "no_grad", "numbers"
"""Ways to cut a gradient: `.detach()`, `.data`, `torch.no_grad`, plain numbers."""
_PLAIN = ("tolist", "item", "numpy", "__array__", "__float__", "tensor", "as_tensor", "asarray", "new_tensor")
_CUT_BY = {"detach": CUT_BY_DETACH, **dict.fromkeys(_PLAIN, CUT_BY_NUMBERS)}
_NEW = ("_like", "new_")
_MAX_UNDONE = 6


class LostAspect(NamedTuple):
    """A line of a student's code, and the way in which it loses an aspect."""

    file: str
    line: int
    how: str


def find_lost_aspect(aspect: str, details: Sequence[str], asked: TracedCall, own: IsOwnFile) -> LostAspect | None:
    """Return the line that loses an aspect; None if this call loses nothing, or if no line is proven.

    aspect, details: those of a `core.comparison.Mismatch`. Raises what the code raises.
    """
    if aspect == OF_GRADIENT:
        return _of_gradient(details[0], asked, own)
    with torch.no_grad():
        if aspect == OF_WRITING:
            return _of_writing(int(details[0]), asked, own)
        if aspect == OF_DTYPE:
            return _of_dtype(getattr(torch, details[0]), getattr(torch, details[1]), asked, own)
        return _of_device(asked, own)


def _of_writing(number: int, asked: TracedCall, own: IsOwnFile) -> LostAspect | None:
    target, arguments = asked.ready(lambda one: one)
    with _Writing(own, {memory_id(one) for one in tensors_in(arguments[number : number + 1])}) as seen:
        target(*arguments)
    file, line = seen.place
    return LostAspect(file, line, OF_OTHERS) if line else None


class _Writing(OperatorMode):
    """Notes the line that first changes one of the given memories."""

    def __init__(self, own: IsOwnFile, memories: set[int]) -> None:
        super().__init__()
        self._own = own
        self._memories = memories
        self.place = ("", 0)

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        held = [one for one in _written(func, args, kwargs) if memory_id(one) in self._memories]
        before = [one.clone() for one in held]
        given = super().operate(func, args, kwargs)
        if not self.place[1] and not all(map(torch.equal, before, held)):
            self.place = own_line(self._own)
        return given


def _written(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the operands that an operator writes into."""
    known = getattr(getattr(func, "_schema", None), "arguments", ())
    given = [*zip(known, args, strict=False), *((one, kwargs[one.name]) for one in known if one.name in kwargs)]
    return [tensor for one, value in given if one.is_write for tensor in tensors_in([value])]


class _Note(NamedTuple):
    """A tensor that a run created."""

    place: tuple[str, int]
    operator: str
    dtype: torch.dtype
    inputs: tuple[int, ...]
    is_of_others: bool
    """True if the operator had a tensor among its operands."""

    @property
    def how(self) -> str:
        """The kind of call that created the tensor."""
        return BY_CAST if self.operator == "_to_copy" else OF_OTHERS if self.is_of_others else OF_NOTHING


class _Notes:
    """The tensors that a run creates, with their lines and operands."""

    def __init__(self, own: IsOwnFile) -> None:
        self._own = own
        self.made: list[_Note] = []
        self._of: dict[int, int] = {}
        self._kept: list[Any] = []
        self._into: dict[int, list[int]] = {}

    def behind(self, tensor: torch.Tensor) -> list[int]:
        """Return the numbers of a tensor and of all later writes into its memory."""
        number = self._of.get(id(tensor), -1)
        into = self._into.get(memory_id(tensor), [])
        return [number, *(one for one in into if one > number)] if number >= 0 else into

    def note(self, func: Any, operands: list[torch.Tensor], given: Any) -> None:
        inputs = tuple(number for one in operands for number in self.behind(one))
        for one in tensors_in(given):
            self._of[id(one)] = len(self.made)
            self._kept.append(one)
            if name_of(func).endswith("_"):
                self._into.setdefault(memory_id(one), []).append(len(self.made))
            self.made.append(_Note(own_line(self._own), name_of(func), one.dtype, inputs, bool(operands)))

    def first(self, tensors: Iterable[torch.Tensor], has_kind: Callable[[_Note], bool]) -> _Note | None:
        """Return the earliest tensor of a kind from which `tensors` were computed through tensors of this kind only."""
        pending, seen, found = [n for one in tensors for n in self.behind(one)], set[int](), list[int]()
        while pending:
            number = pending.pop()
            if number in seen or not has_kind(self.made[number]):
                continue
            seen.add(number)
            before = [n for n in self.made[number].inputs if n < number and has_kind(self.made[n])]
            pending += before
            if not before:
                found.append(number)
        note = self.made[min(found)] if found else None
        return note if note and note.place[1] else None


class _Noting(OperatorMode):
    """Notes the results of all operators."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        given = super().operate(func, args, kwargs)
        self._notes.note(func, list(tensors_in((args, dict(kwargs)))), given)
        return given


def _of_dtype(found: torch.dtype, wanted: torch.dtype, asked: TracedCall, own: IsOwnFile) -> LostAspect | None:
    for dtype in [wanted] if wanted.is_floating_point else [torch.float32, torch.float64]:
        target, arguments = asked.ready(partial(torch.Tensor.to, dtype=dtype))
        if isinstance(target, torch.nn.Module):
            target.to(dtype)
        notes = _Notes(own)
        with _Noting(notes):
            result = target(*arguments)
        others = [one for one in tensors_in(result) if one.dtype == found != wanted]
        note = notes.first(others[:1], lambda one: _real(one.dtype) == found)
        if note is None:
            continue
        if note.operator == "arange" and not found.is_floating_point:
            return None  # counting is right; the fault is in a later operation
        return LostAspect(*note.place, note.how)
    return None


def _real(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a real part: float32 for complex64 and for float32."""
    return dtype.to_real() if dtype.is_complex else dtype


class _Cuts(TorchFunctionMode):
    """Notes the lines at which results lose the gradient of their operands; can undo the effect of one line."""

    def __init__(self, own: IsOwnFile, undone: tuple[str, int] | None) -> None:
        super().__init__()
        self._own = own
        self._undone = undone
        self._off: tuple[str, int] | None = None
        self.cuts: dict[tuple[str, int], str] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, place = str(getattr(func, "__name__", "")), own_line(self._own)
        if name == "_set_grad_enabled":
            if place == self._undone and not args[0]:
                return None
            self._off = None if args[0] else place
        carries = any(one.requires_grad for one in tensors_in((args, dict(kwargs or {}))))
        is_data = func is torch.Tensor.data.__get__  # type: ignore[attr-defined]
        if carries and place == self._undone and (is_data or name == "detach"):
            return args[0]
        given = func(*args, **(kwargs or {}))
        if carries and not any(part in name for part in _NEW):
            made = [one for one in tensors_in(given) if one.is_floating_point()]
            is_cut = name in _PLAIN or (made and not any(one.requires_grad for one in made))
            if is_cut and not torch.is_grad_enabled():
                self.cuts.setdefault(self._off or ("", 0), CUT_BY_NO_GRAD)
            elif is_cut:
                self.cuts.setdefault(place, CUT_BY_DATA if is_data else _CUT_BY.get(name, OF_OTHERS))
        return given


def _of_gradient(where: str, asked: TracedCall, own: IsOwnFile) -> LostAspect | None:
    arrived, cuts = _arrives(where, asked, own)
    if arrived or not cuts:
        return None
    proven = [place for place in list(cuts)[:_MAX_UNDONE] if place[1] and _arrives(where, asked, own, place)[0]]
    if not proven and len(cuts) == 1 and set(cuts.values()) == {CUT_BY_NUMBERS}:
        proven = [place for place in cuts if place[1]]  # numbers cannot be undone, and nothing else cuts the gradient
    return LostAspect(*proven[0], cuts[proven[0]]) if len(proven) == 1 else None


def _arrives(
    where: str, asked: TracedCall, own: IsOwnFile, undone: tuple[str, int] | None = None
) -> tuple[bool, dict[tuple[str, int], str]]:
    """Return whether a gradient arrives at an argument or parameter, and the lines that cut gradients on its way."""
    with torch.enable_grad():
        target, arguments = asked.ready(lambda one: one)
        own_parameters = dict(target.named_parameters()) if isinstance(target, torch.nn.Module) else {}
        for parameter in own_parameters.values():
            parameter.requires_grad_(False)
        leaves = [own_parameters[where]] if where in own_parameters else list(tensors_in([arguments[int(where)]]))
        for leaf in leaves:
            leaf.requires_grad_()
        with _Cuts(own, undone) as seen:
            result = target(*arguments)
        ends = [one for one in tensors_in(result) if one.requires_grad]
        found = torch.autograd.grad([one.sum() for one in ends], leaves, allow_unused=True) if ends else []
    return any(one is not None for one in found), seen.cuts


class _Staying(Devices):
    """Notes the tensors that are created on the CPU, and the CPU operands of the first operator with two devices."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes
        self.stayed: list[torch.Tensor] = []

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        was, operands = self.mixed, list(tensors_in((args, dict(kwargs))))
        try:
            given = super().operate(func, args, kwargs)
        finally:
            if self.mixed and not was:
                self.stayed = [one for one in operands if one.device.type == "cpu" and one.dim()]
        here = [one for one in tensors_in(given) if one.device.type == "cpu"]
        if here:
            self._notes.note(func, operands, here)
        return given


def _of_device(asked: TracedCall, own: IsOwnFile) -> LostAspect | None:
    notes = _Notes(own)
    with _Noting(notes):
        target, arguments = asked.ready(lambda one: one)
    if isinstance(target, torch.nn.Module):
        target = move_module(target)
    there = move_arguments(Arguments(arguments))
    stayed: list[torch.Tensor] = []
    with emulated_device(_Staying(notes)) as seen:
        try:
            stayed = [one for one in tensors_in(there.apply(target)) if one.device.type == "cpu"]
        except Exception:
            if not seen.mixed:
                raise
    note = notes.first(seen.stayed or stayed, lambda _: True)
    if note is None:
        return None
    return LostAspect(*note.place, note.how)
