"""One run on a cluster: each worker has one task at a time, sent to it alone.

So only workers that were examined get any, and it is known what was at one that died: this is sent again, each
submission by itself. A task may be run twice, by two workers too. It changes nothing anywhere but in its answer, and
home takes one answer for each submission.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..classroom.hand_in import HandIn, Read
from ..classroom.marking_ahead import EACH, MarkedHandIn
from ..client.marker import MarkerRefused, in_utf8
from ..client.requests import MarkNotebook
from ..report import Report, joined, without_marks
from . import on_worker
from .checking import BadAnswer, CannotMark, Expected
from .connection import Connection, Gone, shortened
from .messages import Able, Task
from .sharing_out import Todo

_LOOK_SECONDS = 0.5
_TURN_SECONDS = 0.05
_PATIENCE_SECONDS = 30
"""How long a run waits for a worker where there is none: Dask's nannies start one in the place of one that died."""
_TASK_BYTES = 4 << 20
"""A task with so much in it gets no further submission."""
_LOST = (
    "Each worker of the cluster that graded this, with nothing else to grade, ended or gave no valid answer. Please "
    "tell your instructor, who can read why in what the workers printed."
)


@dataclass
class Desk:
    """A worker, as the run sees it."""

    address: str
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    work: "asyncio.Task[None] | None" = None
    able: Able | None = None
    marked: int = 0

    @property
    def is_open(self) -> bool:
        return self.work is not None and not self.work.done()


class AtWorkers:
    """The run."""

    def __init__(
        self,
        connection: Connection,
        expected: Expected,
        hand_ins: Sequence[HandIn],
        *,
        read: Callable[[HandIn], Read],
        on_able: Callable[[Able], None],
        on_marked: Callable[[MarkedHandIn], None],
        may_go_on: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        """read: what is in a submission now. on_able: is told of each worker that may mark. may_go_on: whether another
        task is to be sent. say: what the instructor should know of workers.
        """
        self._connection = connection
        self._expected = expected
        self._unit = expected.unit.name
        self._read = read
        self._on_able = on_able
        self._on_marked = on_marked
        self._may_go_on = may_go_on
        self._say = say
        self._todo = Todo(hand_ins)
        self._left = len(hand_ins)
        self._desks: dict[str, Desk] = {}
        self.worked: list[Desk] = []
        """Those that were found able."""

    async def run(self) -> None:
        """Until everything is marked; raises MarkerRefused."""
        try:
            last_open = time.monotonic()
            while self._left:
                there = await self._connection.workers()
                self._see(there)
                open_desks = [desk.work for desk in self._desks.values() if desk.work and desk.is_open]
                if open_desks:
                    last_open = time.monotonic()
                    await asyncio.wait(open_desks, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                else:
                    self._ensure_hope(bool(there), time.monotonic() - last_open)
                    await asyncio.sleep(_LOOK_SECONDS)
        finally:
            works = [desk.work for desk in self._desks.values() if desk.work]
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)

    def _see(self, there: dict[str, dict[str, Any]]) -> None:
        """Begins with workers that have come, if there is something to do, and ends with those that are gone."""
        for address, desk in list(self._desks.items()):
            if address not in there:
                desk.gone.set()
            if desk.work is not None and desk.work.done():
                desk.work.result()  # raises what ends the run
                if desk.gone.is_set():
                    del self._desks[address]
        for address, its in there.items():
            if address not in self._desks and self._is_another_worth_it:
                desk = self._desks[address] = Desk(address)
                desk.work = asyncio.create_task(self._at(desk, its))

    @property
    def _is_another_worth_it(self) -> bool:
        """Whether enough is left for one more worker to begin."""
        open_desks = [desk for desk in self._desks.values() if desk.is_open]
        beginning = sum(1 for desk in open_desks if desk.able is None)
        return len(self._todo) >= (EACH * (beginning + 1) if open_desks else 1)

    def _ensure_hope(self, anyone: bool, seconds: float) -> None:
        """Raises MarkerRefused where no worker is at work, and none is to be expected."""
        if seconds > _PATIENCE_SECONDS or (anyone and not self.worked):
            raise MarkerRefused(
                f"{self._connection.scheduler.text} has no worker that can mark {self._unit}. What was recorded so far "
                "stays; run the same command again when there is one."
            )

    async def _at(self, desk: Desk, its: dict[str, Any]) -> None:
        """Gives one worker work until there is none, or it is gone, or may get none."""
        batch: list[HandIn] = []
        try:
            desk.able = await self._examined(desk, its)
            self.worked.append(desk)
            self._on_able(desk.able)
            while self._left:
                batch = self._todo.take(self._at_work) if self._may_go_on() else []
                if batch:
                    batch = await self._marked(desk, desk.able, batch)
                    self._todo.put_back(batch)
                else:
                    await asyncio.sleep(_TURN_SECONDS)
        except Gone:
            desk.gone.set()
            self._lost_with(desk, batch)
        except (CannotMark, BadAnswer) as reason:
            self._say(f"{desk.address} gets no submissions: {shortened(reason)}")
            self._lost_with(desk, batch)

    def _lost_with(self, desk: Desk, batch: list[HandIn]) -> None:
        """A worker gets no more submissions. What was at it may be why, and must not cost the run all its workers."""
        if batch and desk.able and (alone := self._todo.worker_lost(batch)):
            self._tell(desk, alone, self._read(alone), self._of_deadly(alone, desk.able))

    @property
    def _at_work(self) -> int:
        """How many workers there are that may mark."""
        return sum(1 for desk in self._desks.values() if desk.able and desk.is_open)

    async def _examined(self, desk: Desk, its: dict[str, Any]) -> Able:
        """What a worker would mark with; raises CannotMark, BadAnswer and Gone."""
        if not self._connection.scheduler.is_safe(desk.address):
            raise CannotMark("it is spoken to over plain tcp. Start it with TLS; or take --plain-tcp.")
        if self._gpu and not its.get("resources", {}).get("GPU"):
            raise CannotMark("it offers no GPU. Start it with --resources GPU=1.")
        return self._expected.able(await self._answer(desk, on_worker.examined, self._expected.terms))

    async def _marked(self, desk: Desk, able: Able, batch: list[HandIn]) -> list[HandIn]:
        """Has a worker mark these; returns those that it left."""
        read: list[Read] = []
        asked: list[MarkNotebook] = []
        size = 0
        for number, hand_in in enumerate(batch):
            read.append(self._read(hand_in))
            file = read[-1].file
            asked.append(MarkNotebook(str(number), file.content, self._unit, file.digest))
            size += len(file.content) if isinstance(file.content, bytes) else 0
            if size > _TASK_BYTES:
                break
        answer = await self._answer(desk, on_worker.marked, Task(self._expected.terms, asked))
        reports = self._expected.reports(answer, asked, able)
        for hand_in, its, report in zip(batch, read, reports, strict=False):
            self._tell(desk, hand_in, its, self._named(report, hand_in))
        return batch[len(reports) :]

    async def _answer(self, desk: Desk, function: Callable[[bytes], bytes], asked: msgspec.Struct) -> object:
        data = msgspec.json.encode(asked)
        return await self._connection.answer(desk.address, function, data, desk.gone, gpu=self._gpu)

    @property
    def _gpu(self) -> bool:
        return self._expected.terms.device == "cuda"

    def _tell(self, desk: Desk, hand_in: HandIn, read: Read, report: Report) -> None:
        self._left -= 1
        desk.marked += 1
        self._on_marked(MarkedHandIn(hand_in, read.file.content, report, read.stamp))

    def _named(self, report: Report, hand_in: HandIn) -> Report:
        """The report with what no worker is told: whose submission it is, and what to say of its file."""
        message = joined(hand_in.note, report.message)
        return msgspec.structs.replace(report, notebook=self._path(hand_in), message=message)

    def _of_deadly(self, hand_in: HandIn, able: Able) -> Report:
        return without_marks(self._path(hand_in), "grader_error", _LOST, able, note=hand_in.note)

    def _path(self, hand_in: HandIn) -> str:
        return in_utf8(f"{hand_in.student}/{self._unit}/{hand_in.notebook}")
