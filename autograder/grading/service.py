"""The main loop of a grading process: answer the requests of one client. Each message is one line of JSON."""

import contextlib
import gc
import traceback
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch

from .. import UserError, catalogue, course
from ..catalogue.bug_hunts import NoHunt
from ..course.settings import BadSecret
from ..graders.collection import HiddenTests, NotCollected, collect
from ..pool.requests import (
    LOST,
    AllGraded,
    Answer,
    FindRepairs,
    GradeCandidate,
    Graded,
    GradeKnown,
    GradeNotebook,
    Known,
    LearnMisconceptions,
    Learnt,
    MakeHandout,
    Ready,
    Refused,
    Request,
    Start,
)
from ..report import ExerciseReport, Report
from ..sandbox.client import SandboxLost
from ..sandbox.confine.process import keep_to_processor
from ..sandbox.fork_server import ForkServer
from ..sandbox.isolation import Launched, NotDenied, NotIsolated
from .examiner import Examiner
from .machine import NoDevice, ProcessLost, choose_device, parallel_map
from .release_data import release_data
from .submission import NoSandbox, NotebookGrading

_REFUSALS = (UserError, NotCollected, NoHunt)


def serve(requests: BinaryIO, answers: BinaryIO, launched: Launched | None, start: Start) -> int:
    """Answer one client's requests until it closes `requests`; return the exit status.

    launched: the fork server, which is still starting; None if no notebook will be graded.
    """
    torch.set_num_threads(1)
    with ForkServer(launched) if launched else contextlib.nullcontext() as sandbox:
        try:
            device = choose_device(start.device)
            graders = collect()
            if start.unit:
                graders.get(start.unit)  # while the fork server starts
            ready = Ready(device, "none", [])
            if sandbox:
                ready = Ready(device, sandbox.isolation, sandbox.enforced)
                _ensure_computes(sandbox, device)
        except (BadSecret, NoDevice, NotCollected, NotIsolated, NotDenied) as reason:
            _send(answers, Refused(str(reason)))
            return 0
        class_folder = Path(start.class_folder) if start.class_folder else None
        grading = NotebookGrading(Examiner(graders), sandbox, ready, class_folder)
        keep_to_processor(start.core)  # not earlier: this process and the fork server start at the same time
        gc.freeze()  # the objects of torch and of the hidden tests stay; collections need not inspect them
        gc.enable()
        with contextlib.suppress(BrokenPipeError):  # the client hung up before it had its answer
            _send(answers, ready)
            for line in requests:
                _send(answers, _answer(grading, graders, msgspec.json.decode(line, type=Request)))
    return 0


def _ensure_computes(sandbox: ForkServer, device: str) -> None:
    """Raise NoDevice if workers in the sandbox cannot compute on the device."""
    if device != "cpu" and not sandbox.computes_on(device):
        where = f"at isolation level {sandbox.isolation}"
        raise NoDevice(f"{device} does not work {where} here: take --device cpu, or see docs/security.md.")


def _answer(grading: NotebookGrading, graders: HiddenTests, request: Request) -> Answer:
    try:
        match request:
            case GradeNotebook():
                return Graded(_grade(grading, request))
            case FindRepairs():
                return Graded(_with_repairs(grading, request))
            case GradeCandidate(unit=unit_name, kind="solution"):
                return Graded(grading.grade_candidate(course.unit(unit_name), None))
            case GradeCandidate(unit=unit_name, kind=kind, name=name):
                return Graded(grading.grade_candidate(course.unit(unit_name), _known(unit_name, kind)[name]))
            case MakeHandout(unit=unit_name):
                return release_data(graders, unit_name, is_new=request.is_new)
            case GradeKnown(unit=unit_name, known=known):
                graders.get(unit_name)  # before processes are forked that would each collect them
                return AllGraded(_grade_known(grading, unit_name, known))
            case LearnMisconceptions(unit=unit_name):
                return _learn(grading, unit_name)
    except ProcessLost:
        return Refused(LOST.format(unit=unit_name))
    except _REFUSALS as reason:
        return Refused(str(reason))


def _grade(grading: NotebookGrading, submission: GradeNotebook) -> Report:
    """Return the report on a submission. After an error in the autograder, its status is `grader_error`."""
    grading = replace(grading, class_folder=None) if submission.of_course else grading
    try:
        return grading.grade(submission)
    except (course.UnusableUnit, BadSecret, NotCollected, NoSandbox):
        raise
    except (SandboxLost, NotIsolated, NotDenied):
        traceback.print_exc()
        message = "The sandbox was lost while this notebook was graded. Please tell your instructor."
    except Exception:
        traceback.print_exc()
        message = "Our grader failed on this notebook, which is our fault and not yours. Please tell your instructor."
    return grading.without_score(submission, "grader_error", message)


def _with_repairs(grading: NotebookGrading, request: FindRepairs) -> Report:
    """Return the report with repairs; unchanged after an error in the autograder."""
    try:
        return grading.with_repairs(request.submission, request.report)
    except (SandboxLost, NotIsolated, NotDenied):
        return request.report
    except Exception:
        traceback.print_exc()
        return request.report


def _known(unit: str, kind: str) -> dict[str, catalogue.Candidate]:
    return catalogue.misconceptions(unit) if kind == "misconception" else catalogue.right_answers(unit)


def _grade_known(grading: NotebookGrading, unit_name: str, known: Sequence[Known]) -> list[ExerciseReport]:
    """Grade known answers of a unit, each exercise in its own process; return the reports in the order of `known`.

    Raises ProcessLost.
    """
    unit = course.unit(unit_name)
    answers = [_known(unit_name, kind)[name] for kind, name in known]
    by_exercise: dict[str, list[int]] = defaultdict(list)
    for number, answer in enumerate(answers):
        by_exercise[answer.exercise].append(number)

    def grade(numbers: list[int]) -> dict[int, ExerciseReport]:
        return {n: grading.grade_candidate(unit, answers[n]).exercises[0] for n in numbers}

    reports: dict[int, ExerciseReport] = {}
    for of_exercise in parallel_map(grade, sorted(by_exercise.values(), key=len, reverse=True)):
        reports |= of_exercise
    return [reports[number] for number in range(len(known))]


def _learn(grading: NotebookGrading, unit: str) -> Learnt:
    """Record the behaviour of a unit's misconceptions. After an error, the first wrong answer computes it."""
    try:
        grading.examiner.learn(unit)
    except _REFUSALS:
        raise
    except Exception:
        traceback.print_exc()
    return Learnt()


def _send(answers: BinaryIO, answer: Answer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()
