"""The student check in a notebook: write the guarded import of its functions, and find the calls of them.

If the check's files are missing, the guarded import fetches them, or raises an error that says what to do.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..student_check.unit_data import data_file, zip_file

LESSON_FUNCTIONS = ("buggy", "draw", "example", "explain", "guess", "hint", "show")
"""Functions of the student check, besides `check`, that a notebook calls."""

_TEMPLATES = Path(__file__).parent / "templates"


def guarded(code: str, module: str, address: str, later: Sequence[str] = ()) -> str:
    """Return a cell's code with its import of the student check replaced by a guarded one.

    module: name of the check's module. address: URL of the folder from which the unit's files are fetched, ending in
    the unit's name; empty to fetch none. later: functions to import even if the code does not import them.
    """
    template = _template("import_or_fetch" if address else "import_or_stop")
    unit = address.rpartition("/")[2]
    files = [data_file(unit), zip_file(module), f"{module}.py"]  # the check last

    def written(found: re.Match[str]) -> str:
        names = [name.strip(" ()") for name in found[1].partition("#")[0].split(",")]
        names += [name for name in later if name not in names]
        imported = f"from {module} import {', '.join(names)}"
        listed = "\n".join(f'            "{name}",' for name in files)
        return template.format(imported=imported, module=module, address=address, files=listed)

    return re.sub(rf"^from {module} import (.+)$", written, code, flags=re.M)


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text().removesuffix("\n")


@dataclass(frozen=True)
class LessonCall:
    """A call of one of the functions in `LESSON_FUNCTIONS`, such as `guess("most_alike", ...)`."""

    function: str
    name: str
    """The first argument; empty unless it is a string."""
    is_open: bool
    """True if each further argument is `...`, or if there are no further arguments."""


def called_in(code: str) -> Iterator[LessonCall]:
    """Yield the calls of functions in `LESSON_FUNCTIONS` in a cell's code, except in IPython's `%` and `!` lines.

    Yields nothing if the code is not valid Python.
    """
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in code.splitlines()]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except SyntaxError:
        return
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=function), args=args) if function in LESSON_FUNCTIONS:
                name = args[0].value if args and isinstance(args[0], ast.Constant) else ""
                is_open = all(isinstance(one, ast.Constant) and one.value is ... for one in args[1:])
                yield LessonCall(function, name if isinstance(name, str) else "", is_open)
