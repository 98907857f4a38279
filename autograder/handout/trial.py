"""An example is a list of steps; here they are taken with the code of a notebook, and what each call shows is kept."""

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..sandbox.inside.arguments import Arguments, places_of_others, together, walking_once, with_held
from ..sandbox.inside.assembled import Assembled
from ..sandbox.inside.cost import of_call
from ..sandbox.inside.device_probe import moved, probe
from ..sandbox.inside.flow_back import flow_back
from ..sandbox.inside.nesting import each, tensors_in
from ..sandbox.inside.seeding import seed_in_use
from .written_values import as_value

Step = Mapping[str, Any]


class Wrong(Exception):
    """The code did not do what was asked; `str()` is a sentence."""

    odd_shape = False
    """Whether the numbers are right, and only the shape is not."""


@dataclass
class Call:
    """One call, and what it showed."""

    step: Step
    function: Callable[..., Any]
    args: list[Any]
    named: dict[str, Any]
    value: Any = None
    held: list[tuple[int, Any]] = field(default_factory=list)
    """The instances among its arguments, with their places; not copied, for it may be there to change them."""
    changed: list[int] = field(default_factory=list)
    """The arguments that it wrote into, by number; instances count among them."""
    gradients: list[Any] = field(default_factory=list)
    """One for each argument, None where none arrived."""
    parameter_gradients: dict[str, Any] = field(default_factory=dict)
    whole: Any = None
    """What the same call gives where nothing is dropped by chance, if the step asks for it."""
    verdict: str = ""
    """Where the step asks whether the code follows its inputs to another device."""
    cost: Any = None
    """A `Cost`, where the step asks for it."""


@dataclass
class Trial:
    """The steps of one example on their way; `printed` holds what the code itself printed in its last call."""

    names: Mapping[str, Any]
    instances: list[Any] = field(default_factory=list)
    built: list[Callable[[], Any]] = field(default_factory=list)
    seed: int = 0
    """For the instance that is built next."""
    printed: io.StringIO = field(default_factory=io.StringIO)
    now: Call | None = None
    """The call that was made last, which may not have come back."""

    def take(self, step: Step) -> Any:
        """What comes of a step: a `Call`, or an instance's parameters by name, or nothing."""
        match step["operation"]:
            case "manual_seed":
                seed_in_use(step["seed"])
                self.seed = step["seed"]
            case "build":
                self._build(step)
            case "assemble":
                self.instances.append(assembled(step))
                self.built.append(lambda: assembled(step))
            case "load":
                load(self.instances[step["instance"]], {n: as_value(v) for n, v in step["values"].items()})
            case "to":
                self.instances[step["instance"]].to(getattr(torch, step["dtype"]))
            case "train":
                self.instances[step["instance"]].train(step["mode"])
            case "parameters":
                return {n: p.detach() for n, p in self.instances[step["instance"]].named_parameters()}
            case "call" | "read" | "cost" | "probe":
                return self._call(step)
        return None

    def _build(self, step: Step) -> None:
        args, named = [as_value(arg) for arg in step.get("args", ())], step.get("named", {})
        seed, self.seed = self.seed, 0

        def build() -> Any:
            seed_in_use(seed)
            with self._listening():
                return self.names[step["name"]](*args, **named)

        instance = build()
        if not step.get("plain") and not isinstance(instance, torch.nn.Module):
            raise Wrong(f"`{step['name']}` does not inherit from torch.nn.Module.")
        self.instances.append(instance)
        self.built.append(build)

    def _call(self, step: Step) -> Call:
        own = called(step, self.names, self.instances)
        call = self.now = Call(step, own, [as_value(arg) for arg in step.get("args", ())], dict(step.get("named", {})))
        call.held = [(place, self.instances[number]) for place, number in step.get("with", ())]
        with self._listening():
            if step["operation"] == "cost":
                ready = with_held(own, step.get("with", ()), self.instances)
                arguments = Arguments(tuple(copied(call.args)), call.named)
                call.cost, call.value = of_call(ready, arguments, own, is_cell, once="once" in step)
                return call
            if step["operation"] == "probe":
                call.verdict = self._followed(call)
                return call
            if "whole" in step:
                call.whole = _whole(call)
            given, before = copied(call.args), copied(call.args)
            for one in tensors_in(given):
                one.requires_grad_("cotangents" in step and one.is_floating_point())
            ready = with_held(walking_once(own, "once" in step), step.get("with", ()), self.instances)
            call.value = ready(*given, **call.named)
        at = places_of_others(step.get("with", ()), len(given))
        call.changed = [at[number] for number, held in enumerate(before) if not is_unwritten(held, given[number])]
        if "cotangents" in step:
            self._flow_back(call, given)
        return call

    def _flow_back(self, call: Call, given: list[Any]) -> None:
        """The gradients at arguments and parameters of some loss, of which the cotangents are that at each output."""
        own = call.function
        parameters = dict(own.named_parameters()) if isinstance(own, torch.nn.Module) else {}
        cotangents = [as_value(one) for one in call.step["cotangents"]]
        outputs = list(call.value) if isinstance(call.value, tuple | list) else [call.value]
        losses = [(one * by.to(one)).real.sum() for one, by in zip(outputs, cotangents, strict=False)
                  if isinstance(one, torch.Tensor) and one.shape == by.shape and one.requires_grad]  # fmt: skip
        reached = losses if len(outputs) == len(cotangents) else []
        call.gradients, call.parameter_gradients = flow_back(reached, together(given, call.held), parameters)

    def _followed(self, call: Call) -> str:
        here = away = call.function
        if "instance" in call.step:  # new ones: one that has been called may hold anything
            here, away = (self._another(call.step["instance"]) for _ in range(2))
            away = moved(away)

        def on_cpu() -> Any:
            seed_in_use(0)
            return here(*copied(call.args), **call.named)

        seed_in_use(0)
        return probe(away, Arguments(tuple(call.args), call.named), on_cpu)[0]

    def _another(self, number: int) -> Any:
        instance = self.built[number]()
        instance.train(self.instances[number].training)
        return instance

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            yield


def is_cell(file: str) -> bool:
    """Whether the kernel calls a cell's code by this name."""
    return "ipykernel_" in file or file.startswith("<ipython-input")


def called(step: Step, names: Mapping[str, Any], instances: Sequence[Any]) -> Any:
    """What a step calls: a function, an instance, its method, or what reads one of its attributes."""
    own = names[step["name"]] if "name" in step else instances[step.get("instance", -1)]
    if step["operation"] == "read":
        return lambda: getattr(own, step["part"])
    return getattr(own, step["part"]) if "part" in step else own


def assembled(step: Step) -> Assembled:
    """The module that a step makes; the same each time."""
    seed_in_use(0)
    named = {part: step[part] for part in ("computes", "others") if part in step}
    more = step.get("buffers", {}), step.get("frozen", ()), step.get("shared", {})
    return Assembled(step["parameters"], *more, **named)


def load(instance: Any, values: Mapping[str, torch.Tensor]) -> None:
    """Gives the parameters these values; raises Wrong where names or shapes are others."""
    own = dict(instance.named_parameters())
    if own.keys() != values.keys():
        has = ", ".join(sorted(own)) or "no parameters at all"
        raise Wrong(f"Its parameters should be {', '.join(sorted(values))}; it has {has}.")
    for name, parameter in own.items():
        if parameter.shape != values[name].shape:
            shapes = f"{tuple(values[name].shape)}, here it is {tuple(parameter.shape)}"
            raise Wrong(f"The parameter `{name}` should have shape {shapes}.")
        parameter.data.copy_(values[name])


def _whole(call: Call) -> Any:
    """A function's first argument; what a module gives in evaluation."""
    if call.step["whole"] == "argument":
        return call.args[0]
    was = call.function.training  # type: ignore[attr-defined]
    call.function.eval()  # type: ignore[attr-defined]
    try:
        return call.function(*copied(call.args), **call.named)
    finally:
        call.function.train(was)  # type: ignore[attr-defined]


def copied(args: Sequence[Any]) -> list[Any]:
    """Arguments of their own for one call."""
    # To copy a tensor deeply takes ten times as long as to clone it.
    return [each(arg, lambda one: one.clone() if isinstance(one, torch.Tensor) else copy.deepcopy(one)) for arg in args]


def is_unwritten(one: Any, other: Any) -> bool:
    """Whether nothing was written into a value."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_unwritten, one, other))
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
