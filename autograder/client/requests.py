"""What clients and the marking process say to each other: one JSON object a line."""

from typing import Any, Literal

import msgspec

from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings
from ..report import Conditions, ExerciseReport, Report

Device = Literal["cpu", "cuda", "auto"]
CandidateKind = Literal["solution", "misconception", "right_answer"]
Known = tuple[Literal["misconception", "right_answer"], str]
"""An answer that the kit knows, by its kind and name."""


class Start(msgspec.Struct):
    """What a marking process is started with."""

    device: Device
    settings: Settings
    class_folder: str | None = None
    """The class whose units are marked, as it keeps them; None: the course's own."""
    private: list[str] = []
    """Folders that no submission may read, beside the kit's own."""
    core: int | None = None
    """The processor that it shares with its sandbox; None leaves them to the system."""
    unit: str = ""
    """The unit that will be asked for first, where that is known: it is made ready at once."""
    own_code_alone: bool = False
    """No notebook will be marked, so no sandbox is started."""


class MarkNotebook(msgspec.Struct, tag="mark"):
    """Mark these bytes of a notebook file, or say why there are none.

    Without a unit, the notebook's own grade_ids tell which it is.
    """

    name: str
    """As it stands in the report."""
    content: bytes | UnreadableNotebook
    unit: str | None = None
    digest: str = ""
    """SHA-256 of the file."""
    note: str = ""
    """What the student should know about which file was marked."""
    of_course: bool = False
    """Mark it as the course has its units, whatever the class keeps."""


class MarkCandidate(msgspec.Struct, tag="candidate"):
    """Mark an answer that the kit knows, in the grader's own process: the proof of the graders."""

    unit: str
    kind: CandidateKind
    name: str = ""


class MarkKnown(msgspec.Struct, tag="known"):
    """Mark these misconceptions and right answers of a unit, beside the graders."""

    unit: str
    known: list[Known]


class LearnMistakes(msgspec.Struct, tag="learn"):
    """See what a unit's known mistakes show, so that the first wrong answer need not wait for it: some seconds."""

    unit: str


LOST = (
    "{unit}: a process that worked on it was ended from outside, perhaps because memory ran out. Nothing was written; "
    "run the same command again, with less running beside it."
)
"""What is said where what is released with a unit could not be made to its end."""


class MakeHandout(msgspec.Struct, tag="handout"):
    """What the check that is released with a unit knows."""

    unit: str
    is_new: bool = True
    """Whether all of it is to be made, and nothing taken that is kept from before."""


Request = MarkNotebook | MarkCandidate | MarkKnown | LearnMistakes | MakeHandout


class Ready(Conditions, tag="ready", frozen=True):
    """The marking process has started."""


class Refused(msgspec.Struct, tag="refused"):
    """What was asked cannot be done; the sentence says why and what to do."""

    sentence: str


class Marked(msgspec.Struct, tag="marked"):
    """The report on a submission or a candidate."""

    report: Report


class AllMarked(msgspec.Struct, tag="all marked"):
    """What came of each, in the order in which they were named."""

    exercises: list[ExerciseReport]


class Learnt(msgspec.Struct, tag="learnt"):
    """It has seen what the mistakes show."""


class Handout(msgspec.Struct, tag="handout"):
    """By exercise, what `build` writes into the release."""

    examples: dict[str, Any]
    """See `grading.public_examples`."""
    mistakes: dict[str, list[Any]]
    """See `grading.release_misconceptions`."""
    steps: dict[str, Any]
    """See `grading.reference_trace`."""


Answer = Ready | Refused | Marked | AllMarked | Learnt | Handout
