"""A class graded on a Dask cluster, each worker with one task at a time.

So only validated workers get tasks, and the submissions at a worker that died are known: they are sent again, each by
itself. A task may run twice, even at two workers. It changes nothing but its answer, and the coordinator takes one
answer for each submission.
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import msgspec

from .. import course
from ..classroom.assignment import Assignment
from ..classroom.hand_in import HandIn, Read
from ..classroom.marking_ahead import EACH, MarkedHandIn
from ..client.marker import MarkerRefused, in_utf8
from ..client.requests import Device, MarkNotebook, Ready
from ..course import digests
from ..course.settings import Settings
from ..report import Report, joined, without_marks
from .connection import Address, Connection, WorkerLost, connected, shortened
from .messages import Able, BadAnswer, CannotGrade, Expected, Task, Terms
from .worker import examine, grade

MOST_OF_A_TASK = 24
_DEATHS = 2
"""Number of lost workers after which a submission is blamed. One worker may be lost for another reason."""
_TASK_BYTES = 4 << 20
"""A task of this size gets no further submission."""
_BACKLOG = 48
"""While so many reports wait to be recorded, no task is sent: a class of any size takes the same memory."""
_POLL_SECONDS = 0.5
_TURN_SECONDS = 0.05
_PATIENCE_SECONDS = 30
"""Time to wait while there is no worker: Dask's nannies replace one that died."""
_MOST_NAMED = 20
_LOST = (
    "Each worker of the cluster that graded this, with nothing else to grade, ended or gave no valid answer. Please "
    "tell your instructor, who can read why in what the workers printed."
)


class WorkQueue:
    """The submissions that are neither graded nor at a worker.

    Submissions whose worker was lost come last, each alone. A submission is blamed for a lost worker only if it was
    alone with two of them.
    """

    def __init__(self, hand_ins: Sequence[HandIn]) -> None:
        self._new = deque(hand_ins)
        self._suspects: deque[HandIn] = deque()
        self._suspected: set[str] = set()
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._new) + len(self._suspects)

    def take(self, workers: int) -> list[HandIn]:
        """Return the next task, smaller as less is left for so many workers; empty if nothing is left."""
        if self._new:
            size = max(1, min(MOST_OF_A_TASK, len(self._new) // (2 * workers)))
            return [self._new.popleft() for _ in range(size)]
        return [self._suspects.popleft()] if self._suspects else []

    def put_back(self, hand_ins: Sequence[HandIn]) -> None:
        """Put back submissions that a worker did not grade, through no fault of theirs."""
        for hand_in in reversed(hand_ins):
            (self._suspects if hand_in.student in self._suspected else self._new).appendleft(hand_in)

    def worker_lost(self, hand_ins: Sequence[HandIn]) -> HandIn | None:
        """Put back the submissions at a lost worker; return the one that is to blame instead, if there is one."""
        if len(hand_ins) == 1:
            (alone,) = hand_ins
            self._deaths[alone.student] += 1
            if self._deaths[alone.student] >= _DEATHS:
                return alone
        self._suspected.update(hand_in.student for hand_in in hand_ins)
        self._suspects.extend(hand_ins)
        return None


@dataclass(eq=False)
class ClusterWorker:
    """A worker, as the run knows it."""

    address: str
    left: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[None] = field(init=False)
    able: Able | None = None
    """The worker's conditions, once they are validated."""
    graded: int = 0


class ClusterRun:
    """Reports on submissions, as workers send them. A thread speaks to the cluster."""

    def __init__(
        self,
        work: Assignment,
        hand_ins: Sequence[HandIn],
        *,
        device: Device,
        settings: Settings,
        markers: int = 0,
        scheduler: Address,
        say: Callable[[str], None],
    ) -> None:
        """hand_ins: those to grade; one without a notebook gets no report. device: auto is the CPU here, so that a
        class is graded on one kind. markers: ignored, each worker has one grading process. say: called with messages
        on workers for the instructor.
        """
        self._hand_ins = [hand_in for hand_in in hand_ins if hand_in.notebook is not None]
        self._read = work.submissions.read
        self._scheduler = scheduler
        self._say = say
        self._unit = work.unit.name
        questions = {
            name for name in course.unit(self._unit, work.root).points if not name.startswith(course.CHECK_PREFIX)
        }
        digest = digests.unit_digest(self._unit, work.root)
        self._terms = Terms(self._unit, digest, "cuda" if device == "cuda" else "cpu", settings)
        self._expected = Expected(work.unit, self._terms, frozenset(questions))
        self._queue = WorkQueue(self._hand_ins)
        self._left = len(self._hand_ins)
        self._workers: dict[str, ClusterWorker] = {}
        self._validated: list[ClusterWorker] = []
        self._results: SimpleQueue[Ready | MarkedHandIn | BaseException] = SimpleQueue()
        """First the conditions, then a report for each submission."""
        self._thread: threading.Thread | None = None
        self._connection: Connection

    def start(self) -> Ready:
        """Wait for the first worker that may grade; raises MarkerRefused."""
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._run = self._runner.get_loop().create_task(self._grade())
        self._thread = threading.Thread(target=self._in_thread, daemon=True)
        self._thread.start()
        ready: Ready = self._next_result()
        return ready

    def marked(self) -> Iterator[MarkedHandIn]:
        """Yield every submission once, as it is graded; raises MarkerRefused if no worker or scheduler is left."""
        for _ in self._hand_ins:
            yield self._next_result()

    def _next_result(self) -> Any:
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run has ended
                self._runner.get_loop().call_soon_threadsafe(self._run.cancel)
            self._thread.join()

    def _in_thread(self) -> None:
        with self._runner:
            try:
                self._runner.get_loop().run_until_complete(self._run)
            except asyncio.CancelledError:
                pass
            except BaseException as error:
                self._results.put(error)

    async def _grade(self) -> None:
        async with connected(self._scheduler) as connection:
            try:
                await self.distribute(connection)
            finally:
                for sentence in self._summary():
                    self._say(sentence)

    async def distribute(self, connection: Connection) -> None:
        """Keep the workers busy until everything is graded; raises MarkerRefused."""
        self._connection = connection
        try:
            last_busy = time.monotonic()
            while self._left:
                addresses = await connection.workers()
                self._update_workers(addresses)
                busy = self._busy()
                if busy:
                    last_busy = time.monotonic()
                    works = [worker.work for worker in busy]
                    await asyncio.wait(works, timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    continue
                if time.monotonic() - last_busy > _PATIENCE_SECONDS or (addresses and not self._validated):
                    raise MarkerRefused(
                        f"{self._scheduler.text} has no worker that can mark {self._unit}. What was recorded so far "
                        "stays; run the same command again when there is one."
                    )
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            works = [worker.work for worker in self._workers.values()]
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)

    def _busy(self) -> list[ClusterWorker]:
        return [worker for worker in self._workers.values() if not worker.work.done()]

    def _update_workers(self, addresses: dict[str, dict[str, Any]]) -> None:
        """Forget workers that have left, and begin with new ones while there is enough work for them."""
        for address, worker in list(self._workers.items()):
            if address not in addresses:
                worker.left.set()
            if worker.work.done():
                worker.work.result()  # raises what ends the run
                if worker.left.is_set():
                    del self._workers[address]
        for address, about in addresses.items():
            busy = self._busy()
            beginning = sum(worker.able is None for worker in busy)
            if address not in self._workers and len(self._queue) >= (EACH * (beginning + 1) if busy else 1):
                worker = self._workers[address] = ClusterWorker(address)
                worker.work = asyncio.create_task(self._serve(worker, about.get("resources", {})))

    async def _serve(self, worker: ClusterWorker, resources: dict[str, Any]) -> None:
        """Give one worker tasks until none is left, or it has left, or it may get none."""
        batch: list[HandIn] = []
        try:
            worker.able = await self._examine(worker, resources)
            if not self._validated:
                self._results.put(Ready(worker.able.device, worker.able.isolation, worker.able.enforced))
            self._validated.append(worker)
            while self._left:
                workers = sum(worker.able is not None for worker in self._busy())
                batch = self._queue.take(workers) if self._results.qsize() < _BACKLOG else []
                if batch:
                    batch = await self._grade_batch(worker, worker.able, batch)
                    self._queue.put_back(batch)
                else:
                    await asyncio.sleep(_TURN_SECONDS)
        except WorkerLost:
            worker.left.set()
            self._blame(worker, batch)
        except (CannotGrade, BadAnswer) as reason:
            self._say(f"{worker.address} gets no submissions: {shortened(reason)}")
            self._blame(worker, batch)

    def _blame(self, worker: ClusterWorker, batch: list[HandIn]) -> None:
        """Put back the submissions at a lost worker. One may be the cause, and must not cost the run all workers."""
        if batch and worker.able and (alone := self._queue.worker_lost(batch)):
            self._record(worker, alone, self._read(alone), without_marks("", "grader_error", _LOST, worker.able))

    async def _examine(self, worker: ClusterWorker, resources: dict[str, Any]) -> Able:
        """Return a worker's conditions; raises CannotGrade, BadAnswer and WorkerLost."""
        if not self._scheduler.is_safe(worker.address):
            raise CannotGrade("it is spoken to over plain tcp. Start it with TLS; or take --plain-tcp.")
        if self._terms.device == "cuda" and not resources.get("GPU"):
            raise CannotGrade("it offers no GPU. Start it with --resources GPU=1.")
        return self._expected.able(await self._answer(worker, examine, self._terms))

    async def _grade_batch(self, worker: ClusterWorker, able: Able, batch: list[HandIn]) -> list[HandIn]:
        """Have a worker grade these submissions; return those that it left."""
        reads: list[Read] = []
        submissions: list[MarkNotebook] = []
        size = 0
        for number, hand_in in enumerate(batch):
            reads.append(self._read(hand_in))
            file = reads[-1].file
            submissions.append(MarkNotebook(str(number), file.content, self._unit, file.digest))
            size += len(file.content) if isinstance(file.content, bytes) else 0
            if size > _TASK_BYTES:
                break
        answer = await self._answer(worker, grade, Task(self._terms, submissions))
        reports = self._expected.reports(answer, submissions, able)
        for hand_in, read, report in zip(batch, reads, reports, strict=False):
            self._record(worker, hand_in, read, report)
        return batch[len(reports) :]

    async def _answer(
        self, worker: ClusterWorker, function: Callable[[bytes], bytes], message: msgspec.Struct
    ) -> object:
        data, is_gpu = msgspec.json.encode(message), self._terms.device == "cuda"
        return await self._connection.answer(worker.address, function, data, worker.left, gpu=is_gpu)

    def _record(self, worker: ClusterWorker, hand_in: HandIn, read: Read, report: Report) -> None:
        """Hand over a report with what no worker knows: whose submission it is, and the note on its file."""
        name = in_utf8(f"{hand_in.student}/{self._unit}/{hand_in.notebook}")
        report = msgspec.structs.replace(report, notebook=name, message=joined(hand_in.note, report.message))
        self._left -= 1
        worker.graded += 1
        self._results.put(MarkedHandIn(hand_in, read.file.content, report, read.stamp))

    def _summary(self) -> Iterator[str]:
        """Yield a sentence for each level of isolation and device: the workers, with the number of submissions."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for worker in self._validated:
            if worker.able and worker.graded:
                groups[worker.able.isolation, worker.able.device].append(f"{worker.address} ({worker.graded})")
        for (isolation, device), workers in sorted(groups.items()):
            more = f" and {len(workers) - _MOST_NAMED} more" if len(workers) > _MOST_NAMED else ""
            yield f"Marked at isolation {isolation} on {device}: {', '.join(workers[:_MOST_NAMED])}{more}."
