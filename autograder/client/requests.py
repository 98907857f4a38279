"""What clients and the marking process say to each other: one JSON object a line."""

from typing import Any, Literal

import msgspec

from ..course.settings import Settings
from ..notebook import Damaged
from ..report import Conditions, Report

Device = Literal["cpu", "cuda", "auto"]
CandidateKind = Literal["solution", "misconception", "right_answer"]


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


class MarkNotebook(msgspec.Struct, tag="mark"):
    """Mark these bytes of a notebook file, or say why there are none.

    Without a unit, the notebook's own grade_ids tell which it is.
    """

    name: str
    """As it stands in the report."""
    content: bytes | Damaged
    unit: str | None = None
    digest: str = ""
    """SHA-256 of the file."""
    note: str = ""
    """What the student should know about which file was marked."""


class MarkCandidate(msgspec.Struct, tag="candidate"):
    """Mark an answer that the kit knows, in the grader's own process: the proof of the graders."""

    unit: str
    kind: CandidateKind
    name: str = ""


class MakeHandout(msgspec.Struct, tag="handout"):
    """What the check that is released with a unit knows."""

    unit: str


Request = MarkNotebook | MarkCandidate | MakeHandout


class Ready(Conditions, tag="ready", frozen=True):
    """The marking process has started."""


class Refused(msgspec.Struct, tag="refused"):
    """What was asked cannot be done; the sentence says why and what to do."""

    sentence: str


class Marked(msgspec.Struct, tag="marked"):
    """The report on a submission or a candidate."""

    report: Report


class Handout(msgspec.Struct, tag="handout"):
    """By exercise, what `build` writes into the release."""

    examples: dict[str, Any]
    """See `marking.public_examples`."""
    mistakes: dict[str, list[Any]]
    """See `marking.known_mistakes`."""
    steps: dict[str, Any]
    """See `marking.right_steps`."""


Answer = Ready | Refused | Marked | Handout
