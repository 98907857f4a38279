"""Marking processes that stay warm: what is handed in is marked as `todo` has it, the rest after it."""

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..classroom import processors
from ..classroom.assignment import Assignment
from ..classroom.marking_ahead import MarkedHandIn, mark
from ..classroom.submissions import HandIn
from ..client.marker import Marker, MarkerRefused, MarkerStopped, running
from ..client.requests import Device, Ready
from ..course import released
from ..course.settings import Settings
from .todo import Asked, HandedIn, Todo

_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 60.0


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
        remark: Callable[[str], None],
    ) -> None:
        """private: folders that no submission may read. woken: called when something is done. remark: tells the
        instructor; both are called in other threads.
        """
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
        self._remark = remark
        self._todo = Todo(markers)
        self._done: deque[Done | BaseException] = deque()
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
        """Has a submission marked."""
        self._todo.put((work, hand_in))

    def ask(self, asked: Asked) -> None:
        """Has a notebook marked that nobody handed in, when there is time; may be called in any thread."""
        self._todo.put(asked)

    def taken(self) -> list[Done]:
        """What was done since this was last asked; raises what a marker raised."""
        found: list[Done] = []
        while self._done:
            if isinstance(done := self._done[0], BaseException):
                if found:  # these are recorded first
                    break
                raise done
            found.append(done)
            self._done.popleft()
        return found

    def _work(self, number: int) -> None:
        """One marker's thread."""
        for unit in self._units:  # what is read and made only once, so that no student waits for it
            with contextlib.suppress(MarkerStopped, MarkerRefused, OSError):  # said where it matters
                self._markers[number].mark(unit, released(unit, self._root).read_bytes(), unit)
                self._markers[number].learn(unit)
        while (marker := self._running(number)) and (todo := self._todo.take()) is not None:
            if not marker.is_running:  # it ended while nothing waited
                self._todo.is_done(todo)
                self._todo.put(todo)
                continue
            if isinstance(todo, Asked):
                self._answer(marker, todo)
            else:
                self._mark(marker, todo)
            self._todo.is_done(todo)

    def _running(self, number: int) -> Marker | None:
        """This thread's marker, or its successor if it has ended; None once all are being ended.

        If none starts it is tried again, with longer and longer pauses: the other markers go on meanwhile.
        """
        seconds = _PAUSE_SECONDS
        while not self._closing.is_set():
            try:
                return running(self._markers[number], lambda: self._replaced(number))
            except (MarkerRefused, MarkerStopped) as reason:
                if not self._closing.wait(seconds):
                    self._remark(f"A grading process does not start, and is started again: {reason}")
                seconds = min(2 * seconds, _LONGEST_PAUSE_SECONDS)
        return None

    def _mark(self, marker: Marker, todo: HandedIn) -> None:
        work, hand_in = todo
        unit = work.unit.name
        try:
            done: Done | BaseException = Done(unit, mark(marker, work.submissions, unit, hand_in))
        except BaseException as error:
            done = error
        self._done.append(done)
        self._woken()

    def _answer(self, marker: Marker, asked: Asked) -> None:
        try:
            if asked.is_wanted():
                content, digest = asked.file.content, asked.file.digest
                asked.answer(marker.mark(asked.name, content, digest=digest, of_course=True))
        except (MarkerStopped, MarkerRefused) as reason:
            asked.answer(str(reason))
        except Exception:  # a fault of ours costs this answer, and not the marker
            traceback.print_exc()
            asked.answer("Our fault; what was printed says more.")

    def _replaced(self, number: int) -> Marker:
        if self._closing.is_set():
            raise MarkerStopped
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
        self._todo.close()
        with ThreadPoolExecutor(len(self._threads)) as closing:  # at once: each may be in the middle of a submission
            list(closing.map(Marker.close, self._markers))
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
