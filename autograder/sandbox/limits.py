"""How much one submission may use. The numbers stand in autograder.toml; here is what each is for."""

import msgspec

from .inside.resources import WorkerLimits

MEGABYTE = 1 << 20


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
    """For one submission, everything included; what is left of it then is not run."""
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

    def of_worker(self) -> WorkerLimits:
        """The part that the worker's own process is held to."""
        return WorkerLimits(
            self.worker_cpu_seconds,
            self.memory_megabytes * MEGABYTE,
            self.file_megabytes * MEGABYTE,
            self.open_files,
            self.threads,
        )
