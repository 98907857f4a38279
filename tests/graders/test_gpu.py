"""Tests, without a GPU, of how code runs on one; `benchmarks.cuda_proof` tests the rest."""

import contextlib
import subprocess
import sys

import pytest

from autograder.core.arguments import Arguments
from autograder.core.observation import Raised
from autograder.core.operations import Call
from autograder.course.notebook import CodeCell
from autograder.course.settings import load
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.sandbox.fork_server import ForkServer
from autograder.sandbox.isolation import launch
from tests import CHECK, REPOSITORY

WARMS_UP = f"""
import torch.autograd, torch.autograd.graph

def refuses(*args, **kwargs):
    raise SystemExit("a gradient was asked for")

torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward = refuses
from autograder.sandbox.worker import fork_loop
from autograder.sandbox.worker.cells import Notebook

notebook = Notebook({CHECK!r})
fork_loop.prepare_for_one(notebook, cuda=True)
fork_loop.prepare_for_many(fork_loop.LazyModule("matplotlib.pyplot"))
"""


def test_nothing_starts_cuda_before_the_fork():
    """A gradient asks how many GPUs there are, and CUDA that runs in the fork server works in no worker."""
    done = subprocess.run([sys.executable, "-c", WARMS_UP], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("level", ["A", "B"])
def test_the_sandbox_for_a_gpu_denies_what_any_does(level):
    with ForkServer(launch(level, load().limits, cuda=True, check=CHECK)) as parent:
        assert any("self-test" in enforced for enforced in parent.enforced)
        worker = parent.fork("cpu")
        source = "open('/proc/self/maps')"
        answer, _ = worker.request({"operation": "cell", "cell": "", "source": source}, cpu_seconds=5)
        assert answer["fault"]["type_name"] == "PermissionError"
        worker.end()


FAILS_ONCE = """
def answer(values):
    global calls
    calls += 1
    if len(values) == 0:
        raise RuntimeError("device-side assert triggered")
    return calls

calls = 0
"""


def test_a_lost_gpu_costs_the_call_that_lost_it_alone(fork_server, monkeypatch):
    """A worker whose GPU computes nothing more is replaced, as often as it takes."""
    read = SandboxedNotebook.decode

    def with_lost_gpu(self, answered):
        answer, payload = read(self, answered)
        answer.device_lost = answer.fault is not None
        return answer, payload

    monkeypatch.setattr(SandboxedNotebook, "decode", with_lost_gpu)
    cells = [CodeCell("answer", FAILS_ONCE, "answer")]
    with contextlib.closing(SandboxedNotebook(fork_server("B"), cells, "cpu", exercises=["answer"])) as code:
        for _ in range(load().limits.restarts + 2):
            assert code.ask(Call("answer", Arguments(([1],)))).value == 1
            with pytest.raises(Raised, match="device-side assert"):
                code.ask(Call("answer", Arguments(([],))))
