"""JSON as the commands print it, one object a line without unprintable characters, and its JSON Schema."""

import ast
import inspect
import json
import re
from itertools import pairwise
from typing import Any

import msgspec

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_UNPRINTABLE = re.compile("[^\\x20-\\x7e]")


def json_line(value: Any) -> bytes:
    """Return a value as one JSON object on a line, with every unprintable character escaped as its number."""
    text = msgspec.json.encode(value).decode()
    return _UNPRINTABLE.sub(_escape, text).encode() + b"\n"


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def json_schema(type_: type[msgspec.Struct]) -> bytes:
    """Return the schema of a type as it is written: with every field, whether or not it may be left out when read.

    Fields are described by the docstrings below them. All types that the schema names are from the type's own module.
    """
    schema = msgspec.json.schema(type_)
    source = ast.parse(inspect.getsource(inspect.getmodule(type_)))  # type: ignore[arg-type]
    classes = {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}
    for name, definition in schema["$defs"].items():
        properties = definition["properties"]
        definition["required"] = list(properties)
        for field in properties.values():
            field.pop("default", None)
        for statement, below in pairwise(classes[name].body):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(docstring))):
                    properties[field]["description"] = inspect.cleandoc(docstring).replace("\n", " ")
    return msgspec.json.format(msgspec.json.encode({"$schema": _DIALECT, **schema}), indent=2) + b"\n"
