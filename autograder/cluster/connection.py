"""The connection to a Dask scheduler: its address, TLS, its workers, and one worker's answer to bytes.

A Dask scheduler runs code for whoever reaches it, so a connection without TLS stays on this machine unless the
instructor allows more. Dask's exceptions become messages here.
"""

import contextlib
import ipaddress
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import dask
import msgspec
from distributed import Client, Future, KilledWorker, wait
from distributed.scheduler import NoValidWorkerError
from distributed.security import Security

from ..pool.grading_pool import GradingRefused
from .worker import CannotGrade

_ADDRESS = re.compile(r"(?P<protocol>[a-z]+)://(?P<host>[\w.%-]+|\[[\w:.%]+\]):\d{1,5}")
_TLS_FILES = {
    "tls_ca_file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
    "tls_client_cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
    "tls_client_key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
}
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
                f"{text} is on another machine, and over plain TCP anyone in between could read submissions, "
                "change grades "
                "and run code on both machines. Use tls:// (see docs/cluster.md) or an SSH tunnel. If nobody else uses "
                "the network, pass --plain-tcp."
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
    for name, variable in _TLS_FILES.items():
        file = getattr(security, name)
        is_optional = name == "tls_client_key"  # which may be in the certificate's file
        if not (file or is_optional) or (file and "\n" not in file and not Path(file).is_file()):
            names = f"{file}, which does not exist" if file else "none"
            raise GradingRefused(f"TLS needs three files, and {variable} names {names}: see docs/cluster.md.")
    try:
        security.get_connection_args("client")
    except (OSError, ValueError) as error:  # OSError: includes the errors of ssl
        raise GradingRefused(
            f"The files for TLS cannot be used ({error}): see {', '.join(_TLS_FILES.values())}."
        ) from None
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
            f"The Dask scheduler at {self._scheduler.text} no longer answers ({shortened(error)}). The grades "
            "recorded so "
            "far are kept; run the same command again for the rest."
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
