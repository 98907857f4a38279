"""One exercise tried on its examples: what each found, and the points that a mark by the same rules would give."""

import contextlib
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..core.comparison import Mismatch
from ..core.complaints import meant
from ..core.faults import StudentFault, is_cell
from ..core.library_calls import library_of, note, taken
from ..core.lost_aspects import OF_COUNTING, OF_FORM, OF_VALUE
from ..core.operators import OperatorMode, name_of
from ..core.points import Points, TestShare, distribute
from .bug_hunt import COMES_FIRST, hunts
from .judgement import is_stub, judged, revealed
from .known import mistakes_alike
from .trial import Call, Trial

NOT_DEFINED, NOT_WRITTEN = "not defined yet", "not written yet"
SECONDS = 8.0
"""The CPU seconds that one example may take; nearly every right answer takes a hundredth of one."""
_WALL_FACTOR = 5
"""Where the machine is busy, or the code waits for something: so many times as long by the clock."""
_SOONEST = 0.01
"""A timer of less than a microsecond is none."""
_LONGEST = 200


class TimeUp(BaseException):
    """An example took too long; no `except Exception` of the student's catches it."""


@dataclass
class Tried:
    """One example, and what was found."""

    example: Mapping[str, Any]
    problem: str = ""
    """What is wrong, in a sentence; nothing where the example passes."""
    call: Call | None = None
    """The call that was made last."""
    printed: str = ""
    """What the student's code printed in it."""
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    """Of an error: the function, the line in its cell and that line's text, for each of the student's own frames."""
    aspect: str = OF_VALUE
    """The wrong aspect of the answer, as in `core.comparison.Mismatch`."""
    details: tuple[str, ...] = ()
    skipped: bool = False
    """Not tried, because an example before it took too long."""

    @property
    def share(self) -> TestShare:
        """Its weight, and how much of it the answer earns."""
        is_passed = not self.problem and not self.skipped
        share = 1.0 if is_passed else 0.5 if self.aspect == OF_FORM else 0.0
        return _test_share(self.example, share, is_counted=self.aspect != OF_COUNTING)


@dataclass
class Outcome:
    """What came of an exercise."""

    exercise: str
    points: float
    missing: str = ""
    """`not defined yet` or `not written yet`; then nothing was tried."""
    tried: list[Tried] = field(default_factory=list)
    not_tried: list[Mapping[str, Any]] = field(default_factory=list)
    """The hidden tests without an example, each with its statement and weight."""
    calls: list[str] = field(default_factory=list)
    """The libraries that it calls and may not."""
    mistakes: list[str] = field(default_factory=list)
    """The sentences on the common mistakes that do exactly the same."""
    line_message: str = ""
    """Where it goes wrong, in lines, if that is known."""
    repair_message: str = ""
    """The result of the search for a repair, or the reason why nothing was searched."""

    @property
    def failed(self) -> list[Tried]:
        """The examples that do not pass."""
        return [one for one in self.tried if one.problem or one.skipped]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong, as far as it is tried."""
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
        """The exercise's points if the other tests went like the examples, for nbgrader's Validate."""
        return round(self.points * self.earned / self.tried_points, 2) if self.tried_points else 0.0

    @property
    def halved(self) -> bool:
        """True if the points were reduced to half of the exercise's, because an essential test failed."""
        return bool(self.points) and self._points.is_halved

    @property
    def _points(self) -> Points:
        tests = [one.share for one in self.tried] + [_test_share(test, None) for test in self.not_tried]
        return distribute(tests, self.points)

    @property
    def goes_wrong(self) -> bool:
        """Return whether a result is not right, and its line can be searched."""
        return self.can_be_located and any(one.problem and not one.example.get("property") for one in self.tried)

    @property
    def hunts(self) -> list[dict[str, Any]]:
        """The hunts of the exercise, see `bug_hunt.hunts`."""
        return hunts({"examples": [one.example for one in self.tried]})

    @property
    def can_be_repaired(self) -> bool:
        """Return whether a change of the code can be searched with which all examples pass."""
        return self.can_be_located and not self.hunts

    @property
    def can_be_located(self) -> bool:
        """Return whether something is wrong whose line can be searched."""
        late = any(one.skipped or one.problem == _TOO_LONG for one in self.tried)
        return not (self.missing or self.calls or late) and any(one.problem for one in self.tried)


def _test_share(test: Mapping[str, Any], share: float | None, *, is_counted: bool = True) -> TestShare:
    return TestShare(
        test.get("weight", 1.0),
        share,
        bool(test.get("property")),
        test.get("public", True),
        bool(test.get("essential")) and is_counted,
    )


def outcome(names: dict[str, Any], exercise: str, of: Mapping[str, Any], mistakes: list[Any]) -> Outcome:
    """What the notebook's answer to an exercise shows on its examples."""
    found = Outcome(exercise, float(of["points"]), not_tried=list(of.get("not_tried", ())))
    if exercise not in names:
        found.missing = NOT_DEFINED
        return found
    libraries, forbids = set[str](), set(of.get("forbids", ()))
    # Watching takes as long as what is watched, and is left out where nothing is looked for.
    with warnings.catch_warnings(), libraries_watched(libraries) if forbids else contextlib.nullcontext():
        warnings.simplefilter("ignore")  # PyTorch's own, of which the student has read already
        late = False
        for example in of["examples"]:
            one = Tried(example, skipped=True) if late else _tried(names, example)
            found.tried.append(one)
            if one.problem == NOT_WRITTEN:
                found.missing = NOT_WRITTEN
                return found
            late = late or one.problem == _TOO_LONG
    found.calls = sorted(libraries & forbids)
    if mistakes and not late and not found.calls and not any(COMES_FIRST in one.problem for one in found.tried):
        with limited():
            passed = [not one.problem for one in found.tried]
            found.mistakes = mistakes_alike(names, of["examples"], passed, mistakes)
    return found


_TOO_LONG = f"It did not come back within {SECONDS:g} seconds. Does a loop in it never end?"


def _tried(names: dict[str, Any], example: Mapping[str, Any]) -> Tried:
    trial, one = Trial(names), Tried(example)
    try:
        with limited():
            judged(names, example, trial)
    except KeyboardInterrupt:
        raise
    except Mismatch as mismatch:
        one.problem, one.aspect, one.details = revealed(mismatch), mismatch.aspect, mismatch.details
    except StudentFault as fault:
        one.problem = str(fault)
    except TimeUp:
        one.problem = _TOO_LONG
    except BaseException as error:  # SystemExit too
        one.problem = NOT_WRITTEN if is_stub(error) else _said(error)
        one.frames = _frames(error)
    one.call, one.printed = trial.now, trial.printed.getvalue()
    return one


def _said(error: BaseException) -> str:
    try:
        first_line = str(error).strip().partition("\n")[0].removesuffix("Hint:").strip()
    except Exception:
        first_line = ""
    said = f"It raised {type(error).__name__}: {first_line[:_LONGEST]}"
    means = meant(first_line)
    return f"{said.rstrip('.')}. {means}" if means else said


def _frames(error: BaseException) -> list[tuple[str, int, str]]:
    """Those in cells, which come before anything that a library does with what it was given."""
    found = traceback.extract_tb(error.__traceback__)
    return [(one.name, one.lineno or 0, (one.line or "").strip()) for one in found if is_cell(one.filename)][-3:]


@contextlib.contextmanager
def limited(seconds: float | None = None) -> Iterator[None]:
    """Ends by TimeUp what takes so many CPU seconds, or a multiple by the clock, where the system can interrupt it."""
    possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not possible:
        yield
        return
    most = seconds or SECONDS
    cpu, clock = time.thread_time(), time.monotonic()

    def ring(number: int, frame: FrameType | None) -> None:
        # What is left of the CPU's seconds takes at least as long by the clock.
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
def as_in_a_new_notebook() -> Iterator[None]:
    """With torch's switches as the hidden tests have them, and the random state put back afterwards."""
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(state)


def _noted(name: str) -> None:
    library = library_of(name)
    if library:
        note(library)


class _OperatorsWatched(OperatorMode):
    """Operators, whoever calls them: autograd and methods of tensors too."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(name_of(func))
        return func(*args, **(kwargs or {}))


class _FunctionsWatched(TorchFunctionMode):
    """Functions of torch's that end in operators of other names."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def libraries_watched(found: set[str]) -> Iterator[None]:
    """Add the names of libraries that run in the context to `found`."""
    taken()
    with _FunctionsWatched(), _OperatorsWatched():
        yield
    found.update(taken())
