"""Finds tensors that stay behind when a model moves to another device, without a GPU.

A mask that is not a buffer and a tensor made on the CPU by hand work on every laptop and fail on every GPU.
Run on the meta device (shapes, no data), they meet operands from another device, and a dispatch mode sees it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from .arguments import Arguments
from .nesting import tensors_in
from .operators import OperatorMode, name_of

FOLLOWS = "follows"
MIXED = "mixed"
ELSEWHERE = "elsewhere"
UNDECIDED = "undecided"

META = torch.device("meta")

# These may meet operands of two devices on CUDA too: `.to(device)` is how one follows, an index may stay on the CPU.
_CROSSING = {"copy_", "_to_copy", "index", "index_put", "index_put_", "_index_put_impl_"}


class _Devices(OperatorMode):
    """Notes whether an operator got operands from two devices. A 0-d CPU tensor may go anywhere, as on CUDA."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        devices = {t.device for t in tensors_in((args, dict(kwargs or {}))) if t.dim() > 0 or t.is_meta}
        name = name_of(func)
        if len(devices) > 1 and name not in _CROSSING:
            self.mixed = True
        if name == "copy_" and args[1].is_meta and not args[0].is_meta:
            return args[0]  # a copy to the CPU works on CUDA; here there is no data to copy
        if name == "_to_copy" and args[0].is_meta and _leaves_meta(kwargs):
            return torch.zeros(args[0].shape, dtype=(kwargs or {}).get("dtype") or args[0].dtype)
        return func(*args, **(kwargs or {}))


def _leaves_meta(kwargs: Mapping[str, Any] | None) -> bool:
    device = (kwargs or {}).get("device")
    return device is not None and torch.device(device) != META


def probe(call: Callable[..., Any], arguments: Arguments) -> str:
    """One of `follows`, `mixed`, `elsewhere` (the output), `undecided` (the code needs data to decide)."""
    on_meta = arguments.mapped(lambda arg: arg.to(META) if isinstance(arg, torch.Tensor) else arg)
    with _Devices() as devices:
        try:
            value = on_meta.apply(call)
        except Exception:
            # Whatever was raised, only operands from two devices are a device fault.
            return MIXED if devices.mixed else UNDECIDED
    if devices.mixed:
        return MIXED
    return FOLLOWS if all(output.is_meta for output in tensors_in(value)) else ELSEWHERE
