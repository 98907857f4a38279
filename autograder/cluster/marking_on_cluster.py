"""A class's reports from a Dask cluster, for the one writer at home: a thread speaks to the cluster meanwhile."""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from .. import course
from ..classroom.assignment import Assignment
from ..classroom.hand_in import HandIn
from ..classroom.marking_ahead import MarkedHandIn
from ..client.requests import Device, Ready
from ..course import kit
from ..course.settings import Settings
from .address import Address
from .at_workers import AtWorkers, Desk
from .checking import Expected
from .connection import connected
from .messages import Able, Terms

_BACKLOG = 48
"""Where so many reports wait for the writer, no task is sent: a class of any size takes the same memory."""
_MOST_NAMED = 20


class MarkingOnCluster:
    """Reports on submissions, as workers send them."""

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
        """hand_ins: those to mark; one without a notebook gets no report. device: auto is the CPU here, so that a class
        is marked on one kind. markers: as many as there are workers. say: what the instructor should know of these.
        """
        self._hand_ins = [hand_in for hand_in in hand_ins if hand_in.notebook is not None]
        self._read = work.submissions.read
        self._scheduler = scheduler
        self._say = say
        unit = work.unit.name
        questions = {name for name in course.points(unit, work.root) if not name.startswith(course.CHECK_PREFIX)}
        terms = Terms(unit, kit.digest(unit, work.root), "cuda" if device == "cuda" else "cpu", settings)
        self._expected = Expected(work.unit, terms, frozenset(questions))
        self._started: Future[Ready] = Future()
        self._done: SimpleQueue[MarkedHandIn | BaseException] = SimpleQueue()
        self._ending = threading.Event()
        self._run: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._in_thread, daemon=True)

    def start(self) -> Ready:
        """Waits for the first worker that may mark; raises MarkerRefused."""
        self._thread.start()
        return self._started.result()

    def marked(self) -> Iterator[MarkedHandIn]:
        """Every submission once, as it is marked; raises MarkerRefused where no worker is left, or no scheduler."""
        for _ in self._hand_ins:
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            yield done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ending.set()
        if self._run is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
                self._run.get_loop().call_soon_threadsafe(self._run.cancel)
        if self._thread.ident is not None:
            self._thread.join()

    def _in_thread(self) -> None:
        try:
            asyncio.run(self._over())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            if self._started.done():
                self._done.put(error)
            else:
                self._started.set_exception(error)

    async def _over(self) -> None:
        self._run = asyncio.current_task()
        if self._ending.is_set():
            return
        async with connected(self._scheduler) as connection:
            at_workers = AtWorkers(
                connection,
                self._expected,
                self._hand_ins,
                read=self._read,
                on_able=self._begin,
                on_marked=self._done.put,
                may_go_on=lambda: self._done.qsize() < _BACKLOG,
                say=self._say,
            )
            try:
                await at_workers.run()
            finally:
                for sentence in _who_marked(at_workers.worked):
                    self._say(sentence)

    def _begin(self, able: Able) -> None:
        if not self._started.done():
            self._started.set_result(Ready(able.device, able.isolation, able.enforced))


def _who_marked(desks: Sequence[Desk]) -> Iterator[str]:
    """For each level of isolation and device, which workers marked how many at it."""
    of_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
    for desk in desks:
        if desk.able and desk.marked:
            of_kind[desk.able.isolation, desk.able.device].append(f"{desk.address} ({desk.marked})")
    for (isolation, device), workers in sorted(of_kind.items()):
        more = f" and {len(workers) - _MOST_NAMED} more" if len(workers) > _MOST_NAMED else ""
        yield f"Marked at isolation {isolation} on {device}: {', '.join(workers[:_MOST_NAMED])}{more}."
