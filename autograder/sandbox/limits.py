"""How much one submission may use. One place, so that a course with a slower machine changes one number."""

from dataclasses import dataclass

from .inside import confinement


@dataclass(frozen=True)
class Limits:
    """CPU time is the limit; wall time stands generously beside it, since a busy machine is not the student's fault."""

    cell_cpu_seconds: int = 10
    call_cpu_seconds: int = 4
    wall_factor: int = 5
    """Wall seconds allowed for each CPU second: 20 for a call, 50 for a cell."""
    worker_cpu_seconds: int = 60
    restarts: int = 8
    """How often a worker is started again for one submission, after a hang or a crash."""
    memory_bytes: int = 4 << 30
    file_bytes: int = 64 << 20

    def of_worker(self) -> confinement.Limits:
        """The part that the worker's own process is held to."""
        return confinement.Limits(self.worker_cpu_seconds, self.memory_bytes, self.file_bytes)
