"""Run a command of the autograder in the test's own process."""

from contextlib import chdir
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from autograder.cli import app

from . import REPOSITORY


def run(*arguments: object, code: int = 0, cwd: Path = REPOSITORY) -> Result:
    """Run a command in a folder, require its exit code, and return its result.

    The result has the texts `stdout` and `stderr`, and both in `output`.
    """
    with chdir(cwd):
        result = CliRunner().invoke(app(), [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def refusal(*arguments: object, cwd: Path = REPOSITORY) -> str:
    """Run a command that refuses without printing anything, and return its message on one line."""
    refused = run(*arguments, code=2, cwd=cwd)
    assert refused.stdout == ""
    return " ".join(refused.stderr.split())
