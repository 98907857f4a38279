"""A right answer with a twist, put before the hidden graders: whatever comes, the fault is never the grader's.

An input is JSON: the exercise, which of its calls are twisted (a number, or all), how, and with what.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import torch
from hypothesis import strategies as st

from autograder import course
from autograder.catalogue.transcript import LazyTranscript, Transcript, signature
from autograder.core.packing import Tensors
from autograder.graders.collection import HiddenTests, collect
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.grading import messages, scoring
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.sandbox.worker import request_loop as worker

from .frames import FAULT, frame
from .hostile import HostileParent, NoNotebook
from .json_text import STRANGE, places, with_strange
from .safetensors_bytes import WIDTHS, blob, volume

DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.bool: "BOOL", torch.int32: "I32",
}  # fmt: skip
FILLINGS = [0x00, 0x01, 0x02, 0x3F, 0x7F, 0x80, 0xFF]
SHAPES = ["first dimension gone", "one more", "transposed", "empty", "no dimension", "sixteen dimensions", "one longer"]
FIELDS = ["value", "gradients", "parameter_gradients", "changed", "devices", "library_calls", "fault", "printed"]
FAULTS = [
    FAULT, {"kind": "missing", "name": "softmax"}, {"kind": "missing"}, {"kind": "unusable"}, {"kind": "raised"},
    {**FAULT, "kinds": ["NotImplementedError"], "type_name": "NotImplementedError", "message": ""},
    {**FAULT, "place": ["/a" * 500, 10**400]}, {**FAULT, "kinds": ["ValueError"] * 10_000},
]  # fmt: skip
WRAPS = ["list", "tuple", "dict", "twice", "tuple twice", "nothing in a tuple"]

_graders: HiddenTests | None = None


def around(do: Callable[[], None]) -> None:
    """Runs what needs the graders."""
    global _graders
    torch.set_num_threads(1)  # as in a grader process
    _graders = collect()
    do()


def check(data: bytes) -> None:
    spec = json.loads(data)
    assert _graders is not None
    unit = course.unit(spec["unit"])
    service = worker.Service(NoNotebook(), candidate_bench(unit.name, None))  # type: ignore[arg-type]
    calls = 0

    def answer(request: dict[str, Any], tensors: Tensors) -> bytes:
        nonlocal calls
        header, payload = service.answer(request, tensors)
        header["number"] = request["number"]
        if request["operation"] in ("manual_seed", "load_parameters", "to_dtype", "train"):
            return _frame(header, payload)
        calls += 1
        twisted = spec["which"] in ("all", calls)
        return _twisted(header, payload, spec["twist"], spec["with"]) if twisted else _frame(header, payload)

    parent: Any = HostileParent(answer)
    examiner = Examiner(_graders)
    with contextlib.closing(SandboxedNotebook(parent, [], "cpu", exercises=[spec["exercise"]])) as code:
        finding = examiner.examine(unit.name, spec["exercise"], code)
    LazyTranscript(iter(_right(unit.name, spec["exercise"]))).equals(finding.transcript)  # as with each misconception's
    signature(finding.transcript)  # as where pairs of them are looked for
    exercise = scoring.score(
        unit.exercise(spec["exercise"]), finding.verdicts, library_calls=finding.library_calls, cell=None
    )
    errors = [f"{test.name}: {test.message}" for test in exercise.tests if test.outcome == "grader_error"]
    assert not errors, errors
    assert exercise.status != "grader_error"
    msgspec.json.encode(messages.with_messages(exercise, messages.readable))


@cache
def _right(unit: str, exercise: str) -> Transcript:
    assert _graders is not None
    return Examiner(_graders).examine(unit, exercise, candidate_bench(unit, None)).transcript


def _frame(header: dict[str, Any], payload: Tensors, **how: Any) -> bytes:
    return frame(json.dumps(header).encode(), _blob(payload, **how))


def _blob(payload: Tensors, *, dtype: str = "", shape: str = "", byte: int | None = None) -> bytes:
    """The tensors as safetensors, by hand: any of the format's types can be named, and any shape."""
    if not payload:
        return b""
    listed, body = {}, b""
    for name, tensor in payload.items():
        label, lengths = dtype or DTYPES[tensor.dtype], _reshaped(list(tensor.shape), shape)
        size = volume(label, lengths)
        held = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist()) if tensor.numel() else b""
        filled = (held * (size // max(1, len(held)) + 1))[:size] if held and byte is None else bytes([byte or 0]) * size
        listed[name] = {"dtype": label, "shape": lengths, "data_offsets": [len(body), len(body) + size]}
        body += filled
    return blob(json.dumps(listed), body)


def _reshaped(shape: list[int], how: str) -> list[int]:
    match how:
        case "first dimension gone":
            return shape[1:]
        case "one more":
            return [1, *shape]
        case "transposed":
            return shape[::-1]
        case "empty":
            return [0, *shape[1:]]
        case "no dimension":
            return []
        case "sixteen dimensions":
            return [1] * (16 - len(shape)) + shape
        case "one longer":
            return [*shape[:-1], (shape or [0])[-1] + 1]
    return shape


def _twisted(header: dict[str, Any], payload: Tensors, twist: str, parameter: Any) -> bytes:
    match twist:
        case "dtype" | "shape" | "byte":
            return _frame(header, payload, **{twist: parameter})
        case "dtype and byte":
            return _frame(header, payload, dtype=parameter[0], byte=parameter[1])
        case "fault":
            return _frame({**header, "fault": parameter}, payload)
        case "drop":
            return _frame({key: value for key, value in header.items() if key != parameter}, payload)
        case "wrap" if "value" in header:
            return _frame({**header, "value": _wrapped(header["value"], parameter)}, payload)
        case "field" if parameter[0] in header:
            text = with_strange(header, [(parameter[0],)], [parameter[1]])
            return frame(text.encode("utf-8", "surrogatepass"), _blob(payload))
        case "leaf":
            below = [path for path in places(header) if len(path) > 1]
            where = [below[parameter[0] % len(below)]] if below else []
            text = with_strange(header, where, [parameter[1]])
            return frame(text.encode("utf-8", "surrogatepass"), _blob(payload))
    return _frame(header, payload)


def _wrapped(value: Any, how: str) -> Any:
    match how:
        case "list":
            return {"list": [value]}
        case "tuple":
            return {"tuple": [value]}
        case "dict":
            return {"dict": [["a", value]]}
        case "twice":
            return {"list": [value, None]}
        case "tuple twice":
            return {"tuple": [None, value]}
    return {"tuple": []}


_twists = st.one_of(
    st.tuples(st.just("dtype"), st.sampled_from([*WIDTHS])),
    st.tuples(st.just("dtype and byte"), st.tuples(st.sampled_from([*WIDTHS]), st.sampled_from(FILLINGS))),
    st.tuples(st.just("shape"), st.sampled_from(SHAPES)),
    st.tuples(st.just("byte"), st.sampled_from(FILLINGS)),
    st.tuples(st.just("fault"), st.sampled_from(FAULTS)),
    st.tuples(st.just("drop"), st.sampled_from([*FIELDS, "number"])),
    st.tuples(st.just("wrap"), st.sampled_from(WRAPS)),
    st.tuples(st.just("field"), st.tuples(st.sampled_from(FIELDS), st.sampled_from(STRANGE))),
    st.tuples(st.just("leaf"), st.tuples(st.integers(0, 20), st.sampled_from(STRANGE))),
)


@st.composite
def _specs(draw: st.DrawFn) -> bytes:
    unit = course.unit(draw(st.sampled_from(course.unit_names())))
    exercise = draw(st.sampled_from([exercise.name for exercise in unit.exercises]))
    which = draw(st.sampled_from(["all", "all", "all", 1, 2, 3, 4, 6, 9]))
    twist, parameter = draw(_twists)
    spec = {"unit": unit.name, "exercise": exercise, "which": which, "twist": twist, "with": parameter}
    return json.dumps(spec).encode()


inputs = _specs()


def large() -> Iterator[bytes]:
    """Types, shapes and fillings, of which each exercise has every eighth: chance would take long to meet them."""
    twists = [("dtype", [*WIDTHS]), ("shape", SHAPES), ("byte", FILLINGS), ("wrap", WRAPS)]
    every = [(twist, parameter) for twist, parameters in twists for parameter in parameters]
    number = 0
    for name in course.unit_names():
        for exercise in course.unit(name).exercises:
            number += 1
            for twist, parameter in every[number % 8 :: 8]:
                spec = {"unit": name, "exercise": exercise.name, "which": "all", "twist": twist, "with": parameter}
                yield json.dumps(spec).encode()
