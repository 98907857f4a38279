"""The commands: each reads its arguments, calls one package, and prints the results.

Others import none of its modules.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from .. import __version__
from .console import command_errors, flush, help_errors

_MODULES = {
    "answers": "classroom",
    "build": "authoring",
    "export": "lms",
    "extend": "classroom",
    "feedback-zip": "lms",
    "grade": "grade",
    "import": "lms",
    "mark": "grade",
    "matrix": "authoring",
    "new-course": "classroom",
    "new-exercise": "authoring",
    "read": "classroom",
    "remove-exercise": "authoring",
    "report": "classroom",
    "reseed": "authoring",
    "reweight": "classroom",
    "serve": "serve",
    "slides": "slides",
    "upgrade-course": "classroom",
}
"""The module of each command."""


_PATHS = (
    "Learn: open a notebook in `release/`; `docs/student.md` helps.",
    "Teach: `autograder new-course DIR` makes the folder of a class; go on with `docs/instructor.md`.",
    "Write tests: `autograder new-exercise UNIT NAME` begins an exercise; go on with `CONTRIBUTING.md`.",
    "`docs/troubleshooting.md` explains every message.",
)
"""The ways into the repository, below the help."""


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"autograder {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
) -> None:
    """Grade exercises on attention: students' code runs in one process, the hidden tests in another."""


def app(commands: Iterable[str] = tuple(_MODULES)) -> typer.Typer:
    """Return the typer application with these commands."""
    application = typer.Typer(
        epilog="\n\n".join(_PATHS),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    application.callback()(about)
    for name in commands:
        module = import_module(f".{_MODULES[name]}", __name__)
        function = "import_" if name == "import" else name.replace("-", "_")
        application.command(name)(command_errors()(getattr(module, function)))
    return application


def main() -> None:
    """Run the `autograder` command."""
    # jsonschema imports it for a format that no notebook uses, which takes half of nbgrader's start-up time.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        with help_errors():
            app([command] if command in _MODULES else _MODULES)()  # the others take as long to import as all else
    finally:
        flush()
