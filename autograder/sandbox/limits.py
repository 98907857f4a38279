"""Limits of one submission, and of the formatting of its page. autograder.toml sets the numbers."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from .confine.process import WorkerLimits
from .confine.scratch import MOST_FILES

MEGABYTE = 1 << 20

Excess = Literal["threads", "bytes", "files", "file", "memory"]
"""A limit that was exceeded: threads, bytes of all files, number of files, bytes of one file, memory."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """CPU time is the limit that matters. Wall time is a generous multiple of it, because the machine may be busy."""

    cell_cpu_seconds: int
    """For one cell of the notebook."""
    call_cpu_seconds: int
    """For one call by a hidden test."""
    wall_factor: int
    """Wall seconds allowed for each CPU second."""
    worker_cpu_seconds: int
    """For all cells and calls in one worker."""
    restarts: int
    """Number of new workers for one submission, after a hang or a crash."""
    submission_wall_seconds: int
    """For everything in one submission, except waiting for a processor; the rest is then not run."""
    memory_megabytes: int
    """Address space beyond what Python and torch have mapped before."""
    file_megabytes: int
    """For one file."""
    scratch_megabytes: int
    """For all files together."""
    open_files: int
    """Files that the worker's process may have open at once."""
    threads: int
    """A worker with more threads is ended."""

    @property
    def scratch_bytes(self) -> int:
        return self.scratch_megabytes * MEGABYTE

    @property
    def worker(self) -> WorkerLimits:
        """The limits that the kernel enforces on the worker's process."""
        return WorkerLimits(
            self.worker_cpu_seconds,
            self.memory_megabytes * MEGABYTE,
            self.file_megabytes * MEGABYTE,
            self.open_files,
            self.threads,
        )

    def explain(self, excess: Excess) -> str:
        """Return a sentence for the student about a limit that was exceeded."""
        sentences: dict[Excess, str] = {
            "threads": f"More than {self.threads} threads ran at once; a notebook may have {self.threads}.",
            "bytes": f"The notebook's files had more than {self.scratch_megabytes} MB in all.",
            "files": f"The notebook made more than {MOST_FILES} files.",
            "file": f"One of the notebook's files had more than {self.file_megabytes} MB.",
            "memory": f"The notebook used more than the {self.memory_megabytes} MB of memory that it may use.",
        }
        return sentences[excess]

    def hint(self, kinds: Sequence[str], message: str) -> str:
        """Return the limit that caused an exception, in a sentence; empty for other exceptions.

        kinds: the names of the exception's classes.
        """
        if "MemoryError" in kinds or "can't allocate memory" in message:
            return f"A notebook may use {self.memory_megabytes} MB of memory."
        hints = {
            "[Errno 28]": f"A notebook may write {MOST_FILES} files, and {self.scratch_megabytes} MB in all.",
            "[Errno 27]": f"One file may have {self.file_megabytes} MB.",
            "[Errno 24]": f"A notebook may have {self.open_files} files open at once.",
            "can't start new thread": f"A notebook may have {self.threads} threads.",
        }
        return next((hint for beginning, hint in hints.items() if message.startswith(beginning)), "")


class PageLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of formatting, which autograder.toml sets. Text past a limit is shown as plain text, with a reason."""

    cell_cpu_seconds: int = 1
    """For one cell; a comment counts as one."""
    page_cpu_seconds: int = 3
    """For all cells of a page."""
    page_wall_seconds: int = 6
    """For all cells of a page, waiting included."""
    memory_megabytes: int = 512
    """Bytes of address space beyond those that the formatter has mapped when it starts."""
