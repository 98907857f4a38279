"""The part of a run that a Dask worker executes: it reports its conditions, and it grades.

Dask calls `examine` and `grade` by their names, with bytes and for bytes. Students' code never runs in the worker's own
process. The worker keeps a grading process for the next task of the run, and ends it when none has come for a while.
"""

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..course import case_secret, content
from ..errors import UserError
from ..pool.grading_pool import GradingPool, GradingProcess, GradingRefused, GradingStopped
from ..report import Report
from .messages import ANSWER_BYTES, MOST_BYTES, Able, Answer, Done, Task, Terms, Unable

IDLE_SECONDS = 300


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
    except UserError as reason:
        answer = Unable(str(reason))
    except msgspec.DecodeError as error:
        answer = Unable(f"The task cannot be read ({error}): does this worker have another version of the autograder?")
    except Exception as error:
        answer = Unable(f"Our fault: {type(error).__name__}: {error}")
    return msgspec.json.encode(answer)


def _able(message: bytes) -> Able | Unable:
    terms = msgspec.json.decode(message, type=Terms)
    digest = content.current_unit_digest(terms.unit)
    if digest != terms.kit:
        return Unable(
            f"the worker's version of the autograder or of {terms.unit} differs (digest {digest[:12]}; required: "
            f"{terms.kit[:12]}). Install the same version on the worker, and copy the course: autograder.toml, "
            f"autograder/, solutions/, the class's source/ and release/, and {case_secret.FILE} if there is one."
        )
    with cached_pool.process(terms) as pool:
        ready = pool.ready()
    return Able(ready.device, ready.isolation, ready.enforced, digest, version("torch"))


def _done(message: bytes) -> Done:
    task = msgspec.json.decode(message, type=Task)
    reports: list[Report] = []
    size = 0
    with cached_pool.process(task.terms) as pool:
        for submission in task.submissions:
            try:
                reports.append(pool.grade(replace(submission, unit=task.terms.unit, of_course=False)))
            except (GradingRefused, GradingStopped):
                if not reports:
                    raise
                break  # the answer to the next task reports why nothing more can be graded here
            size += len(msgspec.json.encode(reports[-1]))
            if size > ANSWER_BYTES or not _is_wanted():
                break
    return Done(reports)


class _CachedPool:
    """Grading process of this Dask worker. A run with other terms gets a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held during a task, because several runs may have tasks here."""
        self._terms: Terms | None = None
        self._pool: GradingPool | None = None
        self._timer = threading.Timer(0, self._end_idle)

    @contextlib.contextmanager
    def process(self, terms: Terms) -> Iterator[GradingPool]:
        """Lend the process for these terms, and end it once nobody has used it for a while."""
        with self._lock:
            self._timer.cancel()
            if self._pool is None or self._terms != terms:
                self.close()
                self._terms, self._pool = terms, GradingPool(lambda _: _new_process(terms))
            try:
                yield self._pool
            finally:
                self._timer = threading.Timer(IDLE_SECONDS, self._end_idle)
                self._timer.daemon = True
                self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


cached_pool = _CachedPool()
atexit.register(cached_pool.close)


def _new_process(terms: Terms) -> GradingProcess:
    return GradingProcess(terms.device, terms.settings, private=_of_dask(), unit=terms.unit)


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
