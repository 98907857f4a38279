"""The wire between the trusted and the untrusted side: data only, never pickle, sizes capped.

A frame is two little-endian 32-bit lengths, a JSON header of the first length and a safetensors
payload of the second. `packing` says how values stand in the header.
Both sides use this module; nothing that comes in is believed before it has been checked.
"""

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import safetensors
import safetensors.torch

from ...core.exact_reading import Closed, read
from ...core.nesting import MAX_TENSORS
from ...core.packing import MAX_DIMS, MAX_TENSOR_BYTES, ProtocolError, Tensors

MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = MAX_TENSOR_BYTES + MAX_HEADER_BYTES
"""The tensors, and safetensors' list of them."""

_LENGTHS = struct.Struct("<II")


class Frame(NamedTuple):
    """What goes over the wire at a time, as bytes: JSON, and tensors in safetensors' form."""

    head: bytes
    payload: bytes


class _Listed(msgspec.Struct):
    """One entry of safetensors' own list, as far as it is looked at here."""

    shape: list[int]


def send(connection: socket.socket, header: Mapping[str, Any], tensors: Tensors | None = None) -> None:
    """Sends one frame."""
    send_frame(connection, Frame(as_head(header), as_payload(tensors) if tensors else b""))


def send_frame(connection: socket.socket, frame: Frame) -> None:
    """Sends one frame, whose bytes have been made; raises ProtocolError where it is too large."""
    head, payload = frame
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError("a message is larger than the protocol allows")
    connection.sendall(_LENGTHS.pack(len(head), len(payload)) + head + payload)


def as_head(header: Mapping[str, Any]) -> bytes:
    """A frame's JSON, whatever is in a student's strings."""
    try:
        return msgspec.json.encode(header)
    except (UnicodeEncodeError, TypeError):
        # A lone surrogate, which Python's strings may hold, is no text that JSON or a gradebook can keep; and a string
        # of the student's may be of a class of their own.
        return json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def as_payload(tensors: Tensors) -> bytes:
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


def receive(connection: socket.socket, deadline: float | None = None, form: type[Any] = dict) -> tuple[Any, Tensors]:
    """Receives one frame and reads it: see `receive_frame` and `read_frame`."""
    return read_frame(receive_frame(connection, deadline), form)


def receive_frame(connection: socket.socket, deadline: float | None = None) -> Frame:
    """Receives one frame; lengths are checked before anything is read into memory.

    deadline: on time.monotonic's clock, for the whole frame: a byte now and then is no sign of life. Raises
    TimeoutError.
    """
    try:
        head_size, payload_size = _LENGTHS.unpack(read(connection, _LENGTHS.size, deadline))
        if head_size > MAX_HEADER_BYTES or payload_size > MAX_PAYLOAD_BYTES:
            raise ProtocolError("a message is larger than the protocol allows")
        body = read(connection, head_size + payload_size, deadline)
    except Closed:
        raise ProtocolError("the connection was closed") from None
    return Frame(body[:head_size], body[head_size:])


def read_frame(frame: Frame, form: type[Any] = dict) -> tuple[Any, Tensors]:
    """The header and the tensors; raises ProtocolError.

    form: what the header is read as; of what comes from a stranger's process a Struct, in which nothing is hashed that
    a stranger chose.
    """
    try:
        return msgspec.json.decode(frame.head, type=form), _tensors(frame.payload) if frame.payload else {}
    except Exception as error:  # whatever a forged shape or number makes of the parsers
        raise ProtocolError("a message does not follow the protocol") from error


def _tensors(payload: bytes) -> Tensors:
    """The tensors of a payload, whose list is looked at first: a million empty ones take a quarter of a minute."""
    size = int.from_bytes(payload[:8], "little")
    if size > MAX_HEADER_BYTES:
        raise ProtocolError("a list of tensors is larger than the protocol allows")
    text = payload[8 : 8 + size]
    # Before a dict is made of the names, which can be chosen so that it takes minutes: an entry has four colons.
    if text.count(b":") > 4 * MAX_TENSORS:
        raise ProtocolError("there are more tensors than the protocol allows")
    listed = msgspec.json.decode(text, type=dict[str, _Listed])
    if len(listed) > MAX_TENSORS or any(len(about.shape) > MAX_DIMS for about in listed.values()):
        raise ProtocolError("there are more tensors, or more dimensions, than the protocol allows")
    tensors: Tensors = safetensors.torch.load(payload)
    return tensors
