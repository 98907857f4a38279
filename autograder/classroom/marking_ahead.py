"""Marks a class with several marking processes, a little ahead of the one writer that records the reports."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Full, Queue
from types import TracebackType
from typing import Protocol, Self

from ..client.marker import Marker, MarkerStopped, running, stopped_at
from ..client.requests import Device, Ready
from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings
from ..report import Report
from . import processors
from .assignment import Assignment
from .submissions import HandIn, Submissions

_AHEAD = 4
"""Reports of each marker that may wait for the writer, so that a class of any size takes the same memory."""
EACH = 4
"""At least so many submissions for each marker: starting one takes as long as marking as many."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class MarkedHandIn:
    """A submission and the report on it."""

    hand_in: HandIn
    content: bytes | UnreadableNotebook
    """The part of the file that was marked, or why there is none."""
    report: Report
    stamp: bytes | None = None
    """The time of handing in, as the file next to the notebook has it."""


class Marking(Protocol):
    """What makes the reports on a class's submissions, for the one writer of a batch."""

    def start(self) -> Ready:
        """Begins, and says on what is marked; raises MarkerRefused."""
        ...

    def marked(self) -> Iterator[MarkedHandIn]:
        """Every submission once, as it is marked; raises MarkerRefused and MarkerStopped."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


def mark(marker: Marker, submissions: Submissions, unit: str, hand_in: HandIn) -> MarkedHandIn:
    """Grade a submission in a running grading process. If the process ends meanwhile, do not try again here."""
    assert hand_in.notebook is not None
    name = f"{hand_in.student}/{unit}/{hand_in.notebook}"
    read = submissions.read(hand_in)
    content = read.file.content
    try:
        report = marker.mark(name, content, unit, digest=read.file.digest, note=hand_in.note)
    except MarkerStopped as stopped:
        report = stopped_at(name, stopped, marker.ready, unit=unit, digest=read.file.digest, note=hand_in.note)
    return MarkedHandIn(hand_in, content, report, read.stamp)


class MarkingAhead:
    """Reports on submissions, in the order in which they are ready."""

    def __init__(
        self,
        work: Assignment,
        hand_ins: Sequence[HandIn],
        *,
        device: Device,
        settings: Settings,
        markers: int,
    ) -> None:
        """hand_ins: those to mark; one without a notebook gets no report."""
        self._hand_ins = [hand_in for hand_in in hand_ins if hand_in.notebook is not None]
        self._unit = work.unit.name
        self._submissions = work.submissions
        cores = processors.in_turn()
        self._new_marker = lambda number: Marker(
            device,
            settings,
            class_folder=work.root,
            private=(work.root, work.submitted),
            core=cores[number % len(cores)] if cores else None,
            unit=self._unit,
        )
        count = max(1, min(markers, len(self._hand_ins) // EACH))
        self._markers = [self._new_marker(number) for number in range(count)]
        self._todo = iter(self._hand_ins)
        self._taking = threading.Lock()
        self._done: Queue[MarkedHandIn | BaseException] = Queue(_AHEAD * count)
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> Ready:
        """Waits for the markers, raising MarkerRefused, and sets them to work."""
        (ready, *_) = [marker.ready for marker in self._markers]
        for number in range(len(self._markers)):
            self._threads.append(threading.Thread(target=self._work, args=(number,), daemon=True))
            self._threads[-1].start()
        return ready

    def marked(self) -> Iterator[MarkedHandIn]:
        """Every submission once, as it is marked."""
        for _ in self._hand_ins:
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            yield done

    def _work(self, number: int) -> None:
        """One marker's thread."""
        while not self._closing.is_set():
            with self._taking:
                hand_in = next(self._todo, None)
            if hand_in is None:
                return
            try:
                done: MarkedHandIn | BaseException = self._mark(number, hand_in)
            except BaseException as error:
                done = error
            self._hand_over(done)

    def _hand_over(self, done: "MarkedHandIn | BaseException") -> None:
        while not self._closing.is_set():
            with contextlib.suppress(Full):
                self._done.put(done, timeout=_LOOK_SECONDS)
                return

    def _mark(self, number: int, hand_in: HandIn) -> MarkedHandIn:
        marker = running(self._markers[number], lambda: self._replaced(number))
        return mark(marker, self._submissions, self._unit, hand_in)

    def _replaced(self, number: int) -> Marker:
        """A new marker to replace one that has stopped; raises MarkerStopped if all are being ended."""
        if self._closing.is_set():
            raise MarkerStopped
        self._markers[number].close()
        self._markers[number] = self._new_marker(number)
        return self._markers[number]

    def __enter__(self) -> "MarkingAhead":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._closing.set()
        with ThreadPoolExecutor(len(self._markers)) as closing:  # at once: each may be in the middle of a submission
            list(closing.map(Marker.close, self._markers))
        for thread in self._threads:
            thread.join()
