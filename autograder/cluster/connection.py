"""What a run asks of Dask: who is there, and one worker's answer to bytes. What Dask raises becomes a sentence here."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import dask
from distributed import Client, KilledWorker
from distributed.scheduler import NoValidWorkerError

from ..client.marker import MarkerRefused
from .address import Address
from .checking import CannotMark

_CONNECTING_SECONDS = 15
_CLOSING_SECONDS = 5
_LONGEST_REASON = 600


class Gone(Exception):
    """A worker died, or left, before it answered."""


class Connection:
    """To a scheduler."""

    def __init__(self, scheduler: Address, client: Client) -> None:
        self.scheduler = scheduler
        self._client = client

    async def workers(self) -> dict[str, dict[str, Any]]:
        """What the scheduler knows of each worker, by its address; raises MarkerRefused where it is gone."""
        try:
            if self._client.status != "running":
                raise OSError("the connection is lost")
            there = await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), _CONNECTING_SECONDS)
        except (OSError, TimeoutError) as error:
            raise self._lost(error) from None
        return dict(there["workers"])

    async def answer(
        self, worker: str, function: Callable[[bytes], bytes], data: bytes, gone: asyncio.Event, *, gpu: bool
    ) -> object:
        """What a function says at this worker and no other. gone: is set when the worker is no longer there.

        Raises Gone; CannotMark where Dask cannot run it there; MarkerRefused where the scheduler is gone.
        """
        future = self._client.submit(
            function,
            data,
            key=f"autograder-{function.__name__}-{uuid.uuid4()}",
            workers=[worker],
            allow_other_workers=False,
            resources={"GPU": 1} if gpu else None,
        )
        waiting = [
            asyncio.ensure_future(self._client.gather(future, direct=False)),
            asyncio.ensure_future(gone.wait()),
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not waiting[0].done():
                raise Gone
            return waiting[0].result()
        except (KilledWorker, NoValidWorkerError):
            raise Gone from None
        except CancelledError as error:
            raise self._lost(error) from None
        except (Gone, asyncio.CancelledError):
            raise
        except Exception as error:
            raise CannotMark(f"Dask cannot run the kit there ({shortened(error)}).") from None
        finally:
            for one in waiting:
                one.cancel()
            with contextlib.suppress(Exception):  # of a task that is still running: it ends with its submission
                await asyncio.wait_for(self._client.cancel([future]), _CLOSING_SECONDS)
            await asyncio.gather(*waiting, return_exceptions=True)

    def _lost(self, error: BaseException) -> MarkerRefused:
        return MarkerRefused(
            f"The Dask scheduler at {self.scheduler.text} is gone ({shortened(error)}). What was recorded so far "
            "stays; run the same command again for the rest."
        )


@contextlib.asynccontextmanager
async def connected(scheduler: Address) -> AsyncIterator[Connection]:
    """A connection to the scheduler; raises MarkerRefused where none can be had."""
    with _quiet(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        client = await _client(scheduler)
        try:
            yield Connection(scheduler, client)
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(), _CLOSING_SECONDS)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Dask's log, which has a traceback for each worker that died and a connection that is lost."""
    logs = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = [log.level for log in logs]
    try:
        for log in logs:
            log.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


async def _client(scheduler: Address) -> Client:
    try:
        return await Client(
            scheduler.text,
            security=scheduler.security,
            timeout=_CONNECTING_SECONDS,
            asynchronous=True,
            set_as_default=False,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise MarkerRefused(
            f"No Dask scheduler answers at {scheduler.text} ({shortened(error)}). Is it running, and with TLS files of "
            "the same authority?"
        ) from None


def shortened(reason: object) -> str:
    """On one line, and no longer than anyone reads."""
    text = " ".join(str(reason).split()) or type(reason).__name__
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + " …"
