"""The options of `mark` and `grade` that ask for isolation."""

from typing import Annotated, Literal

import msgspec
import typer

from ..course import settings

Require = Annotated[
    Literal["A", "B"] | None,
    typer.Option("--require-isolation", help="Mark at this level or not at all; if not given, at the best there is."),
]
Trust = Annotated[
    bool,
    typer.Option("--trust-submissions", help="Where no level can be had, run the submissions without isolation."),
]


def asked(require: Literal["A", "B"] | None, trust: bool) -> settings.Settings:
    """The settings of autograder.toml, overridden by the command line; raises BadSettings."""
    if require is not None and trust:
        raise settings.BadSettings("Either --require-isolation or --trust-submissions: the one rules the other out.")
    asked_for = settings.load()
    if require is not None:
        asked_for = msgspec.structs.replace(asked_for, isolation=settings.Isolation(require))
    return asked_for.trusting() if trust else asked_for
