"""What one call of a student's code showed, in one shape wherever it goes."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from .packing import Whole

V = TypeVar("V")


class Observation(msgspec.Struct, Generic[V]):
    """Everything that one call showed. V is Any on a bench and before the graders, `packing.Value` on the wire.

    On a bench `gradients` is a list and `parameter_gradients` a dict.
    """

    value: V = None  # type: ignore[assignment]  # on the wire, where it is not there
    changed: list[Whole] = []
    """Positions of the arguments that the call wrote into; tensors are never given by name."""
    devices: list[str] = []
    """The device types that the output's tensors are on."""
    gradients: V = None  # type: ignore[assignment]
    """One per argument; None where none arrived (or the argument is no float tensor)."""
    parameter_gradients: V = None  # type: ignore[assignment]
    """By the parameters' names."""
    library_calls: list[str] = []
    """The libraries that ran; noted by whoever has the whole of what was asked in view, packing included."""
    cost: V = None  # type: ignore[assignment]
    """Cost of the call in the form of `cost.Cost.packed`; only `MeasureCost` counts it."""
    cpu_seconds: float = 0.0
    """The CPU time of the call, measured outside the worker; only `TimedCall` is measured."""

    def mapped(self, change: Callable[[Any], Any]) -> "Observation[Any]":
        """The same observation with the value, the gradients and the cost changed, in this order."""
        return Observation(
            change(self.value),
            self.changed,
            self.devices,
            change(self.gradients),
            change(self.parameter_gradients),
            self.library_calls,
            change(self.cost),
            self.cpu_seconds,
        )
