"""Names the known mistake that showed exactly what an answer showed; none where none did: a wrong name is worse."""

from collections.abc import Collection, Sequence

from ..report import Diagnosis, Mistake
from .fingerprint import Fingerprint
from .pairs import Pairs
from .suspect import Suspect


def named(
    fingerprint: Fingerprint,
    suspects: Sequence[Suspect],
    pairs: Pairs | None,
    device_graders: Collection[str],
    weightless: Collection[str] = (),
) -> Diagnosis | None:
    """The suspect with this fingerprint, or the pair of them.

    pairs: what finds two mistakes at once, which can take seconds; None where it is not to be asked.
    device_graders: those that ask about devices. weightless: those that only tell.
    """
    failed = {trace.grader for trace in fingerprint if trace.outcome == "failed"}
    # What passed the grader that catches a mistake is another: which most are need not be run to be told.
    possible = [suspect for suspect in suspects if suspect.caught_by in failed]
    for suspect in possible:
        if suspect.behaviour.known.is_that_of(fingerprint):
            return Diagnosis(suspect.name, suspect.sentence)
    if pairs is not None and (found := pairs.explaining(fingerprint)) is not None:
        one, other = found
        return Diagnosis(one.name, one.sentence, Mistake(other.name, other.sentence))
    # A tensor left on the CPU is so common beside another mistake that it should not hide its name.
    for suspect in possible:
        about_devices = suspect.is_of_device or suspect.caught_by in device_graders
        if not about_devices and suspect.behaviour.known.is_that_of(fingerprint, but_for=device_graders):
            return Diagnosis(suspect.name, suspect.sentence)
    # How half precision rounds differs between answers with one mistake.
    for suspect in possible:
        if suspect.caught_by not in weightless and suspect.behaviour.known.is_that_of(fingerprint, but_for=weightless):
            return Diagnosis(suspect.name, suspect.sentence)
    # On wrong numbers gradients follow the way to them: a maximum that is detached changes none but these.
    alike = [
        suspect
        for suspect in possible
        if not (suspect.is_of_gradients or suspect.caught_by in weightless)
        and suspect.behaviour.known.is_that_of_but_for_gradients(fingerprint, but_for=weightless)
    ]
    if len({suspect.sentence for suspect in alike}) == 1:
        return Diagnosis(alike[0].name, alike[0].sentence)
    for suspect in possible:
        if suspect.whatever_weights and suspect.behaviour.known.is_nearly_that_of(fingerprint, but_for=weightless):
            return Diagnosis(suspect.name, suspect.sentence)
    return None
