"""Find a cell's magic, the names it uses, and whether it needs Python 3.12, from its text and without running it."""

import ast
import dis
import re
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

RUNNING = ("time", "timeit", "capture", "prun", "debug", "pdb")
"""Cell magics of which a worker runs the cell."""
WRITING = "writefile"
"""Cell magic that writes its cell into a file, as in Jupyter."""
DEBUGGERS = ("debug", "pdb")
"""Cell magics that run their cell without the debugger, because nobody is there to use it."""
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")

_ANY_NAME = {"globals", "locals", "vars", "dir", "exec", "eval", "get_ipython", "__import__", "sys"}
"""Names with which code can reach any global name."""
_READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_CLASSDEREF"}

_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_STRING = re.compile(r"(?<!\w)([A-Za-z]{0,2})('''|\"{3}|'|\")")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def unsupported_magic(cell: str) -> str:
    """Return the name of the cell magic that keeps a worker from running a cell; empty if the cell is run."""
    magic = _CELL_MAGIC.match(cell)
    return magic[1] if magic and magic[1] not in RUNNING else ""


def compiles(text: str, mode: str = "exec") -> bool:
    """Return whether the running version of Python can parse a text. mode: as in `compile`."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "", mode, _FLAGS, dont_inherit=True)
    except Exception:
        return False
    return True


class DeferredCells:
    """Cells that only display results of others, such as plots. Such a cell runs only if another cell needs its names.

    They earn no points, but take most of the time to run a notebook.
    """

    def __init__(self, run: Callable[[str, str], Any]) -> None:
        """Begin without deferred cells. run: runs a cell, given its name and text."""
        self._run = run
        self._waiting: list[tuple[str, str, set[str]]] = []
        self._used: set[str] = set()

    def defer(self, cell: str, source: str) -> None:
        """Defer a cell, unless a cell that has run already uses a name that this one defines."""
        self._waiting.append((cell, source, _defined_names(source)))
        self._run_needed()

    def run_before(self, source: str, as_python: Callable[[str], str]) -> None:
        """Run all deferred cells if the cell that runs next uses a name that one of them defines.

        source: the text of that cell. as_python: turns a cell with magics into plain Python.
        """
        self._used |= _used_names(source, as_python)
        self._run_needed()

    def _run_needed(self) -> None:
        if self._used & _ANY_NAME or any(names & self._used for _, _, names in self._waiting):
            waiting, self._waiting = self._waiting, []
            for cell, source, _ in waiting:
                self._run(cell, source)


def _defined_names(source: str) -> set[str]:
    """Return the names that a cell of the course defines."""
    nodes = list(ast.walk(ast.parse(source)))
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return assigned | defined | imported


def _used_names(source: str, as_python: Callable[[str], str]) -> set[str]:
    """Return the global names that a cell uses; `_ANY_NAME` if it does not compile."""
    try:
        with warnings.catch_warnings(action="ignore"):
            code = compile(as_python(source), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except Exception:
        return _ANY_NAME
    names, codes = set[str](), [code]
    for code in codes:
        names.update(step.argval for step in dis.get_instructions(code) if step.opname in _READS)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return names


def needs_python_3_12(source: str) -> bool:
    """Return whether a cell fails to compile only because of f-strings that Python understands from 3.12 on.

    source: a cell that does not compile in the running version. Example: `f"{row["x"]}"` compiles from Python 3.12 on;
    rewritten as `""` it compiles in every version. If the rewritten cell compiles, nothing else was wrong with it.
    """
    try:
        return sys.version_info < (3, 12) and compiles(_Rewriting(source).strings())
    except (ValueError, IndexError, RecursionError):
        return False


class _Rewriting:
    """Rewrites a cell without f-strings, so that any version can compile it. Raises ValueError if it is not Python."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def strings(self, closing: str = "") -> str:
        """Return the code from the current position on, with empty strings instead of its f-strings.

        closing: stop at any of these characters if no bracket is open; by default at the end of the cell.
        """
        parts, brackets = list[str](), list[str]()
        while self._at < len(self._source):
            character = self._source[self._at]
            if not brackets and character in closing and not self._is_comparison(character):
                return "".join(parts)
            if character == "#":
                end = self._source.find("\n", self._at)
                self._at = len(self._source) if end < 0 else end
                continue
            if string := _STRING.match(self._source, self._at):
                parts.append(self._string(string))
                continue
            if character in _CLOSING:
                brackets.append(_CLOSING[character])
            elif brackets and character == brackets[-1]:
                brackets.pop()
            parts.append(character)
            self._at += 1
        if closing:
            raise ValueError
        return "".join(parts)

    def _is_comparison(self, character: str) -> bool:
        return character == "!" and self._source[self._at + 1 : self._at + 2] == "="

    def _string(self, string: re.Match[str]) -> str:
        prefix, quotes = string[1].lower(), string[2]
        begins, self._at = self._at, string.end()
        is_formatted = "f" in prefix
        while not self._source.startswith(quotes, self._at):
            character = self._source[self._at]
            if is_formatted and character in "{}":
                if self._source[self._at + 1] == character:
                    self._at += 2
                elif character == "{":
                    self._field()
                else:
                    raise ValueError
            else:
                self._at += 2 if character == "\\" else 1
        self._at += len(quotes)
        return '""' if is_formatted else self._source[begins : self._at]

    def _field(self) -> None:
        """Skip a field of an f-string, such as `{value!r:>{width}}`; raises ValueError if its values are not Python."""
        self._at += 1
        value = self.strings("!:}=").strip()
        while self._source[self._at] == "=":  # in `==`, in `<=` or for debugging
            following = self._source[self._at + 1]
            if following in "}!: " and self._source[self._at - 1] not in "<>!=":
                self._at += 1
                value += self.strings("!:}").strip()
                break
            value += "="
            self._at += 1
            value += self.strings("!:}=")
        if not value or not compiles(f"({value})", "eval"):
            raise ValueError
        if self._source[self._at] == "!":
            self._at += 2
        if self._source[self._at] == ":":
            self._at += 1
            while self._source[self._at] != "}":
                if self._source[self._at] == "{":
                    self._field()
                else:
                    self._at += 1
        if self._source[self._at] != "}":
            raise ValueError
        self._at += 1
