"""Values that no exercise asks for, of every type, layout and size, put before every hidden grader.

`python -m tests.strange_values EVERY UNIT ...` marks each exercise's right answer with them in the place of what it
gives back, of its gradients or of its parameters: with each EVERYth, and other ones in the next exercise. Whatever
comes, no grader fails itself, and none takes long.
"""

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._subclasses import FakeTensorMode

from autograder import course
from autograder.catalogue.transcript import LazyTranscript, signature
from autograder.core import packing
from autograder.core.bench import Bench, Operation
from autograder.core.operations import Call, NamedParameters
from autograder.graders.collection import HiddenTests, collect
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.grading import scoring
from autograder.grading.examiner import Examiner, Finding, candidate_bench
from autograder.sandbox.worker import request_loop as worker

from .fuzz.frames import frame
from .fuzz.hostile import HostileParent, NoNotebook

Twist = Callable[[torch.Tensor], Any]

MOST_CPU_SECONDS = 10.0
_PRIME = (1 << 61) - 1  # integers that differ by it have one hash


def _of_type(dtype: torch.dtype) -> Twist:
    def twist(tensor: torch.Tensor) -> Any:
        try:
            return tensor.detach().to(dtype)
        except (RuntimeError, NotImplementedError):
            return torch.empty(tensor.shape, dtype=dtype)

    return twist


def _matrix(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1, tensor.shape[-1] if tensor.dim() else 1)


def _fake(tensor: torch.Tensor) -> Any:
    with FakeTensorMode():
        return torch.empty(tensor.shape)


def _batched(tensor: torch.Tensor) -> Any:
    kept: list[Any] = []
    torch.vmap(lambda row: (kept.append(row), row)[1])(_matrix(tensor))
    return kept[0]


def _endless(tensor: torch.Tensor) -> Any:
    held: list[Any] = [tensor.detach()]
    held.append(held)
    return held


def _deep(tensor: torch.Tensor) -> Any:
    value: Any = tensor.detach()
    for _ in range(500):
        value = [value]
    return value


class _Subclass(torch.Tensor):
    pass


def _types() -> Iterator[tuple[str, Twist]]:
    for dtype in sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str):
        if dtype not in (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4):
            yield str(dtype).removeprefix("torch."), _of_type(dtype)
    yield "quantized", lambda t: torch.quantize_per_tensor(t.detach().float(), 0.1, 0, torch.quint8)
    yield "another type in each call", _in_turn(_of_type(torch.float32), _of_type(torch.float64))
    yield "unsigned, then not", _in_turn(_of_type(torch.uint32), _of_type(torch.float32))
    yield "complex, then not", _in_turn(_of_type(torch.complex64), _of_type(torch.float32))


def _layouts() -> Iterator[tuple[str, Twist]]:
    yield "sparse_coo", lambda t: t.detach().to_sparse()
    yield "sparse_csr", lambda t: _matrix(t).to_sparse_csr()
    yield "sparse_csc", lambda t: _matrix(t).to_sparse_csc()
    yield "sparse_bsr", lambda t: _matrix(t).to_sparse_bsr((1, 1))
    yield "mkldnn", lambda t: t.detach().float().to_mkldnn()
    yield "nested", lambda t: torch.nested.nested_tensor([_matrix(t)])
    yield "jagged", lambda t: torch.nested.nested_tensor([_matrix(t)], layout=torch.jagged)
    yield "meta", lambda t: t.detach().to("meta")
    yield "fake", _fake
    yield "of vmap", _batched
    yield "conjugate", lambda t: t.detach().to(torch.complex64).conj()
    yield "negative view", lambda t: torch._neg_view(-t.detach())
    yield "subclass", lambda t: t.detach().as_subclass(_Subclass)
    yield "uninitialised", lambda t: torch.nn.UninitializedParameter()


def _shapes() -> Iterator[tuple[str, Twist]]:
    yield "no dimension", lambda t: t.detach().sum()
    yield "empty", lambda t: t.detach().flatten()[:0]
    yield "empty and long", lambda t: torch.empty(0, 1 << 40)
    yield "no token", lambda t: t.detach()[..., :0]
    yield "one dimension more", lambda t: t.detach()[None]
    yield "one dimension less", lambda t: t.detach()[0] if t.dim() else t
    yield "one longer", lambda t: torch.cat([_matrix(t), _matrix(t)[:1]])
    yield "transposed", lambda t: t.detach().transpose(0, -1) if t.dim() else t
    yield "twenty dimensions", lambda t: t.detach().reshape([1] * 20 + list(t.shape))
    yield "huge", lambda t: torch.zeros(1).expand(1 << 16, 1 << 16)
    yield "as large as may be", lambda t: torch.zeros((packing.MAX_TENSOR_BYTES >> 2) - 64)
    yield "broadcast with the next", _in_turn(_wide(0), _wide(0), _wide(1))
    yield "a column, then a row", _in_turn(_wide(1), _wide(0))


def _wide(which: int) -> Twist:
    def twist(tensor: torch.Tensor) -> Any:
        tokens = tensor.shape[1] if tensor.dim() == 3 else 1
        many = (packing.MAX_TENSOR_BYTES >> 3) // max(tokens, 1) - 64
        return torch.zeros((many, tokens, 1) if which else (1, tokens, many))

    return twist


def _numbers() -> Iterator[tuple[str, Twist]]:
    yield "NaN", lambda t: torch.full(t.shape, torch.nan)
    yield "infinite", lambda t: torch.full(t.shape, -torch.inf)
    yield "largest", lambda t: torch.full(t.shape, torch.finfo(torch.float64).max, dtype=torch.float64)
    yield "asks for gradients", lambda t: t.detach().clone().requires_grad_(t.is_floating_point())


def _plain() -> Iterator[tuple[str, Twist]]:
    values: dict[str, Any] = {
        "None": None, "True": True, "whole": 1, "number": 1.5, "not a number": float("nan"), "complex number": 1j,
        "text": "text", "long text": "a" * 1_000_000, "half a character": "\ud800", "very large": 10**5000,
        "array": np.ones(3), "object": object(), "function": len, "type": int, "empty list": [], "empty tuple": (),
        "set": {1}, "range": range(10**9), "bytes": b"a" * 100, "many items": [0] * 1_000_000,
        "many lists": [[]] * 9_000, "many texts": ["a" * 9_999] * 5_000, "many tensors": [torch.zeros(1)] * 5_000,
        "keys of one hash": {n * _PRIME: 0 for n in range(2_000)}, "many keys": dict.fromkeys(range(36_000), 0),
        "few keys of one hash": {n * _PRIME: 0 for n in range(400)}, "strange keys": {(1, 2): 0, None: 1, 1.5: 2},
    }  # fmt: skip
    for name, value in values.items():
        yield name, lambda t, value=value: value  # type: ignore[misc]
    yield "list of lists", lambda t: t.tolist()
    yield "tuple of it", lambda t: (t,)
    yield "twice", lambda t: (t, t)
    yield "by name", lambda t: {"result": t}
    yield "holds itself", _endless
    yield "deep", _deep


def _in_turn(*twists: Twist) -> Twist:
    """Another twist in each call."""
    calls = 0

    def twist(tensor: torch.Tensor) -> Any:
        nonlocal calls
        calls += 1
        return twists[calls % len(twists)](tensor)

    return twist


def kinds() -> dict[str, Twist]:
    """All of them by name."""
    return dict([*_types(), *_layouts(), *_shapes(), *_numbers(), *_plain()])


class _TwistedBench(Bench):
    """A bench in which what comes back is not what the code made."""

    def __init__(self, names: Any, twist: Twist, where: str) -> None:
        super().__init__(names)
        self._twist, self._where = twist, where

    def ask(self, operation: Operation[Any]) -> Any:
        seen = super().ask(operation)
        if isinstance(operation, Call) and self._where == "value":
            seen.value = self._twisted(seen.value)
        if isinstance(operation, Call) and self._where == "gradients":
            seen.gradients = [self._twisted(gradient) for gradient in seen.gradients]
            seen.parameter_gradients = {name: self._twisted(g) for name, g in seen.parameter_gradients.items()}
        if isinstance(operation, NamedParameters) and self._where == "parameters":
            return {name: self._twisted(one) for name, one in seen.items()}
        return seen

    def _twisted(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._twisted, value))
        return self._twist(value) if isinstance(value, torch.Tensor) else value


def examined(examiner: Examiner, unit: str, exercise: str, twist: Twist, where: str) -> Finding:
    """Findings of the hidden tests through the sandbox's protocol, with all that it refuses."""
    names = vars(__import__(f"solutions.{unit}", fromlist=["*"]))
    service = worker.Service(NoNotebook(), _TwistedBench(names, twist, where))  # type: ignore[arg-type]

    def answer(request: dict[str, Any], tensors: packing.Tensors) -> bytes:
        header, payload = service.answer(request, tensors)
        text = worker.protocol.encode_header({**header, "number": request["number"]})
        return frame(text, worker.protocol.encode_tensors(payload) if payload else b"")

    parent: Any = HostileParent(answer)
    with contextlib.closing(SandboxedNotebook(parent, [], "cpu", exercises=[exercise])) as code:
        return examiner.examine(unit, exercise, code)


def _tried(unit: course.Unit, every: int) -> Iterator[tuple[course.Exercise, str, str, Twist]]:
    for number, exercise in enumerate(unit.exercises):
        wheres = ["value", "gradients"] if exercise.name[0].islower() else ["value", "gradients", "parameters"]
        for shift, where in enumerate(wheres):
            # A gradient, and a parameter, is a tensor of some kind, whatever the code does.
            tried = kinds() if where == "value" else dict([*_types(), *_layouts(), *_shapes(), *_numbers()])
            for name, twist in list(tried.items())[(number + shift) % every :: every]:
                yield exercise, where, name, twist


def _faults(graders: HiddenTests, unit: course.Unit, every: int) -> Iterator[str]:
    examiner = Examiner(graders)
    solutions = candidate_bench(unit.name, None)
    right = {one.name: examiner.examine(unit.name, one.name, solutions).transcript for one in unit.exercises}
    for exercise, where, name, twist in _tried(unit, every):
        begun = time.thread_time()
        finding = examined(examiner, unit.name, exercise.name, twist, where)
        LazyTranscript(iter(right[exercise.name])).equals(finding.transcript)  # as with each misconception's
        signature(finding.transcript)  # as where pairs of them are looked for
        report = scoring.score(exercise, finding.verdicts, library_calls=set())
        label = f"{exercise.name}, {where}: {name}"
        if report.status not in ("passed", "failed"):
            said = {verdict.seen for verdict in finding.verdicts if verdict.outcome != "passed"}
            yield f"{label}: {report.status} {said}"
        if (took := time.thread_time() - begun) > MOST_CPU_SECONDS:
            yield f"{label}: {took:.1f} s"


def _most_megabytes() -> int:
    """Return the most memory that this program has held; `ru_maxrss` would count the process that started it too."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) >> 10


def main() -> int:
    """Prints what went wrong, one line each, and how much it took; returns the exit code."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as in a grader process; several wait for each other more than they compute
    every, units = int(sys.argv[1]), list(map(course.unit, sys.argv[2:]))
    found: list[str] = []
    graders = collect()
    for unit in units:
        for fault in _faults(graders, unit, every):
            found.append(fault)
            print(fault, flush=True)
    print(json.dumps({"megabytes": _most_megabytes(), "cpu_seconds": round(time.process_time(), 1)}))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
