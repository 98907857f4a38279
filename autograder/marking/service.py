"""What the marking process does: requests in, answers out, one JSON object a line."""

import contextlib
import gc
import traceback
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch

from .. import catalogue, course
from ..client.requests import (
    LOST,
    AllMarked,
    Answer,
    LearnMistakes,
    Learnt,
    MakeHandout,
    MarkCandidate,
    Marked,
    MarkKnown,
    MarkNotebook,
    Ready,
    Refused,
    Request,
    Start,
)
from ..graders.collected import Graders, NotCollected, collected
from ..graders.hunts import NoHunt
from ..report import Report
from ..sandbox.confine.process import keep_to_processor
from ..sandbox.failures import SandboxLost
from ..sandbox.fork_server import ForkServer
from ..sandbox.isolation import NotDenied, NotIsolated
from ..sandbox.launch import Launched
from . import handout, known_answers
from .device import NO_CUDA, NoDevice
from .examiner import Examiner
from .side_by_side import ProcessLost
from .solution_fails import SolutionFails
from .submission import Desk, NoSandbox
from .written_calls import NotReleasable

_REFUSALS = (
    NotCollected,
    course.UnknownUnit,
    course.UnusableUnit,
    NotReleasable,
    SolutionFails,
    NoHunt,
    catalogue.EditError,
    NoSandbox,
)


def serve(requests: BinaryIO, answers: BinaryIO, launched: Launched | None, start: Start) -> int:
    """Serves one client until it hangs up; returns the exit code. launched: None where no notebook will be marked."""
    torch.set_num_threads(1)
    with ForkServer(launched) if launched else contextlib.nullcontext() as sandbox:
        try:
            device = _chosen(start.device)
            graders = collected()
            if start.unit:
                graders.get(start.unit)  # while the fork server starts
            ready = Ready(device, sandbox.isolation, sandbox.enforced) if sandbox else Ready(device, "none", [])
            if sandbox:
                _ensure_computes(sandbox, device)
        except (NoDevice, NotCollected, NotIsolated, NotDenied) as reason:
            _say(answers, Refused(str(reason)))
            return 0
        desk = Desk(Examiner(graders), sandbox, ready, Path(start.class_folder) if start.class_folder else None)
        keep_to_processor(start.core)  # not before: it and the fork server start side by side
        gc.freeze()  # torch's and the graders' objects stay; no collection need walk through them
        gc.enable()
        with contextlib.suppress(BrokenPipeError):  # it hung up before it had its answer
            _say(answers, ready)
            for line in requests:
                _say(answers, _answer(desk, graders, msgspec.json.decode(line, type=Request)))
    return 0


def _chosen(device: str) -> str:
    """The device that is asked for, or the best one; raises NoDevice."""
    cuda = torch.cuda.is_available()
    if device == "cuda" and not cuda:
        raise NoDevice(NO_CUDA)
    return device if device != "auto" else "cuda" if cuda else "cpu"


def _ensure_computes(sandbox: ForkServer, device: str) -> None:
    """Raises NoDevice where the sandbox keeps workers from it."""
    if device != "cpu" and not sandbox.computes_on(device):
        where = f"at isolation level {sandbox.isolation}"
        raise NoDevice(f"{device} does not work {where} here: take --device cpu, or see docs/security.md.")


def _answer(desk: Desk, graders: Graders, request: Request) -> Answer:
    try:
        match request:
            case MarkNotebook():
                return Marked(_marked(desk, request))
            case MarkCandidate(unit=unit_name, kind="solution"):
                return Marked(desk.mark_candidate(course.unit(unit_name), None))
            case MarkCandidate(unit=unit_name, kind=kind, name=name):
                entries = catalogue.misconceptions if kind == "misconception" else catalogue.right_answers
                return Marked(desk.mark_candidate(course.unit(unit_name), entries(unit_name)[name]))
            case MakeHandout(unit=unit_name):
                return handout.of_unit(graders, unit_name, is_new=request.is_new)
            case MarkKnown(unit=unit_name, known=known):
                graders.get(unit_name)  # before processes are forked that would each collect them
                return AllMarked(known_answers.marked(desk, unit_name, known))
            case LearnMistakes(unit=unit_name):
                return _learnt(desk, unit_name)
    except ProcessLost:
        return Refused(LOST.format(unit=unit_name))
    except _REFUSALS as reason:
        return Refused(str(reason))


def _marked(desk: Desk, submission: MarkNotebook) -> Report:
    """The report; a fault of ours is a status too, and does not end the batch."""
    desk = replace(desk, class_folder=None) if submission.of_course else desk
    try:
        return desk.mark(submission)
    except (course.UnusableUnit, NotCollected, NoSandbox):
        raise
    except (SandboxLost, NotIsolated, NotDenied):
        traceback.print_exc()
        sentence = "The sandbox was lost while this notebook was graded. Please tell your instructor."
        return desk.without_marks(submission, "grader_error", sentence)
    except Exception:
        traceback.print_exc()
        sentence = "Our grader failed on this notebook, which is our fault and not yours. Please tell your instructor."
        return desk.without_marks(submission, "grader_error", sentence)


def _learnt(desk: Desk, unit: str) -> Learnt:
    """A fault of ours costs time alone: wrong answers wait for what was not seen."""
    try:
        desk.examiner.learn(unit)
    except _REFUSALS:
        raise
    except Exception:
        traceback.print_exc()
    return Learnt()


def _say(answers: BinaryIO, answer: Answer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()
