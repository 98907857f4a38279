"""Steps of a released example, as operations.

A step is an operation as JSON: its name, its fields, and what the check compares with the result.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .arguments import Arguments
from .bench import Operation
from .operations import (
    Assemble,
    Build,
    Call,
    LoadParameters,
    ManualSeed,
    MeasureCost,
    NamedParameters,
    ProbeDevice,
    Read,
    ToDtype,
    Train,
)

Step = Mapping[str, Any]


def operation_of(step: Step, value_of: Callable[[Any], Any]) -> Operation[Any]:
    """Return the operation of a step. value_of: makes a value from its JSON."""
    values = tuple(value_of(arg) for arg in step.get("args", ()))
    arguments = Arguments(values, step.get("named", {}))
    match step["operation"]:
        case "manual_seed":
            return ManualSeed(step["seed"])
        case "build":
            return Build(step["name"], arguments, "plain" in step)
        case "assemble":
            fields = ("parameters", "buffers", "frozen", "shared", "computes", "others")
            return Assemble(**{name: step[name] for name in fields if name in step})
        case "load":
            parameters = {name: value_of(value) for name, value in step["values"].items()}
            return LoadParameters(step["instance"], parameters, "exactly" in step)
        case "to":
            return ToDtype(step["instance"], step["dtype"])
        case "train":
            return Train(step["instance"], step["mode"])
        case "parameters":
            return NamedParameters(step["instance"])
    target = step["name"] if "name" in step else step["instance"]
    held = tuple((place, number) for place, number in step.get("with", ()))
    match step["operation"]:
        case "probe":
            return ProbeDevice(target, arguments)
        case "cost":
            return MeasureCost(target, arguments, held=held, once="once" in step, limits=step["limits"])
        case "read":
            return Read(target, arguments, part=step["part"])
    cotangents = tuple(map(value_of, step["cotangents"])) if "cotangents" in step else None
    return Call(target, arguments, cotangents, held, step.get("part", ""), "once" in step)
