"""Choose the device that exercises are computed on."""

from pathlib import Path

from ..client.requests import Device

_NO_CUDA = "There is no CUDA device here. Use --device cpu, or auto to take one where it is."


class NoDevice(Exception):
    """The requested device is not available; `str()` says what to do."""


def may_be_cuda(device: Device) -> bool:
    """Return whether the sandbox needs the GPU's device files, without importing torch.

    Raises NoDevice if the installed torch cannot use a GPU that is required.
    """
    if device == "auto":
        return Path("/dev/nvidiactl").exists() and not _is_torch_of_the_cpu()
    if device == "cuda" and _is_torch_of_the_cpu():
        raise NoDevice(_NO_CUDA)
    return device == "cuda"


def choose_device(device: Device) -> str:
    """Return the requested device, or the best one for `auto`. Raises NoDevice."""
    import torch

    cuda = torch.cuda.is_available()
    if device == "cuda" and not cuda:
        raise NoDevice(_NO_CUDA)
    return device if device != "auto" else "cuda" if cuda else "cpu"


def _is_torch_of_the_cpu() -> bool:
    from importlib import metadata  # takes as long to import as everything else that precedes torch

    return metadata.version("torch").endswith("+cpu")
