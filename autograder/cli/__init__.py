"""The commands: each reads its arguments, calls one room, and says what came of it."""

import sys
from typing import Annotated

import typer

from .. import __version__
from .build import build
from .export import export
from .feedback_zip import feedback_zip
from .grade import grade
from .import_ import import_
from .mark import mark
from .matrix import matrix
from .new_course import new_course
from .new_exercise import new_exercise
from .report import report
from .saying import ending_in_a_sentence, flush, of_typer
from .slides import slides
from .upgrade_course import upgrade_course

app = typer.Typer(
    epilog="docs/instructor.md leads through a class, docs/automation.md through a pipeline, CONTRIBUTING.md through a "
    "change of the course; docs/troubleshooting.md says what a message means.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"autograder {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
) -> None:
    """Marks exercises: students' code in one process, hidden graders in another."""


app.command()(ending_in_a_sentence()(build))
app.command()(ending_in_a_sentence()(export))
app.command()(ending_in_a_sentence()(feedback_zip))
app.command()(ending_in_a_sentence()(grade))
app.command("import")(ending_in_a_sentence()(import_))
app.command()(ending_in_a_sentence()(mark))
app.command()(ending_in_a_sentence()(matrix))
app.command()(ending_in_a_sentence()(new_course))
app.command()(ending_in_a_sentence()(new_exercise))
app.command()(ending_in_a_sentence()(report))
app.command()(ending_in_a_sentence()(slides))
app.command()(ending_in_a_sentence()(upgrade_course))


def main() -> None:
    """The `autograder` command."""
    # jsonschema imports it for a format that no notebook uses, which takes half of nbgrader's start-up time.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        with of_typer():
            app()
    finally:
        flush()
