"""The commands: each reads its arguments, calls one room, and says what came of it."""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from .. import __version__
from .saying import ending_in_a_sentence, flush, of_typer

_COMMANDS = (
    *("build", "export", "feedback-zip", "grade", "import", "mark", "matrix"),
    *("new-course", "new-exercise", "report", "serve", "slides", "upgrade-course"),
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"autograder {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
) -> None:
    """Marks exercises: students' code in one process, hidden graders in another."""


def app(commands: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    made = typer.Typer(
        epilog="docs/instructor.md leads through a class, docs/automation.md through a pipeline, CONTRIBUTING.md "
        "through a change of the course; docs/troubleshooting.md says what a message means.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(about)
    for name in commands:
        function = name.replace("-", "_")
        module = import_module(f".{function}_" if name == "import" else f".{function}", __name__)
        made.command(name)(ending_in_a_sentence()(getattr(module, module.__name__.rpartition(".")[2])))
    return made


def main() -> None:
    """The `autograder` command."""
    # jsonschema imports it for a format that no notebook uses, which takes half of nbgrader's start-up time.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        with of_typer():
            app([asked] if asked in _COMMANDS else _COMMANDS)()  # the others take as long to import as all else
    finally:
        flush()
