"""The wrong function that a hunt is for: carried packed, and made where it is called.

So a notebook can call it, and no cell shows its lines.
"""

import base64
import importlib
import zlib
from collections.abc import Callable, Mapping
from typing import Any

PackedFunction = Mapping[str, Any]
"""`code`, packed, and `imports`: by the name that the code has for it, the module."""


def packed_function(code: str, imports: Mapping[str, str]) -> PackedFunction:
    """The function as it is released."""
    return {"code": base64.b85encode(zlib.compress(code.encode(), 9)).decode(), "imports": dict(imports)}


def unpacked_function(name: str, function: PackedFunction) -> Callable[..., Any]:
    """The function again. Its lines are in no file, so nothing that looks for source finds any."""
    scope: dict[str, Any] = {as_: importlib.import_module(module) for as_, module in function["imports"].items()}
    scope["__name__"] = f"a wrong {name}"
    code = zlib.decompress(base64.b85decode(function["code"])).decode()
    exec(compile(code, f"<a wrong {name}>", "exec"), scope)
    found: Callable[..., Any] = scope[name]
    return found
