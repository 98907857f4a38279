"""Run a notebook's cells as Jupyter would, but without a kernel: in an IPython shell that prints and stores nothing.

When an exercise's check cell has run, the notebook's namespace is copied, because a later cell may change it: `nn = 5`,
`%reset -f`. Functions look up their global names in the namespace itself, so the copy's contents are put back there
before the exercise is tested.
"""

import atexit
import contextlib
import dis
import io
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from IPython.core.async_helpers import get_asyncio_loop
from IPython.core.compilerop import CachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell

from ...core.constructed_answers import PackedFunction, unpacked_function
from ...core.observation import CELL_PREFIX, Raised, raised
from .cell_source import DEBUGGERS, RUNNING, WRITING, DeferredCells, compiles, needs_python_3_12
from .global_state import FreshState, Nowhere, forget_absent_devices

_ABSENT = object()
_MOST_THINGS = 2_000
"""Most functions, classes and other parts of an answer that are inspected, including what it calls.

Real answers have far fewer.
"""
_NOTEBOOK = "__main__"
_HOLDERS: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    partial: ("func",),
    type(cache(str)): ("__wrapped__",),
}
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})

Names = dict[str, Any]
MAX_OUTPUT = 10_000
_VERSION = "{}.{}".format(*sys.version_info)
_TIMEIT_OPTIONS = re.compile(r"\s*(?:-(?:[nrpv]\s*\d+|[tcqo]+)\s+)*")
HistoryManager.enabled = False  # it would start a thread and write a file


class Snapshots:
    """Copies of a notebook's namespace, and the cells that later changed names used by an answer."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._copies: dict[str, Names] = {}
        self._end: Names | None = None
        self._watched: Names = {}
        self._changed_by: dict[str, str] = {}

    @property
    def has_changes(self) -> bool:
        """Return whether any cell changed a name that an answer in an earlier cell uses."""
        return bool(self._changed_by)

    def take(self, exercises: Sequence[str]) -> None:
        """Copy the namespace just after the check cells of these exercises have run."""
        copy = dict(self._names)
        for exercise in exercises:
            self._copies[exercise] = copy
            for name in _reached(exercise, copy, lambda code: code.co_names):  # attributes included, which is quick
                self._watched.setdefault(name, copy.get(name, _ABSENT))

    def note_changes(self, cell: str) -> None:
        """Record the names that a cell, which has just run, has rebound or deleted."""
        for name, value in self._watched.items():
            now = self._names.get(name, _ABSENT)
            if now is not value:
                self._watched[name] = now
                self._changed_by[name] = cell

    def put_back(self, exercise: str | None) -> None:
        """Restore the namespace as it was at the exercise's check cell; without one, as at the notebook's end."""
        if self._end is None:
            self._end = dict(self._names)
        contents = self._end if exercise is None else self._copies.get(exercise, self._end)
        for name in self._names.keys() - contents.keys():
            del self._names[name]
        self._names.update(contents)

    def changes(self, exercise: str) -> list[tuple[str, str]]:
        """Return the names that the answer uses and whose value at its check cell differs from that at the end.

        Each name comes with the cell that changed it.
        """
        copy = self._copies.get(exercise)
        if copy is None:
            return []
        end = self._names if self._end is None else self._end
        reached = sorted(_reached(exercise, copy, _global_names))
        different = [name for name in reached if copy.get(name, _ABSENT) is not end.get(name, _ABSENT)]
        return [(name, self._changed_by.get(name, "")) for name in different]


def _reached(start: str, names: Names, names_in: Callable[[CodeType], Iterable[str]]) -> set[str]:
    """Return the global names that a function or class uses, directly or through others that the notebook defines.

    start: its name. names: the namespace. names_in: returns the names in a code object.
    """
    reached, waiting, seen = {start}, [start], set[int]()
    while waiting and len(seen) < _MOST_THINGS:
        for code in _codes(names.get(waiting.pop()), seen):
            new = set(names_in(code)) - reached
            reached |= new
            waiting += new
    return reached


def _codes(thing: Any, seen: set[int]) -> Iterator[CodeType]:
    """Yield the code objects of a function, class or instance of the notebook, and of its parts.

    seen: the ids of objects already inspected, which are left out; the new ones are added.
    """
    things = [thing]
    while things and len(seen) < _MOST_THINGS:
        thing = things.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing) is CodeType:
            yield thing
        try:
            things += _parts(thing)
        except Exception:  # a class may answer strangely when it is inspected
            continue


def _parts(thing: Any) -> list[Any]:
    """Return the objects that run when an object defined in the notebook is called; other objects have none."""
    kind = type(thing)
    if kind is CodeType:
        return [constant for constant in thing.co_consts if type(constant) is CodeType]
    if kind is FunctionType:
        if thing.__module__ != _NOTEBOOK:  # or its decorator copied another function's name
            return [getattr(thing, "__wrapped__", None)]
        return [thing.__code__, *(cell.cell_contents for cell in thing.__closure__ or ())]
    if kind in _HOLDERS:
        return [getattr(thing, part) for part in _HOLDERS[kind]]
    if issubclass(kind, type):
        return [*vars(thing).values(), *thing.__bases__] if thing.__module__ == _NOTEBOOK else []
    return [kind] if kind.__module__ == _NOTEBOOK else []


def _global_names(code: CodeType) -> Iterable[str]:
    """Return the global names that the code reads."""
    return [step.argval for step in dis.get_instructions(code) if step.opname in _READS]


class _CellCompiler(CachingCompiler):
    """IPython's compiler, except that the file name of a cell's code is the cell's name, for messages about errors."""

    cell = ""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return CELL_PREFIX + self.cell


def is_plain(cell: str) -> bool:
    """Return whether a cell is plain Python, which IPython would leave unchanged after inspecting each token."""
    is_pasted_or_completed = "In [" in cell or "\n" not in cell.strip()
    return not is_pasted_or_completed and compiles(cell)


class NotebookShell(InteractiveShell):
    """IPython without a terminal, a history or a printed traceback."""

    def __init__(self) -> None:
        super().__init__(compiler_class=_CellCompiler)
        self.db: dict[str, Any] = {}  # instead of a folder in which sessions store names
        self._usual_transforms = self._transforms()

    def _transforms(self) -> list[Any]:
        manager = self.input_transformer_manager
        return [
            *manager.cleanup_transforms,
            *manager.line_transforms,
            *manager.token_transformers,
            *self.input_transformers_post,
        ]

    def transform_cell(self, raw_cell: str) -> str:
        """Turn a cell into plain Python as IPython does, but keep empty lines at its top, so that line numbers hold."""
        if is_plain(raw_cell) and self._transforms() == self._usual_transforms:
            return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        above = raw_cell[: len(raw_cell) - len(raw_cell.lstrip())].count("\n")
        return "\n" * above + str(super().transform_cell(raw_cell))

    def ask_exit(self) -> None:
        """Ignore `exit()` in a cell."""

    def system(self, cmd: str) -> None:
        """Ignore `!pip install` and other commands: a worker runs no other program, and no exercise needs one."""
        print("[shell commands are not run here]")

    system_raw = system_piped = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Return empty output for commands such as `files = !ls`."""
        return [] if split else ""

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run a line magic; if it is unknown or fails, the rest of its cell still runs."""
        if magic_name in DEBUGGERS:
            return None
        try:
            if magic_name == "timeit":  # run only once, to save time
                return exec(self.transform_cell(_TIMEIT_OPTIONS.sub("", line, count=1)), self.user_ns)
            return super().run_line_magic(magic_name, line, _stack_depth=_stack_depth + 1)
        except Exception:
            print(f"[%{magic_name} did not work here]")
            return None

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """Run the cell below a magic of `RUNNING` (with `%%timeit`, once), or write it with `%%writefile`.

        Below any other magic, the cell is not run.
        """
        if magic_name in (*DEBUGGERS, "timeit"):
            statement = _TIMEIT_OPTIONS.sub("", line + "\n", count=1) if magic_name == "timeit" else line
            return exec(self.transform_cell(f"{statement}\n{cell}"), self.user_ns)
        if magic_name not in (*RUNNING, WRITING):
            print(f"[%%{magic_name} is not run here]")
            return None
        return super().run_cell_magic(magic_name, line, cell)

    def enable_gui(self, gui: str | None = None) -> None:
        """Start no event loop for `%matplotlib inline`."""

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        """Print nothing: the error is reported as data, and printing a traceback takes longer than most cells."""

    def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
        """Print nothing, like `showtraceback`."""


class CappedText(Nowhere):
    """A stream that keeps only the first `MAX_OUTPUT` characters, so that endless output does not fill the memory."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._room = MAX_OUTPUT

    def write(self, text: str) -> int:
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def text(self) -> str:
        """Return the text, with a note if there was more."""
        return "".join(self._parts) + ("\n[the rest of the output is left out]" if self._room < 0 else "")


class CellOutcome(NamedTuple):
    """The printed output of one cell, and its error or None."""

    printed: str
    error: Raised | None


class Notebook:
    """The namespace in which a notebook's cells run one after another."""

    def __init__(self, check: str) -> None:
        """Create an empty namespace.

        check: name of the module from which notebooks import the student check; its functions do nothing in a worker.
        """
        stub = types.ModuleType(check)
        for name in ("check", "draw", "explain", "guess", "hint", "show"):
            stub.__dict__[name] = lambda *args, **kwargs: None
        stub.__dict__["example"] = lambda *args, **kwargs: ((), None)
        stub.__dict__["buggy"] = self._buggy
        sys.modules[check] = stub
        self._shell = NotebookShell.instance()
        atexit.unregister(self._shell.atexit_operations)  # there is no history to save
        self._names: dict[str, Any] = self._shell.user_ns
        self.snapshots = Snapshots(self._names)
        self._deferred = DeferredCells(self._run)
        self._wrong: Mapping[str, PackedFunction] = {}

    def settle(self, device: torch.device, wrong: Mapping[str, PackedFunction] | None = None) -> None:
        """Prepare the worker's process: create the event loop for `await` in cells, and reset the global switches.

        device: for the exercises' tensors. wrong: the functions that `buggy` returns, by name.
        """
        get_asyncio_loop()
        self._wrong = wrong or {}
        self._fresh_state = FreshState(device)
        self._fresh_state.reset()

    def begin_exercise(self, as_checked: str | None) -> None:
        """Restore the global switches and the namespace that cells may have changed, before an exercise's first call.

        as_checked: restore the namespace as it was at this exercise's check cell; if None, as at the notebook's end.
        """
        self._fresh_state.reset()
        self.snapshots.put_back(as_checked)

    def _buggy(self, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return a wrong function by name, for counterexample exercises; a function that does nothing if unknown."""
        function = self._wrong.get(name) if isinstance(name, str) else None
        return unpacked_function(name, function) if function else lambda *args, **kwargs: None

    @property
    def names(self) -> dict[str, Any]:
        """The namespace of the cells."""
        return self._names

    def run(self, cell: str, source: str) -> CellOutcome:
        """Run one cell; an exception is part of the outcome, as it is in Jupyter."""
        if not source.strip(" \t\n"):
            return CellOutcome("", None)  # IPython is slow with empty lines
        self._deferred.run_before(source, self._shell.transform_cell)
        return self._run(cell, source)

    def defer(self, cell: str, source: str) -> None:
        """Run a cell of the course that only displays something, but not before another cell uses a name it defines."""
        self._deferred.defer(cell, source)

    def _run(self, cell: str, source: str) -> CellOutcome:
        self._shell.compile.cell = cell
        self._shell.user_ns = self._names  # a cell may have replaced it
        printed = CappedText()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            result = self._shell.run_cell(source, store_history=False)
            forget_absent_devices()
        self.snapshots.note_changes(cell)
        error = result.error_before_exec or result.error_in_exec
        return CellOutcome(printed.text(), self._fault(error, source) if error else None)

    def _fault(self, error: BaseException, source: str) -> Raised:
        fault = raised(error)
        if not isinstance(error, SyntaxError) or not needs_python_3_12(self._as_python(source)):
            return fault
        needs = f"Its syntax needs Python 3.12, and grading runs Python {_VERSION}"
        return Raised(fault.type_name, f"{fault.message}. {needs}", fault.place, fault.kinds)

    def _as_python(self, source: str) -> str:
        with contextlib.suppress(SyntaxError):
            source = self._shell.transform_cell(source)
        return source
