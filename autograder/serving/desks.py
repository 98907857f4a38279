"""Marking processes that stay warm: what is put before them is marked in the order in which it came."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from ..classroom import processors
from ..classroom.assignment import Assignment
from ..classroom.hand_in import HandIn
from ..classroom.marking_ahead import MarkedHandIn, mark
from ..client.marker import Marker, MarkerStopped
from ..client.requests import Device, Ready
from ..course import released
from ..course.settings import Settings


@dataclass(frozen=True)
class Done:
    """A submission that was marked, and is not recorded yet."""

    unit: str
    marked: MarkedHandIn


class Desks:
    """The processes, each with a thread that waits for it: one that hangs keeps no other from marking."""

    def __init__(
        self,
        root: Path,
        units: Sequence[str],
        private: tuple[Path, ...],
        *,
        device: Device,
        settings: Settings,
        markers: int,
        woken: Callable[[], None],
    ) -> None:
        """private: folders that no submission may read. woken: called when something is done."""
        cores = processors.in_turn()
        self._new_marker = lambda number: Marker(
            device,
            settings,
            class_folder=root,
            private=(root, *private),
            # One more than there are processors goes wherever there is room: beside one that hangs.
            core=cores[number] if number < len(cores) else None,
        )
        self._root, self._units = root, units
        self._woken = woken
        self._todo: SimpleQueue[tuple[Assignment, HandIn] | None] = SimpleQueue()
        self._done: SimpleQueue[Done | BaseException] = SimpleQueue()
        self._closing = threading.Event()
        self._markers: list[Marker] = []
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(markers)]

    def start(self) -> Ready:
        """Waits for the markers, raising MarkerRefused, and sets them to work."""
        (ready, *_) = [marker.ready for marker in self._markers]
        for thread in self._threads:
            thread.start()
        return ready

    def put(self, work: Assignment, hand_in: HandIn) -> None:
        """Puts a submission at the end of what is to be marked."""
        self._todo.put((work, hand_in))

    def taken(self) -> list[Done]:
        """What was done since this was last asked; raises what a marker raised."""
        found = []
        while not self._done.empty():
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            found.append(done)
        return found

    def _work(self, number: int) -> None:
        """One marker's thread."""
        for unit in self._units:  # what is read and made only once, so that no student waits for it
            with contextlib.suppress(MarkerStopped, OSError):
                self._markers[number].mark(unit, released(unit, self._root).read_bytes(), unit)
        while (todo := self._todo.get()) is not None and not self._closing.is_set():
            work, hand_in = todo
            unit = work.unit.name
            try:
                done: Done | BaseException = Done(
                    unit,
                    mark(self._markers[number], work.submissions, unit, hand_in, lambda: self._replaced(number)),
                )
            except BaseException as error:
                done = error
            self._done.put(done)
            self._woken()

    def _replaced(self, number: int) -> Marker | None:
        if self._closing.is_set():
            return None
        self._markers[number].close()
        self._markers[number] = self._new_marker(number)
        return self._markers[number]

    def __enter__(self) -> "Desks":
        """Starts the processes."""
        for number in range(len(self._threads)):
            self._markers.append(self._new_marker(number))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._closing.set()
        for _ in self._threads:
            self._todo.put(None)
        with ThreadPoolExecutor(len(self._threads)) as closing:  # at once: each may be in the middle of a submission
            list(closing.map(Marker.close, self._markers))
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
