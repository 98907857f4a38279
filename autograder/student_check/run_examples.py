"""Run the examples of an exercise on the notebook's code: the result of each, and points by the rules of the grade."""

import contextlib
import inspect
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..core.comparison import Mismatch
from ..core.complaints import explain_error
from ..core.judgement import CommonMistakes, Points, Signature, TestShare, distribute, matching_mistakes, signature_of
from ..core.library_calls import library_of, library_of_function, record, take_recorded
from ..core.lost_aspects import OF_COUNTING, OF_DEVICE, OF_FORM, OF_GRADIENT, OF_VALUE
from ..core.observation import StudentFault, is_cell
from ..core.run_trace import OperatorMode, name_of
from .examples import COMES_FIRST, Call, StepRunner, hunts
from .judgement import is_stub, judge_example, message_with_values

NOT_DEFINED, NOT_WRITTEN = "not defined yet", "not written yet"
SECONDS = 8.0
"""The CPU seconds that one example may take; nearly every right answer takes a hundredth of a second."""
_WALL_FACTOR = 5
"""Limit for elapsed time, as a multiple of CPU time: the machine may be busy, or the code may wait."""
_SOONEST = 0.01
"""Seconds of the shortest timer; one of less than a microsecond would never end."""
_LONGEST = 200


class TimeUp(BaseException):
    """An example took too long; no `except Exception` of the student's catches it."""


@dataclass
class ExampleResult:
    """The result of one example."""

    example: Mapping[str, Any]
    problem: str = ""
    """The message on what is wrong; empty if the example passes."""
    call: Call | None = None
    """The last call."""
    printed: str = ""
    """The output of the student's code in the last call."""
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    """Traceback of an error in the student's own code: function, line in its cell, and text of the line."""
    aspect: str = OF_VALUE
    """The wrong aspect of the answer, as in `core.comparison.Mismatch`."""
    details: tuple[str, ...] = ()
    signature: Signature = field(default_factory=list)
    """See `core.judgement`; empty if the example passes."""
    skipped: bool = False
    """True if the example did not run, because an example before it took too long."""

    @property
    def share(self) -> TestShare:
        """The test's weight, and the share of it that the answer earns."""
        is_passed = not self.problem and not self.skipped
        share = 1.0 if is_passed else 0.5 if self.aspect == OF_FORM else 0.0
        return _test_share(self.example, share, is_counted=self.aspect != OF_COUNTING)


@dataclass
class Outcome:
    """The results of an exercise's examples."""

    exercise: str
    points: float
    missing: str = ""
    """`not defined yet` or `not written yet`, if no example could run."""
    tried: list[ExampleResult] = field(default_factory=list)
    not_tried: list[Mapping[str, Any]] = field(default_factory=list)
    """The hidden tests without an example, each with its statement and weight."""
    calls: list[str] = field(default_factory=list)
    """The forbidden libraries that the code calls."""
    mistakes: CommonMistakes = field(default_factory=CommonMistakes)
    """The common mistakes that explain failed examples."""
    uses_wrong: list[str] = field(default_factory=list)
    """The answers to other exercises that the code uses and that are wrong; then nothing else explains the failure."""
    line_message: str = ""
    """The message on the faulty line, if it is known."""
    line_aspect: str = OF_VALUE
    """The aspect in which the faulty line fails."""
    has_questions: bool = False
    """True if there are questions about the answer's own lines (`own_code_questions`)."""
    repair_message: str = ""
    """The result of the search for a repair, or the reason why there was no search."""

    @property
    def failed(self) -> list[ExampleResult]:
        """The examples that fail or did not run."""
        return [one for one in self.tried if one.problem or one.skipped]

    @property
    def signatures(self) -> dict[int, Signature]:
        """The signatures of the failed examples, by number."""
        return {number: one.signature for number, one in enumerate(self.tried) if one.signature}

    @property
    def is_explained(self) -> bool:
        """True if common mistakes, or the student's wrong answers that this code calls, explain all failed examples."""
        return bool(self.uses_wrong) or self.mistakes.explained == len(self.failed)

    @property
    def whole(self) -> bool:
        """True if all examples pass and no forbidden library is called."""
        return not (self.missing or self.failed or self.calls)

    @property
    def earned(self) -> float:
        """The points of the examples that pass, by the rules of the grade."""
        if self.missing or self.calls or not self.points:
            return 0.0
        return round(self._points.earned, 2)

    @property
    def tried_points(self) -> float:
        """The points of the hidden tests that have an example."""
        if self.missing or not self.points:
            return self.points
        return round(self._points.tried, 2)

    @property
    def score(self) -> float:
        """The exercise's points if the hidden tests without an example give the same share, for nbgrader's Validate."""
        return round(self.points * self.earned / self.tried_points, 2) if self.tried_points else 0.0

    @property
    def halved(self) -> bool:
        """True if a failed essential test halved the exercise's points."""
        return bool(self.points) and self._points.is_halved

    @property
    def _points(self) -> Points:
        tests = [one.share for one in self.tried] + [_test_share(test, None) for test in self.not_tried]
        return distribute(tests, self.points)

    @property
    def goes_wrong(self) -> bool:
        """True if a result is wrong, and its line can be searched."""
        return self.can_be_located and any(one.problem and not one.example.get("property") for one in self.tried)

    @property
    def line_is_aside(self) -> bool:
        """True if a value is wrong, and the line loses only a device or a gradient, which changes no value."""
        is_wrong = any(one.problem and one.aspect == OF_VALUE and not one.example.get("property") for one in self.tried)
        return bool(self.line_message) and is_wrong and self.line_aspect in (OF_DEVICE, OF_GRADIENT)

    @property
    def hunts(self) -> list[dict[str, Any]]:
        """The bug hunts of the exercise, see `examples.hunts`."""
        return hunts({"examples": [one.example for one in self.tried]})

    @property
    def can_be_repaired(self) -> bool:
        """True if a change of the code with which all examples pass can be searched."""
        return self.can_be_located and not self.hunts

    @property
    def can_be_located(self) -> bool:
        """True if something is wrong whose line can be searched."""
        return not (self.missing or self.calls or self.is_late) and any(one.problem for one in self.tried)

    @property
    def is_late(self) -> bool:
        """True if an example took too long."""
        return any(one.skipped or one.problem == _TOO_LONG for one in self.tried)


def _test_share(test: Mapping[str, Any], share: float | None, *, is_counted: bool = True) -> TestShare:
    return TestShare(
        test.get("weight", 1.0),
        share,
        bool(test.get("property")),
        test.get("public", True),
        bool(test.get("essential")) and is_counted,
    )


def run_examples(
    names: dict[str, Any],
    exercise: str,
    of: Mapping[str, Any],
    mistakes: list[Any],
    dtype: torch.dtype | None = None,
) -> Outcome:
    """Run all examples of an exercise on the notebook's code, and return the outcome.

    names: the notebook's. of: the exercise's released examples. mistakes: its common mistakes, as released.
    dtype: the dtype to which floats of arguments and instances are converted.
    """
    found = Outcome(exercise, float(of["points"]), not_tried=list(of.get("not_tried", ())))
    if exercise not in names:
        found.missing = NOT_DEFINED
        return found
    libraries, forbids = set[str](), set(of.get("forbids", ()))
    # Recording doubles the time, so it is left out if no library is forbidden.
    with warnings.catch_warnings(), recorded_libraries(libraries) if forbids else contextlib.nullcontext():
        warnings.simplefilter("ignore")  # the student has read PyTorch's warnings already
        late = False
        for example in of["examples"]:
            is_wrong = any(one.problem and one.aspect == OF_VALUE for one in found.tried)
            one = (
                ExampleResult(example, skipped=True) if late else _run_example(names, example, dtype, is_wrong=is_wrong)
            )
            found.tried.append(one)
            if one.problem == NOT_WRITTEN:
                found.missing = NOT_WRITTEN
                return found
            late = late or one.problem == _TOO_LONG
    found.calls = sorted(libraries & forbids)
    needs_another = any(COMES_FIRST in one.problem for one in found.tried)
    if not (found.is_late or found.calls or needs_another):
        of_gradients = [number for number, one in enumerate(found.tried) if _is_of_gradients(one.example)]
        found.mistakes = matching_mistakes(found.signatures, mistakes, of_gradients)
    return found


def _is_of_gradients(example: Mapping[str, Any]) -> bool:
    """Return whether gradients flow back in each call of an example."""
    calls = [step for step in example["steps"] if step["operation"] == "call"]
    return bool(calls) and all("cotangents" in step for step in calls)


_TOO_LONG = f"It did not come back within {SECONDS:g} seconds. Does a loop in it never end?"


def _run_example(
    names: dict[str, Any], example: Mapping[str, Any], dtype: torch.dtype | None, *, is_wrong: bool
) -> ExampleResult:
    runner, one = StepRunner(names, dtype), ExampleResult(example)
    try:
        with limited():
            _judge(names, example, runner, one, is_wrong=is_wrong)
    except KeyboardInterrupt:
        raise
    except TimeUp:
        one.problem = _TOO_LONG
    except BaseException as error:  # SystemExit too
        if isinstance(error, Mismatch):
            one.problem, one.aspect, one.details = message_with_values(error), error.aspect, error.details
        elif isinstance(error, StudentFault):
            one.problem = str(error)
        else:
            one.problem = NOT_WRITTEN if is_stub(error) else _describe_error(error)
            one.frames = _frames(error)
    one.call, one.printed = runner.last_call, runner.printed.getvalue()
    return one


def _judge(
    names: dict[str, Any], example: Mapping[str, Any], runner: StepRunner, one: ExampleResult, *, is_wrong: bool
) -> None:
    try:
        judge_example(names, example, runner, is_wrong=is_wrong)
    except (KeyboardInterrupt, TimeUp):
        raise
    except BaseException as error:
        one.signature = signature_of(error)
        raise


def _describe_error(error: BaseException) -> str:
    try:
        first_line = str(error).strip().partition("\n")[0].removesuffix("Hint:").strip()
    except Exception:
        first_line = ""
    message = f"It raised {type(error).__name__}: {first_line[:_LONGEST]}"
    explanation = explain_error(first_line)
    return f"{message.rstrip('.')}. {explanation}" if explanation else message


def code_file(thing: Any) -> str:
    """Return the file name of the code of a function or class, which in a kernel identifies a cell."""
    functions = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
    codes = [code for one in functions if inspect.iscode(code := getattr(one, "__code__", None))]
    return codes[0].co_filename if codes else ""


def _frames(error: BaseException) -> list[tuple[str, int, str]]:
    """Return function, line and text of the last three frames in cells, without frames of libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(one.name, one.lineno or 0, (one.line or "").strip()) for one in frames if is_cell(one.filename)][-3:]


@contextlib.contextmanager
def limited(seconds: float | None = None) -> Iterator[None]:
    """Raise TimeUp in the block after these CPU seconds, or a multiple of them in elapsed time, if timers exist."""
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not possible:
        yield
        return
    most = seconds or SECONDS
    cpu, clock = time.thread_time(), time.monotonic()

    def ring(number: int, frame: FrameType | None) -> None:
        # The remaining CPU seconds take at least as much elapsed time.
        left = min(most - (time.thread_time() - cpu), most * _WALL_FACTOR - (time.monotonic() - clock))
        if left <= 0:
            raise TimeUp
        signal.setitimer(signal.ITIMER_REAL, max(left, _SOONEST))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def new_notebook_state() -> Iterator[None]:
    """Set torch's modes as in the hidden tests, and restore them and the random state afterwards."""
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(state)


def _record(library: str | None) -> None:
    if library:
        record(library)


class _OperatorRecorder(OperatorMode):
    """Records the libraries of operators, including those that autograd and methods of tensors call."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        _record(library_of(name_of(func)))
        return func(*args, **kwargs) if kwargs else func(*args)


class _FunctionRecorder(TorchFunctionMode):
    """Records the libraries of torch's functions, which may call operators of other names."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        _record(library_of_function(func))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def recorded_libraries(found: set[str]) -> Iterator[None]:
    """Add the names of libraries that run in the context to `found`."""
    take_recorded()
    with _FunctionRecorder(), _OperatorRecorder():
        yield
    found.update(take_recorded())
