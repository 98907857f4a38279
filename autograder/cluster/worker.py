"""The tasks that the coordinator sends to a Dask worker, the worker's execution of them, and valid answers.

Dask calls `examine` and `grade` by their names, with bytes and for bytes: it would pickle anything else. Students' code
never runs in the worker's own process. The worker keeps a grading process for the next task, until it ends itself.

The coordinator cannot grade again, so it needs honest workers. But it records only reports on the submissions that it
sent, with the unit's exercises, made on its own terms (`Expected`).
"""

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from .. import UserError, course
from ..course import content, settings
from ..course.settings import Settings
from ..pool.grading_pool import GradingPool, GradingProcess, GradingRefused, GradingStopped
from ..pool.requests import GradeNotebook
from ..report import Conditions, Report

MOST_BYTES = 64 << 20
"""Most bytes of a task and of an answer. The largest notebook takes 38 MB in base64, the longest report about 25 MB."""
ANSWER_BYTES = 8 << 20
"""A worker answers once its reports have this size, even if submissions of its task are left."""
_NOTHING_RUN = ("damaged", "grader_error")


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The unit that a run grades, and the conditions."""

    unit: str
    kit: str
    """The coordinator's digest of everything that affects a score in the unit: see `course.content`."""
    device: Literal["cpu", "cuda"]
    settings: Settings


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Submissions to grade. Their names are positions in the task: the cluster learns no student's name."""

    terms: Terms
    submissions: list[GradeNotebook]


class Able(Conditions, frozen=True, forbid_unknown_fields=True, tag="able"):
    """The conditions on which a worker would grade."""

    kit: str
    torch: str


class Unable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unable"):
    """A worker's reason for not grading, as a sentence."""

    sentence: str


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="done"):
    """Reports on the first submissions of a task, in their order; at least one."""

    reports: list[Report]


Answer = Able | Unable | Done


class BadAnswer(Exception):
    """A worker's answer is not valid; `str()` says why."""


class CannotGrade(Exception):
    """A worker cannot grade this run; `str()` says why."""


@dataclass(frozen=True)
class Expected:
    """The answers that a run accepts from its workers."""

    unit: course.Unit
    terms: Terms

    def able(self, answer: object) -> Able:
        """Return a worker's conditions if they are those of the run; raises CannotGrade and BadAnswer."""
        able = _decode(answer)
        if not isinstance(able, Able):
            raise BadAnswer("the worker does not report its versions, device and isolation level.")
        isolation = self.terms.settings.isolation
        levels = {"best": ("A", "B"), "A": ("A",), "B": ("B",), "none": ()}[isolation.require]
        if able.isolation not in (*levels, *(("none",) if isolation.trust_submissions else ())):
            raise CannotGrade(f"its isolation level is {able.isolation}, but {isolation.require} is required.")
        if able.device != self.terms.device:
            raise CannotGrade(f"it computes on {able.device}, but {self.terms.device} is required.")
        if (theirs := _release(able.torch)) != (ours := _release(version("torch"))):
            raise CannotGrade(f"it has torch {theirs}, but this machine has torch {ours}.")
        if able.kit != self.terms.kit:
            raise CannotGrade("its version of the autograder or of the course differs.")
        return able

    def reports(self, answer: object, submissions: Sequence[GradeNotebook], able: Able) -> list[Report]:
        """Return the reports on the first of these submissions, or on all; raises CannotGrade and BadAnswer."""
        done = _decode(answer)
        if not isinstance(done, Done) or not 1 <= len(done.reports) <= len(submissions):
            raise BadAnswer("its answer is not a list of reports on the submissions that it was sent.")
        for report, submission in zip(done.reports, submissions, strict=False):
            if fault := self._fault(report, submission, able):
                raise BadAnswer(f"a report has {fault}.")
        return done.reports

    def _fault(self, report: Report, submission: GradeNotebook, able: Able) -> str:
        """Return why a worker's report on this submission is not valid; empty if it is."""
        if (report.notebook, report.submission) != (submission.name, submission.digest):
            return "another submission's name or digest"
        if (report.isolation, report.device) != (able.isolation, able.device):
            return (
                f"isolation {report.isolation} on {report.device}, but the worker announced {able.isolation} on "
                f"{able.device}"
            )
        if not report.exercises and report.status in _NOTHING_RUN:
            return "" if report.unit in (None, self.unit.name) else "another unit"
        if (report.unit, report.kit) != (self.unit.name, self.terms.kit):
            return "another unit or kit"
        points = [(exercise.name, exercise.max_score) for exercise in report.exercises]
        if points != [(exercise.name, exercise.points) for exercise in self.unit.exercises]:
            return "exercises that differ from those of the unit"
        return ""


def _decode(answer: object) -> Able | Done:
    """Return a worker's answer; raises BadAnswer if it is not valid, CannotGrade with the worker's own reason."""
    if not isinstance(answer, bytes):
        raise BadAnswer("its answer is not bytes.")
    if len(answer) > MOST_BYTES:
        raise BadAnswer(f"its answer has {len(answer)} bytes, more than {MOST_BYTES}.")
    try:
        message: Answer = msgspec.json.decode(answer, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"its answer cannot be read ({error}).") from None
    if isinstance(message, Unable):
        raise CannotGrade(message.sentence)
    return message


def _release(torch: str) -> str:
    """Return a version of PyTorch without its suffix for CPU and GPU builds, such as `+cpu`."""
    return torch.partition("+")[0]


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
            f"autograder/, solutions/, the class's source/ and release/, and {settings.SECRET_FILE} if there is one."
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

    @contextlib.contextmanager
    def process(self, terms: Terms) -> Iterator[GradingPool]:
        """Lend the process for these terms."""
        with self._lock:
            if self._pool is None or self._terms != terms:
                self.close()
                self._terms, self._pool = terms, GradingPool(lambda _: _new_process(terms))
            yield self._pool

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
