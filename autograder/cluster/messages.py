"""What home and a worker say to each other, as bytes of JSON: of anything else Dask would make a pickle."""

from typing import Literal

import msgspec

from ..client.requests import MarkNotebook
from ..course.settings import Settings
from ..report import Conditions, Report

MOST_BYTES = 64 << 20
"""Limit for a task and for an answer. The largest notebook takes 38 MB in base64, the longest report about 25 MB."""
ANSWER_BYTES = 8 << 20
"""A worker with so many bytes of reports answers, though submissions of its task are left."""


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run marks, and how."""

    unit: str
    kit: str
    """The digest at home of all that decides a mark in the unit: see `course.kit`."""
    device: Literal["cpu", "cuda"]
    settings: Settings


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Submissions to mark. They are named by their place in the task: no student is named to the cluster."""

    terms: Terms
    submissions: list[MarkNotebook]


class Able(Conditions, frozen=True, forbid_unknown_fields=True, tag="able"):
    """What a worker would mark with."""

    kit: str
    torch: str


class Unable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unable"):
    """Why a worker cannot mark, as a sentence."""

    sentence: str


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="done"):
    """Reports on the first submissions of a task, in their order; on one at least."""

    reports: list[Report]


Answer = Able | Unable | Done
