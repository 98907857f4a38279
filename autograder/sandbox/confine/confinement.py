"""What the operating system keeps a worker from doing: prepared once in the warm parent, enforced in each worker.

Levels, as docs/security.md describes them: `A` is bubblewrap around the warm parent and, on each worker, Landlock,
a system-call filter and limits; `B` is the same without bubblewrap; `none` is the limits alone.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from . import files, privileges, resources, scratch, scratch_disk, system_calls

Level = Literal["A", "B", "none"]

LEAST_LANDLOCK: dict[Level, int] = {"A": 1, "B": 2}
"""The versions of Landlock that the levels need: without bubblewrap, moving files between folders must be governed."""


class CannotConfine(Exception):
    """The level cannot be had here; `str()` says what is missing."""


@dataclass(frozen=True)
class Terms:
    """What the trusted side asks of the warm parent."""

    level: Level
    readable: Sequence[str]
    """Folders and files that a worker may read."""
    scratch: str | None = None
    """The folder in which workers' scratch folders are made; None where they have none."""
    scratch_bytes: int = 0
    """How much may lie there."""
    devices: Sequence[str] = files.DEVICES
    cuda: bool = False


@dataclass(frozen=True)
class Confinement:
    """A level, ready to be enforced."""

    terms: Terms
    program: bytes
    """The compiled filter of system calls; empty at level `none`."""
    enforced: list[str] = field(default_factory=list)
    """What is enforced, in words."""
    has_disk: bool = False
    """Whether the kernel keeps scratch folders to their limits; else they have to be watched."""

    def enforce(self, limits: resources.WorkerLimits, scratch: str | None) -> None:
        """Confines this process for good. OSError where any part cannot be had: then no student's code may run."""
        cuda = self.terms.cuda
        resources.limit(limits, cuda=cuda, counts_threads=self.terms.level == "A")
        if self.terms.level != "none":
            privileges.show_to_own_user(True)
            files.restrict(self.terms.readable, scratch, self.terms.devices, ioctl=cuda)
            system_calls.load(self.program, os.getpid())


def prepare(terms: Terms) -> Confinement:
    """Makes this process, which is to fork workers, ready for a level; raises CannotConfine."""
    if terms.level == "none":
        return Confinement(terms, b"", ["rlimits"])
    landlock = files.landlock_version()
    if landlock < LEAST_LANDLOCK[terms.level]:
        raise CannotConfine(
            f"Level {terms.level} needs Landlock version {LEAST_LANDLOCK[terms.level]}; here it is {landlock or 'off'}."
        )
    if terms.level == "A" and os.getpid() != 1:
        raise CannotConfine("Level A needs a process namespace of its own.")
    has_disk = terms.scratch is not None and scratch_disk.mount(
        terms.scratch, terms.scratch_bytes, scratch.MOST_FILES, has_namespace=terms.level == "A"
    )
    try:
        program = system_calls.compiled(cuda=terms.cuda)
        privileges.drop()
    except (ImportError, OSError, RuntimeError) as error:
        raise CannotConfine(f"Level {terms.level} cannot be had: {error}.") from None
    around, beside = ["bubblewrap"] if terms.level == "A" else [], ["tmpfs"] if has_disk else []
    enforced = [*around, f"Landlock {landlock}", "seccomp", "rlimits", *beside]
    return Confinement(terms, program, enforced, has_disk)
