"""Examines one answer to one exercise: runs its graders, keeps what they saw, and names the misconception."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from .. import catalogue
from ..core import library_calls
from ..core.bench import Bench, Operation
from ..core.faults import StudentFault
from ..core.observation import Observation
from ..core.observed_functions import observe_functions
from ..core.observed_operators import observe_operators
from ..core.operations import Kind, KindOf, NamedParameters
from ..core.packing import as_it_arrives
from ..core.wrong_function import PackedFunction
from ..course import content
from ..diagnosis.behaviour import Behaviour
from ..diagnosis.fingerprint import Fingerprint, Trace
from ..diagnosis.naming import named
from ..diagnosis.pairs import Pairs
from ..diagnosis.question import Question
from ..diagnosis.suspect import Suspect
from ..graders.collected import Grader, Graders, Verdict, looked_at, not_run
from ..report import NOT_WRITTEN, Diagnosis
from ..student.answer import as_parameters
from ..student.asked_before import AskedBefore
from ..student.backend import Backend
from ..student.face import Student
from ..student.recording import Event, Recording
from ..student.sandboxed import SandboxedNotebook

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What the graders of one exercise found in one answer."""

    verdicts: list[Verdict]
    fingerprint: Fingerprint
    library_calls: set[str]

    @property
    def has_wrong_values(self) -> bool:
        """True if a test of values failed, and not only tests of other aspects."""
        return any(one.outcome == "failed" and not one.grader.is_property for one in self.verdicts)

    @property
    def lost_aspects(self) -> list[tuple[str, tuple[str, ...]]]:
        """The aspects whose tests failed and whose line can be searched, each with its details."""
        return [(one.aspect, one.details) for one in self.verdicts if one.details]


@dataclass(frozen=True)
class _Seen:
    """What one grader saw of one answer, and found."""

    verdict: Verdict
    events: tuple[Event, ...]
    library_calls: frozenset[str]
    kinds: Mapping[str, Kind]

    @property
    def trace(self) -> Trace:
        return Trace(self.verdict.grader.name, self.verdict.outcome, self.events)


class Examiner:
    """Runs graders; keeps the misconceptions' fingerprints once they are known."""

    def __init__(self, graders: Graders) -> None:
        self._graders = graders
        self._known: dict[tuple[str, str], tuple[list[Suspect], Pairs]] = {}
        self._hunted: dict[str, dict[str, PackedFunction]] = {}
        self._before: AskedBefore[_Seen] = AskedBefore()

    def examine(self, unit: str, exercise: str, backend: Backend, entry: catalogue.Candidate | None = None) -> Finding:
        """What the exercise's graders find in the code behind this backend; `entry` says which of ours it is."""
        seen = list(self._seen(unit, exercise, backend, entry))
        library_calls = {name for one in seen for name in one.library_calls}
        return Finding([one.verdict for one in seen], tuple(one.trace for one in seen), library_calls)

    def diagnose(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """The misconception that shows exactly this; None where none does: a wrong name is worse than no name."""
        if all(_passed_or_is_not_there(verdict) for verdict in finding.verdicts):
            return None  # what is not there makes no mistake, and to compare it with each takes seconds
        if any(verdict.lost for verdict in finding.verdicts):
            return None  # no known mistake hangs or crashes
        failed = [verdict for verdict in finding.verdicts if verdict.outcome == "failed"]
        is_one = len({verdict.seen for verdict in failed}) == 1 and failed[0].raised  # the same error, wherever it came
        return self._named(unit, exercise, finding, may_be_two=not is_one)

    def learn(self, unit: str) -> None:
        """Sees what a unit's known mistakes show, for which else its first wrong answers wait."""
        right = content.solutions(unit)
        for exercise in self._graders[unit]:
            bench = _Beside({**right, exercise: _wrong_everywhere(right[exercise])}, watch=False)
            self._named(unit, exercise, self.examine(unit, exercise, bench), may_be_two=False)

    def _named(self, unit: str, exercise: str, finding: Finding, *, may_be_two: bool) -> Diagnosis | None:
        probes = {verdict.grader.name for verdict in finding.verdicts if verdict.grader.probes_device}
        weightless = {verdict.grader.name for verdict in finding.verdicts if not verdict.grader.points}
        if (unit, exercise) not in self._known:
            self._known[unit, exercise] = self._known_of(unit, exercise)
        suspects, pairs = self._known[unit, exercise]
        return named(finding.fingerprint, suspects, pairs if may_be_two else None, probes, weightless)

    def hunted(self, unit: str) -> dict[str, PackedFunction]:
        """The wrong functions that the unit's hunts are for, by name: what students have of them."""
        if unit not in self._hunted:
            graders = [one for of_exercise in self._graders[unit].values() for one in of_exercise]
            hunted = [one.hunted for one in graders if one.hunted is not None]
            self._hunted[unit] = {one.of: one.packed(unit) for one in hunted}
        return self._hunted[unit]

    def _known_of(self, unit: str, exercise: str) -> tuple[list[Suspect], Pairs]:
        """The exercise's known mistakes, and what finds two of them at once."""
        entries = {name: one for name, one in catalogue.misconceptions(unit).items() if one.exercise == exercise}

        def behaviour(made: Callable[[], catalogue.Candidate]) -> Behaviour:
            # Made anew where something is asked: the code of thousands of pairs is not kept.
            return Behaviour(
                lambda: self._traces(unit, exercise, made), lambda question: self._answered(unit, made(), question)
            )

        def combined(one: Suspect, other: Suspect) -> Behaviour | None:
            pair = entries[one.name], entries[other.name]
            return behaviour(partial(catalogue.combined, *pair)) if catalogue.can_be_combined(*pair) else None

        def moved(one: Suspect, other: Suspect) -> Iterator[tuple[Suspect, Behaviour]]:
            for own, there in catalogue.moved(entries[one.name], entries[other.name]):
                yield one if own.name == one.name else other, behaviour(there.anew)

        suspects = [
            Suspect(
                name,
                entry.sentence,
                entry.caught_by,
                entry.kind == "device",
                entry.kind == "gradient",
                behaviour(partial(entries.__getitem__, name)),
                entry.whatever_weights,
            )
            for name, entry in entries.items()
        ]
        right = behaviour(lambda: catalogue.solutions(unit)[exercise])
        return suspects, Pairs(right, suspects, combined, moved)

    def _traces(self, unit: str, exercise: str, made: Callable[[], catalogue.Candidate]) -> Iterator[Trace]:
        """What the graders see in an entry, which is made when the first of them is run."""
        entry = made().anew()
        for seen in self._seen(unit, exercise, candidate_bench(unit, entry), entry):
            yield seen.trace

    def _answered(self, unit: str, entry: catalogue.Candidate, question: Question) -> Any:
        """What an entry shows at a question."""
        bench = candidate_bench(unit, entry)
        if question.event is None:
            graders = [one for one in self._graders[unit][entry.exercise] if one.name == question.grader]
            (seen,) = self._seen(unit, entry.exercise, bench, entry, graders)
            return seen.trace
        recording = Recording(bench, entry.name, entry.exercise)
        with suppress(StudentFault):
            for operation in question.operations:
                recording.ask(operation)
        return recording.events[-1].shown

    def _seen(
        self,
        unit: str,
        exercise: str,
        backend: Backend,
        entry: catalogue.Candidate | None,
        graders: Sequence[Grader] | None = None,
    ) -> Iterator[_Seen]:
        """What one grader after another sees and finds; after a hang or a crash the rest is not run."""
        right = candidate_bench(unit, None).ask(KindOf(exercise))
        kinds: Mapping[str, Kind] = {}
        lost = False
        for grader in self._graders[unit][exercise] if graders is None else graders:
            if lost:
                yield _Seen(not_run(grader), (), frozenset(), kinds)
                continue
            look = partial(_look, grader, {exercise: right}, kinds, entry)
            if isinstance(backend, SandboxedNotebook):
                what = unit, exercise, grader.name, frozenset(kinds.items())
                seen = self._before.find(what, backend, look, is_to_keep=_follows_from_the_answers)
            else:
                seen = look(backend)
            yield seen
            kinds, lost = seen.kinds, seen.verdict.lost is not None


def _passed_or_is_not_there(verdict: Verdict) -> bool:
    return verdict.outcome == "passed" or verdict.missing or verdict.seen.startswith(NOT_WRITTEN)


def _wrong_everywhere(right: Any) -> Any:
    """A function or class like the right one, that always raises an error."""

    def raises(*args: Any, **named: Any) -> Any:
        raise RuntimeError

    return type(right.__name__, (right,), {"__init__": raises}) if isinstance(right, type) else raises


def _look(
    grader: Grader,
    right: Mapping[str, Kind],
    known: Mapping[str, Kind],
    entry: catalogue.Candidate | None,
    backend: Backend,
) -> _Seen:
    """right: what kind the exercise is of. known: kinds of names that were asked for before."""
    recording = Recording(backend, entry.name, entry.exercise) if entry else Recording(backend)
    student = Student(recording, right, known=known)
    verdict = looked_at(student, grader)
    return _Seen(verdict, tuple(recording.events), frozenset(recording.library_calls), student.kinds)


def _follows_from_the_answers(seen: _Seen) -> bool:
    """What was lost may have been so for lack of time, and what is wrong with a grader is to be said each time."""
    return seen.verdict.lost is None and seen.verdict.outcome != "grader_error"


class _Beside(Bench):
    """A bench in this process whose values are what they would be if they came from another one."""

    def __init__(self, names: Mapping[str, Any], *, watch: bool) -> None:
        super().__init__(names)
        self._watch = watch
        if watch:
            observe_operators()
            observe_functions()

    def ask(self, operation: Operation[T]) -> T:
        """As the worker's answers come: values and parameters packed, and with what ran by then."""
        library_calls.taken()  # the graders' own
        given: Any = super().ask(operation)
        if isinstance(operation, NamedParameters):
            given = as_parameters(as_it_arrives(given))
        if isinstance(given, Observation):
            given.value = as_it_arrives(given.value)
            given.library_calls = library_calls.taken() if self._watch else []
        found: T = given
        return found


def candidate_bench(unit: str, candidate: catalogue.Candidate | None, *, watch: bool = False) -> Bench:
    """A bench in this process with the solutions, and the candidate in the place of one of them.

    watch: note the libraries that it calls.
    """
    names = dict(content.solutions(unit))
    if candidate is not None:
        names[candidate.exercise] = candidate.answer
    return _Beside(names, watch=watch)
