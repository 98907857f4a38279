"""Messages between a grading process and its client: each is one line with one JSON object."""

import hashlib
import os
from typing import Any, Literal

import msgspec

from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings
from ..report import Conditions, ExerciseReport, Report

Device = Literal["cpu", "cuda", "auto"]
CandidateKind = Literal["solution", "misconception", "right_answer"]
Known = tuple[Literal["misconception", "right_answer"], str]
"""The kind and the name of a known answer."""


class Start(msgspec.Struct):
    """The command-line argument, as JSON, with which a grading process is started."""

    device: Device
    settings: Settings
    class_folder: str | None = None
    """Folder of the class whose copies of the units are graded; None for the course's own units."""
    private: list[str] = []
    """Folders that no submission may read, besides the autograder's own."""
    core: int | None = None
    """Number of the processor that the process shares with its sandbox; None leaves the choice to the system."""
    unit: str = ""
    """Name of the unit to prepare for; empty if it is not known which unit is needed first."""
    own_code_alone: bool = False
    """True if no notebook will be graded, so that no sandbox is started."""


class GradeNotebook(msgspec.Struct, tag="mark"):
    """Request to grade the content of a notebook file, or to report why the file could not be read."""

    name: str
    """The file's name, for the report. Bytes that are not UTF-8 are replaced, because JSON cannot contain them."""
    content: bytes | UnreadableNotebook
    unit: str | None = None
    """Name of the unit; None to determine it from the notebook's grade_ids."""
    digest: str = ""
    """SHA-256 of the file; by default that of `content`."""
    note: str = ""
    """A remark to the student about which file was graded."""
    of_course: bool = False
    """True to grade with the course's own unit, even if the class has a copy of it."""

    def __post_init__(self) -> None:
        self.name = in_utf8(self.name)
        if not self.digest and isinstance(self.content, bytes):
            self.digest = hashlib.sha256(self.content).hexdigest()


class FindRepairs(msgspec.Struct, tag="repair"):
    """Request to search for repairs of those answers in a graded submission that no misconception explains."""

    submission: GradeNotebook
    report: Report


class GradeCandidate(msgspec.Struct, tag="candidate"):
    """Request to grade a known answer in the grading process itself, without a sandbox."""

    unit: str
    kind: CandidateKind
    name: str = ""


class GradeKnown(msgspec.Struct, tag="known"):
    """Request to grade known answers of a unit in several processes."""

    unit: str
    known: list[Known]


class LearnMisconceptions(msgspec.Struct, tag="learn"):
    """Request to record the behaviour of a unit's misconceptions, before the first wrong answer needs it."""

    unit: str


LOST = (
    "{unit}: the system ended a process that worked on this unit, perhaps because memory ran out. Nothing was "
    "written; run the same command again, with fewer other programs."
)
"""Error message if a process was ended while it worked on a unit's release."""


class MakeHandout(msgspec.Struct, tag="handout"):
    """Request for the data of a unit's student check."""

    unit: str
    is_new: bool = True
    """True to compute everything, and use no cached results."""


Request = GradeNotebook | FindRepairs | GradeCandidate | GradeKnown | LearnMisconceptions | MakeHandout


class Ready(Conditions, tag="ready", frozen=True):
    """First message of a grading process, once it has started: the conditions under which it grades."""


class Refused(msgspec.Struct, tag="refused"):
    """Answer to a request that the grading process rejects."""

    sentence: str
    """The reason, and what to do."""


class Graded(msgspec.Struct, tag="marked"):
    """Answer with the report on a submission or a known answer."""

    report: Report


class AllGraded(msgspec.Struct, tag="all marked"):
    """Answer with the reports on known answers, in the order of the request."""

    exercises: list[ExerciseReport]


class Learnt(msgspec.Struct, tag="learnt"):
    """Answer to `LearnMisconceptions`, after the misconceptions' behaviour was recorded."""


class Handout(msgspec.Struct, tag="handout"):
    """Answer with the data that the build writes into a unit's release, by exercise."""

    examples: dict[str, Any]
    """See `grading.public_examples`."""
    mistakes: dict[str, list[Any]]
    """See `grading.release_data`."""
    steps: dict[str, Any]
    """See `grading.reference_trace`."""


Answer = Ready | Refused | Graded | AllGraded | Learnt | Handout


def in_utf8(name: str) -> str:
    """Return a file's name with bytes that are not UTF-8 replaced, so that JSON can contain it."""
    return os.fsencode(name).decode("utf-8", "replace")
