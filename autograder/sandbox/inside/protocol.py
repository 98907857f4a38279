"""The wire between the trusted and the untrusted side: data only, never pickle, sizes capped.

A frame is two little-endian 32-bit lengths, a JSON header of the first length and a safetensors
payload of the second. Tensors stand in the header as numbers into the payload.
Both sides use this module; nothing that comes in is believed before it has been checked.
"""

import json
import math
import numbers
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import safetensors
import safetensors.torch
import torch

from .nesting import MAX_DEPTH, MAX_TENSORS

MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = 64 << 20
MAX_ITEMS = 10_000
MAX_DIMS = 16

_LENGTHS = struct.Struct("<II")

_PLAIN = (tuple, list, dict, str, float)
_DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
}
"""Those that safetensors has and a comparison can be made in."""

Tensors = dict[str, torch.Tensor]


class ProtocolError(Exception):
    """The other side closed the connection, or sent what the protocol does not allow."""


class Opaque:
    """Stands for a value that cannot cross the wire: only the name of its type comes over."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.type_name == self.type_name

    def __hash__(self) -> int:
        return hash(self.type_name)


def pack(value: Any, tensors: Tensors, depth: int = 0) -> Any:
    """Turns a value into JSON, and puts its tensors into `tensors`.

    What has no place in the format (arrays, modules, sparse or huge tensors) becomes `Opaque`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, torch.Tensor):
        return _pack_tensor(value, tensors)
    kind = _plain_type(value)
    if kind is str and len(value) <= MAX_ITEMS:
        return value
    if kind is float:
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if depth < MAX_DEPTH and kind in (list, tuple, dict) and len(value) <= MAX_ITEMS:
        if kind is dict:
            pairs = [[pack(k, tensors, depth + 1), pack(v, tensors, depth + 1)] for k, v in value.items()]
            return {"dict": pairs}
        items = [pack(item, tensors, depth + 1) for item in value]
        return {"tuple": items} if kind is tuple else {"list": items}
    if isinstance(value, numbers.Integral) and abs(int(value)) < 1 << 63:  # NumPy's integers too
        return int(value)
    return {"opaque": value.type_name if kind is Opaque else type_name(value)}


def _plain_type(value: Any) -> type:
    """The type that a value counts as: a Counter is a dict, a named tuple a tuple."""
    kind = type(value)
    return kind if kind in _PLAIN else next((base for base in _PLAIN if isinstance(value, base)), kind)


def _pack_tensor(value: torch.Tensor, tensors: Tensors) -> Any:
    try:
        held = value.detach().as_subclass(torch.Tensor)
        if len(tensors) >= MAX_TENSORS:
            return {"opaque": f"a tensor beyond the first {MAX_TENSORS}"}
        if held.dim() > MAX_DIMS:
            return {"opaque": f"a tensor of {held.dim()} dimensions"}
        if held.dtype not in _DTYPES:
            return {"opaque": f"a tensor of {held.dtype}"}
        if held.layout is not torch.strided or held.is_meta or held.is_quantized or held.is_nested:
            return {"opaque": f"a tensor of layout {held.layout} on {held.device}"}
        room = MAX_PAYLOAD_BYTES - sum(t.nbytes for t in tensors.values())
        if held.nbytes > room - (1 << 16):
            return {"opaque": f"a tensor of shape {tuple(held.shape)}, larger than an answer may be"}
        name = str(len(tensors))
        # A copy, in which nothing changes any more; contiguous, for it is sent as the bytes that it begins with.
        tensors[name] = held.to("cpu", copy=True).contiguous()
        return {"tensor": name}
    except Exception:
        return {"opaque": type_name(value)}


def type_name(value: object) -> str:
    """The name of a value's type as its author would write it, e.g. `numpy.ndarray`."""
    kind = type(value)
    module = str(getattr(kind, "__module__", ""))
    name = str(getattr(kind, "__qualname__", "?"))
    return (name if module in ("builtins", "__main__") else f"{module}.{name}")[:100]


def as_it_arrives(value: Any) -> Any:
    """What the other side would have of a value."""
    tensors: Tensors = {}
    return unpack(pack(value, tensors), tensors)


def unpack(packed: Any, tensors: Tensors, depth: int = 0) -> Any:
    """The value that `pack` was given; raises ProtocolError where the JSON is not of its making.

    Takes its tensors out of `tensors`: one of 64 MB that is named a thousand times would be compared a thousand times.
    """
    if packed is None or isinstance(packed, bool | int | float | str):
        return packed
    if depth > MAX_DEPTH or not isinstance(packed, dict) or len(packed) != 1:
        raise ProtocolError("a value is not in the protocol's form")
    ((tag, content),) = packed.items()
    if tag == "tensor" and isinstance(content, str) and content in tensors:
        return tensors.pop(content)
    if tag == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if tag == "opaque" and isinstance(content, str):
        return Opaque(content[:200])
    if tag in ("list", "tuple") and isinstance(content, list):
        items = [unpack(item, tensors, depth + 1) for item in content]
        return tuple(items) if tag == "tuple" else items
    if tag == "dict" and isinstance(content, list):
        return dict(_unpack_pair(pair, tensors, depth + 1) for pair in content)
    raise ProtocolError("a value is not in the protocol's form")


def _unpack_pair(pair: Any, tensors: Tensors, depth: int) -> tuple[Any, Any]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise ProtocolError("a value is not in the protocol's form")
    key = unpack(pair[0], tensors, depth)
    if not isinstance(key, str | int | float | bool | None):
        key = repr(Opaque(type_name(key)))
    return key, unpack(pair[1], tensors, depth)


def send(connection: socket.socket, header: Mapping[str, Any], tensors: Tensors | None = None) -> None:
    """Sends one frame."""
    head, payload = _as_json(header), _as_bytes(tensors) if tensors else b""
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError("a message is larger than the protocol allows")
    connection.sendall(_LENGTHS.pack(len(head), len(payload)) + head + payload)


def _as_json(header: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(header)
    except (UnicodeEncodeError, TypeError):
        # A lone surrogate, which Python's strings may hold, is no text that JSON or a gradebook can keep; and a string
        # of the student's may be of a class of their own.
        return json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def _as_bytes(tensors: Tensors) -> bytes:
    """The tensors, which are contiguous and on the CPU: `safetensors.torch.save` takes ten times as long to see so."""
    specs = {
        name: safetensors.TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=tensor.data_ptr(),
            data_len=tensor.nbytes,
        )
        for name, tensor in tensors.items()
    }
    payload: bytes = safetensors.serialize(specs)
    return payload


def receive(connection: socket.socket, deadline: float | None = None) -> tuple[dict[str, Any], Tensors]:
    """Receives one frame; lengths are checked before anything is read into memory.

    deadline: on time.monotonic's clock, for the whole frame: a byte now and then is no sign of life. Raises
    TimeoutError.
    """
    head_size, payload_size = _LENGTHS.unpack(_read(connection, _LENGTHS.size, deadline))
    if head_size > MAX_HEADER_BYTES or payload_size > MAX_PAYLOAD_BYTES:
        raise ProtocolError("a message is larger than the protocol allows")
    body = _read(connection, head_size + payload_size, deadline)
    try:
        header = msgspec.json.decode(body[:head_size])
        tensors = _tensors(body[head_size:]) if payload_size else {}
    except Exception as error:  # whatever a forged shape or number makes of the parsers
        raise ProtocolError("a message does not follow the protocol") from error
    if not isinstance(header, dict):
        raise ProtocolError("a message does not follow the protocol")
    return header, tensors


def _tensors(payload: bytes) -> Tensors:
    """The tensors of a payload, whose list is looked at first: a million empty ones take a quarter of a minute."""
    size = int.from_bytes(payload[:8], "little")
    if size > MAX_HEADER_BYTES:
        raise ProtocolError("a list of tensors is larger than the protocol allows")
    listed = msgspec.json.decode(payload[8 : 8 + size])
    if len(listed) > MAX_TENSORS or any(len(about.get("shape", ())) > MAX_DIMS for about in listed.values()):
        raise ProtocolError("there are more tensors, or more dimensions, than the protocol allows")
    tensors: Tensors = safetensors.torch.load(payload)
    return tensors


def _read(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        chunk = connection.recv(min(size - len(chunks), 1 << 20))
        if not chunk:
            raise ProtocolError("the connection was closed")
        chunks += chunk
    return bytes(chunks)
