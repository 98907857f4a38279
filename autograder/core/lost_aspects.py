"""Finds the line where an answer loses what is asked of it beside right values, by watching a run for that alone.

It may write into an argument, give a result of another dtype, keep gradients from an argument, or leave a tensor on
the CPU. Each is proven by what ran, or by a run in which the line is undone. Needs nothing but torch.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from .arguments import Arguments, each, tensors_in
from .device_probe import Devices, as_elsewhere, moved, moved_there
from .operators import OperatorMode, name_of
from .tracing import Own, fed, memory_of, place_of

OF_VALUE, OF_FORM, OF_COUNTING = "value", "form", "counting"
OF_WRITING, OF_DTYPE, OF_GRADIENT, OF_DEVICE = "writes", "dtype", "gradient", "device"
BY_CAST, OF_NOTHING, OF_OTHERS = "cast", "new", "made"
"""How a dtype, or a device, comes in: by a call that only changes it, of nothing, or of other tensors."""
CUT_BY_DETACH, CUT_BY_DATA, CUT_BY_NO_GRAD, CUT_BY_NUMBERS = "detach", "data", "no_grad", "numbers"
"""What ends the way of a gradient: `.detach()`, `.data`, `torch.no_grad`, plain numbers."""
_PLAIN = ("tolist", "item", "numpy", "__array__", "__float__", "tensor", "as_tensor", "asarray", "new_tensor")
_CUT_BY = {"detach": CUT_BY_DETACH, **dict.fromkeys(_PLAIN, CUT_BY_NUMBERS)}
_NEW = ("_like", "new_")
_MAX_UNDONE = 6


class Lost(NamedTuple):
    """A line, and how it loses the aspect."""

    file: str
    line: int
    how: str


class Asked(NamedTuple):
    """A call, and what is looked for in it."""

    thing: Callable[..., Any]
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    parameters: Mapping[str, torch.Tensor] | None = None
    through: tuple[str, ...] = ()

    def ready(self, change: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What is called, an instance with these parameters, and arguments of its own; each of their floats changed."""

        def changed(one: Any) -> Any:
            if not isinstance(one, torch.Tensor):
                return copy.deepcopy(one)
            return change(one.clone()) if one.is_floating_point() else one.clone()

        target = self.thing
        if self.built is not None:
            target = self.thing(*self.built)
            own = dict(target.named_parameters()) if self.parameters else {}
            for name, values in (self.parameters or {}).items():
                own[name].data = change(values.clone()).view(own[name].shape)
        return fed(target, self.through), tuple(each(arg, changed) for arg in self.arguments)


def where_lost(aspect: str, details: Sequence[str], asked: Asked, own: Own) -> Lost | None:
    """Return the line; None if this call loses nothing, or if no line is proven.

    details: those of a `core.comparison.Mismatch`. Raises what the code raises.
    """
    if aspect == OF_GRADIENT:
        return _of_gradient(details[0], asked, own)
    with torch.no_grad():
        if aspect == OF_WRITING:
            return _of_writing(int(details[0]), asked, own)
        if aspect == OF_DTYPE:
            return _of_dtype(getattr(torch, details[0]), getattr(torch, details[1]), asked, own)
        return _of_device(asked, own)


def _of_writing(number: int, asked: Asked, own: Own) -> Lost | None:
    target, arguments = asked.ready(lambda one: one)
    with _Writing(own, {memory_of(one) for one in tensors_in(arguments[number : number + 1])}) as seen:
        target(*arguments)
    file, line = seen.place
    return Lost(file, line, OF_OTHERS) if line else None


class _Writing(OperatorMode):
    """Notes where something is written first into one of these memories."""

    def __init__(self, own: Own, memories: set[int]) -> None:
        super().__init__()
        self._own = own
        self._memories = memories
        self.place = ("", 0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        held = [one for one in _written(func, args, kwargs or {}) if memory_of(one) in self._memories]
        before = [one.clone() for one in held]
        given = func(*args, **(kwargs or {}))
        if not self.place[1] and not all(map(torch.equal, before, held)):
            self.place = place_of(self._own)
        return given


def _written(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """What an operator writes into."""
    known = getattr(getattr(func, "_schema", None), "arguments", ())
    given = [*zip(known, args, strict=False), *((one, kwargs[one.name]) for one in known if one.name in kwargs)]
    return [tensor for one, value in given if one.is_write for tensor in tensors_in([value])]


class _Note(NamedTuple):
    """One tensor that was made."""

    place: tuple[str, int]
    operator: str
    dtype: torch.dtype
    inputs: tuple[int, ...]
    is_of_others: bool
    """Whether the call that made it was given a tensor."""

    @property
    def how(self) -> str:
        """By what kind of call it was made."""
        return BY_CAST if self.operator == "_to_copy" else OF_OTHERS if self.is_of_others else OF_NOTHING


class _Notes:
    """The tensors that a run makes, with the line of each and what it was made of."""

    def __init__(self, own: Own) -> None:
        self._own = own
        self.made: list[_Note] = []
        self._of: dict[int, int] = {}
        self._kept: list[Any] = []
        self._into: dict[int, list[int]] = {}

    def behind(self, tensor: torch.Tensor) -> list[int]:
        """The numbers of a tensor, and of what was written into its memory."""
        number = self._of.get(id(tensor), -1)
        into = self._into.get(memory_of(tensor), [])
        return [number, *(one for one in into if one > number)] if number >= 0 else into

    def note(self, func: Any, operands: list[torch.Tensor], given: Any) -> None:
        """What an operator made of its operands."""
        inputs = tuple(number for one in operands for number in self.behind(one))
        for one in tensors_in(given):
            self._of[id(one)] = len(self.made)
            self._kept.append(one)
            if name_of(func).endswith("_"):
                self._into.setdefault(memory_of(one), []).append(len(self.made))
            self.made.append(_Note(place_of(self._own), name_of(func), one.dtype, inputs, bool(operands)))

    def first(self, tensors: Iterable[torch.Tensor], is_such: Callable[[_Note], bool]) -> _Note | None:
        """The first of the tensors of this kind that these were made of, with nothing of another kind between."""
        pending, seen, found = [n for one in tensors for n in self.behind(one)], set[int](), list[int]()
        while pending:
            number = pending.pop()
            if number in seen or not is_such(self.made[number]):
                continue
            seen.add(number)
            before = [n for n in self.made[number].inputs if n < number and is_such(self.made[n])]
            pending += before
            if not before:
                found.append(number)
        note = self.made[min(found)] if found else None
        return note if note and note.place[1] else None


class _Noting(OperatorMode):
    """Notes whatever is made."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = func(*args, **(kwargs or {}))
        self._notes.note(func, list(tensors_in((args, dict(kwargs or {})))), given)
        return given


def _of_dtype(found: torch.dtype, wanted: torch.dtype, asked: Asked, own: Own) -> Lost | None:
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
            return None  # counting is no fault: it is in what was made of it
        return Lost(*note.place, note.how)
    return None


def _real(dtype: torch.dtype) -> torch.dtype:
    """That of the parts of complex numbers."""
    return dtype.to_real() if dtype.is_complex else dtype


class _Cuts(TorchFunctionMode):
    """Notes where what carries a gradient gives what does not; may undo what one line does."""

    def __init__(self, own: Own, undone: tuple[str, int] | None) -> None:
        super().__init__()
        self._own = own
        self._undone = undone
        self._off: tuple[str, int] | None = None
        self.cuts: dict[tuple[str, int], str] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, place = str(getattr(func, "__name__", "")), place_of(self._own)
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


def _of_gradient(where: str, asked: Asked, own: Own) -> Lost | None:
    arrived, cuts = _arrives(where, asked, own)
    if arrived or not cuts:
        return None
    mends = [place for place in list(cuts)[:_MAX_UNDONE] if place[1] and _arrives(where, asked, own, place)[0]]
    if not mends and len(cuts) == 1 and set(cuts.values()) == {CUT_BY_NUMBERS}:
        mends = [place for place in cuts if place[1]]  # there is no other way out
    return Lost(*mends[0], cuts[mends[0]]) if len(mends) == 1 else None


def _arrives(
    where: str, asked: Asked, own: Own, undone: tuple[str, int] | None = None
) -> tuple[bool, dict[tuple[str, int], str]]:
    """Whether a gradient arrives there and nowhere else is asked for, and where its ways end."""
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
    """Notes which tensors are made on the CPU, and what is one of the first two operands from two devices."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes
        self.stayed: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        was, operands = self.mixed, list(tensors_in((args, dict(kwargs or {}))))
        try:
            given = super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            if self.mixed and not was:
                self.stayed = [one for one in operands if one.device.type == "cpu" and one.dim()]
        here = [one for one in tensors_in(given) if one.device.type == "cpu"]
        if here:
            self._notes.note(func, operands, here)
        return given


def _of_device(asked: Asked, own: Own) -> Lost | None:
    notes = _Notes(own)
    with _Noting(notes):
        target, arguments = asked.ready(lambda one: one)
    if isinstance(target, torch.nn.Module):
        target = moved(target)
    there = moved_there(Arguments(arguments))
    stayed: list[torch.Tensor] = []
    with as_elsewhere(_Staying(notes)) as seen:
        try:
            stayed = [one for one in tensors_in(there.apply(target)) if one.device.type == "cpu"]
        except Exception:
            if not seen.mixed:
                raise
    note = notes.first(seen.stayed or stayed, lambda _: True)
    if note is None:
        return None
    return Lost(*note.place, note.how)
