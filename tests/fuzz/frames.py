"""Frames of a hostile worker, read as the answer to every kind of request, and then compared as a grader would."""

import contextlib
import json
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import torch
from hypothesis import strategies as st

from autograder.catalogue.transcript import LazyTranscript, Trace
from autograder.core import comparison as compare
from autograder.core.arguments import Arguments
from autograder.core.observation import StudentFault
from autograder.core.operations import Build, Call, NamedParameters, ProbeDevice
from autograder.course.notebook import CodeCell
from autograder.graders.backend import Event, Recording
from autograder.graders.proxy import StudentProxy
from autograder.graders.sandboxed import OutOfBudget, SandboxedNotebook
from autograder.grading.messages import without_folders
from autograder.sandbox.client import Crashed, TimedOut

from . import safetensors_bytes
from .hostile import HostileParent
from .json_text import STRANGE, damaged, mutated, with_strange

DOCUMENTED = (StudentFault, TimedOut, Crashed, OutOfBudget, compare.Mismatch)

HEADER: dict[str, Any] = {
    "number": 1,
    "fault": None,
    "printed": "a",
    "value": {"tensor": "0"},
    "changed": [0],
    "devices": ["cpu"],
    "gradients": {"list": [{"tensor": "1"}, None]},
    "parameter_gradients": {"dict": [["W_query", {"tensor": "2"}]]},
    "library_calls": ["library attention"],
}
VALUES: list[Any] = [
    HEADER["value"],
    "function",
    "follows",
    0,
    {"dict": [["W_query", {"tensor": "0"}], ["W_key", {"tensor": "1"}]]},
]
"""Results of operations: a call, the question for a kind, the probe of another device, a new instance, parameters."""
FAULT = {
    "kind": "raised",
    "name": "softmax",
    "type_name": "ValueError",
    "message": "no /tmp/a/b",
    "sentence": "It is not.",
    "place": ["softmax", 3],
    "kinds": ["ValueError", "Exception"],
}
_PAYLOAD = safetensors_bytes.honest([("F32", [2, 3])] * 3)


def frame(header: bytes, payload: bytes, sizes: tuple[int, int] | None = None) -> bytes:
    """A frame; sizes: the lengths as it says them."""
    return struct.pack("<II", *(sizes or (len(header), len(payload)))) + header + payload


def _ask_everything(data: bytes) -> None:
    parent: Any = HostileParent(lambda request, tensors: data, last=True)
    code = SandboxedNotebook(parent, [], "cpu", exercises=["softmax"])
    recording = Recording(code)
    student = StudentProxy(recording)
    pair = Arguments((torch.zeros(2, 3), 2), {})
    asks = [
        lambda: student.softmax,
        lambda: recording.ask(Build("softmax", pair)),
        lambda: recording.ask(NamedParameters(0)),
        lambda: recording.ask(ProbeDevice("softmax", pair)),
        lambda: recording.ask(Call("softmax", pair)),
        lambda: recording.ask(Call("softmax", pair, (torch.zeros(2, 3),))),
    ]
    for ask in asks:
        code.close()
        try:
            seen = ask()
        except DOCUMENTED as fault:
            msgspec.json.encode(without_folders(str(fault)))
            continue
        _compare(getattr(seen, "value", seen))
    fingerprint = (Trace("grader", "failed", tuple(recording.events)),)
    others = (Trace("grader", "failed", tuple(Event(e.operation, 1) for e in recording.events)),)
    for other in (fingerprint, others):
        LazyTranscript(iter(fingerprint)).equals(other)
    code.close()
    parent: Any = HostileParent(lambda request, tensors: data, last=True)
    code = SandboxedNotebook(parent, [CodeCell("a", "1", None)], "cpu", exercises=[])
    with contextlib.closing(code):
        msgspec.json.encode(code.run_cells())


def _compare(value: Any) -> None:
    shape = tuple(value.shape) if isinstance(value, torch.Tensor) and value.numel() < 1 << 24 else (2, 3)
    for expected in (
        compare.Expected(torch.zeros(shape, dtype=torch.float64), 1e-5),
        (compare.Expected(torch.zeros(()), 1e-5), compare.Expected(torch.zeros(()), 1e-5)),
    ):
        with contextlib.suppress(compare.Mismatch):
            compare.assert_close(compare.rows(value, 1), expected)
    for plain in ({"a": 1}, 3, "text"):
        try:
            compare.assert_equal(value, plain)
        except compare.Mismatch as mismatch:
            msgspec.json.encode(str(mismatch))


check = _ask_everything


@st.composite
def _frames(draw: st.DrawFn) -> bytes:
    fault = draw(st.sampled_from([None, None, FAULT]))
    header = {**HEADER, "value": draw(st.sampled_from(VALUES)), "fault": fault}
    head = draw(mutated(header)).encode("utf-8", "surrogatepass")
    payload = draw(st.sampled_from([_PAYLOAD, b""]) | safetensors_bytes.blobs())
    lengths = st.sampled_from([0, 1, 1 << 20, (1 << 20) + 1, 64 << 20, (64 << 20) + 1, 2**32 - 1])
    sizes = draw(st.none() | st.none() | st.none() | st.tuples(lengths, lengths))
    return draw(damaged(frame(head, payload, sizes)))


inputs = _frames()


def large() -> Iterator[bytes]:
    """Frames as large as the protocol takes, or larger."""
    plain = json.dumps(HEADER).encode()
    for payload in safetensors_bytes.large():
        yield frame(plain, payload)
    for filling in ("[],", "{},", "0,", '"",', '{"":0},', "1e9,", "[[[[[]]]]],", '{"list":[]},', '{"tensor":"0"},'):
        inner = filling * ((1 << 20) // len(filling) - 200)
        for field in ("value", "changed", "gradients", "extra"):
            text = with_strange({**HEADER, "extra": 0}, [(field,)], [f'{{"list":[{inner}0]}}'])
            yield frame(text.encode(), _PAYLOAD)
    names = ",".join(f'["{number}",{{"tensor":"0"}}]' for number in range(30_000))
    text = with_strange(HEADER, [("value",), ("parameter_gradients",)], [f'{{"dict":[{names}]}}', STRANGE[0]])
    yield frame(text.encode(), safetensors_bytes.large()[0])
