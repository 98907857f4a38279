"""The cost of any answer for the trusted side is bounded, and the messages about it are true."""

import contextlib
import json
import subprocess
import sys
import time
from typing import Any

import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.comparison import Expected, Mismatch, assert_close, describe
from autograder.core.observation import Unusable
from autograder.core.operations import Build, Call, NamedParameters
from autograder.core.packing import Tensors, round_trip
from autograder.graders.budget import MAX_RESPONSE_BYTES, ResponseBudget
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.sandbox.client import Crashed, TimedOut
from tests import REPOSITORY, sampling
from tests.fuzz.frames import frame
from tests.fuzz.hostile import HostileParent
from tests.fuzz.safetensors_bytes import honest
from tests.strange_values import kinds

UNITS = ["dot_product_attention", "self_attention", "causal_attention", "multi_head_attention"]
NOTHING = Arguments((), {})


@contextlib.contextmanager
def answered_with(header: dict[str, Any], payload: bytes = b""):
    """Some code, each of whose calls is answered with this."""

    def answer(request: dict[str, Any], tensors: Tensors) -> bytes:
        return frame(json.dumps({"gradients": {"list": []}, **header, "number": request["number"]}).encode(), payload)

    parent: Any = HostileParent(answer)
    with contextlib.closing(SandboxedNotebook(parent, [], "cpu", exercises=["f", "C"])) as code:
        yield code


def pairs(number: int) -> dict[str, Any]:
    """Entries of a dict whose keys, integers beyond the machine's, have all one hash."""
    return {"dict": [[n * ((1 << 61) - 1), None] for n in range(1, number + 1)]}


@pytest.mark.parametrize("field", ["value", "parameter_gradients"])
def test_keys_of_one_hash_cost_nothing(field):
    begun = time.thread_time()
    with answered_with({"parameter_gradients": {"dict": []}, field: pairs(20_000)}) as code, pytest.raises(Crashed):
        code.ask(Call("f", NOTHING))
    assert time.thread_time() - begun < 5  # where a dict is made of them it is a minute


def test_an_integer_beyond_the_machine_is_no_number_of_an_instance():
    with answered_with({"value": 10**100}) as code, pytest.raises(Crashed):
        code.ask(Build("C", NOTHING))


def test_an_exercise_has_so_many_bytes_and_the_next_has_them_again():
    payload = honest([("F32", [1000, 1000])])
    with answered_with({"value": {"tensor": "0"}, "parameter_gradients": {"dict": []}}, payload) as code:
        for _ in range(1 + MAX_RESPONSE_BYTES // len(payload)):
            code.ask(Call("f", NOTHING))
        with pytest.raises(Unusable, match="far larger than this exercise requires"):
            code.ask(Call("f", NOTHING))
        code.begin_exercise()
        assert code.ask(Call("f", NOTHING)).value.shape == (1000, 1000)


def test_an_exercise_has_so_much_of_the_graders_time():
    spent = ResponseBudget(max_cpu_seconds=0.01)
    begun = time.thread_time()
    while time.thread_time() - begun < 0.02:
        pass
    with pytest.raises(Unusable, match="longer than checking right results"):
        spent.check()
    spent.renew()
    spent.check()


def test_more_than_an_answer_may_have_is_refused_before_it_is_read():
    payload = honest([("F32", [1500, 1500])])
    with answered_with({"value": {"tensor": "0"}}, payload) as code, pytest.raises(Crashed):
        code.ask(Call("f", NOTHING))


def test_a_result_that_is_far_too_large_is_said_so():
    (value,) = round_trip([torch.zeros(4000, 4000)])
    with pytest.raises(Mismatch) as seen:
        assert_close(value, Expected(torch.zeros(3), 1e-5))
    assert "shape (4000, 4000), far larger than this exercise requires" in str(seen.value)


DTYPES = sorted({dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}, key=str)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_every_type_of_tensor_is_compared_or_named(dtype):
    value = torch.empty(2, 3, dtype=dtype) if not str(dtype).startswith("torch.q") else None
    if value is None:
        quantized = dtype if dtype in (torch.qint8, torch.quint8, torch.qint32) else torch.quint8
        value = torch.quantize_per_tensor(torch.zeros(2, 3), 0.1, 0, quantized)
    arrived = round_trip(value)
    if isinstance(arrived, torch.Tensor):
        assert arrived.dtype == dtype
        with contextlib.suppress(Mismatch):
            assert_close(arrived, Expected(torch.ones(2, 3), 1e-5))
    else:
        assert describe(arrived) == f"a tensor of {value.dtype}"


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "mkldnn"])
@pytest.mark.filterwarnings("ignore")
def test_every_layout_is_named(layout):
    said = describe(round_trip(kinds()[layout](torch.ones(4, 4))))
    assert said.startswith("a tensor of layout ")
    assert said.endswith(layout)


@pytest.mark.parametrize(("kind", "said"), [
    ("nested", "a nested tensor"), ("jagged", "a nested tensor"),
    ("meta", "a tensor on the meta device, which holds no numbers"),
    ("fake", "a tensor that cannot be read (torch._subclasses.fake_tensor.FakeTensor)"),
    ("many items", "a list of 1000000"), ("keys of one hash", "a dict of 2000"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_sent_is_said_to_be_what_it_is(kind, said):
    assert describe(round_trip(kinds()[kind](torch.ones(4, 4)))) == said


@pytest.mark.parametrize("view", ["conjugate", "negative view"])
def test_what_a_view_shows_is_what_arrives(view):
    value = kinds()[view](torch.arange(4.0))
    assert torch.equal(round_trip(value), value)


def test_a_parameter_that_cannot_be_compared_is_named():
    parameters = {"dict": [["W.weight", {"opaque": "a tensor of torch.float8_e5m2"}]]}
    with answered_with({"value": parameters}) as code, pytest.raises(Unusable) as seen:
        code.ask(NamedParameters(0))
    assert str(seen.value).startswith("Its parameter `W.weight` is a tensor of torch.float8_e5m2;")


PUTS_ITS_LIMIT_OFF = """
import resource, signal, threading, time
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
while time.process_time() < 30:
    pass
"""


@pytest.mark.parametrize("level", ["A", "B"] if sampling.every else ["A"])
def test_a_limit_on_cpu_time_that_is_put_off_holds_all_the_same(level, fork_server):
    """Nothing else would end it: the wall is a hundred seconds away. At level B, `test_misbehaving` does it too."""
    worker = fork_server(level).fork("cpu")
    cell = {"operation": "cell", "cell": "c", "source": PUTS_ITS_LIMIT_OFF}
    begun = time.monotonic()
    with pytest.raises(TimedOut):
        worker.request(cell, cpu_seconds=1, wall_seconds=100)
    assert time.monotonic() - begun < 100
    worker.end()


@pytest.mark.parametrize("units", [[unit] for unit in UNITS] if sampling.every else [UNITS], ids=" ".join)
def test_no_grader_fails_at_a_strange_value(units):
    """In a process of its own, whose memory is its own; `pytest --every` tries six times as many.

    The whole: `python -m tests.strange_values 1 UNIT`.
    """
    command = [sys.executable, "-m", "tests.strange_values", "24" if sampling.every else "144", *units]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert json.loads(run.stdout.splitlines()[-1])["megabytes"] < 1500


DIAGNOSING_FAILS = """
from autograder import catalogue, course
from autograder.catalogue.transcript import LazyTranscript
from autograder.pool.requests import LearnMisconceptions
from autograder.grading.examiner import Examiner
from autograder.grading.service import _answer
from autograder.graders.collection import collect
from autograder.grading.submission import NotebookGrading
from autograder.report import Conditions
from tests.fuzz.hostile import HostileParent

unit = course.unit("dot_product_attention")
parent = HostileParent(lambda request, tensors: b"")
grading = NotebookGrading(Examiner(collect()), parent, Conditions("cpu", "none", []))
mistake = next(iter(catalogue.misconceptions(unit.name).values()))
named = grading.grade_candidate(unit, mistake).exercises[0]
LazyTranscript.__iter__ = lambda self: 1 / 0
nameless = grading.grade_candidate(unit, mistake).exercises[0]
print(named.diagnosis.name == mistake.name, nameless.diagnosis, nameless.status, named.score == nameless.score)
print(_answer(grading, collect(), LearnMisconceptions(unit.name)))
"""


def test_a_fault_in_looking_for_the_mistake_costs_its_name_alone():
    run = subprocess.run([sys.executable, "-c", DIAGNOSING_FAILS], cwd=REPOSITORY, capture_output=True, text=True)
    assert run.stdout.splitlines()[-2:] == ["True None failed True", "Learnt()"], run.stdout + run.stderr
    assert run.stderr.count("ZeroDivisionError") == 2
