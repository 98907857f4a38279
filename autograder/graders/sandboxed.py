"""A student's notebook in the sandbox: run its cells, execute operations on their names, and replace lost workers.

If a cell or a call hangs or crashes, only its own result is lost. The next request forks a new worker, and runs the
notebook's cells again except those that did not finish.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

import msgspec

from ..core.bench import Operation
from ..core.constructed_answers import PackedFunction
from ..core.operations import MeasureCost, TimedCall
from ..core.packing import ProtocolError, Tensors
from ..course.notebook import MAX_CHARACTERS, CodeCell
from ..report import CellReport
from ..sandbox.client import Crashed, Response, SandboxLost, TimedOut, Worker
from ..sandbox.fork_server import ForkServer
from ..sandbox.worker.request_loop import COMPILER
from .backend import Request
from .budget import QUICK_SECONDS, Budget, OutOfBudget, Patience, ResponseBudget
from .decoding import MAX_NAME, MAX_NAMES, Answer, decode

MAX_PRINTED = 10_100
"""Most characters of a cell's printed output, with the note that there was more."""

_OUT_OF_TIME = "Not run: earlier cells and tests used up the time for this notebook."
_IN_HASTE = "The call did not return in the time that was left: the rest of the notebook had used up most of it."
_MEASURED = 3
"""Factor for the CPU limit of a call whose cost is counted, because counting takes longer than running."""

T = TypeVar("T")


class Change(NamedTuple):
    """A global name whose value at the notebook's end differs from that at an exercise's check cell."""

    name: str
    cell: str
    """Name of the last cell that changed the value."""


class SandboxedNotebook:
    """One submission's code in the sandbox, as a backend for `StudentProxy`. Call `close` after grading."""

    def __init__(
        self,
        fork_server: ForkServer,
        cells: Sequence[CodeCell],
        device: str,
        *,
        exercises: Sequence[str],
        wrong: Mapping[str, PackedFunction] | None = None,
        spare_memory: int = 0,
        call_seconds: int = 0,
        budget: Budget | None = None,
        skipped: Collection[int] = (),
        finished: Collection[int] = (),
        is_alone: bool = False,
    ) -> None:
        """Prepare for the cells of a submission; the first request forks a worker.

        exercises: names of those that will be tested. wrong: the wrong functions of counterexample exercises, by name.
        spare_memory, call_seconds: see `backend.Separable`. budget: by default a new one. skipped: positions of cells
        that are not run. finished: positions of cells that ran to their end in another worker. is_alone: `apart`
        returns None, because another worker would lack the edits of a trial.
        """
        self._fork_server = fork_server
        self._cells = cells
        self._device = device
        self._wrong = wrong or {}
        self._limits = fork_server.limits
        self._worker: Worker | None = None
        self._budget = budget or Budget(self._limits, exercises)
        self._responses = ResponseBudget()
        self._spare_memory = spare_memory
        self._call_seconds = call_seconds
        self._skipped = skipped
        self._finished = set(finished)
        """Positions of the cells that ran to their end at least once."""
        self._stops: Counter[int] = Counter()
        """Number of workers that each cell has stopped, by its position."""
        self._is_alone = is_alone
        self._is_late = False
        """True if a call with large inputs took too long, so that no other such call is made."""
        self._last: tuple[Request, Response] | None = None
        """The last call with limited memory and its answer, which is reused by other tests with the same call."""
        self._apart: dict[tuple[int, int], SandboxedNotebook] = {}
        """The same code in other workers, by spare memory in bytes and limit in CPU seconds."""
        self._reports: dict[int, CellReport] = {}
        self._seconds: dict[int, float] = {}
        """The seconds that each cell took, by its position."""
        self._begins = True
        """True if the next request is the first one for an exercise, or the first one to a new worker."""
        self._as_checked: str | None = None
        self._is_renewed = False
        self._has_changes = False
        """True if any cell changed a name that an answer in an earlier cell uses."""

    def run_cells(self) -> list[CellReport]:
        """Run the notebook from top to bottom and return a report on each cell."""
        with suppress(OutOfBudget):
            self._ensure_worker()
        return [
            self._reports.setdefault(position, CellReport(cell.name, "timeout", _OUT_OF_TIME, ""))
            for position, cell in enumerate(self._cells)
        ]

    def begin_exercise(self, as_checked: str | None = None) -> None:
        """Begin with the next exercise: later requests belong to it, with full limits and restored names.

        as_checked: restore the names as they were at this exercise's check cell; None for the notebook's end.
        """
        self._budget.begin_exercise()
        self._responses.renew()
        self._begins = True
        self._as_checked = as_checked
        self._close_apart()

    def begin_trial(self) -> None:
        """Begin with the next trial of an edit, for which the full limits on answers hold again."""
        self._responses.renew()

    def apart(self, spare_memory: int, cpu_seconds: int) -> "SandboxedNotebook | None":
        """Return the same code in another worker: see `backend.Separable`.

        Cells that only display something, took long or did not finish are not run there.
        """
        if self._is_alone:
            return None
        limits = spare_memory, cpu_seconds
        if limits not in self._apart or self._apart[limits].is_lost:
            code = self._apart[limits] = SandboxedNotebook(
                self._fork_server,
                self._cells,
                "cpu",
                exercises=(),
                wrong=self._wrong,
                spare_memory=spare_memory,
                call_seconds=cpu_seconds,
                budget=self._budget.apart(),
                skipped={position for position, cell in enumerate(self._cells) if not self._is_quick(position, cell)},
                finished=self._finished,
            )
            code._as_checked = self._as_checked
        return self._apart[limits]

    @property
    def is_lost(self) -> bool:
        """True if the worker was lost, unless a call took too long, which it would in another worker, too."""
        return self._worker is None and bool(self._reports) and not self._is_late

    def _is_quick(self, position: int, cell: CodeCell) -> bool:
        """Return whether to run a cell in another worker: it finished, and was quick or may define needed names."""
        if self._reports[position].status not in ("ran", "failed"):
            return False
        names_answer = any(other.exercise in cell.names for other in self._cells if other.exercise)
        return self._seconds.get(position, 0.0) < QUICK_SECONDS or bool(cell.definitions) or names_answer

    def _close_apart(self) -> None:
        for code in self._apart.values():
            code.close()
        self._apart.clear()

    def changes_after_check(self, exercise: str) -> list[Change]:
        """Return the names that an exercise's answer uses and that cells changed after its check cell.

        Raises StudentFault, TimedOut, Crashed, SandboxLost or OutOfBudget.
        """
        if not self._has_changes:
            return []
        self._ensure_worker()
        request = Request({"operation": "changes", "exercise": exercise}, b"")
        answer, _ = self.decode(self._send(request, self._patience(self._limits.call_cpu_seconds)))
        return [Change(name[:MAX_NAME], cell[:MAX_NAME]) for name, cell in answer.changes[:MAX_NAMES]]

    @property
    def is_in_haste(self) -> bool:
        """True if half of the notebook's time is used up, so that only necessary work is done."""
        return self._budget.in_haste

    def renew(self) -> None:
        """End the worker; the next request forks another one, in which no earlier requests were made.

        This does not count as a restart.
        """
        self.close()
        self._is_renewed = True

    def close(self) -> None:
        """End the worker, if one is running."""
        self._close_apart()
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def ask(self, operation: Operation[T]) -> T:
        """Execute an operation in the worker and return its result; raises Crashed if the answer cannot be read.

        Also raises StudentFault, TimedOut, SandboxLost and OutOfBudget.
        """
        return self.read(operation, self.exchange(Request.of(operation)))

    def exchange(self, request: Request) -> Response:
        """Send a request to the worker, forking one if necessary, and return the undecoded answer."""
        self._responses.check()
        if self._is_late:
            raise TimedOut
        if self._last and self._last[0] == request:
            return self._last[1]
        self._ensure_worker()
        sent, tag = request, request.header["operation"]
        if self._begins:
            self._begins = False
            sent = Request({**request.header, "begins": True, "as_checked": self._as_checked}, request.payload)
        if self._spare_memory:
            seconds = self._call_seconds
        else:
            seconds = self._limits.call_cpu_seconds * (_MEASURED if tag == MeasureCost.tag else 1)
        response = self._send(sent, self._patience(seconds), is_timed=tag == TimedCall.tag)
        if self._spare_memory:
            self._last = request, response
        return response

    def read(self, operation: Operation[T], response: Response) -> T:
        """Decode the answer to an operation and return the operation's result. Its worker may have ended."""
        answer, payload = self.decode(response)
        if answer.fault:
            if self._spare_memory:
                self.close()  # because its heap may take all the memory that the next call needs
            elif answer.device_lost:
                self.renew()  # not the fault of the next call; time limits how often
            raise answer.fault.as_error(self._limits)
        with self._crashed_if_unreadable():
            return decode(operation, answer, payload, response.cpu_seconds)

    def _ensure_worker(self) -> None:
        """If there is no worker, fork workers and run the cells until one completes them; raises OutOfBudget.

        Cells that hung or crashed before are left out: see `_is_left_out`.
        """
        while self._worker is None:
            self._restart()

    def _restart(self) -> None:
        """Fork a worker and run the cells. If one of them hangs or crashes, the worker is ended."""
        if not self._is_renewed:
            self._budget.restart()
        self._is_renewed = False
        imports = [name for cell in self._cells for name in cell.imported_modules] if self._spare_memory else []
        if any("compile" in cell.names for cell in self._cells if imports):
            imports.append(COMPILER)
        self._worker = self._fork_server.fork(
            self._device, self._wrong, spare_memory=self._spare_memory, imports=imports
        )
        self._begins = True
        checked: list[str] = []
        for position, cell in enumerate(self._cells):
            checked += cell.checked
            patience = self._patience(self._limits.cell_cpu_seconds, with_cell=True)
            if position in self._skipped or self._is_left_out(position):
                continue
            if not self._budget.is_worth(cell, self._seconds.get(position)):
                continue
            started = time.monotonic()
            self._reports[position] = self._run_cell(cell, checked, patience)
            if self._worker is None:
                self._stops[position] += 1
                return
            self._finished.add(position)
            if len(cell.source) <= MAX_CHARACTERS:  # else it was not sent
                checked = []
            self._seconds[position] = time.monotonic() - started

    def _is_left_out(self, position: int) -> bool:
        """Return whether a cell has stopped a worker; if it has also run to its end, whether it stopped two.

        One stop may be the machine's fault, and without the cell the tests that follow would miss its names.
        """
        return self._stops[position] > (position in self._finished)

    def _patience(self, cpu_seconds: int, *, with_cell: bool = False) -> Patience:
        try:
            return self._budget.patience(cpu_seconds, with_cell=with_cell)
        except OutOfBudget:
            self.close()
            raise

    def _run_cell(self, cell: CodeCell, checked: Sequence[str], patience: Patience) -> CellReport:
        """Run a cell and return a report on it. checked: exercises whose check cells follow the last cell that ran."""
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
            answer, _ = self.decode(self._send(Request(header, b""), patience))
            if answer.fault and answer.device_lost:
                self.close()
                raise Crashed(
                    f"{answer.fault.as_error(self._limits)} After this error the GPU could not be used any more."
                )
        except TimedOut as failure:
            seconds = self._limits.cell_cpu_seconds
            message = str(failure) or (
                f"The cell did not finish in {seconds} seconds of computing, or "
                f"{seconds * self._limits.wall_factor} of "
                "waiting. Does a loop in it never end?"
            )
            return CellReport(cell.name, "timeout", message, "")
        except Crashed as failure:
            message = (
                f"{failure} The cell was stopped there, so neither this cell nor any later cell of that run "
                "could be used."
                if str(failure)
                else "This cell ended Python itself, so neither it nor any later cell of that run could be used."
            )
            return CellReport(cell.name, "crashed", message, "")
        self._has_changes |= answer.has_changes
        if answer.fault:
            message = str(answer.fault.as_error(self._limits))
            return CellReport(cell.name, "failed", message, answer.printed[:MAX_PRINTED])
        return CellReport(cell.name, "set_aside" if cell.only_shows else "ran", "", answer.printed[:MAX_PRINTED])

    def _send(self, request: Request, patience: Patience, *, is_timed: bool = False) -> Response:
        worker = self._worker
        assert worker is not None
        started = time.monotonic()
        try:
            response = worker.exchange(request.header, request.payload, is_timed=is_timed, **patience)
        except (TimedOut, Crashed, SandboxLost) as failure:
            self._worker = None
            if not isinstance(failure, TimedOut):
                raise
            self._is_late = bool(self._spare_memory) and request.header["operation"] != "cell"
            raise (TimedOut(_IN_HASTE) if self._budget.in_haste and not str(failure) else failure) from None
        finally:
            # A call with large inputs may be slow and right, and so must not take the time of the tests after it.
            is_large = self._spare_memory and request.header["operation"] != "cell"
            seconds = min(time.monotonic() - started, self._call_seconds) if is_large else 0.0
            self._budget.forgive(max(worker.queued, seconds))
        self._responses.take(len(response.frame.payload))
        return response

    def decode(self, response: Response) -> tuple[Answer, Tensors]:
        """Decode a worker's answer; return its fields and its tensors. Raises Crashed if it cannot be read."""
        with self._crashed_if_unreadable():
            return response.read(Answer)

    @contextmanager
    def _crashed_if_unreadable(self) -> Iterator[None]:
        try:
            yield
        except (ProtocolError, msgspec.ValidationError, TypeError, ValueError):
            self.close()
            raise Crashed("The answer of the student's process could not be read.") from None
