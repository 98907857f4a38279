"""The files that `mark` writes beside what it prints."""

import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..classroom import whole_files
from ..exports.gradescope import Visibility
from ..report import Report
from .saying import OutputLost

_MODE = 0o644


class NoSuchOutput(Exception):
    """A file that was asked for cannot be written; `str()` says why."""


@dataclass(frozen=True)
class ResultFiles:
    """Which files are asked for."""

    junit: Path | None
    gradescope: Path | None
    hidden: Visibility
    """Who sees, on Gradescope, what comes of the hidden graders."""

    def check(self, notebooks: Sequence[Path]) -> None:
        """Raises NoSuchOutput where it is known before marking that a file cannot be written, or should not be."""
        asked = [path for path in (self.junit, self.gradescope) if path]
        if self.gradescope and len(notebooks) > 1:
            raise NoSuchOutput("--gradescope takes one notebook: results.json is the result of one submission.")
        if len({os.path.realpath(path) for path in asked}) < len(asked):
            raise NoSuchOutput(f"{self.junit} cannot hold both results. Give --junit and --gradescope different files.")
        for path in asked:
            if os.path.realpath(path) in map(os.path.realpath, notebooks):
                raise NoSuchOutput(f"{path} is one of the notebooks. Give the results a file of their own.")
            if path.is_symlink():
                raise NoSuchOutput(
                    f"{path} is a link, through which another file would be written. Give a file's own name."
                )
            if path.is_dir():
                raise NoSuchOutput(f"{path} is a folder. Give the name of a file.")
            if path.exists() and not path.is_file():
                raise NoSuchOutput(f"{path} is not a regular file, and is not replaced by one. Give another name.")
            if not path.parent.is_dir():
                raise NoSuchOutput(f"{path} cannot be written: there is no folder {path.parent}.")
            if not _may_be_written(path):
                raise NoSuchOutput(f"{path} cannot be written: it, or its folder, is not yours to change.")

    def write(self, reports: Sequence[Report]) -> None:
        """Writes them; raises OutputLost."""
        if self.junit:
            from ..exports.junit import junit

            _write(self.junit, junit(reports))
        if self.gradescope:
            from ..exports.gradescope import results

            _write(self.gradescope, results(reports[0], self.hidden))


def _may_be_written(path: Path) -> bool:
    """Whether a file can be made beside it and take its place, which is its owner's wish too; nothing is changed."""
    try:
        if path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=path.parent):
            return True
    except OSError:
        return False


def _write(path: Path, content: bytes) -> None:
    """Whole, or not at all: the name may have become a link's since it was looked at."""
    try:
        mode = stat.S_IMODE(path.lstat().st_mode) if path.is_file() and not path.is_symlink() else _MODE
        whole_files.write(path, content, mode)
    except OSError as error:
        raise OutputLost(f"{path} could not be written to the end: {error.strerror}.") from None
