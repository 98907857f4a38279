"""Options that several commands share: paths, a class's folder and roster, isolation, a Dask cluster, a JSON Schema."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from ..course import settings
from ..course.settings import folder, is_class, use
from .console import STANDARD_OUTPUT, fail, remark

if TYPE_CHECKING:
    from ..classroom.batch import BatchGrading


def named(text: str) -> Path:
    """Read a path from the command line. `-` is standard output, and `./-` a file of that name."""
    if not text.strip():
        raise typer.BadParameter("The name is empty.")
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != str(STANDARD_OUTPUT) else path


def path_option(metavar: str, description: str, *names: str) -> Any:
    """Return a typer option for a path. names: the option's names, if they are not the parameter's."""
    return typer.Option(*names, parser=named, metavar=metavar, help=description)


UnitName = Annotated[str, typer.Argument(metavar="UNIT", help="The unit, e.g. self_attention.")]
Units = Annotated[list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all if not given.")]
Course = Annotated[
    Path | None,
    path_option(
        "DIR",
        "The class's folder, with submissions and gradebook; by default the working directory, if it is one.",
        "--course",
    ),
]
RosterFile = Annotated[
    Path | None,
    path_option(
        "FILE",
        "A CSV file with a column id, or a table that Canvas or Moodle exports; by default COURSE/roster.csv, "
        "if it exists.",
        "--roster",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        help="The roster's column with the students' ids; `Email address before @` is the part before the @.",
    ),
]
Section = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only the students in this section, as the roster's column section says."),
]
Require = Annotated[
    Literal["A", "B"] | None,
    typer.Option(
        "--require-isolation", help="Grade only at this isolation level; if not given, at the best level available."
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust-submissions", help="If no isolation level is available, run the submissions without isolation."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Grade on the Dask cluster with this scheduler, tls://HOST:PORT."),
]
PlainTcp = Annotated[
    bool, typer.Option("--plain-tcp", help="Accept a scheduler at tcp:// on another machine, without encryption.")
]


def schema_option(module: str, name: str, line: str) -> Any:
    """Return a typer option that prints the JSON Schema of a struct, and exits.

    module, name: where the struct is defined in autograder; imported when the option is used.
    line: what the command's help calls a line of this form.
    """

    def print_schema(is_wanted: bool) -> None:
        if is_wanted:
            from ..reports.exports import json_schema

            form = getattr(import_module(f"..{module}", __package__), name)
            typer.echo(json_schema(form), nl=False)
            raise typer.Exit

    return typer.Option("--schema", is_eager=True, callback=print_schema, help=f"Print the JSON Schema of {line}.")


def class_folder(given: Path | None) -> Path:
    """Return the folder of `--course`, else the working directory if it is a class's, else the course's own.

    From here on this process serves the course that the folder belongs to. Settings are therefore loaded later.
    """
    here = Path.cwd()
    has_units = (here / "nbgrader_config.py").is_file() and (here / "source").is_dir()
    root = given or (here if has_units and is_class(here) else None)
    if root is None:
        return folder()
    use(root)
    return root


def isolation_settings(require: Literal["A", "B"] | None, trust: bool) -> settings.Settings:
    """Return the settings of autograder.toml, overridden by the command line; raises BadSettings."""
    if require is not None and trust:
        raise settings.BadSettings("Give either --require-isolation or --trust-submissions, not both.")
    loaded = settings.load()
    if require is not None:
        loaded = msgspec.structs.replace(loaded, isolation=settings.Isolation(require))
    return loaded.trusting() if trust else loaded


def batch_grading_at(scheduler: str | None, *, plain_tcp: bool) -> "Callable[..., BatchGrading]":
    """Return the constructor of a batch that grades: on a cluster if a scheduler is named, else on this machine.

    Raises GradingRefused.
    """
    if scheduler is None:
        from ..classroom.batch import LocalGrading

        return LocalGrading
    try:
        from ..cluster.cluster_run import ClusterRun
        from ..cluster.connection import Address
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] not in ("dask", "distributed"):
            raise
        fail("--scheduler needs Dask, which is not installed: pip install 'attention-autograder[cluster]'.")
    return partial(ClusterRun, scheduler=Address(scheduler, plain_tcp=plain_tcp), say=remark)
