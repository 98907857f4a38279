"""A torch module built from a description, as input for a student's function that takes a module.

Hidden tests use it to test the function even if the student's own classes are wrong.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import torch
from torch import nn

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes by dotted names, such as `layer.weight`."""


class Assembled(nn.Module):
    """A module with parameters and buffers of given names and shapes.

    A submodule with a matrix `weight` is an nn.Linear. `forward` returns a tuple: the input times each of the module's
    matrices, then the output of each of its layers. With `computes`, `forward` evaluates that expression instead.
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
        """frozen: names of the parameters without gradients. shared: parameters by their additional names.

        computes: an expression in `x`, `torch`, and the names of the module's parameters, buffers and submodules.
        others: names of `forward`'s further arguments in that expression.
        """
        super().__init__()
        self._computes = compile(computes, "<assembled>", "eval") if computes else None
        self._others = tuple(others)
        shapes = {name: tuple(shape) for name, shape in parameters.items()}  # JSON has lists
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
        self._matrices = [name for name, matrix in self.named_parameters(recurse=False) if matrix.dim() == 2]
        self._layers = [name for name, layer in self.named_children() if isinstance(layer, nn.Linear)]

    def _owner(self, name: str, shapes: Mapping[str, tuple[int, ...]]) -> tuple[nn.Module, str]:
        """Return the submodule that holds a dotted name, after building it if missing, and the name's last part."""
        *path, last = name.split(".")
        owner: nn.Module = self
        for depth, step in enumerate(path, start=1):
            if step not in dict(owner.named_children()):
                owner.add_module(step, _submodule(".".join(path[:depth]), shapes))
            owner = owner.get_submodule(step)
        return owner, last

    def forward(self, x: torch.Tensor, *others: Any) -> Any:
        """Compute the outputs. x: (..., d_in); a matrix is (d_in, d_out), the weight of a layer (d_out, d_in)."""
        if self._computes:
            others_by_name = dict(zip(self._others, others, strict=True))
            names = {**self._parameters, **self._buffers, **self._modules, **others_by_name}
            return eval(self._computes, {"torch": torch, "x": x, **names})
        by_matrices = (x @ getattr(self, name) for name in self._matrices)
        by_layers = (getattr(self, name)(x) for name in self._layers)
        return tuple(chain(by_matrices, by_layers))


def _submodule(name: str, shapes: Mapping[str, tuple[int, ...]]) -> nn.Module:
    weight = shapes.get(f"{name}.weight", ())
    if len(weight) != 2:
        return nn.Module()
    return nn.Linear(weight[1], weight[0], bias=f"{name}.bias" in shapes)
