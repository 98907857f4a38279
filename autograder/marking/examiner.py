"""Examines one answer to one exercise: runs its graders, keeps what they saw, and names the misconception."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from .. import catalogue
from ..course import content
from ..diagnosis.behaviour import Behaviour
from ..diagnosis.fingerprint import Fingerprint, Trace
from ..diagnosis.naming import named
from ..diagnosis.pairs import Pairs
from ..diagnosis.question import Question
from ..diagnosis.suspect import Suspect
from ..graders.collected import Grader, Graders, Verdict, run
from ..report import Diagnosis
from ..sandbox.inside import library_calls
from ..sandbox.inside.bench import Bench
from ..sandbox.inside.faults import StudentFault
from ..sandbox.inside.observation import Observation
from ..sandbox.inside.observed_functions import observe_functions
from ..sandbox.inside.observed_operators import observe_operators
from ..sandbox.inside.operations import KindOf, Operation
from ..sandbox.inside.protocol import as_it_arrives
from ..sandbox.inside.wrong_function import PackedFunction
from ..student.backend import Backend
from ..student.face import Student
from ..student.recording import Recording

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What the graders of one exercise found in one answer."""

    verdicts: list[Verdict]
    fingerprint: Fingerprint
    library_calls: set[str]


class Examiner:
    """Runs graders; keeps the misconceptions' fingerprints once they are known."""

    def __init__(self, graders: Graders) -> None:
        self._graders = graders
        self._known: dict[tuple[str, str], tuple[list[Suspect], Pairs]] = {}
        self._hunted: dict[str, dict[str, PackedFunction]] = {}

    def examine(self, unit: str, exercise: str, backend: Backend, entry: catalogue.Candidate | None = None) -> Finding:
        """What the exercise's graders find in the code behind this backend; `entry` says which of ours it is."""
        recording = _recording(backend, entry)
        verdicts, traces = zip(*self._seen(unit, exercise, recording, self._graders[unit][exercise]), strict=True)
        return Finding(list(verdicts), traces, recording.library_calls)

    def diagnose(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """The misconception that shows exactly this; None where none does: a wrong name is worse than no name."""
        if all(verdict.outcome == "passed" or verdict.missing for verdict in finding.verdicts):
            return None  # what is not there makes no mistake, and to compare it with each takes seconds
        if any(verdict.lost for verdict in finding.verdicts):
            return None  # no known mistake hangs or crashes
        probes = {verdict.grader.name for verdict in finding.verdicts if verdict.grader.probes_device}
        weightless = {verdict.grader.name for verdict in finding.verdicts if not verdict.grader.points}
        if (unit, exercise) not in self._known:
            self._known[unit, exercise] = self._known_of(unit, exercise)
        suspects, pairs = self._known[unit, exercise]
        return named(finding.fingerprint, suspects, pairs, probes, weightless)

    def hunted(self, unit: str) -> dict[str, PackedFunction]:
        """The wrong functions that the unit's hunts are for, by name: what students have of them."""
        if unit not in self._hunted:
            graders = [one for of_exercise in self._graders[unit].values() for one in of_exercise]
            hunted = [one.hunted for one in graders if one.hunted is not None]
            self._hunted[unit] = {one.of: one.packed(unit) for one in hunted}
        return self._hunted[unit]

    def is_value(self, unit: str, exercise: str, test: str) -> bool:
        """Whether the grader of this name is one of values, and not of a property alone."""
        return any(grader.name == test and not grader.is_property for grader in self._graders[unit][exercise])

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
        return suspects, Pairs(right, suspects, combined)

    def _traces(self, unit: str, exercise: str, made: Callable[[], catalogue.Candidate]) -> Iterator[Trace]:
        """What the graders see in an entry, which is made when the first of them is run."""
        entry = made().anew()
        recording = _recording(candidate_bench(unit, entry), entry)
        for _, trace in self._seen(unit, exercise, recording, self._graders[unit][exercise]):
            yield trace

    def _answered(self, unit: str, entry: catalogue.Candidate, question: Question) -> Any:
        """What an entry shows at a question."""
        recording = _recording(candidate_bench(unit, entry), entry)
        if question.event is None:
            graders = [one for one in self._graders[unit][entry.exercise] if one.name == question.grader]
            ((_, trace),) = self._seen(unit, entry.exercise, recording, graders)
            return trace
        with suppress(StudentFault):
            for operation in question.operations:
                recording.ask(operation)
        return recording.events[-1].shown

    def _seen(
        self, unit: str, exercise: str, recording: Recording, graders: Sequence[Grader]
    ) -> Iterator[tuple[Verdict, Trace]]:
        """What one grader after another finds, and what was shown to it."""
        student = Student(recording, {exercise: candidate_bench(unit, None).ask(KindOf(exercise))})
        for verdict in run(student, graders):
            yield verdict, Trace(verdict.grader.name, verdict.outcome, tuple(recording.events))
            recording.events.clear()


def _recording(backend: Backend, entry: catalogue.Candidate | None) -> Recording:
    return Recording(backend, entry.name, entry.exercise) if entry else Recording(backend)


class _Beside(Bench):
    """A bench in this process whose values are what they would be if they came from another one."""

    def __init__(self, names: Mapping[str, Any], *, watch: bool) -> None:
        super().__init__(names)
        self._watch = watch
        if watch:
            observe_operators()
            observe_functions()

    def ask(self, operation: Operation[T]) -> T:
        """As the worker's answers come: a call's value packed, and with what ran by then."""
        library_calls.taken()  # the graders' own
        given = super().ask(operation)
        if isinstance(given, Observation):
            given.value = as_it_arrives(given.value)
            given.library_calls = library_calls.taken() if self._watch else []
        return given


def candidate_bench(unit: str, candidate: catalogue.Candidate | None, *, watch: bool = False) -> Bench:
    """A bench in this process with the solutions, and the candidate in the place of one of them.

    watch: note the libraries that it calls.
    """
    names = dict(content.solutions(unit))
    if candidate is not None:
        names[candidate.exercise] = candidate.answer
    return _Beside(names, watch=watch)
