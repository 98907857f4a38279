"""The part of a run that a Dask worker executes: it reports its conditions, and it grades.

Dask calls `examine` and `grade` by their names, with bytes and for bytes. Students' code never runs in the worker's own
process. The worker keeps a grading process for the next task of the run, and ends it when none has come for a while.
"""

import atexit
import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import msgspec

from ..client.marker import Marker, MarkerRefused, MarkerStopped, running, stopped_at
from ..course import UnknownUnit, UnusableUnit, digests
from ..course.folder import NoCourse
from ..course.settings import BadSettings
from ..report import Report
from .messages import ANSWER_BYTES, MOST_BYTES, Able, Answer, Done, Task, Terms, Unable

_IDLE_SECONDS = 300


_REFUSALS = (MarkerRefused, MarkerStopped, NoCourse, UnknownUnit, UnusableUnit, BadSettings)


def examine(terms: bytes) -> bytes:
    """Return this worker's conditions: `Able` or `Unable`."""
    return _encode(terms, _able)


def grade(task: bytes) -> bytes:
    """Return the reports on a task's submissions: `Done` or `Unable`."""
    return _encode(task, _done)


def _encode(message: bytes, answers: Callable[[bytes], Answer]) -> bytes:
    """Return the answer as JSON. Raises nothing: Dask would pickle an exception."""
    try:
        if len(message) > MOST_BYTES:
            answer: Answer = Unable(f"The task has {len(message)} bytes, more than {MOST_BYTES}.")
        else:
            answer = answers(message)
    except _REFUSALS as reason:
        answer = Unable(str(reason))
    except msgspec.DecodeError as error:
        answer = Unable(f"The task cannot be read ({error}): is the kit here of another version?")
    except Exception as error:
        answer = Unable(f"Our fault: {type(error).__name__}: {error}")
    return msgspec.json.encode(answer)


def _able(message: bytes) -> Able | Unable:
    terms = msgspec.json.decode(message, type=Terms)
    digest = digests.current_unit_digest(terms.unit)
    if digest != terms.kit:
        return Unable(
            f"its engine or its course is another one for {terms.unit} (digest {digest[:12]}, at home "
            f"{terms.kit[:12]}). Install the same kit there, and copy the course: autograder.toml, autograder/, "
            "solutions/, and source/ and release/ as this class has them."
        )
    with _kept.lock:
        ready = _kept.marker(terms).ready
        _kept.wait_for_more()
        return Able(ready.device, ready.isolation, ready.enforced, digest, version("torch"))


def _done(message: bytes) -> Done:
    task = msgspec.json.decode(message, type=Task)
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
    """The grading process of this Dask worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while the process is used."""
        self._terms: Terms | None = None
        self._marker: Marker | None = None
        self._timer = threading.Timer(_IDLE_SECONDS, self._end_if_idle)

    def marker(self, terms: Terms) -> Marker:
        """Return the process for these terms, which name the kit; a new one if the present one began with others."""
        if self._marker is None or not self._marker.is_running or self._terms != terms:
            self.end()
            self._marker = Marker(terms.device, terms.settings, private=_of_dask(), unit=terms.unit)
            self._terms = terms
        return self._marker

    def wait_for_more(self) -> None:
        """End the process after a while, unless another task comes."""
        self._timer.cancel()
        self._timer = threading.Timer(_IDLE_SECONDS, self._end_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """End the process, if there is one."""
        self._timer.cancel()
        if self._marker is not None:
            self._marker.close()
            self._marker = None

    def _end_if_idle(self) -> None:
        with self.lock:
            if threading.current_thread() is self._timer:  # no task has come since it was started
                self.end()


_kept = _Kept()
atexit.register(_kept.end)


def _of_dask() -> list[Path]:
    """Return what no submission may read: the worker's key, which gives access to the scheduler, and its folder."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.security.tls_worker_key
    return [Path(worker.local_directory), *([Path(key)] if key and "\n" not in key else [])]


def _is_wanted() -> bool:
    """Return whether the coordinator still waits for this thread's task: it may have been interrupted."""
    from distributed import get_worker

    worker = get_worker()
    state = worker.state.tasks.get(worker.get_current_task())
    return state is not None and state.state == "executing"
