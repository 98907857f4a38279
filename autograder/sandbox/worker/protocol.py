"""The wire between the trusted and the untrusted side: data only, never pickle, with limited sizes.

A frame is two little-endian 32-bit lengths, a JSON header of the first length and a safetensors payload of the second.
`core.packing` defines how values appear in the header. Both sides use this module; each checks what it receives before
it uses it.
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
from ...core.counterexample import PackedFunction
from ...core.packing import MAX_DIMS, MAX_TENSOR_BYTES, ProtocolError, Tensors
from ..confine.process import WorkerLimits
from ..confine.scratch import Excess

MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = MAX_TENSOR_BYTES + MAX_HEADER_BYTES
"""The tensors, and safetensors' list of them."""

_LENGTHS = struct.Struct("<II")


class Job(msgspec.Struct, tag="fork"):
    """A request to the fork server: fork a worker for one submission. A descriptor of its connection follows."""

    device: str
    limits: WorkerLimits
    scratch_bytes: int
    core: int | None
    """The processor to keep to."""
    wrong: dict[str, PackedFunction] = {}
    """The functions that the unit's counterexample exercises are about, by name."""
    spare_memory: int = 0
    """Bytes of address space for the notebook beyond what its imports take; 0 for the usual limit only."""
    imports: Sequence[str] = ()
    """Installed modules to import before `spare_memory` is counted."""
    is_first: bool = True
    """False once there have been workers, so that it is worth preparing for more."""


class End(msgspec.Struct, tag="end"):
    """A request to the fork server: end a worker."""

    pid: int
    hung_up: bool
    """True if the worker has closed its connection, so that it is given a moment to end by itself."""


class Ending(msgspec.Struct):
    """Reason for which a worker ended before the fork server did."""

    ended_by: int = 0
    """The signal; 0 if the worker was not ended by a signal."""
    was_running: bool = False
    """True if nothing had ended it."""
    most_memory: int = 0
    """The most bytes of memory that it had; 0 if it was running."""
    excess: Excess = ""
    """The limit on its files that it exceeded, and was ended for."""


class Frame(NamedTuple):
    """One message as bytes: JSON, and tensors in safetensors' form."""

    head: bytes
    payload: bytes


class _Entry(msgspec.Struct):
    """One entry of safetensors' own list of tensors; other fields are not needed here."""

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
    """Encode a header as JSON, whatever a student's strings contain."""
    try:
        return msgspec.json.encode(header)
    except (UnicodeEncodeError, TypeError):
        # Python's strings may hold a lone surrogate, which neither JSON nor a gradebook can store. A string may also be
        # of a class of the student's.
        return json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def encode_tensors(tensors: Tensors | None) -> bytes:
    """Encode contiguous tensors on the CPU; `safetensors.torch.save` spends ten times as long on checking that."""
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
    """Receive one frame; its lengths are checked before anything is read into memory.

    deadline: time.monotonic() by which the whole frame must be there, however steadily bytes arrive. Raises
    ProtocolError, OSError and TimeoutError.
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
    """Return the header and the tensors of a frame; raises ProtocolError.

    form: the type of the header. For a header from a student's process it must be a Struct, because a dict would hash
    keys that the student chose.
    """
    try:
        return msgspec.json.decode(frame.head, type=form), _tensors(frame.payload) if frame.payload else {}
    except Exception as error:  # whatever a forged shape or number makes of the parsers
        raise ProtocolError("a message does not follow the protocol") from error


def _tensors(payload: bytes) -> Tensors:
    """Return the tensors of a payload. Its list is checked first: a million empty tensors take 15 seconds to load."""
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
