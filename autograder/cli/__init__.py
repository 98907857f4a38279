"""The commands: they read arguments, call one room, and say what came of it."""

import typer

from .build import build
from .grade import grade
from .mark import mark
from .matrix import matrix

app = typer.Typer(
    help="Marks attention exercises: students' code in one process, hidden graders in another.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(build)
app.command()(grade)
app.command()(mark)
app.command()(matrix)


def main() -> None:
    """The `autograder` command."""
    app()
