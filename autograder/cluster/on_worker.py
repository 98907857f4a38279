"""What a Dask worker does for a run: it says what it would mark with, and marks.

Dask calls `examined` and `marked` by their names, with bytes and for bytes. Students' code never runs in the worker's
own process: that keeps a marking process, for the next task of the same run too, and ends it when none has come for a
while.
"""

import atexit
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from ..client.marker import Marker, MarkerRefused, MarkerStopped, running, stopped_at
from ..course import UnknownUnit, UnusableUnit, kit
from ..course.folder import NoCourse
from ..course.settings import BadSettings
from ..report import Report
from .messages import ANSWER_BYTES, MOST_BYTES, Able, Answer, Done, Task, Terms, Unable

_IDLE_SECONDS = 300


class _OtherKit(Exception):
    """This worker's kit would give other marks; `str()` says why and what to do."""


_REFUSALS = (_OtherKit, MarkerRefused, MarkerStopped, NoCourse, UnknownUnit, UnusableUnit, BadSettings)


def examined(terms: bytes) -> bytes:
    """What this worker would mark with: `Able` or `Unable`."""
    return _answered(terms, _able)


def marked(task: bytes) -> bytes:
    """The reports on a task's submissions: `Done` or `Unable`."""
    return _answered(task, _done)


def _answered(asked: bytes, answer: Any) -> bytes:
    """The answer as JSON. No exception leaves here: Dask would pickle it."""
    try:
        if len(asked) > MOST_BYTES:
            said: Answer = Unable(f"The task has {len(asked)} bytes, more than {MOST_BYTES}.")
        else:
            said = answer(asked)
    except _REFUSALS as reason:
        said = Unable(str(reason))
    except msgspec.DecodeError as error:
        said = Unable(f"The task cannot be read ({error}): is the kit here of another version?")
    except Exception as error:
        said = Unable(f"Our fault: {type(error).__name__}: {error}")
    return msgspec.json.encode(said)


def _able(asked: bytes) -> Able:
    terms = msgspec.json.decode(asked, type=Terms)
    found = kit.digest_as_it_is(terms.unit)
    if found != terms.kit:
        raise _OtherKit(
            f"its engine or its course is another one for {terms.unit} (digest {found[:12]}, at home "
            f"{terms.kit[:12]}). Install the same kit there, and copy the course: autograder.toml, autograder/, "
            "solutions/, and source/ and release/ as this class has them."
        )
    with _kept.lock:
        its = _kept.marker(terms).ready
        _kept.wait_for_more()
        return Able(its.device, its.isolation, its.enforced, found, version("torch"))


def _done(asked: bytes) -> Done:
    task = msgspec.json.decode(asked, type=Task)
    reports: list[Report] = []
    size = 0
    with _kept.lock:
        for submission in task.submissions:
            try:
                marker = running(_kept.marker(task.terms), lambda: _kept.marker(task.terms))
            except (MarkerRefused, MarkerStopped):
                if not reports:
                    raise
                break  # what is done is done; why nothing more can be marked here is said with the next task
            try:
                report = marker.mark(
                    submission.name, submission.content, task.terms.unit, digest=submission.digest, note=submission.note
                )
            except MarkerStopped as stopped:
                its = submission
                report = stopped_at(its.name, stopped, marker.ready, digest=its.digest, note=its.note)
                _kept.end()
            reports.append(report)
            size += len(msgspec.json.encode(report))
            if size > ANSWER_BYTES or not _is_wanted():
                break
        _kept.wait_for_more()
    return Done(reports)


class _Kept:
    """The marking process of this Dask worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while the process is asked anything."""
        self._terms: Terms | None = None
        self._marker: Marker | None = None
        self._timer: threading.Timer | None = None

    def marker(self, terms: Terms) -> Marker:
        """The process for these terms, which name the kit: a new one, where the one that is kept began with others."""
        if self._marker is None or not self._marker.is_running or self._terms != terms:
            self.end()
            self._marker = Marker(terms.device, terms.settings, private=_of_dask(), unit=terms.unit)
            self._terms = terms
        return self._marker

    def wait_for_more(self) -> None:
        """From here on a time runs after which the process is ended."""
        self._stop_waiting()
        self._timer = threading.Timer(_IDLE_SECONDS, self._end_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Ends the process, if there is one."""
        self._stop_waiting()
        if self._marker is not None:
            self._marker.close()
            self._marker = None

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_if_idle(self) -> None:
        if self.lock.acquire(blocking=False):  # else there is more to do
            try:
                self.end()
            finally:
                self.lock.release()


_kept = _Kept()
atexit.register(_kept.end)


def _of_dask() -> list[Path]:
    """What no submission may read here: the worker's key, by which one speaks to the scheduler, and its folder."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.security.tls_worker_key
    return [Path(worker.local_directory), *([Path(key)] if key and "\n" not in key else [])]


def _is_wanted() -> bool:
    """Whether home still waits for the task that this thread runs: it may have been interrupted, or have ended."""
    from distributed import get_worker

    worker = get_worker()
    state = worker.state.tasks.get(worker.get_current_task())
    return state is not None and state.state == "executing"
