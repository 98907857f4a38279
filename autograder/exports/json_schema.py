"""The JSON Schema of what a command prints, made from the types and their docstrings."""

import ast
import inspect
from itertools import pairwise

import msgspec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(type_: type[msgspec.Struct]) -> bytes:
    """The schema of a type as it is written: with every field, whether or not it may be left out when read."""
    made = msgspec.json.schema(type_)
    for name, of_type in made["$defs"].items():
        properties = of_type["properties"]
        for field, text in _descriptions(_found(type_, name)).items():
            properties[field]["description"] = text
        for of_field in properties.values():
            of_field.pop("default", None)
        of_type["required"] = list(properties)
    return msgspec.json.format(msgspec.json.encode({"$schema": _DIALECT, **made}), indent=2) + b"\n"


def _found(type_: type, name: str) -> type:
    """The type of this name in the module that the outermost one is from."""
    found: type = getattr(inspect.getmodule(type_), name)
    return found


def _descriptions(type_: type) -> dict[str, str]:
    """The docstring below each field, its own and those that it inherits."""
    described: dict[str, str] = {}
    for one in reversed(type_.__mro__[:-1]):
        if one.__module__ == type_.__module__:
            body = ast.parse(inspect.getsource(one)).body[0]
            assert isinstance(body, ast.ClassDef)
            described |= _in(body.body)
    return described


def _in(body: list[ast.stmt]) -> dict[str, str]:
    described = {}
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                described[name] = inspect.cleandoc(text).replace("\n", " ")
    return described
