"""The options of `grade` that ask for a Dask cluster."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from .saying import refuse, remark

if TYPE_CHECKING:
    from ..classroom.marking_ahead import Marking

Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Mark on the Dask cluster with this scheduler, tls://HOST:PORT."),
]
PlainTcp = Annotated[
    bool, typer.Option("--plain-tcp", help="Let a scheduler at tcp:// be on another machine, without encryption.")
]


def marking_at(scheduler: str | None, *, plain_tcp: bool) -> "Callable[..., Marking]":
    """What makes the reports: a cluster, where a scheduler is named; raises MarkerRefused."""
    if scheduler is None:
        from ..classroom.marking_ahead import MarkingAhead

        return MarkingAhead
    try:
        from ..cluster.cluster_run import ClusterRun
        from ..cluster.connection import Address
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] not in ("dask", "distributed"):
            raise
        refuse("--scheduler needs Dask, which is not installed: pip install 'attention-autograder[cluster]'.")
    return partial(ClusterRun, scheduler=Address(scheduler, plain_tcp=plain_tcp), say=remark)
