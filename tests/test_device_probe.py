"""A device fault is seen without a GPU, and nothing else is taken for one."""

import pytest
import torch

from autograder.sandbox.inside.arguments import Arguments
from autograder.sandbox.inside.bench import Bench
from autograder.sandbox.inside.device_probe import ELSEWHERE, FOLLOWS, MIXED, UNDECIDED


class MaskAsPlainTensor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.triu(torch.ones(4, 4), diagonal=1).bool()

    def forward(self, x):
        return x.masked_fill(self.mask, 0.0)


class MaskAsBuffer(MaskAsPlainTensor):
    def __init__(self):
        super().__init__()
        mask = self.mask
        del self.mask
        self.register_buffer("mask", mask)


FUNCTIONS = {
    "arithmetic": (lambda x: x @ x.T / 2**0.5, FOLLOWS),
    "a 0-d CPU tensor": (lambda x: x / torch.tensor(2.0).sqrt(), FOLLOWS),
    "made on x's device": (lambda x: x + torch.ones(4, 4, device=x.device), FOLLOWS),
    "moved to x's device": (lambda x: x + torch.ones(4, 4).to(x), FOLLOWS),
    "indices on the CPU": (lambda x: x[torch.tensor([0, 1, 2, 3])], FOLLOWS),
    "a CPU tensor": (lambda x: x + torch.ones(4, 4), MIXED),
    "a CPU tensor, inside try": (lambda x: _either(lambda: x + torch.ones(4, 4), x), MIXED),
    "a result on the CPU": (lambda x: torch.ones(4, 4), ELSEWHERE),
    "filled in on the CPU": (lambda x: torch.zeros(4, 4).copy_(x), ELSEWHERE),
    "taken to the CPU": (lambda x: x.cpu() * 2, ELSEWHERE),
    "to the CPU and back": (lambda x: x.cpu().to(x.device), FOLLOWS),
    "needs the data": (lambda x: x * x.sum().item(), UNDECIDED),
    "branches on the data": (lambda x: x if x.sum() > 0 else -x, UNDECIDED),
    "raises": (lambda x: x @ torch.ones(3, 3, device=x.device), UNDECIDED),
}


def _either(do, otherwise):
    try:
        return do()
    except RuntimeError:
        return otherwise


@pytest.mark.parametrize(("function", "verdict"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_function(function, verdict):
    assert Bench({"f": function}).probe_device("f", Arguments((torch.randn(4, 4),))) == verdict


@pytest.mark.parametrize(("module", "verdict"), [(MaskAsPlainTensor, MIXED), (MaskAsBuffer, FOLLOWS)])
def test_module(module, verdict):
    bench = Bench({"M": module})
    instance = bench.build("M", Arguments())
    assert bench.probe_device(instance, Arguments((torch.randn(4, 4),))) == verdict
    assert torch.equal(bench.call(instance, Arguments((torch.ones(4, 4),))).value, torch.ones(4, 4).tril()), (
        "the module is intact"
    )
