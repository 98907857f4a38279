"""Convert values to JSON and tensors, and back, so that the result of untrusted code is data that can be checked.

The JSON contains tensors by name; their elements are sent separately.
"""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

import torch

from .arguments import MAX_DEPTH, MAX_TENSORS

MAX_TENSOR_BYTES = 4 << 20
"""Limit for the tensors of one message: ten times what the largest known answer sends."""
MAX_ITEMS = 4_000
"""Limit for the items of one value, at all depths together."""
MAX_TEXT, MAX_CHARACTERS = 10_000, 100_000
"""Limits for the characters of one text, and of all texts in one value."""
MAX_PAIRS = 500
"""Limit for the items of one dict: with colliding keys, each is compared with all before it."""
MAX_DIMS = 16

_PLAIN = (tuple, list, dict, str, float)
_DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
}
"""The dtypes that safetensors has and that can be compared."""

Tensors = dict[str, torch.Tensor]

Value = Union[None, bool, int, float, str, "Packed"]
"""A value as the header has it."""
_Items = list[Value]
_Pairs = list[tuple[Value, Value]]


@dataclass
class Packed:
    """A value that JSON cannot express; only the field with the name of its type is set.

    The values of a student's process are decoded into these fields, so that it cannot choose the keys of a dict.
    """

    tensor: str | None = None
    float: str | None = None
    """`nan`, `inf` or `-inf`."""
    opaque: str | None = None
    list: _Items | None = None
    tuple: _Items | None = None
    dict: _Pairs | None = None


class ProtocolError(Exception):
    """The other side closed the connection or violated the protocol."""


class Opaque:
    """Placeholder for a value that cannot be sent; it has only the name of the value's type."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    @property
    def name(self) -> str:
        """The type's name without the module, so that a class has one name whether a notebook or a file defines it."""
        return self.type_name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"<{self.type_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def pack(value: Any, tensors: Tensors) -> Any:
    """Return a value as JSON, and add its tensors to `tensors`.

    Values without a JSON form (arrays, modules, sparse or huge tensors) are packed as `Opaque`.
    """
    return _Packing(tensors).packed(value, 0)


class _Packing:
    """Packs one value, within MAX_ITEMS and MAX_CHARACTERS."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._items = MAX_ITEMS
        self._characters = MAX_CHARACTERS

    def packed(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, torch.Tensor):
            return _pack_tensor(value, self._tensors)
        kind = _plain_type(value)
        if kind is str and len(value) <= min(MAX_TEXT, self._characters):
            self._characters -= len(value)
            return value
        if kind is float:
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if kind in (list, tuple, dict):
            return self._packed_items(value, kind, depth)
        if isinstance(value, numbers.Integral) and abs(int(value)) < 1 << 63:  # NumPy's integers too
            return int(value)
        return {"opaque": value.type_name if kind is Opaque else type_name(value)}

    def _packed_items(self, value: Any, kind: type, depth: int) -> Any:
        size = len(value)
        if depth >= MAX_DEPTH or size > self._items or (kind is dict and size > MAX_PAIRS):
            return {"opaque": f"{type_name(value)} of {size}"}
        self._items -= size
        if kind is dict:
            return {"dict": [[self.packed(k, depth + 1), self.packed(v, depth + 1)] for k, v in value.items()]}
        return {"tuple" if kind is tuple else "list": [self.packed(item, depth + 1) for item in value]}


def _plain_type(value: Any) -> type:
    """Return the plain type that a value is packed as: dict for a Counter, tuple for a named tuple."""
    kind = type(value)
    return kind if kind in _PLAIN else next((base for base in _PLAIN if isinstance(value, base)), kind)


def _pack_tensor(value: torch.Tensor, tensors: Tensors) -> Any:
    try:
        if len(tensors) >= MAX_TENSORS:
            return {"opaque": f"a tensor beyond the first {MAX_TENSORS}"}
        if unsendable := _describe_unsendable(value):
            return {"opaque": unsendable}
        held = value.detach().as_subclass(torch.Tensor)
        if held.nbytes > MAX_TENSOR_BYTES - sum(t.nbytes for t in tensors.values()):
            others = "far larger than this exercise requires"
            if held.nbytes <= MAX_TENSOR_BYTES >> 1:
                others = f"which together with the other tensors is more than {MAX_TENSOR_BYTES >> 20} MB"
            return {"opaque": f"a tensor of shape {tuple(held.shape)}, {others}"}
        name = str(len(tensors))
        # A copy, so that later code cannot change it; contiguous, because its memory is sent as it is.
        copy = held.to("cpu", copy=True).resolve_conj().resolve_neg().contiguous()
        if type(copy) is not torch.Tensor or (copy.numel() and not copy.data_ptr()):
            return {"opaque": f"a tensor that cannot be read ({type_name(value)})"}
        tensors[name] = copy
        return {"tensor": name}
    except Exception:
        return {"opaque": f"a tensor that cannot be read ({type_name(value)})"}


def _describe_unsendable(value: torch.Tensor) -> str:
    """Describe a tensor that cannot be sent; empty if it can be sent."""
    if value.is_nested:
        return "nested tensor"
    if value.layout is not torch.strided:
        return f"a tensor of layout {str(value.layout).removeprefix('torch.')}"
    if value.is_quantized or value.dtype not in _DTYPES:
        return f"a tensor of {value.dtype}"
    if value.is_meta:
        return "a tensor on the meta device, which holds no numbers"
    return f"a tensor of {value.dim()} dimensions" if value.dim() > MAX_DIMS else ""


def type_name(value: object) -> str:
    """The name of a value's type as its author would write it, e.g. `numpy.ndarray`."""
    kind = type(value)
    module = str(getattr(kind, "__module__", ""))
    name = str(getattr(kind, "__qualname__", "?"))
    return (name if module in ("builtins", "__main__") else f"{module}.{name}")[:100]


def round_trip(value: Any) -> Any:
    """Pack and unpack a value, as if it were sent."""
    tensors: Tensors = {}
    return unpack(pack(value, tensors), tensors)


def unpack(packed: Any, tensors: Tensors) -> Any:
    """Return the value of packed JSON; raises ProtocolError if the JSON is not in the form of `pack`.

    Removes the value's tensors from `tensors`, so that none is used, and compared, a thousand times.
    """
    return _Unpacking(tensors).value(packed, 0)


class _Unpacking:
    """Unpacks one value, within MAX_ITEMS and MAX_CHARACTERS."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._items = 2 * MAX_ITEMS  # a pair counts as two items here
        self._characters = MAX_CHARACTERS

    def value(self, packed: Value | Mapping[str, Any], depth: int) -> Any:
        if isinstance(packed, str):
            self._characters -= len(packed)
            if self._characters < 0:
                raise ProtocolError("there is more text than the protocol allows")
        if isinstance(packed, int) and not -(1 << 63) <= packed < 1 << 63:
            raise ProtocolError("a number is larger than the protocol allows")
        if packed is None or isinstance(packed, int | float | str):
            return packed
        match packed if isinstance(packed, Packed) else _read(packed):
            case Packed(tensor=str(name)) if name in self._tensors:
                tensor = self._tensors.pop(name)
                return tensor if tensor.dtype in _DTYPES else Opaque(f"a tensor of {tensor.dtype}")
            case Packed(float="nan" | "inf" | "-inf" as number):
                return float(number)
            case Packed(opaque=str(name)):
                return Opaque(name[:200])
            case Packed(list=list(items)):
                return self._values(items, depth)
            case Packed(tuple=list(items)):
                return tuple(self._values(items, depth))
            case Packed(dict=list(pairs)) if len(pairs) <= MAX_PAIRS:
                keys = map(_as_key, self._values([key for key, _ in pairs], depth))
                made = dict(zip(keys, self._values([value for _, value in pairs], depth), strict=True))
                # All keys that are not plain values have the same name here.
                return made if len(made) == len(pairs) else Opaque(f"dict of {len(pairs)}")
        raise ProtocolError("a value is not in the protocol's form")

    def _values(self, items: list[Value], depth: int) -> list[Any]:
        self._items -= len(items)
        if depth > MAX_DEPTH or self._items < 0:
            raise ProtocolError("a value holds more than the protocol allows")
        return [self.value(item, depth + 1) for item in items]


def _read(packed: Any) -> Packed:
    try:
        return Packed(**packed)
    except TypeError:
        raise ProtocolError("a value is not in the protocol's form") from None


def _as_key(key: Any) -> Any:
    return key if isinstance(key, str | int | float | bool | None) else repr(Opaque(type_name(key)))
