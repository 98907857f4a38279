"""The steps of an example, carried out on the notebook's code by the same operations as in grading."""

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.bench import Bench, Operation
from ..core.faults import Raised
from ..core.observation import Observation
from ..core.operations import Call as CallOperation
from ..core.operations import ProbeDevice, Train, is_bias
from ..core.steps import Step, operation_of
from .written_values import as_value


@dataclass
class Call:
    """One call and what it showed."""

    step: Step
    operation: CallOperation | ProbeDevice
    function: Callable[..., Any]
    held: list[tuple[int, Any]] = field(default_factory=list)
    """The instances among its arguments, with their positions."""
    seen: Any = None
    """The call's `Observation`; the result of a device probe."""
    whole: Any = None
    """The result of the same call without dropout, if the step needs it."""

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments, without instances."""
        return self.operation.arguments.positional

    @property
    def named(self) -> Mapping[str, Any]:
        """The named arguments."""
        return self.operation.arguments.named

    @property
    def value(self) -> Any:
        """The call's result; None if it raised an exception, and for a device probe."""
        return self.seen.value if isinstance(self.seen, Observation) else None


class Trial:
    """The steps of one example. `printed` holds what the code itself printed in its last call."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._bench = Bench(names)
        self.printed = io.StringIO()
        self.now: Call | None = None
        """The call that was made last, which may not have returned."""

    def begin_again(self) -> None:
        """Forget all instances."""
        self._bench, self.now = Bench(self._names), None

    def lacks_biases(self, step: Step) -> bool:
        """Return whether a step would load a bias that the instance does not have."""
        if step.get("exactly"):
            return False
        own = dict(self._bench.instances[step["instance"]].named_parameters())
        return any(is_bias(name) and name not in own for name in step["values"])

    def take(self, step: Step) -> Any:
        """Carry out a step.

        Returns a `Call`, or the result of another operation. Raises what the student's code raises, and StudentFault.
        """
        operation = operation_of(step, as_value)
        if not isinstance(operation, CallOperation | ProbeDevice):
            return self._ask(operation)
        call = Call(step, operation, self._bench.target(operation.target))
        self.now = call
        if isinstance(operation, CallOperation):
            call.held = [(place, self._bench.instances[number]) for place, number in operation.held]
        if "whole" in step:
            call.whole = self._without_dropout(call)
        call.seen = self._ask(operation)
        return call

    def _without_dropout(self, call: Call) -> Any:
        if call.step["whole"] == "argument":
            return call.args[0]
        instance = call.step["instance"]
        mode = bool(self._bench.instances[instance].training)
        self._ask(Train(instance, False))
        try:
            return self._ask(CallOperation(instance, call.operation.arguments)).value
        finally:
            self._ask(Train(instance, mode))

    def _ask(self, operation: Operation[Any]) -> Any:
        self.printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(self.printed):
                return self._bench.ask(operation)
        except Raised as fault:
            # With the traceback of the notebook's own lines, which the check shows.
            raise fault.__context__ or fault from None
