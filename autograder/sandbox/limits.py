"""Limits on running one submission, and on formatting its feedback page. autograder.toml sets them."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from .confine.process import WorkerLimits
from .confine.scratch import MOST_FILES

MEGABYTE = 1 << 20

Excess = Literal["threads", "bytes", "files", "file", "memory"]
"""A limit that was exceeded: threads, bytes of all files, number of files, bytes of one file, memory."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits on running one submission.

    Slow code is stopped by the limits on CPU time. The limits on wall time are much higher, because the machine may be
    busy.
    """

    cell_cpu_seconds: int
    """Limit for the CPU time of one cell of the notebook."""
    call_cpu_seconds: int
    """Limit for the CPU time of one call by a hidden test."""
    wall_factor: int
    """Wall seconds allowed for each CPU second."""
    worker_cpu_seconds: int
    """Limit for the CPU time of all cells and calls in one worker."""
    restarts: int
    """Most new workers for one submission after hangs and crashes."""
    submission_wall_seconds: int
    """Limit for grading one submission, not counting time spent waiting for a processor; then nothing more is run."""
    memory_megabytes: int
    """Limit for address space in addition to what Python and torch map before the submission runs."""
    file_megabytes: int
    """Limit for the size of one file."""
    scratch_megabytes: int
    """Limit for the size of all files together."""
    open_files: int
    """Files that the worker's process may have open at once."""
    threads: int
    """Most threads at once; a worker with more is ended."""

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
        """Return a sentence that tells the student which limit was exceeded."""
        sentences: dict[Excess, str] = {
            "threads": f"More than {self.threads} threads ran at once; a notebook may have {self.threads}.",
            "bytes": f"The notebook's files had more than {self.scratch_megabytes} MB in all.",
            "files": f"The notebook made more than {MOST_FILES} files.",
            "file": f"One of the notebook's files had more than {self.file_megabytes} MB.",
            "memory": f"The notebook used more than the {self.memory_megabytes} MB of memory that it may use.",
        }
        return sentences[excess]

    def hint(self, kinds: Sequence[str], message: str) -> str:
        """Return a sentence that names the limit which caused an exception; empty if none did.

        kinds: names of the exception's class and its base classes. message: the exception's message.
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
    """Limits on formatting the texts of a feedback page. Text past a limit is shown as plain text, with a reason."""

    cell_cpu_seconds: int = 1
    """Limit for the CPU time of one cell or one comment."""
    page_cpu_seconds: int = 3
    """Limit for the CPU time of all cells of a page."""
    page_wall_seconds: int = 6
    """Limit for the wall time of all cells of a page."""
    memory_megabytes: int = 512
    """Limit for address space in addition to what the formatter maps when it starts."""
