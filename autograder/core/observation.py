"""Observations of a call of a student's code."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

V = TypeVar("V")


@dataclass
class Observation(Generic[V]):
    """Everything that one call showed. On a bench `gradients` is a list and `parameter_gradients` a dict."""

    value: V
    changed: list[int] = field(default_factory=list)
    """Positions of the arguments that the call wrote into; tensors are never given by name."""
    devices: list[str] = field(default_factory=list)
    """The types of the devices that the output's tensors are on, if these are several; which a single one is tells
    nothing of the code."""
    gradients: Any = None
    """One for each argument; None if none arrived or the argument is not a float tensor."""
    parameter_gradients: Any = None
    """Gradients by the parameters' names."""
    library_calls: list[str] = field(default_factory=list)
    """The libraries that ran. The worker adds them after packing, because packing may run student code."""
    cost: Any = None
    """Cost of the call in the form of `cost.Cost.packed`; only `MeasureCost` counts it."""
    cpu_seconds: float = 0.0
    """The CPU time of the call, measured outside the worker; only `TimedCall` is measured."""

    def mapped(self, change: Callable[[Any], Any]) -> "Observation[Any]":
        """Return the observation with the value, the gradients and the cost changed, in this order."""
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
