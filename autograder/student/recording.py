"""A backend that remembers everything that the code behind it showed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Kind, Observation, Target
from ..sandbox.inside.faults import Missing, Raised, StudentFault
from .backend import Backend


@dataclass(frozen=True)
class Event:
    """One operation: what was asked, and what came of it (a value, or the kind of fault)."""

    operation: str
    asked: tuple[Any, ...]
    shown: Any


@dataclass
class Recording:
    """Stands before another backend and keeps the events."""

    backend: Backend
    called: str = ""
    """What an entry of the catalogue is called; in the words of its errors its exercise stands for it."""
    exercise: str = ""
    events: list[Event] = field(default_factory=list)
    library_calls: set[str] = field(default_factory=set)

    def kind(self, name: str) -> Kind:
        return self.backend.kind(name)

    def manual_seed(self, seed: int) -> None:
        self._record("manual_seed", (seed,), lambda: self.backend.manual_seed(seed))

    def build(self, name: str, arguments: Arguments) -> int:
        built: list[int] = []
        # The instance's number depends on what was built before; that it could be built is what shows.
        self._record("build", (name, arguments), lambda: built.append(self.backend.build(name, arguments)))
        return built[0]

    def call(
        self, target: Target, arguments: Arguments, cotangents: tuple[torch.Tensor, ...] | None = None
    ) -> Observation:
        observation: Observation = self._record(
            "call", (target, arguments, cotangents), lambda: self.backend.call(target, arguments, cotangents)
        )
        self.library_calls.update(observation.library_calls)
        return observation

    def named_parameters(self, instance: int) -> dict[str, torch.Tensor]:
        parameters: dict[str, torch.Tensor] = self.backend.named_parameters(instance)
        # Unseeded values are chance; names and shapes are not.
        self.events.append(Event("named_parameters", (instance,), {n: tuple(p.shape) for n, p in parameters.items()}))
        return parameters

    def load_parameters(self, instance: int, values: Mapping[str, torch.Tensor]) -> None:
        self._record(
            "load_parameters",
            (instance, dict(values)),
            lambda: self.backend.load_parameters(instance, values),
        )

    def to_dtype(self, instance: int, dtype: torch.dtype) -> None:
        self._record("to_dtype", (instance, str(dtype)), lambda: self.backend.to_dtype(instance, dtype))

    def train(self, instance: int, mode: bool) -> None:
        self._record("train", (instance, mode), lambda: self.backend.train(instance, mode))

    def probe_device(self, target: Target, arguments: Arguments) -> str:
        verdict: str = self._record(
            "probe_device", (target, arguments), lambda: self.backend.probe_device(target, arguments)
        )
        return verdict

    def _record(self, operation: str, asked: tuple[Any, ...], do: Any) -> Any:
        try:
            shown = do()
        except StudentFault as fault:
            self.events.append(Event(operation, asked, self._in_words(fault)))
            raise
        self.events.append(Event(operation, asked, shown))
        return shown

    def _in_words(self, fault: StudentFault) -> str:
        """A fault without its place; with its words, for one kind of error comes of many mistakes."""
        match fault:
            case Missing(name=name):
                return f"missing {name}"
            case Raised(type_name=type_name, message=message):
                words = message.strip().partition("\n")[0]
                return f"raised {type_name}: {words.replace(self.called, self.exercise) if self.called else words}"
        return str(fault)
