"""Names the known mistake that showed exactly what an answer showed; none where none did: a wrong name is worse."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..report import Diagnosis
from .fingerprint import Fingerprint, Known


@dataclass(frozen=True)
class Suspect:
    """A known mistake, and what it shows."""

    name: str
    sentence: str
    caught_by: str | None
    is_of_device: bool
    """Whether a tensor in the wrong place is what is wrong with it."""
    known: Known


def named(fingerprint: Fingerprint, suspects: Iterable[Suspect], device_graders: Collection[str]) -> Diagnosis | None:
    """The suspect with this fingerprint. device_graders: those that ask about devices."""
    failed = {trace.grader for trace in fingerprint if trace.outcome == "failed"}
    # What passed the grader that catches a mistake is another: which most are need not be run to be told.
    possible = [suspect for suspect in suspects if suspect.caught_by in failed]
    for suspect in possible:
        if suspect.known.is_that_of(fingerprint):
            return Diagnosis(suspect.name, suspect.sentence)
    # A tensor left on the CPU is so common beside another mistake that it should not hide its name.
    for suspect in possible:
        about_devices = suspect.is_of_device or suspect.caught_by in device_graders
        if not about_devices and suspect.known.is_that_of(fingerprint, but_for=device_graders):
            return Diagnosis(suspect.name, suspect.sentence)
    return None
