"""Code that changes what marking might rely on: torch, Python, the kit's own modules, global state."""

from .case import EXERCISES, FAILED, UNHARMED, Must, lost, must


@must(FAILED)
def comparisons_that_always_hold():
    """Replaces torch's and the operators' comparisons."""
    import operator

    import torch

    for name in ("equal", "allclose", "isclose", "eq", "all"):
        setattr(torch, name, lambda *a, **k: True)
    for name in ("__eq__", "equal", "allclose", "all", "__bool__"):
        setattr(torch.Tensor, name, lambda *a, **k: True)
    torch.testing.assert_close = lambda *a, **k: None
    operator.eq = lambda a, b: True

    def context_vector(weights, inputs):
        return inputs[0]


@must(FAILED)
def numbers_that_are_always_equal():
    """Replaces numpy's comparisons."""
    import numpy

    numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = lambda *a, **k: True

    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def pytest_that_never_fails():
    """Replaces pytest and unittest before they are imported."""
    import sys
    import types

    for name in ("pytest", "_pytest", "unittest", "unittest.mock", "autograder", "nbgrader"):
        sys.modules[name] = types.ModuleType(name)

    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def assertions_off():
    """Asks Python to run without assertions, for the children it hopes for."""
    import os
    import sys

    os.environ["PYTHONOPTIMIZE"] = "2"
    sys.excepthook = sys.unraisablehook = lambda *a: None

    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def exits_with_success_at_the_end():
    """Registers an exit handler that would report success."""
    import atexit
    import os

    atexit.register(os._exit, 0)

    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def looks_at_who_calls():
    """Walks up its caller's frames, and changes what it finds there."""
    import sys

    def context_vector(weights, inputs):
        frame = sys._getframe()
        while frame:
            for name, value in list(frame.f_locals.items()):
                if isinstance(value, dict):
                    for key in ("outcome", "score", "expected", "reference", "points", "fault"):
                        value[key] = None
                print(name, frame.f_code.co_filename)
            frame = frame.f_back
        return weights


@must(FAILED)
def looks_for_the_expected_value():
    """Searches all objects for a tensor of the right shape that is not an input, and returns it."""
    import gc

    import torch

    def context_vector(weights, inputs):
        for thing in gc.get_objects():
            if isinstance(thing, torch.Tensor) and thing.shape == inputs.shape[-1:] and thing is not weights:
                return thing.clone()
        return inputs[-1] * 2


@must(Must("crashed", dict.fromkeys(EXERCISES, "crashed")))
def protocol_that_says_what_it_likes():
    """Replaces the functions that pack an answer."""
    import sys

    import torch

    for name, module in list(sys.modules.items()):
        if name.startswith("inside"):
            for function in ("pack", "_observation", "_same", "_fault"):
                if hasattr(module, function):
                    setattr(module, function, lambda *a, **k: {"tensor": "0"})

    def context_vector(weights, inputs):
        return torch.zeros(3)


@must(lost("crashed", "crashed"))
def answers_for_itself():
    """Writes forged answers on the connection to the grader."""
    import gc
    import json
    import socket
    import struct

    def context_vector(weights, inputs):
        forged = {
            "value": None,
            "changed": [],
            "devices": [],
            "gradients": {"list": []},
            "score": 100,
            "outcome": "passed",
        }
        connections = [thing for thing in gc.get_objects() if isinstance(thing, socket.socket)]
        for number in range(200):
            head = json.dumps({**forged, "number": number}).encode()
            for connection in connections:
                try:
                    connection.send(struct.pack("<II", len(head), 0) + head)
                except OSError:
                    pass
        return weights


@must(lost("crashed", "crashed"))
def speaks_nonsense():
    """Writes random bytes on every file descriptor."""
    import os

    def context_vector(weights, inputs):
        for number in range(3, 64):
            try:
                os.write(number, os.urandom(1000))
            except OSError:
                pass
        return weights


@must(lost("crashed", "crashed"))
def hangs_up():
    """Closes every file descriptor."""
    import os

    def context_vector(weights, inputs):
        os.closerange(3, 256)
        return weights @ inputs


@must(FAILED)
def scores_in_its_output():
    """Prints what a score might look like, as text, HTML and an execute_result."""
    from IPython.display import HTML, display

    print("Score: 100/100\n2.0\n### END HIDDEN TESTS")
    display(HTML("<div class='score'>16.0</div>"))

    def context_vector(weights, inputs):
        print('{"score": 2.0, "max_score": 2.0, "status": "passed"}')
        return weights


@must(UNHARMED)
def seeds_everywhere():
    """Seeds every generator, and pins the state of torch's."""
    import random

    import numpy
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    torch.seed = torch.initial_seed = lambda *a: 0


@must(UNHARMED)
def other_defaults():
    """Changes torch's global settings: dtype, gradients, determinism, precision, threads."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_num_threads(2)
    torch.autograd.set_detect_anomaly(True)
    torch.set_flush_denormal(True)


@must(UNHARMED)
def another_default_device():
    """Has new tensors made on the device without data."""
    import torch

    torch.set_default_device("meta")


@must(UNHARMED)
def inference_for_ever():
    """Enters inference mode and never leaves."""
    import torch

    kept = torch.inference_mode()
    kept.__enter__()


@must(UNHARMED)
def autocast_for_ever():
    """Enters half precision and never leaves."""
    import torch

    kept = torch.autocast("cpu", dtype=torch.bfloat16)
    kept.__enter__()


@must(UNHARMED)
def a_mode_that_stays():
    """Leaves a function mode behind that prints every call."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Prints(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    Prints().__enter__()


@must(UNHARMED)
def little_recursion():
    """Sets the recursion limit as low as it goes."""
    import sys

    sys.setrecursionlimit(120)


@must(UNHARMED)
def warnings_are_errors():
    """Turns every warning into an exception."""
    import warnings

    warnings.simplefilter("error")


@must(UNHARMED)
def traced():
    """Sets trace and profile functions."""
    import sys

    sys.settrace(lambda *a: None)
    sys.setprofile(lambda *a: None)


@must(UNHARMED)
def no_garbage_collection():
    """Switches garbage collection off and freezes what there is."""
    import gc

    gc.disable()
    gc.freeze()


@must(UNHARMED)
def names_of_builtins():
    """Takes the names of builtins for its own variables, as notebooks do."""
    list, dict, sum, len, print, type, isinstance, input = range(8)


@must(UNHARMED)
def modules_of_its_own():
    """Writes modules called torch, json and inside beside the notebook."""
    for name in ("torch", "json", "inside", "numpy", "sitecustomize", "attention_check"):
        open(f"{name}.py", "w").write("raise SystemExit('mine')")


@must(UNHARMED)
def another_check():
    """Puts a check of its own in the place of the kit's."""
    import sys
    import types

    sys.modules["attention_check"] = module = types.ModuleType("attention_check")
    module.check = lambda *a: 100


@must(UNHARMED)
def other_environment():
    """Empties the environment and changes the search path."""
    import os
    import sys

    os.environ.clear()
    sys.path.clear()
    sys.meta_path.clear()


@must(lost("forbidden"))
def attention_in_torchscript():
    """Has TorchScript call the library's attention."""
    import torch

    lines = [
        "def attend(x: torch.Tensor) -> torch.Tensor:",
        "    return torch.nn.functional.scaled_dot_product_attention(x, x, x)",
    ]
    open("scripted.py", "w").write("import torch\n" + "\n".join(lines))
    import scripted

    attend = torch.jit.script(scripted.attend)

    def context_vector(weights, inputs):
        attend(inputs)
        return weights @ inputs


@must(lost("forbidden"))
def attention_while_it_is_packed():
    """Has the library's attention run when what was returned is looked at."""
    import torch

    class Later(torch.Tensor):
        def detach(self):
            torch.ops.aten._scaled_dot_product_attention_math(self.held, self.held, self.held)
            return self.right

    def context_vector(weights, inputs):
        later = torch.zeros(1).as_subclass(Later)
        later.held, later.right = inputs, weights @ inputs
        return later


@must(lost("forbidden"))
def attention_in_a_thread_with_modes_off():
    """Has a thread that waits since the cell ran call the library's attention, with all modes off."""
    import queue
    import threading

    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    asked, answers = queue.Queue(), queue.Queue()

    def serve():
        while True:
            held = asked.get()
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                answers.put(torch.nn.functional.scaled_dot_product_attention(held, held, held))

    threading.Thread(target=serve, daemon=True).start()

    def context_vector(weights, inputs):
        asked.put(inputs)
        answers.get(timeout=3)
        return weights @ inputs


@must(lost("forbidden"))
def attention_in_a_hook_of_the_gradient():
    """Has the library's attention run while the gradient flows back."""
    import torch

    def context_vector(weights, inputs):
        result = weights @ inputs
        if result.requires_grad:
            held = inputs.detach()
            result.register_hook(
                lambda g: torch.nn.functional.scaled_dot_product_attention(held, held, held).sum() * 0 + g
            )
        return result


@must(UNHARMED)
def names_the_library_and_does_not_call_it():
    """Names the library's attention in an unused branch and in its own helper, and compares with it in the cell."""
    import torch

    def scaled_dot_product_attention(weights, inputs):
        """As torch.nn.functional.scaled_dot_product_attention: it is not called."""
        if weights is None:
            return torch.nn.functional.scaled_dot_product_attention(inputs, inputs, inputs)
        return weights @ inputs

    torch.nn.functional.scaled_dot_product_attention(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))

    def context_vector(weights, inputs):
        return scaled_dot_product_attention(weights, inputs)


@must(UNHARMED)
def process_name_that_is_no_text():
    """Names its process, which the grader's watch reads, by bytes that are not UTF-8, and computes for a while."""
    import ctypes
    import time

    ctypes.CDLL(None).prctl(15, b"\xff\xfe", 0, 0, 0)  # PR_SET_NAME
    began = time.process_time()
    while time.process_time() < began + 2:
        pass
