"""Errors that come from the machine that grades, and would not come on a student's own: it has no GPU, for example."""

import re
from collections.abc import Sequence

_NO_GPU = (
    "Grading runs without a GPU: use the device of the input, as in `torch.zeros(3, device=x.device)`, in place of a "
    "fixed one."
)
_NO_ANSWER = "Nobody can type an answer in grading: write the value into the code in place of `input()`."
_GPU = re.compile(
    r"""Torch\ not\ compiled\ with\ (CUDA|XPU|HIP)
    | (is\ )?not\ linked\ with\ support\ for\ \w+\ devices
    | Found\ no\ NVIDIA\ driver | No\ (CUDA|HIP)\ GPUs\ are\ available | no\ CUDA-capable\ device
    | from\ the\ '(CUDA|MPS|XPU|XLA|HPU|HIP)'\ backend
    | Invalid\ device\ argument | Expected\ one\ of\ cpu,\ cuda
    | MPS\ (backend|device) | Cannot\ access\ accelerator\ device | torch\.(cuda|mps|xpu)\.\w+\ not\ available""",
    re.X,
)
_INPUT = re.compile(r"EOF when reading a line|input\(\): lost sys\.stdin")


def hint(kinds: Sequence[str], message: str) -> str:
    """Return the explanation of an error that only grading causes; empty for other errors.

    kinds: the names of the error's classes.
    """
    if not {"EOFError", "RuntimeError"}.isdisjoint(kinds) and _INPUT.search(message):
        return _NO_ANSWER
    return _NO_GPU if _GPU.search(message) else ""
