"""The protocol between trusted and untrusted processes: messages of data only, never pickle, with limited sizes.

A message is one frame: two little-endian 32-bit lengths, a JSON header of the first length and a safetensors payload of
the second. `core.packing` defines how values appear in the header. Both sides use this module, and check what they
receive before they use it.
"""

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec
import safetensors
import safetensors.torch

from ...core.arguments import MAX_TENSORS
from ...core.connection import ConnectionClosed, read_exactly
from ...core.constructed_answers import PackedFunction
from ...core.packing import MAX_DIMS, MAX_TENSOR_BYTES, ProtocolError, Tensors
from ..confine.process import WorkerLimits
from ..confine.scratch import Excess

MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = MAX_TENSOR_BYTES + MAX_HEADER_BYTES
"""Limit for the tensors and safetensors' list of them."""

_LENGTHS = struct.Struct("<II")


class Job(msgspec.Struct, tag="fork"):
    """A request to the fork server: fork a worker for one submission.

    The descriptor of the worker's end of its connection follows on the control connection.
    """

    device: str
    limits: WorkerLimits
    scratch_bytes: int
    core: int | None
    """Number of the processor that the worker stays on; None lets the system choose."""
    wrong: dict[str, PackedFunction] = {}
    """The wrong functions of the unit's counterexample exercises, by name."""
    spare_memory: int = 0
    """Bytes of address space for the notebook in addition to what its imports take; 0 for the usual limit only."""
    imports: Sequence[str] = ()
    """Installed modules to import before `spare_memory` is counted."""
    is_first: bool = True
    """True for the fork server's first worker. Before the second, the fork server prepares itself for many."""


class End(msgspec.Struct, tag="end"):
    """A request to the fork server: end a worker."""

    pid: int
    hung_up: bool
    """True if the worker has closed its connection; the fork server then waits a moment for it to end by itself."""


class Ending(msgspec.Struct):
    """Reason why a worker had ended when the fork server was about to end it."""

    ended_by: int = 0
    """Number of the signal that ended the worker; 0 if none did."""
    was_running: bool = False
    """True if the worker was still running."""
    most_memory: int = 0
    """The worker's peak memory in bytes; 0 if it was still running."""
    excess: Excess = ""
    """The limit on files for which the fork server killed the worker; empty if there was none."""


class Frame(NamedTuple):
    """One message as bytes: the JSON header, and the tensors in safetensors' format."""

    head: bytes
    payload: bytes


class _Entry(msgspec.Struct):
    """One entry of safetensors' list of tensors, without the fields that are not used."""

    shape: list[int]


def send(connection: socket.socket, header: object, tensors: Tensors | None = None) -> None:
    """Send a header and tensors as one frame; see `send_frame`."""
    send_frame(connection, Frame(encode_header(header), encode_tensors(tensors)))


def send_frame(connection: socket.socket, frame: Frame) -> None:
    """Send one frame; raises ProtocolError if it is too large."""
    head, payload = frame
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError("a message is larger than the protocol allows")
    connection.sendall(_LENGTHS.pack(len(head), len(payload)) + head + payload)


def encode_header(header: object) -> bytes:
    """Encode a header as JSON. Accepts any characters in a student's strings."""
    try:
        return msgspec.json.encode(header)
    except (UnicodeEncodeError, TypeError):
        # Python's strings may hold a lone surrogate, which neither JSON nor a gradebook can store. A string may also
        # belong to a class that the student defined.
        return json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def encode_tensors(tensors: Tensors | None) -> bytes:
    """Encode contiguous CPU tensors in safetensors' format; `safetensors.torch.save` takes ten times as long."""
    if not tensors:
        return b""
    specs = {
        name: safetensors.TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=tensor.data_ptr(),
            data_len=tensor.nbytes,
        )
        for name, tensor in tensors.items()
    }
    return safetensors.serialize(specs)


def receive(connection: socket.socket, deadline: float | None = None, form: Any = dict) -> tuple[Any, Tensors]:
    """Receive one frame and read it; see `receive_frame` and `read_frame`."""
    return read_frame(receive_frame(connection, deadline), form)


def receive_frame(connection: socket.socket, deadline: float | None = None) -> Frame:
    """Receive one frame, after a check of its lengths. Raises ProtocolError, OSError and TimeoutError.

    deadline: the `time.monotonic()` by which the whole frame must have arrived.
    """
    try:
        head_size, payload_size = _LENGTHS.unpack(read_exactly(connection, _LENGTHS.size, deadline))
        if head_size > MAX_HEADER_BYTES or payload_size > MAX_PAYLOAD_BYTES:
            raise ProtocolError("a message is larger than the protocol allows")
        body = read_exactly(connection, head_size + payload_size, deadline)
    except ConnectionClosed:
        raise ProtocolError("the connection was closed") from None
    return Frame(body[:head_size], body[head_size:])


def read_frame(frame: Frame, form: Any = dict) -> tuple[Any, Tensors]:
    """Decode a frame and return its header and its tensors; raises ProtocolError.

    form: the type of the header. For a header from a student's process it must be a Struct, because a dict would hash
    keys that the student chose.
    """
    try:
        return msgspec.json.decode(frame.head, type=form), _tensors(frame.payload) if frame.payload else {}
    except Exception as error:  # a forged shape or number may raise anything in the parsers
        raise ProtocolError("a message does not follow the protocol") from error


def _tensors(payload: bytes) -> Tensors:
    """Decode a payload's tensors. Their number is checked first: a million empty tensors take 15 seconds to load."""
    size = int.from_bytes(payload[:8], "little")
    if size > MAX_HEADER_BYTES:
        raise ProtocolError("a list of tensors is larger than the protocol allows")
    text = payload[8 : 8 + size]
    # Each entry has four colons. They are counted before a dict hashes the names, which can be chosen to take minutes.
    if text.count(b":") > 4 * MAX_TENSORS:
        raise ProtocolError("there are more tensors than the protocol allows")
    entries = msgspec.json.decode(text, type=dict[str, _Entry])
    if len(entries) > MAX_TENSORS or any(len(entry.shape) > MAX_DIMS for entry in entries.values()):
        raise ProtocolError("there are more tensors, or more dimensions, than the protocol allows")
    return cast(Tensors, safetensors.torch.load(payload))
