"""Examines one answer to one exercise: runs its graders, keeps what they saw, and names the misconception."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .. import catalogue
from ..course import content
from ..diagnosis.fingerprint import Fingerprint, Known, Trace
from ..diagnosis.naming import Suspect, named
from ..graders.collected import Graders, Verdict, run
from ..report import Diagnosis
from ..sandbox.inside import library_calls
from ..sandbox.inside.bench import Bench
from ..sandbox.inside.observation import Observation
from ..sandbox.inside.observed_functions import observe_functions
from ..sandbox.inside.observed_operators import observe_operators
from ..sandbox.inside.operations import KindOf, Operation
from ..sandbox.inside.protocol import as_it_arrives
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
        self._known: dict[tuple[str, str], list[Suspect]] = {}

    def examine(self, unit: str, exercise: str, backend: Backend, entry: catalogue.Candidate | None = None) -> Finding:
        """What the exercise's graders find in the code behind this backend; `entry` says which of ours it is."""
        recording = _recording(backend, entry)
        verdicts, traces = zip(*self._seen(unit, exercise, recording), strict=True)
        return Finding(list(verdicts), traces, recording.library_calls)

    def diagnose(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """The misconception that shows exactly this; None where none does: a wrong name is worse than no name."""
        if all(verdict.outcome == "passed" or verdict.missing for verdict in finding.verdicts):
            return None  # what is not there makes no mistake, and to compare it with each takes seconds
        probes = {verdict.grader.name for verdict in finding.verdicts if verdict.grader.probes_device}
        return named(finding.fingerprint, self._suspects(unit, exercise), probes)

    def is_value(self, unit: str, exercise: str, test: str) -> bool:
        """Whether the grader of this name is one of values, and not of a property alone."""
        return any(grader.name == test and not grader.is_property for grader in self._graders[unit][exercise])

    def _suspects(self, unit: str, exercise: str) -> list[Suspect]:
        if (unit, exercise) not in self._known:
            self._known[unit, exercise] = [
                self._suspect(unit, entry)
                for entry in catalogue.misconceptions(unit).values()
                if entry.exercise == exercise
            ]
        return self._known[unit, exercise]

    def _suspect(self, unit: str, entry: catalogue.Candidate) -> Suspect:
        shown = Known(self._traces(unit, entry))
        return Suspect(entry.name, entry.sentence, entry.caught_by, entry.kind == "device", shown)

    def _traces(self, unit: str, entry: catalogue.Candidate) -> Iterator[Trace]:
        bench = candidate_bench(unit, entry)
        for _, trace in self._seen(unit, entry.exercise, _recording(bench, entry)):
            yield trace

    def _seen(self, unit: str, exercise: str, recording: Recording) -> Iterator[tuple[Verdict, Trace]]:
        """What one grader after another finds, and what was shown to it."""
        student = Student(recording, {exercise: candidate_bench(unit, None).ask(KindOf(exercise))})
        for verdict in run(student, self._graders[unit][exercise]):
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
