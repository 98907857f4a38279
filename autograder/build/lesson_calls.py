"""Where the code of a text calls what the check has besides `check`: `guess`, `hint` and the rest of `LATER`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .set_up_cell import LATER


@dataclass(frozen=True)
class LessonCall:
    """One call: `guess("most_alike", ...)`."""

    function: str
    name: str
    """What stands first in it, if that is a string."""
    is_open: bool
    """Whether `...` stands where a guess belongs, or nothing."""


def called_in(code: str) -> Iterator[LessonCall]:
    """The calls in a cell's code, of which lines for IPython are left out; none where the rest is not Python."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in code.splitlines()]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except SyntaxError:
        return
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=function), args=args) if function in LATER:
                name = args[0].value if args and isinstance(args[0], ast.Constant) else ""
                is_open = all(isinstance(one, ast.Constant) and one.value is ... for one in args[1:])
                yield LessonCall(function, name if isinstance(name, str) else "", is_open)
