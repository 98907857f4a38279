"""Arguments of a call, the tensors and values nested in them, and a module that hidden tests pass as an argument."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import nn


class Arguments(NamedTuple):
    """The arguments of a call to a function or class."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def mapped(self, change: Callable[[Any], Any]) -> "Arguments":
        """Return the arguments with each value replaced by `change(value)`, also inside lists and tuples."""
        return Arguments(
            tuple(map_nested(value, change) for value in self.positional),
            {name: map_nested(value, change) for name, value in self.named.items()},
        )

    def apply(self, function: Callable[..., Any]) -> Any:
        """Call the function and return its result."""
        return function(*self.positional, **self.named)


InstancePositions = tuple[tuple[int, int], ...]
"""For each instance among the arguments of a call: its position, and its number on the bench."""


def with_instances(
    function: Callable[..., Any], held: Sequence[Sequence[int]], instances: Sequence[Any]
) -> Callable[..., Any]:
    """Return the function with instances inserted among its arguments. held: see `InstancePositions`.

    The instances are not copied: a later operation sees what the call did to them.
    """
    if not held:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*insert_instances(args, ((position, instances[number]) for position, number in held)), **named)

    return called


def insert_instances(args: Sequence[Any], held: Iterable[tuple[int, Any]]) -> list[Any]:
    """Insert instances among the arguments of a call. held: position and value of each instance."""
    arguments = list(args)
    for position, instance in held:
        arguments.insert(position, instance)
    return arguments


def with_iterators(function: Callable[..., Any], once: bool) -> Callable[..., Any]:
    """Return the function; if `once`, it gets each list and tuple as an iterator, which can be read only once."""
    if not once:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*(iter(arg) if isinstance(arg, list | tuple) else arg for arg in args), **named)

    return called


def positions_of_others(held: Sequence[Sequence[int]], number: int) -> list[int]:
    """Return the positions of the `number` arguments that are not instances, among all arguments of a call."""
    taken = {position for position, _ in held}
    return [position for position in range(number + len(taken)) if position not in taken]


MAX_DEPTH = 8
MAX_TENSORS = 500
"""Maximum number of tensors that are read from one value."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors of a value, including those in lists, tuples and dicts down to MAX_DEPTH."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, depth + 1)


def map_nested(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value with `change` applied to each item of nested lists and tuples.

    The depth is not limited, so a student's value must not be passed.
    """
    if isinstance(value, list | tuple):
        return type(value)(map_nested(item, change) for item in value)
    return change(value)


Shapes = Mapping[str, tuple[int, ...]]
"""Shapes by dotted names, such as `layer.weight`."""


class Assembled(nn.Module):
    """A module with parameters and buffers of given names and shapes.

    A submodule with a matrix `weight` is an nn.Linear. `forward` returns a tuple: the input times each of the module's
    matrices, then the output of each of its layers. With `computes`, `forward` evaluates that expression instead.
    Hidden tests pass it to a function that takes a module, even if the student's own classes are wrong.
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
