"""How much one submission may use. The numbers stand in autograder.toml; here is what each is for."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from .confine.resources import WorkerLimits
from .confine.scratch import MOST_FILES

MEGABYTE = 1 << 20

Passed = Literal["threads", "bytes", "files", "file", "memory"]
"""A limit that was passed: of threads, of all files together, of how many there are, of one file, of memory."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """CPU time is the limit; wall time stands generously beside it, since a busy machine is not the student's fault."""

    cell_cpu_seconds: int
    """For one cell of the notebook."""
    call_cpu_seconds: int
    """For one call by a grader."""
    wall_factor: int
    """Wall seconds allowed for each CPU second."""
    worker_cpu_seconds: int
    """For all cells and calls in one worker."""
    restarts: int
    """How often a worker is started again for one submission, after a hang or a crash."""
    submission_wall_seconds: int
    """For one submission, everything included but waiting for a processor; what is left of it then is not run."""
    memory_megabytes: int
    """Of address space, above what Python and torch have mapped before."""
    file_megabytes: int
    """For one file."""
    scratch_megabytes: int
    """For all files together."""
    open_files: int
    threads: int
    """More of them end the worker."""

    @property
    def scratch_bytes(self) -> int:
        return self.scratch_megabytes * MEGABYTE

    def said(self, passed: Passed) -> str:
        """That a limit was passed, in a sentence for the student."""
        match passed:
            case "threads":
                return f"More than {self.threads} threads ran at once; a notebook may have {self.threads}."
            case "bytes":
                return f"Its files came to more than {self.scratch_megabytes} MB."
            case "files":
                return f"It made more than {MOST_FILES} files."
            case "file":
                return f"One of its files came to more than {self.file_megabytes} MB."
            case "memory":
                return f"It used up the {self.memory_megabytes} MB of memory that a notebook may have."

    def hint(self, kinds: Sequence[str], message: str) -> str:
        """What may be used of that which an exception says there is no more of; empty for any other exception."""
        said = {
            "[Errno 28]": f"A notebook's files may come to {self.scratch_megabytes} MB, and be {MOST_FILES}.",
            "[Errno 27]": f"One file may have {self.file_megabytes} MB.",
            "[Errno 24]": f"A notebook may have {self.open_files} files open at once.",
            "can't start new thread": f"A notebook may have {self.threads} threads.",
        }
        if "MemoryError" in kinds or "can't allocate memory" in message:
            return f"A notebook may use {self.memory_megabytes} MB of memory."
        return next((hint for beginning, hint in said.items() if message.startswith(beginning)), "")

    def of_worker(self) -> WorkerLimits:
        """The part that the worker's own process is held to."""
        return WorkerLimits(
            self.worker_cpu_seconds,
            self.memory_megabytes * MEGABYTE,
            self.file_megabytes * MEGABYTE,
            self.open_files,
            self.threads,
        )
