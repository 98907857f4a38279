"""A student's notebook in the sandbox: runs its cells, passes calls on, and starts a new worker where one was lost.

A hang or a crash costs what hung or crashed alone: the next request forks a fresh worker and runs the notebook's
cells again, without the one that did not come back.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import msgspec

from ..core.bench import Operation
from ..core.operations import MeasureCost, TimedCall
from ..core.packing import ProtocolError, Tensors
from ..core.wrong_function import PackedFunction
from ..course.notebook import MAX_CHARACTERS, CodeCell
from ..report import CellReport
from ..sandbox.client import Response, Worker
from ..sandbox.failures import Crashed, SandboxLost, TimedOut
from ..sandbox.fork_server import ForkServer
from ..sandbox.worker.request_loop import COMPILER
from .allowance import Allowance
from .answer import MAX_NAME, MAX_NAMES, Answer, given
from .asked_before import Asked, packed
from .budget import Budget, OutOfBudget, Patience

MAX_PRINTED = 10_100
"""Characters of a cell's output, with the note that there was more."""

_IN_HASTE = "It did not come back in the little time that was left: the rest of the notebook had used up the other."

_MEASURED = 3
"""Factor for the CPU time of a measured call. To count many small steps takes far longer than to run them."""

_QUICK_SECONDS = 0.5
"""A cell that takes longer is not run again in a worker for one exercise."""

T = TypeVar("T")


class Change(NamedTuple):
    """A global name with another value at the end than at a check."""

    name: str
    cell: str
    """The last cell that changed it."""


class SandboxedNotebook:
    """One submission's code as a backend for `Student`. Close it when the submission is marked."""

    def __init__(
        self,
        parent: ForkServer,
        cells: Sequence[CodeCell],
        device: str,
        *,
        exercises: Sequence[str],
        wrong: Mapping[str, PackedFunction] | None = None,
        spare_memory: int = 0,
        call_seconds: int = 0,
        budget: Budget | None = None,
        skipped: Collection[int] = (),
    ) -> None:
        """exercises: the names of those that will be examined. wrong: the functions that hunts are for, by name.

        spare_memory, call_seconds: see `backend.Separable`. budget: instead of one of its own. skipped: the numbers of
        cells that are not run.
        """
        self._parent = parent
        self._cells = cells
        self._device = device
        self._wrong = wrong or {}
        self._limits = parent.limits
        self._worker: Worker | None = None
        self._budget = budget or Budget(self._limits, exercises)
        self._spare_memory = spare_memory
        self._call_seconds = call_seconds
        self._skipped = skipped
        self._is_late = False
        """True if a call with large inputs took too long, so that no other is tried."""
        self._last: tuple[Asked, Response] | None = None
        """The last call with little memory and its answer, which serves all tests with that call."""
        self._apart: dict[int, SandboxedNotebook] = {}
        """The same code in other workers, by their spare memory."""
        self._allowance = Allowance()
        self._outcomes: dict[int, CellReport] = {}
        self._took: dict[int, float] = {}
        self._begins = True
        """True if the next request is the first one of an exercise, or the first to a worker."""
        self._as_checked: str | None = None
        self._is_renewed = False
        self._has_changes = False
        """True if any cell changed a name that an answer above it reaches."""

    def run_cells(self) -> list[CellReport]:
        """Run the notebook from top to bottom and return a report of each cell."""
        try:
            while self._worker is None:
                self._restart()
        except OutOfBudget:
            pass
        for number, cell in enumerate(self._cells):
            lost = CellReport(
                cell.name, "timeout", "Not run: what came before it used up the time that a notebook has.", ""
            )
            self._outcomes.setdefault(number, lost)
        return [self._outcomes[number] for number in range(len(self._cells))]

    def begin_exercise(self, as_checked: str | None = None) -> None:
        """Start the next exercise: later requests belong to it and have its full budget.

        as_checked: the exercise whose check cell determines the state of the namespace; None for the final state.
        """
        self._budget.begin_exercise()
        self._allowance.renew()
        self._begins = True
        self._as_checked = as_checked
        self._close_apart()

    def apart(self, spare_memory: int, cpu_seconds: int) -> "SandboxedNotebook":
        """The same code in a worker of its own: see `backend.Separable`.

        Cells that only show, take long or did not come back are not run there.
        """
        if spare_memory not in self._apart or self._apart[spare_memory].is_lost:
            code = self._apart[spare_memory] = SandboxedNotebook(
                self._parent,
                self._cells,
                "cpu",
                exercises=(),
                wrong=self._wrong,
                spare_memory=spare_memory,
                call_seconds=cpu_seconds,
                budget=self._budget.apart(),
                skipped={number for number, cell in enumerate(self._cells) if not self._is_quick(number, cell)},
            )
            code._as_checked = self._as_checked
        return self._apart[spare_memory]

    @property
    def is_lost(self) -> bool:
        """Return whether a worker was lost. One that took too long does not count, because another would, too."""
        return self._worker is None and bool(self._outcomes) and not self._is_late

    def _is_quick(self, number: int, cell: CodeCell) -> bool:
        """Return whether a cell finished, and either was quick or may define names that answers use."""
        ran = self._outcomes[number].status in ("ran", "failed")
        return ran and (self._took.get(number, 0.0) < _QUICK_SECONDS or bool(cell.definitions) or self._names(cell))

    def _names(self, cell: CodeCell) -> bool:
        return any(other.exercise in cell.names for other in self._cells if other.exercise)

    def _close_apart(self) -> None:
        for code in self._apart.values():
            code.close()
        self._apart.clear()

    def changes_after_check(self, exercise: str) -> list[Change]:
        """Return the names that the answer to an exercise reaches and that later cells changed.

        Raises StudentFault, TimedOut, Crashed, SandboxLost or OutOfBudget.
        """
        if not self._has_changes:
            return []
        while self._worker is None:
            self._restart()
        asked = Asked({"operation": "changes", "exercise": exercise}, b"")
        answer, _ = self._read(self._exchange(asked, self._patience(self._limits.call_cpu_seconds)))
        return [Change(name[:MAX_NAME], cell[:MAX_NAME]) for name, cell in answer.changes[:MAX_NAMES]]

    @property
    def is_in_haste(self) -> bool:
        """Return whether the notebook's time is so nearly used up that only necessary work is done."""
        return self._budget.in_haste

    def renew(self) -> None:
        """End the worker; the next request gets another, in which nothing is known of the requests so far.

        It counts as no restart.
        """
        self.close()
        self._is_renewed = True

    def close(self) -> None:
        """Ends the worker, if one is running."""
        self._close_apart()
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def ask(self, operation: Operation[T]) -> T:
        """What the student's code gives; nonsense from the untrusted side is a crash, and ends the worker."""
        return self.read(operation, self.exchange(packed(operation)))

    def exchange(self, asked: Asked) -> Response:
        """Sends what is asked of the student's code; what came, not yet read."""
        self._allowance.check()
        if self._is_late:
            raise TimedOut
        if self._last and self._last[0] == asked:
            return self._last[1]
        while self._worker is None:
            self._restart()
        sent = asked
        if self._begins:
            self._begins = False
            sent = Asked({**asked.header, "begins": True, "as_checked": self._as_checked}, asked.payload)
        is_timed = asked.header["operation"] == TimedCall.tag
        if not self._spare_memory:
            times = _MEASURED if asked.header["operation"] == MeasureCost.tag else 1
            return self._exchange(sent, self._patience(times * self._limits.call_cpu_seconds), is_timed=is_timed)
        answered = self._exchange(sent, self._patience(self._call_seconds), is_timed=is_timed)
        self._last = asked, answered
        return answered

    def read(self, operation: Operation[T], answered: Response) -> T:
        """What the operation gives by an answer, whether or not its worker is still there."""
        answer, payload = self._read(answered)
        if answer.fault:
            if self._spare_memory:
                self.close()  # because its heap may take all the memory that the next call needs
            elif answer.device_lost:
                self.renew()  # no fault of the next call's; time is the limit for how often
            raise answer.fault.raised(self._limits)
        with self._crashed_if_unreadable():
            return given(operation, answer, payload, answered.cpu_seconds)

    def _restart(self) -> None:
        """Forks a worker and runs the cells that are not known to hang or crash; leaves no worker where one does."""
        if not self._is_renewed:
            self._budget.restart()
        self._is_renewed = False
        imports = [name for cell in self._cells for name in cell.imported_modules] if self._spare_memory else []
        if any("compile" in cell.names for cell in self._cells if imports):
            imports.append(COMPILER)
        self._worker = self._parent.fork(self._device, self._wrong, spare_memory=self._spare_memory, imports=imports)
        self._begins = True
        checked: list[str] = []
        for number, cell in enumerate(self._cells):
            checked += cell.checked
            patience = self._patience(self._limits.cell_cpu_seconds, with_cell=True)
            before = self._outcomes.get(number)
            if number in self._skipped or (before and before.status in ("timeout", "crashed")):
                continue
            if not self._budget.is_worth(cell, self._took.get(number)):
                continue
            started = time.monotonic()
            self._outcomes[number] = self._run_cell(cell, checked, patience)
            if self._worker is None:
                return
            if len(cell.source) <= MAX_CHARACTERS:  # else it was not sent
                checked = []
            self._took[number] = time.monotonic() - started

    def _patience(self, cpu_seconds: int, *, with_cell: bool = False) -> Patience:
        try:
            return self._budget.patience(cpu_seconds, with_cell=with_cell)
        except OutOfBudget:
            self.close()
            raise

    def _run_cell(self, cell: CodeCell, checked: Sequence[str], patience: Patience) -> CellReport:
        """checked: the exercises whose check cells come after the last cell that ran."""
        if len(cell.source) > MAX_CHARACTERS:
            message = f"The cell has {len(cell.source)} characters, more than {MAX_CHARACTERS}; it was not run."
            return CellReport(cell.name, "failed", message, "")
        header = {
            "operation": "cell",
            "cell": cell.name,
            "source": cell.source,
            "only_shows": cell.only_shows,
            "checked": checked,
        }
        try:
            answer, _ = self._read(self._exchange(Asked(header, b""), patience))
            if answer.fault and answer.device_lost:
                self.close()
                raise Crashed(f"{answer.fault.raised(self._limits)} After that the GPU computed nothing more.")
        except TimedOut as loss:
            seconds = self._limits.cell_cpu_seconds
            message = str(loss) or (
                f"It did not finish in {seconds} seconds of computing, or {seconds * self._limits.wall_factor} of "
                "waiting. Does a loop in it never end?"
            )
            return CellReport(cell.name, "timeout", message, "")
        except Crashed as loss:
            message = (
                f"{loss} It was ended there, so neither it nor anything after it in that run could be used."
                if str(loss)
                else "This cell ended Python itself, so it and nothing after it in that run could be used."
            )
            return CellReport(cell.name, "crashed", message, "")
        self._has_changes |= answer.has_changes
        if answer.fault:
            return CellReport(cell.name, "failed", str(answer.fault.raised(self._limits)), answer.printed[:MAX_PRINTED])
        return CellReport(cell.name, "set_aside" if cell.only_shows else "ran", "", answer.printed[:MAX_PRINTED])

    def _exchange(self, asked: Asked, patience: Patience, *, is_timed: bool = False) -> Response:
        worker = self._worker
        assert worker is not None
        try:
            answered = worker.exchange(
                asked.header,
                asked.payload,
                cpu_seconds=patience.cpu_seconds,
                wall_seconds=patience.wall_seconds,
                idle_seconds=patience.idle_seconds,
                is_timed=is_timed,
            )
        except TimedOut as loss:
            self._worker = None
            self._is_late = bool(self._spare_memory) and asked.header["operation"] != "cell"
            raise (TimedOut(_IN_HASTE) if self._budget.in_haste and not str(loss) else loss) from None
        except (Crashed, SandboxLost):
            self._worker = None
            raise
        finally:
            self._budget.forgive(worker.queued)
        self._allowance.take(len(answered.frame.payload))
        return answered

    def _read(self, answered: Response) -> tuple[Answer, Tensors]:
        with self._crashed_if_unreadable():
            return answered.read(Answer)

    @contextmanager
    def _crashed_if_unreadable(self) -> Iterator[None]:
        try:
            yield
        except (ProtocolError, msgspec.ValidationError, TypeError, ValueError):
            self.close()
            raise Crashed("What came back from it could not be read.") from None
