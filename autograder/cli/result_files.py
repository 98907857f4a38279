"""Results that go to a file or to standard output."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import output_files
from ..course.notebook import printable_lines
from ..course.submitted_files import new_folder, replace_folder
from ..output_files import NotWritable
from ..report import Report
from ..reports.exports import Visibility, gradescope_results, junit_xml
from .console import results
from .options import STANDARD_OUTPUT


def check(path: Path, inputs: Collection[Path] = (), *, makes_folder: bool = False) -> None:
    """Raise NotWritable if a result cannot be written to a path, see `output_files.check`; accept standard output."""
    if path != STANDARD_OUTPUT:
        output_files.check(path, inputs, makes_folder=makes_folder)


def reject_standard_output(path: Path | None, instead: str) -> None:
    """Raise NotWritable if `-` is given for a result that is not printed."""
    if path == STANDARD_OUTPUT:
        raise NotWritable(f"This result cannot be printed to standard output. {instead}")


def write(path: Path, content: bytes, *, makes_folder: bool = False) -> None:
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
    hidden: Visibility
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
            check(path, notebooks)

    def write(self, reports: Sequence[Report]) -> None:
        """Write the files. Raise NotWritable and OutputLost."""
        if self.junit:
            write(self.junit, junit_xml(reports))
        if self.gradescope:
            write(self.gradescope, gradescope_results(reports[0], self.hidden))
