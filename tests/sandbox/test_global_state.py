"""A line outside of the answers that changes a global switch of Python or of a library costs no points.

Each run tries a third of the switches; `pytest --every` tries all.
"""

import pytest

from autograder import catalogue
from tests import sampling, typed

UNIT = "self_attention"
IMPORTS = (
    "import gc, locale, os, random, signal, sys, threading, time, warnings\nimport matplotlib\nimport numpy as np\n"
)
MODES = """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None): 1 / 0
class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None): 1 / 0
"""
HOOKS = "torch.nn.modules.module.register_module_"

LINES = {
    "default device": ['torch.set_default_device("cuda")'],
    "Apple's device": ['torch.set_default_device("mps")'],
    "device that keeps nothing": ['torch.set_default_device("meta")'],
    "device of a context": ['torch.device("cuda").__enter__()'],
    "tensor type": ["torch.set_default_tensor_type(torch.DoubleTensor)"],
    "dtype": ["torch.set_default_dtype(torch.float64)"],
    "gradients": ["torch.set_grad_enabled(False)", "torch.inference_mode(True).__enter__()"],
    "autocast": ['torch.set_autocast_enabled("cpu", True)', 'torch.set_autocast_dtype("cpu", torch.float16)'],
    "saved tensors": [
        "torch.autograd.graph.saved_tensors_hooks(lambda x: 1 / 0, lambda x: x).__enter__()",
    ],
    "no saved tensors": ['torch.autograd.graph.disable_saved_tensors_hooks("no").__enter__()'],
    "modes": [f"{MODES}Functions().__enter__()", "Operators().__enter__()"],
    "hooks of modules": [
        f"{HOOKS}forward_hook(lambda *args: 1 / 0)",
        f"{HOOKS}full_backward_hook(lambda *args: 1 / 0)",
        f"{HOOKS}parameter_registration_hook(lambda *args: 1 / 0)",
    ],
    "precision": [
        "torch.use_deterministic_algorithms(True)",
        "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
        "torch.set_flush_denormal(True)",
        "torch.set_num_threads(8)",
    ],
    "generators": [
        "torch.manual_seed(5)",
        "np.random.set_bit_generator(np.random.PCG64(1))",
        "random.seed(5)",
    ],
    "errors": ["np.seterr(all='raise')", "warnings.simplefilter('error')"],
    "streams": ["sys.__stdout__.close()", "sys.stdin = sys.stderr = None", "sys.stdout = None"],
    "hooks": ["sys.excepthook = sys.unraisablehook = None", "threading.settrace(lambda *args: 1 / 0)"],
    "environment": ["os.environ.clear()", "os.environ = {}"],
    "language and pictures": ["locale.setlocale(locale.LC_ALL, 'C')", "matplotlib.rcParams['backend'] = 'TkAgg'"],
    "timers": ["signal.setitimer(signal.ITIMER_REAL, 0.3)", "sys.setrecursionlimit(100)", "gc.disable()"],
}
ANSWER = """
def scaled_softmax(scores, d_k):
    print("loud", sys.stdout.closed)
    print("loud", file=sys.stderr)
    warnings.warn("careful")
    np.float32(3e38) * np.float32(10.0)
    random.random(), np.random.rand(), os.environ["HOME"]
    time.sleep(0.01)
    return torch.softmax(scores / d_k**0.5, dim=-1)
"""
"""Leans on what the lines turn."""


@pytest.fixture(scope="module")
def notebook():
    a_class = catalogue.solutions(UNIT)["SelfAttention_v1"].source()
    return typed.alone(UNIT, scaled_softmax=IMPORTS + ANSWER, SelfAttention_v1=a_class)


@pytest.mark.parametrize("name", sampling.thinned(LINES, 3))
def test_a_global_switch_takes_no_points(grading_process, notebook, name):
    cells = [f"{IMPORTS}{line}" for line in LINES[name]]
    report = grading_process.grade("switched.ipynb", typed.with_cells(notebook, *cells), UNIT)
    assert [report.exercise(name).status for name in ("scaled_softmax", "SelfAttention_v1")] == ["passed"] * 2
