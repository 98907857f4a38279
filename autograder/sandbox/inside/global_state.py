"""What a cell may have switched globally, and what is switched back before its functions are judged.

An exploring cell that changes torch's default dtype is no part of any exercise.
"""

import sys
import warnings

import torch

_RECURSION_LIMIT = sys.getrecursionlimit()
_left: list[torch.inference_mode] = []
"""Inference mode ends only within another, which lasts as long as it is kept."""


def restore() -> None:
    """Puts torch's and Python's global switches back to where a fresh notebook has them."""
    if torch.is_inference_mode_enabled():
        _left.append(torch.inference_mode(mode=False))
        _left[-1].__enter__()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    torch.autograd.set_detect_anomaly(False)
    if torch.get_default_device().type != "cpu":
        torch.set_default_device(None)
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            torch.set_autocast_enabled(device, False)
    sys.settrace(None)
    sys.setprofile(None)
    if sys.getrecursionlimit() != _RECURSION_LIMIT:
        sys.setrecursionlimit(_RECURSION_LIMIT)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
