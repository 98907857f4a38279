"""Modules that a student's code is to work on, made by a description: none of the student's classes need be right."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import torch
from torch import nn

Shapes = Mapping[str, tuple[int, ...]]
"""By dotted names, as `named_parameters` has them."""


class Assembled(nn.Module):
    """Has parameters and buffers of these names and shapes; what holds a matrix as its `weight` is an nn.Linear.

    Called, it gives what each of its own matrices, and then each of its own layers, makes of the input; or what the
    course says that it `computes`, of the input and of what else it is called with.
    """

    def __init__(
        self,
        parameters: Shapes,
        buffers: Shapes,
        frozen: Iterable[str],
        shared: Mapping[str, str],
        computes: str = "",
        others: Iterable[str] = (),
    ) -> None:
        """frozen: the parameters that do not learn. shared: by further names, the parameters that they are.

        computes: an expression in `x`, `torch` and what belongs to the module itself, by name. others: how it names the
        further arguments.
        """
        super().__init__()
        self._computes = compile(computes, "<assembled>", "eval") if computes else None
        self._others = tuple(others)
        shapes = {name: tuple(shape) for name, shape in parameters.items()}  # which may come as lists, from JSON
        for name, shape in shapes.items():
            owner, last = self._owner(name, shapes)
            if getattr(owner, last, None) is None:
                owner.register_parameter(last, nn.Parameter(torch.rand(shape)))
        for name, shape in buffers.items():
            owner, last = self._owner(name, shapes)
            owner.register_buffer(last, torch.zeros(*shape))
        for name, other in shared.items():
            owner, last = self._owner(name, shapes)
            owner.register_parameter(last, self.get_parameter(other))
        for name in frozen:
            self.get_parameter(name).requires_grad_(False)
        self._matrices = [name for name, own in self.named_parameters(recurse=False) if own.dim() == 2]
        self._layers = [name for name, own in self.named_children() if isinstance(own, nn.Linear)]

    def _owner(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> tuple[nn.Module, str]:
        """The module that holds what has this name, made where it is not there yet, and the last part of the name."""
        *path, last = name.split(".")
        owner: nn.Module = self
        for depth, step in enumerate(path, start=1):
            if step not in dict(owner.named_children()):
                owner.add_module(step, _part(".".join(path[:depth]), shapes))
            owner = owner.get_submodule(step)
        return owner, last

    def forward(self, x: torch.Tensor, *others: Any) -> Any:
        """x: (..., d_in); a matrix is (d_in, d_out), the weight of a layer (d_out, d_in)."""
        if self._computes:
            own = {**self._parameters, **self._buffers, **self._modules, **dict(zip(self._others, others, strict=True))}
            return eval(self._computes, {"torch": torch, "x": x, **own})
        by_matrices = (x @ getattr(self, name) for name in self._matrices)
        by_layers = (getattr(self, name)(x) for name in self._layers)
        return tuple(chain(by_matrices, by_layers))


def _part(name: str, shapes: Mapping[str, tuple[int, ...]]) -> nn.Module:
    weight = shapes.get(f"{name}.weight", ())
    if len(weight) != 2:
        return nn.Module()
    return nn.Linear(weight[1], weight[0], bias=f"{name}.bias" in shapes)
