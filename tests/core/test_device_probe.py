"""A device fault is seen without a GPU, and nothing else is taken for one."""

import random

import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.device_probe import BY_NUMBERS, DIFFERS, ELSEWHERE, FOLLOWS, MIXED
from autograder.core.observation import Raised
from autograder.core.operations import Build, Call, ProbeDevice

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


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


def _under(device, do):
    with device:
        return do()


def _put(x, index, values):
    x[index] = values
    return x


def _attend(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.t(), dim=-1) @ x


class _Named(torch.Tensor):
    pass


FUNCTIONS = {
    "arithmetic": (lambda x: x @ x.T / 2**0.5, FOLLOWS),
    "a 0-d CPU tensor": (lambda x: x / torch.tensor(2.0).sqrt(), FOLLOWS),
    "made on x's device": (lambda x: x + torch.ones(4, 4, device=x.device), FOLLOWS),
    "moved to x's device": (lambda x: x + torch.ones(4, 4).to(x), FOLLOWS),
    "a subclass of Tensor on the way": (lambda x: x + len(_Named([1.0, 2.0])), FOLLOWS),
    "indices on the CPU": (lambda x: x[torch.tensor([0, 1, 2, 3])], FOLLOWS),
    "indices in a list": (lambda x: x[:, [2, 0]], FOLLOWS),
    "indices in a list, written": (lambda x: _put(x.clone(), (slice(None), [2, 0]), 1.0), FOLLOWS),
    "indices in a list alone": (lambda x: x[[2, 0]], FOLLOWS),
    "indices in a range": (lambda x: x[range(3), torch.arange(3, device=x.device)], FOLLOWS),
    "a row by a list of bools": (lambda x: x[[True, False, True, False]], FOLLOWS),
    "indices of a row on the CPU, written": (lambda x: _put(x.clone(), torch.tensor([0, 2]), 0.0), FOLLOWS),
    "a number on the CPU, written": (lambda x: _put(x.clone(), torch.tensor([0, 2]), torch.tensor(1.0)), FOLLOWS),
    "a number on the CPU, by a mask": (lambda x: _put(x.clone(), x > 0, torch.tensor([1.0])), FOLLOWS),
    "a row on the CPU, by a number": (lambda x: _put(x.clone(), 0, torch.ones(4)), FOLLOWS),
    "a table on the CPU, indices elsewhere": (
        lambda x: x + torch.ones(4, 4)[torch.arange(4, device=x.device)].to(x.device),
        MIXED,
    ),
    "a table on the CPU, its columns": (
        lambda x: x + torch.ones(4, 4)[:, torch.arange(4, device=x.device)].to(x.device),
        MIXED,
    ),
    "a table on the CPU, written": (
        lambda x: x + _put(torch.ones(4, 4), torch.arange(4, device=x.device), 0.0).to(x.device),
        MIXED,
    ),
    "values on the CPU, written": (lambda x: _put(x.clone(), torch.tensor([0, 2]), torch.ones(2, 4)), MIXED),
    "values on the CPU, by a mask": (lambda x: _put(x.clone(), x == x, torch.ones(16)), MIXED),
    "a CPU tensor": (lambda x: x + torch.ones(4, 4), MIXED),
    "a CPU tensor, inside try": (lambda x: _either(lambda: x + torch.ones(4, 4), x), MIXED),
    "a result on the CPU": (lambda x: torch.ones(4, 4), ELSEWHERE),
    "filled in on the CPU": (lambda x: torch.zeros(4, 4).copy_(x), ELSEWHERE),
    "to that device, always": (lambda x: x.to("meta"), ELSEWHERE),
    "taken to the CPU": (lambda x: x.cpu() * 2, ELSEWHERE),
    "to the CPU and back": (lambda x: x.cpu().to(x.device), FOLLOWS),
    "needs the data": (lambda x: x * x.sum().item(), FOLLOWS + BY_NUMBERS),
    "branches on the data": (lambda x: x if x.sum() > 0 else -x, FOLLOWS + BY_NUMBERS),
    "prints": (lambda x: str(x) and x, FOLLOWS),
    "a list and back": (lambda x: torch.tensor(x.tolist(), device=x.device), FOLLOWS),
    "a row at a time": (lambda x: torch.stack([row @ x for row in x]), FOLLOWS),
    "another shape in place": (lambda x: x.clone().unsqueeze_(0).transpose_(1, 2).squeeze_(0) @ x, FOLLOWS),
    "made of numbers": (lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device), FOLLOWS),
    "new numbers": (lambda x: x * x.new_tensor([1.0, 2.0, 3.0, 4.0]) / x.new_tensor(4).sqrt(), FOLLOWS),
    "as a tensor": (lambda x: torch.as_tensor(x) * torch.as_tensor([1.0, 2.0, 3.0, 4.0], device=x.device), FOLLOWS),
    "asarray": (lambda x: torch.asarray([1.0, 2.0, 3.0, 4.0], device=x.device) + x, FOLLOWS),
    "under a device": (lambda x: _under(x.device, lambda: x * torch.tensor([1.0, 2.0, 3.0, 4.0])), FOLLOWS),
    "made under a device": (lambda x: _under(x.device, lambda: x + torch.ones(4, 4).triu()), FOLLOWS),
    "numbers left on the CPU": (lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]), MIXED),
    "a list, and left there": (lambda x: torch.tensor(x.tolist()), ELSEWHERE),
    "a mask by the data": (lambda x: x[x > 0].sum() * x, FOLLOWS),
    "written in place": (lambda x: x.clone().masked_fill_(x > 0, 0.0).mul_(2), FOLLOWS),
    "a view written into": (lambda x: _first_row_zero(x.clone()), FOLLOWS),
    "into a tensor": (lambda x: torch.exp(x, out=torch.empty_like(x)), FOLLOWS),
    "branches on the data, and mixes": (lambda x: x + torch.ones(4, 4) if x.sum() < 1e9 else x, MIXED),
    "drawn by chance": (lambda x: torch.nn.functional.dropout(x, 0.5), FOLLOWS),
    "drawn by chance each time": (lambda x: x + random.random(), FOLLOWS),
    "the library's attention": (lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x), FOLLOWS),
    "mapped": (lambda x: torch.vmap(lambda row: row.softmax(-1))(x), FOLLOWS),
    "differentiated inside": (lambda x: torch.func.grad(lambda y: y.exp().sum())(x), FOLLOWS),
    "TorchScript": (lambda x: torch.jit.script(_attend)(x), FOLLOWS),
    "something else where there is no data": (lambda x: x + torch.ones(4, 4) if not x.is_meta else x, MIXED),
    "zeros elsewhere": (lambda x: x if x.device.type == "cpu" else torch.zeros_like(x), DIFFERS),
    "the CPU's way on a GPU alone": (lambda x: x + torch.ones(4, 4) if not x.is_cuda else x, DIFFERS),
    "moved where it is CUDA": (lambda x: x + (torch.ones(4, 4).cuda() if x.is_cuda else torch.ones(4, 4)), FOLLOWS),
    "made where it is CUDA": (lambda x: x + torch.ones(4, 4, device="cuda" if x.is_cuda else "cpu"), FOLLOWS),
    "to what is called CUDA": (lambda x: x + torch.ones(4, 4).to("cuda" if x.is_cuda else "cpu"), FOLLOWS),
    "made for another device than CUDA": (
        lambda x: x + torch.ones(4, 4, device=x.device if x.is_meta else "cpu"),
        MIXED,
    ),
    "prints a number": (lambda x: f"{x.max():.3f}" and x, FOLLOWS + BY_NUMBERS),
    "without autocast": (lambda x: _under(torch.autocast(x.device.type, enabled=False), lambda: x @ x), FOLLOWS),
    "drawn by a generator of the device's": (
        lambda x: x + torch.rand(4, 4, generator=torch.Generator(x.device).manual_seed(1), device=x.device),
        FOLLOWS,
    ),
    "without autocast, by its other name": (
        lambda x: _under(torch.amp.autocast(x.device.type, enabled=False), lambda: x @ x),
        FOLLOWS,
    ),
    "to the device that is called CUDA": (
        lambda x: x + torch.ones(4, 4).to(torch.device("cuda" if x.is_cuda else "cpu")),
        FOLLOWS,
    ),
    "by NumPy and back": (lambda x: torch.from_numpy(x.numpy(force=True)).to(x.device), FOLLOWS),
    "of the type of x": (lambda x: x + torch.ones(4, 4).type(x.type()), FOLLOWS),
}


def _first_row_zero(x):
    x[0].zero_()
    return x


RAISING = {
    "always": lambda x: x @ torch.ones(3, 3, device=x.device),
    "elsewhere": lambda x: x if x.device.type == "cpu" else x.nowhere(),
    "where there is no data": lambda x: torch.from_numpy(x.numpy()),
}


@pytest.mark.parametrize("function", RAISING.values(), ids=RAISING)
def test_what_raises_there_is_no_evidence(function):
    with pytest.raises(Raised):
        Bench({"f": function}).ask(ProbeDevice("f", Arguments((torch.randn(4, 4),))))


def _either(do, otherwise):
    try:
        return do()
    except RuntimeError:
        return otherwise


@pytest.mark.parametrize(("function", "verdict"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_function(function, verdict):
    assert Bench({"f": function}).ask(ProbeDevice("f", Arguments((torch.randn(4, 4),))))[0] == verdict


@pytest.mark.parametrize(("module", "verdict"), [(MaskAsPlainTensor, MIXED), (MaskAsBuffer, FOLLOWS)])
def test_it_is_the_same_where_the_exercises_tensors_are_not_on_the_cpu(module, verdict):
    bench = Bench({"M": module}, device="meta")  # stands for a GPU: what is compared has to come from the CPU
    instance = bench.ask(Build("M", Arguments()))
    assert bench.ask(ProbeDevice(instance, Arguments((torch.randn(4, 4),))))[0] == verdict


@pytest.mark.parametrize(("module", "verdict"), [(MaskAsPlainTensor, MIXED), (MaskAsBuffer, FOLLOWS)])
def test_module(module, verdict):
    bench = Bench({"M": module})
    instance = bench.ask(Build("M", Arguments()))
    assert bench.ask(ProbeDevice(instance, Arguments((torch.randn(4, 4),))))[0] == verdict
    assert torch.equal(bench.ask(Call(instance, Arguments((torch.ones(4, 4),)))).value, torch.ones(4, 4).tril()), (
        "the module is intact"
    )
