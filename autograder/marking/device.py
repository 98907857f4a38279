"""Which device exercises may be computed on, as far as that can be told before torch is imported."""

from pathlib import Path

from ..client.requests import Device

NO_CUDA = "There is no CUDA device here. Use --device cpu, or auto to take one where it is."


class NoDevice(Exception):
    """The device that was asked for is not to be had; `str()` says what to do."""


def may_be_cuda(device: Device) -> bool:
    """Whether the sandbox needs the GPU's device nodes; raises NoDevice where this torch can use none."""
    if device == "auto":
        return Path("/dev/nvidiactl").exists() and not _is_torch_of_the_cpu()
    if device == "cuda" and _is_torch_of_the_cpu():
        raise NoDevice(NO_CUDA)
    return device == "cuda"


def _is_torch_of_the_cpu() -> bool:
    from importlib import metadata  # takes as long to import as all that a marking process does before torch

    return metadata.version("torch").endswith("+cpu")
