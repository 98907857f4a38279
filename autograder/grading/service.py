"""What the grader process does: requests in, answers out, one JSON object a line."""

import gc
import traceback
from typing import BinaryIO

import msgspec
import torch

from .. import catalogue, course
from ..report import Report
from ..sandbox.inside import processor
from ..sandbox.isolation import NotIsolated
from ..sandbox.launch import Launched
from ..sandbox.self_test import NotDenied
from ..sandbox.server import WarmParent
from . import known_mistakes, public_examples
from .examiner import Examiner
from .requests import (
    Answer,
    Handout,
    MakeHandout,
    MarkCandidate,
    Marked,
    MarkNotebook,
    Ready,
    Refused,
    Request,
)
from .session import Session, run_session
from .submission import Desk


def serve(requests: BinaryIO, answers: BinaryIO, launched: Launched, device: str) -> int:
    """Serves one client until it hangs up; returns the exit code."""
    torch.set_num_threads(1)
    cuda = torch.cuda.is_available()
    with WarmParent(launched) as sandbox:
        if device == "cuda" and not cuda:
            _say(
                answers,
                Refused("There is no CUDA device here. Use --device cpu, or auto to take one where it is."),
            )
            return 0
        if device == "auto":
            device = "cuda" if cuda else "cpu"

        def with_graders(session: Session) -> None:
            if session.problems:
                first = " ".join(session.problems[:3])
                more = f" And {len(session.problems) - 3} more." if len(session.problems) > 3 else ""
                _say(answers, Refused(f"The hidden graders cannot be collected. {first}{more}"))
                return
            try:
                ready = Ready(device, sandbox.isolation, sandbox.enforced)
            except (NotIsolated, NotDenied) as reason:
                _say(answers, Refused(str(reason)))
                return
            if device != "cpu" and not sandbox.computes_on(device):
                where = f"at isolation level {sandbox.isolation}"
                _say(
                    answers,
                    Refused(f"{device} does not work {where} here: take --device cpu, or see docs/security.md."),
                )
                return
            desk = Desk(Examiner(session), sandbox, ready.enforced, device)
            gc.collect()
            processor.keep_to(launched.core)  # not before: it and the warm parent start side by side
            gc.freeze()  # torch's and pytest's objects stay; no collection need walk through them
            _say(answers, ready)
            for line in requests:
                _say(answers, _answer(desk, session, msgspec.json.decode(line, type=Request)))

        return run_session(with_graders)


def _answer(desk: Desk, session: Session, request: Request) -> Answer:
    try:
        match request:
            case MarkNotebook(name=name, content=content, unit=unit):
                return Marked(_marked(desk, name, content, unit))
            case MarkCandidate(unit=unit_name, kind="solution"):
                return Marked(desk.mark_candidate(course.unit(unit_name), None))
            case MarkCandidate(unit=unit_name, kind=kind, name=name):
                entries = catalogue.misconceptions if kind == "misconception" else catalogue.right_answers
                return Marked(desk.mark_candidate(course.unit(unit_name), entries(unit_name)[name]))
            case MakeHandout(unit=unit_name):
                examples = public_examples.of_unit(session, unit_name)
                return Handout(examples, known_mistakes.of_unit(unit_name, examples))
    except (course.UnknownUnit, public_examples.WrongSolution, catalogue.EditError) as reason:
        return Refused(str(reason))


def _marked(desk: Desk, name: str, content: bytes, unit: str | None) -> Report:
    """The report; a fault of ours is a status too, and does not end the batch."""
    try:
        return desk.mark(name, content, unit)
    except Exception:
        traceback.print_exc()
        sentence = "Our grader failed on this notebook, which is our fault and not yours. Please tell your instructor."
        return desk.without_marks(name, "grader_error", sentence, unit)


def _say(answers: BinaryIO, answer: Answer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()
