"""A class graded on a Dask cluster, each worker with one task at a time, and the connection to Dask's scheduler.

So the submissions at a worker that died are known: they are sent again, each by itself. A task may run twice, even at
two workers. It changes nothing but its answer, and the coordinator takes one answer for each submission.

A Dask scheduler runs code for whoever reaches it, so a connection without TLS stays on this machine unless the
instructor allows more. Dask's exceptions become messages here.
"""

import contextlib
import ipaddress
import logging
import re
import socket
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import dask
import msgspec
from distributed import Client, Future, KilledWorker, wait
from distributed.scheduler import NoValidWorkerError
from distributed.security import Security

from .. import course
from ..classroom.assignment import EACH, Assignment, GradedSubmission
from ..classroom.student_folders import Read, Submission
from ..course import content
from ..course.notebook import list_names
from ..course.settings import Settings
from ..pool.grading_pool import GradingRefused
from ..pool.requests import Device, GradeNotebook, Ready, in_utf8
from ..report import Report, joined, ungraded_report
from .worker import Able, BadAnswer, CannotGrade, Expected, Task, Terms, examine, grade

_ADDRESS = re.compile(r"(?P<protocol>[a-z]+)://(?P<host>[\w.%-]+|\[[\w:.%]+\]):\d{1,5}")
_TLS_FILES = [f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")]
"""Environment variables that tell Dask the files; its configuration has them as `distributed.comm.tls`."""
POLL_SECONDS = 0.5
_CONNECTING_SECONDS = 15
_FETCHING_SECONDS = 300
"""For an answer of many megabytes over a slow line."""
_CLOSING_SECONDS = 5
_LONGEST_REASON = 600


class WorkerLost(Exception):
    """A worker died, or left, before it answered."""


class Address:
    """The address of a Dask scheduler."""

    def __init__(self, text: str, *, plain_tcp: bool = False) -> None:
        """text: tls://HOST:PORT, also without tls://. plain_tcp: whether tcp:// may leave this machine.

        Raises GradingRefused.
        """
        self.text = text if "://" in text else f"tls://{text}"
        self._plain_tcp = plain_tcp
        match = _ADDRESS.fullmatch(self.text)
        if match is None or match["protocol"] not in ("tls", "tcp"):
            raise GradingRefused(f"{text} is not the address of a scheduler. Write tls://HOST:PORT.")
        if not self.is_safe(self.text):
            raise GradingRefused(
                f"{text} is on another machine, and over plain TCP anyone in between could read submissions, change "
                "grades and run code on both machines. Use tls:// (see docs/cluster.md) or an SSH tunnel. If nobody "
                "else uses the network, pass --plain-tcp."
            )
        self.security = _tls() if match["protocol"] == "tls" else Security(require_encryption=False)

    def is_safe(self, address: str) -> bool:
        """Return whether Dask may connect to this address, of a worker or of the scheduler."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            return False
        return match["protocol"] == "tls" or self._plain_tcp or _is_local(match["host"].strip("[]"))


def _is_local(host: str) -> bool:
    """Return whether a host name or an IP address always means this machine."""
    try:
        numbers = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        return bool(numbers) and all(ipaddress.ip_address(number.partition("%")[0]).is_loopback for number in numbers)
    except (OSError, ValueError):
        return False


def _tls() -> Security:
    """Return a client's TLS settings in Dask's own configuration, tried; raises GradingRefused."""
    security = Security(require_encryption=True)
    try:
        is_set = security.get_connection_args("client")["ssl_context"] is not None
        problem = "" if is_set else "they are not set"
    except (OSError, ValueError) as error:  # OSError: includes the errors of ssl
        problem = str(error)
    if problem:
        raise GradingRefused(f"TLS needs the files in {', '.join(_TLS_FILES)}: {problem}. See docs/cluster.md.")
    return security


class Connection:
    """A connection to a scheduler."""

    def __init__(self, scheduler: Address, client: Client) -> None:
        self._scheduler = scheduler
        self._client = client

    def workers(self) -> dict[str, dict[str, Any]]:
        """Return what the scheduler knows of each worker, by its address; raises GradingRefused if it is gone."""
        try:
            if self._client.status != "running":
                raise OSError("the connection is lost")
            identity = self._client.scheduler.identity
            return dict(self._client.sync(identity, n_workers=-1, callback_timeout=_CONNECTING_SECONDS)["workers"])
        except (OSError, TimeoutError) as error:
            raise self._gone(error) from None

    def submit(self, worker: str, function: Callable[[bytes], bytes], message: Any, *, gpu: bool) -> Future:
        """Let one worker, and no other, call a function. Its argument is the message as JSON."""
        data, resources = msgspec.json.encode(message), {"GPU": 1} if gpu else None
        return self._client.submit(
            function, data, pure=False, workers=[worker], allow_other_workers=False, resources=resources
        )

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until one of the requests is answered, but only a moment."""
        if not futures:
            time.sleep(POLL_SECONDS)
            return
        with self._client.as_current(), contextlib.suppress(TimeoutError, CancelledError):
            wait(futures, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")

    def answer(self, future: Future) -> object:
        """Return the answer of a worker that is done.

        Raises WorkerLost; CannotGrade if Dask cannot run the function there; GradingRefused if the scheduler is gone.
        """
        try:
            return future.result(timeout=_FETCHING_SECONDS)
        except (KilledWorker, NoValidWorkerError, TimeoutError):
            raise WorkerLost from None
        except CancelledError as error:
            raise self._gone(error) from None
        except Exception as error:
            raise CannotGrade(f"Dask cannot run the autograder on this worker ({shortened(error)}).") from None

    def _gone(self, error: BaseException) -> GradingRefused:
        return GradingRefused(
            f"The Dask scheduler at {self._scheduler.text} no longer answers ({shortened(error)}). The grades recorded "
            "so far are kept; run the same command again for the rest."
        )


@contextlib.contextmanager
def connected(scheduler: Address) -> Iterator[Connection]:
    """Connect to the scheduler; raises GradingRefused if that fails. At the end, workers drop what they have to do."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # with a traceback for each worker that died and for a lost connection
            logging.getLogger(name).disabled = True
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        try:
            client = Client(
                scheduler.text, security=scheduler.security, timeout=_CONNECTING_SECONDS, set_as_default=False,
                direct_to_workers=False,
            )  # fmt: skip
        except (OSError, RuntimeError, ValueError) as error:
            raise GradingRefused(
                f"No Dask scheduler answers at {scheduler.text} ({shortened(error)}). Is it running, and are its "
                "TLS files from the same authority?"
            ) from None
        try:
            yield Connection(scheduler, client)
        finally:
            with contextlib.suppress(Exception):
                client.close(_CLOSING_SECONDS)


def shortened(reason: object) -> str:
    """Return a reason on one line, and no longer than anyone reads."""
    text = " ".join(str(reason).split()) or type(reason).__name__
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + " …"


MOST_OF_A_TASK = 24
_DEATHS = 2
"""Number of workers lost with a submission alone before it counts as the cause. One may be lost for another reason."""
_TASK_BYTES = 4 << 20
"""A task of this size gets no further submission."""
_BACKLOG = 48
"""While this number of reports wait to be recorded, no task is sent: a class of any size takes the same memory."""
_PATIENCE_SECONDS = 30
"""Seconds to wait while there is no worker, because Dask's nannies replace workers that died."""
_LOST = (
    "Each cluster worker that was given this file by itself either stopped or returned no valid answer. Please tell "
    "your instructor, who can find the reason in the workers' output."
)


class WorkQueue:
    """The submissions that are neither graded nor at a worker.

    Submissions whose worker was lost come last, each alone. A submission is blamed for a lost worker only if it was
    alone with two of them.
    """

    def __init__(self, submissions: Sequence[Submission]) -> None:
        self._new = deque(submissions)
        self._suspects: deque[Submission] = deque()
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._new) + len(self._suspects)

    def take(self, workers: int) -> list[Submission]:
        """Return the next submissions for a worker: fewer as fewer are left, and empty if none is left."""
        if self._new:
            size = max(1, min(MOST_OF_A_TASK, len(self._new) // (2 * workers)))
            return [self._new.popleft() for _ in range(size)]
        return [self._suspects.popleft()] if self._suspects else []

    def put_back(self, submissions: Sequence[Submission]) -> None:
        """Put back the submissions of a task that the worker has not graded yet."""
        self._new.extendleft(reversed(submissions))

    def worker_lost(self, submissions: Sequence[Submission]) -> Submission | None:
        """Put back the submissions at a lost worker, except the one that caused the loss; return that one, or None."""
        if len(submissions) == 1:
            (alone,) = submissions
            self._deaths[alone.student] += 1
            if self._deaths[alone.student] >= _DEATHS:
                return alone
        self._suspects.extend(submissions)
        return None


@dataclass(eq=False)
class ClusterWorker:
    """A worker of the cluster, as the coordinator sees it."""

    address: str
    answer: Future | None = None
    """The worker's answer that is still awaited; None if no request is pending."""
    able: Able | None = None
    """The worker's conditions, once they are validated."""
    is_open: bool = True
    """False if the worker has left, or gets no more submissions."""
    task: list[tuple[Submission, Read, GradeNotebook]] = field(default_factory=list)
    """The submissions at the worker: as the class has them, as they were read, and as they were sent."""
    graded: int = 0


class ClusterRun(contextlib.AbstractContextManager["ClusterRun"]):
    """Reports on submissions, as workers send them."""

    def __init__(
        self,
        work: Assignment,
        submissions: Sequence[Submission],
        *,
        device: Device,
        settings: Settings,
        process_count: int = 0,
        scheduler: Address,
        say: Callable[[str], None],
    ) -> None:
        """submissions: those to grade; one without a notebook gets no report. device: auto is the CPU here, so that a
        class is graded on one kind. process_count: ignored, each worker has one grading process. say: called with
        messages on workers for the instructor.
        """
        self._to_grade = [submission for submission in submissions if submission.notebook is not None]
        self._read = work.files.read
        self._scheduler = scheduler
        self._say = say
        self._unit = work.unit.name
        self._is_gpu = device == "cuda"
        digest = content.unit_digest(self._unit, work.root)
        self._terms = Terms(self._unit, digest, "cuda" if self._is_gpu else "cpu", settings)
        self._expected = Expected(course.unit(self._unit, work.root), self._terms)
        self._queue = WorkQueue(self._to_grade)
        self._workers: dict[str, ClusterWorker] = {}
        self._validated: list[ClusterWorker] = []
        self.results: deque[GradedSubmission] = deque()
        """Graded submissions that `graded` has not returned yet."""
        self._polled = time.monotonic()
        self._missing_since: float | None = None
        """Time at which no worker was first seen, on time.monotonic's clock."""
        self._open_things = contextlib.ExitStack()
        self._connection: Connection

    def start(self) -> Ready:
        """Connect, and wait for the first worker that may grade; raises GradingRefused."""
        self._connection = self._open_things.enter_context(connected(self._scheduler))
        self._update_workers()
        while not self._validated:
            self._proceed()
        able = self._validated[0].able
        assert able
        return Ready(able.device, able.isolation, able.enforced)

    def repaired(self, reports: Mapping[str, Report]) -> Iterator[GradedSubmission | None]:
        """Yield nothing: on a cluster no repairs are searched."""
        return iter(())

    def graded(self) -> Iterator[GradedSubmission]:
        """Yield every submission once, as it is graded; raises GradingRefused if no worker or scheduler is left."""
        for _ in self._to_grade:
            try:
                self._proceed()
            except GradingRefused:
                if not self.results:
                    raise
            while not self.results:  # what has come is recorded before an error is raised
                self._proceed()
            yield self.results.popleft()

    def __exit__(self, *error: object) -> None:
        self._open_things.close()
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for worker in self._validated:
            if worker.able and worker.graded:
                groups[worker.able.isolation, worker.able.device].append(f"{worker.address} ({worker.graded})")
        for (isolation, device), workers in sorted(groups.items()):
            self._say(f"Graded at isolation level {isolation} on {device}: {list_names(workers)}.")

    def _proceed(self) -> None:
        """Take the answers that have come, and give idle workers tasks. Wait a moment if no result is left."""
        if not self.results:
            self._connection.wait([worker.answer for worker in self._workers.values() if worker.answer])
        for worker in list(self._workers.values()):
            if worker.answer and worker.answer.done():
                self._take_answer(worker)
        if time.monotonic() - self._polled > POLL_SECONDS:
            self._update_workers()
        for worker in list(self._workers.values()):
            if worker.able and worker.is_open and not worker.answer and len(self.results) < _BACKLOG:
                self._send_task(worker)

    def _open_workers(self) -> list[ClusterWorker]:
        return [worker for worker in self._workers.values() if worker.is_open]

    def _update_workers(self) -> None:
        """Give up workers that have left, and begin with new ones while there is enough work for them."""
        self._polled = time.monotonic()
        addresses = self._connection.workers()
        for address in self._workers.keys() - addresses.keys():
            self._lose(self._workers.pop(address))
        for address, about in addresses.items():
            workers = self._open_workers()
            beginning = sum(worker.able is None for worker in workers)
            if address not in self._workers and len(self._queue) >= (EACH * (beginning + 1) if workers else 1):
                self._workers[address] = ClusterWorker(address)
                self._examine(self._workers[address], about.get("resources", {}))
        if self._open_workers():
            self._missing_since = None
            return
        self._missing_since = self._missing_since or self._polled
        if self._polled - self._missing_since > _PATIENCE_SECONDS or (addresses and not self._validated):
            raise GradingRefused(
                f"{self._scheduler.text} has no worker that can grade {self._unit}. The grades recorded so far "
                "are kept; run the same command again when there is such a worker."
            )

    def _examine(self, worker: ClusterWorker, resources: dict[str, Any]) -> None:
        """Send a worker the request for its conditions: versions, device and isolation level."""
        if not self._scheduler.is_safe(worker.address):
            self._refuse(worker, "the connection to it is plain TCP. Start it with TLS, or pass --plain-tcp.")
        elif self._is_gpu and not resources.get("GPU"):
            self._refuse(worker, "the worker offers no GPU. Start it with --resources GPU=1.")
        else:
            worker.answer = self._connection.submit(worker.address, examine, self._terms, gpu=self._is_gpu)

    def _send_task(self, worker: ClusterWorker) -> None:
        """Send a worker a task of submissions to grade, if any are left."""
        submissions = self._queue.take(sum(other.able is not None for other in self._open_workers()))
        size = 0
        for number, submission in enumerate(submissions):
            read = self._read(submission)
            content = read.file.content
            worker.task.append((submission, read, GradeNotebook(str(number), content, self._unit, read.file.digest)))
            size += len(content) if isinstance(content, bytes) else 0
            if size > _TASK_BYTES:
                break
        self._queue.put_back(submissions[len(worker.task) :])
        if worker.task:
            task = Task(self._terms, [request for _, _, request in worker.task])
            worker.answer = self._connection.submit(worker.address, grade, task, gpu=self._is_gpu)

    def _take_answer(self, worker: ClusterWorker) -> None:
        try:
            answer = self._connection.answer(worker.answer)
            worker.answer = None
            if worker.able is None:
                worker.able = self._expected.able(answer)
                self._validated.append(worker)
                return
            requests = [request for _, _, request in worker.task]
            reports = self._expected.reports(answer, requests, worker.able)
        except WorkerLost:
            self._lose(self._workers.pop(worker.address))
        except (CannotGrade, BadAnswer) as reason:
            self._refuse(worker, reason)
        else:
            for (submission, read, _), report in zip(worker.task, reports, strict=False):
                self._record(worker, submission, read, report)
            self._queue.put_back([submission for submission, _, _ in worker.task[len(reports) :]])
            worker.task = []

    def _refuse(self, worker: ClusterWorker, reason: object) -> None:
        self._say(f"{worker.address} gets no submissions: {shortened(reason)}")
        self._lose(worker)

    def _lose(self, worker: ClusterWorker) -> None:
        """Give a worker no more, and put back its submissions. One may be the cause, and must not cost all workers."""
        if worker.able and (alone := self._queue.worker_lost([submission for submission, _, _ in worker.task])):
            self._record(worker, alone, self._read(alone), ungraded_report("", "grader_error", _LOST, worker.able))
        worker.is_open, worker.answer, worker.task = False, None, []

    def _record(self, worker: ClusterWorker, submission: Submission, read: Read, report: Report) -> None:
        """Add a report, completed with the student and the note on the file, which workers do not receive."""
        name = in_utf8(f"{submission.folder}/{self._unit}/{submission.notebook}")
        report = msgspec.structs.replace(report, notebook=name, message=joined(submission.note, report.message))
        worker.graded += 1
        self.results.append(GradedSubmission(submission, read.file.content, report, read.stamp))
