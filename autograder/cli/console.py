"""Input and output that the commands share: options, results and messages.

Results go to stdout or files, everything else to stderr. An error ends a command with a message instead of a traceback.
Names and messages may come from a student. Control characters for a terminal and markup for rich are shown as text.

Options that several commands share are paths, a class's folder and roster, isolation, a Dask cluster and a JSON Schema.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import msgspec
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .. import UserError, output_files
from ..course import settings
from ..course.notebook import list_names as list_names
from ..course.notebook import printable_lines
from ..course.settings import folder, is_class, use
from ..course.submitted_files import new_folder, replace_folder
from ..output_files import NotWritable
from ..report import Report

if TYPE_CHECKING:
    from ..classroom.assignment import BatchGrading
    from ..reports.exports import Visibility

OUR_FAULT = 1
"""The run is complete, but a file could not be read, or something was not graded or recorded."""
REFUSED = 2
"""Nothing could be done, or the run ended early; an error message says why."""
TOO_LOW = 3
"""`mark` only: everything has a result, and a notebook is below `--fail-under`."""
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Console(Console):
    """Prints no control characters but those of rich's own styles, in texts and tables alike."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Replace control characters in all text that is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    def on_broken_pipe(self) -> None:
        """Leave the error to `results`: rich would end the program without a message."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


console = _Console()
to_stderr = _Console(stderr=True)


class OutputLost(UserError):
    """The results cannot be written."""


def printable(text: object) -> Text:
    """Return a text, which may be a student's, made safe for a terminal line by line."""
    return Text(printable_lines(str(text)))


def relative_path(path: Path) -> str:
    """Return a path relative to the working directory if it is in there, else the whole path."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)


def fail(message: object) -> NoReturn:
    """Print why nothing was done, and exit with status 2."""
    remark(message, style="red")
    raise typer.Exit(REFUSED)


def remark(message: object, *, style: str = "") -> None:
    """Print a message on stderr, if that is open."""
    with contextlib.suppress(OSError):
        to_stderr.print(printable(message), style=style, highlight=False, soft_wrap=True)


def print_lines(lines: Iterable[object]) -> None:
    """Print lines of a result; raises OutputLost."""
    with results():
        for line in lines:
            console.print(printable(line), highlight=False, soft_wrap=True)


@contextlib.contextmanager
def results() -> Iterator[None]:
    """Flush the results that the block prints; raises OutputLost if stdout does not take them."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout.fileno())
        raise OutputLost(f"The results could not be written to the end: {error.strerror}.") from None


_begun: list[bool] = []
"""Not empty once a command has begun; typer prints its own texts before that."""


@contextlib.contextmanager
def help_errors() -> Iterator[None]:
    """Context around typer: print a message if typer's own texts, such as help, cannot be written."""
    try:
        yield
    except OSError as error:
        if _begun:  # then it is a command's, and a fault of ours
            raise
        _discard(sys.stdout.fileno())
        remark(f"The text could not be written to the end: {error.strerror}.", style="red")
        sys.exit(REFUSED)


@contextlib.contextmanager
def command_errors() -> Iterator[None]:
    """Context around a command: print a message for a UserError or a signal, which raises KeyboardInterrupt once."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _send_again
    _begun.append(True)
    try:
        yield
    except KeyboardInterrupt:
        fail("Interrupted.")
    except UserError as reason:
        fail(reason)


_interrupted: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for the first signal only: a later one must not interrupt the end of the command."""
    if not _interrupted:
        _interrupted.append(number)
        raise KeyboardInterrupt


def _send_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send a signal again that arrived in a destructor: Python drops the exception that its handler raised there."""
    if _interrupted and dropped.exc_type is KeyboardInterrupt:
        again = threading.Timer(0.05, os.kill, (os.getpid(), _interrupted.pop()))  # when the destructor has ended
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def flush() -> None:
    """Write what is still buffered, or discard it: otherwise Python would complain about it in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _discard(stream.fileno())


def _discard(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


STANDARD_OUTPUT = Path("-")


def check_result(path: Path, inputs: Collection[Path] = (), *, makes_folder: bool = False) -> None:
    """Raise NotWritable if a result cannot be written to a path, see `output_files.check`; accept standard output."""
    if path != STANDARD_OUTPUT:
        output_files.check(path, inputs, makes_folder=makes_folder)


def reject_standard_output(path: Path | None, instead: str) -> None:
    """Raise NotWritable if `-` is given for a result that is not printed."""
    if path == STANDARD_OUTPUT:
        raise NotWritable(f"This result cannot be printed to standard output. {instead}")


def write_result(path: Path, content: bytes, *, makes_folder: bool = False) -> None:
    """Write a result. Raise NotWritable, and OutputLost if standard output does not take it."""
    if path != STANDARD_OUTPUT:
        output_files.write({path: content}, makes_folder=makes_folder)
        return
    with results():
        sys.stdout.buffer.write(for_terminal(content) if sys.stdout.isatty() else content)


def check_new_folder(path: Path) -> None:
    """Raise NotWritable unless a folder of result files can be made at a path: at most an empty folder is there."""
    reject_standard_output(path, "Name a folder.")
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir() or any(path.iterdir())):
        raise NotWritable(f"{path} is not an empty folder. Name an empty or a new folder.")
    output_files.check(path / "file", makes_folder=True)


def write_new_folder(path: Path, contents: Mapping[Path, bytes]) -> None:
    """Write a folder of files, for its owner only, all of them or none. Raise NotWritable as `check_new_folder` does.

    contents: the files by their paths in the folder.
    """
    check_new_folder(path)
    try:
        with new_folder(path.absolute()) as new:
            new.chmod(0o700)
            for name, content in contents.items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(content)
            replace_folder(new, path.absolute())
    except OSError as error:
        raise NotWritable(f"{path} could not be written to the end: {error.strerror}.") from None


def for_terminal(content: bytes) -> bytes:
    """Replace characters that a terminal obeys instead of showing: escapes, other controls, changes of direction."""
    return printable_lines(content.decode(errors="replace")).encode()


@dataclass(frozen=True)
class ResultFiles:
    """The files that `mark` writes in addition to what it prints."""

    junit: Path | None
    gradescope: Path | None
    hidden: "Visibility"
    """Visibility of the hidden tests' results on Gradescope."""
    is_quiet: bool = False
    """True if nothing else goes to standard output, so that one result file may be written to it."""

    def check(self, notebooks: Sequence[Path]) -> None:
        """Raise NotWritable if it is known before grading that a file cannot be written, or should not be."""
        files = [path for path in (self.junit, self.gradescope) if path]
        if self.gradescope and len(notebooks) > 1:
            raise NotWritable("--gradescope takes one notebook: results.json is the result of one submission.")
        if len({os.path.realpath(path) for path in files}) < len(files):
            raise NotWritable(f"{self.junit} cannot hold both results. Give --junit and --gradescope different files.")
        if STANDARD_OUTPUT in files and not self.is_quiet:
            raise NotWritable("The reports already go to standard output. Give --quiet too, or name a file.")
        for path in files:
            check_result(path, notebooks)

    def write(self, reports: Sequence[Report]) -> None:
        """Write the files. Raise NotWritable and OutputLost."""
        from ..reports.exports import gradescope_results, junit_xml

        if self.junit:
            write_result(self.junit, junit_xml(reports))
        if self.gradescope:
            write_result(self.gradescope, gradescope_results(reports[0], self.hidden))


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
        from ..classroom.assignment import LocalGrading

        return LocalGrading
    try:
        from ..cluster.cluster_run import Address, ClusterRun
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] not in ("dask", "distributed"):
            raise
        fail("--scheduler needs Dask, which is not installed: pip install 'attention-autograder[cluster]'.")
    return partial(ClusterRun, scheduler=Address(scheduler, plain_tcp=plain_tcp), say=remark)
