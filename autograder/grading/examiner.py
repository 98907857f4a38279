"""Examine one answer to one exercise: run its hidden tests, record the transcript, and diagnose the answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import torch

from .. import catalogue
from ..catalogue.bug_hunts import hunt_of
from ..catalogue.diagnosis import Pairs, diagnose
from ..catalogue.transcript import Behaviour, Misconception, Question, Trace, Transcript
from ..core import library_calls
from ..core.bench import Bench, Operation
from ..core.constructed_answers import PackedFunction
from ..core.edit_trials import TryEdits, fingerprint
from ..core.library_recorders import observe_functions, observe_operators
from ..core.observation import Observation, StudentFault
from ..core.operations import Kind, KindOf, NamedParameters
from ..core.packing import round_trip
from ..course import content
from ..graders.backend import Backend, Recording, TranscriptCache
from ..graders.collection import HiddenTest, HiddenTests, Verdict, not_run, run_test
from ..graders.decoding import decode_parameters
from ..graders.proxy import StudentProxy
from ..graders.sandboxed import SandboxedNotebook
from ..report import NOT_WRITTEN, Diagnosis

T = TypeVar("T")
RightResults = tuple[tuple[Operation[Any], ...], torch.Tensor]
"""Operations, and the fingerprints (operation, 3) of the solution's results: see `core.edit_trials`."""


@dataclass(frozen=True)
class Finding:
    """The verdicts of an exercise's hidden tests on one answer, its transcript, and the libraries that it called."""

    verdicts: list[Verdict]
    transcript: Transcript
    library_calls: set[str]

    @property
    def has_wrong_values(self) -> bool:
        """True if a test of the results' values failed, not only conditional tests."""
        return any(one.outcome == "failed" and not one.test.is_property for one in self.verdicts)

    @property
    def lost_aspects(self) -> list[tuple[str, tuple[str, ...]]]:
        """The aspects, with details, that failed tests reported and whose faulty line can be searched for."""
        return [(one.aspect, one.details) for one in self.verdicts if one.details]


@dataclass(frozen=True)
class _TestRun:
    """The results of running one hidden test on one answer."""

    verdict: Verdict
    trace: Trace
    library_calls: frozenset[str]
    kinds: Mapping[str, Kind]
    """The kind, function or class, of each name that the tests so far have used."""


class Examiner:
    """Runs hidden tests and diagnoses answers.

    It caches verdicts for answers that behave alike, and the behaviour of misconceptions.
    """

    def __init__(self, graders: HiddenTests) -> None:
        self._graders = graders
        self._known = cache(self._misconceptions)
        self._verdicts: TranscriptCache[_TestRun] = TranscriptCache()
        self.hunted = cache(self._hunted)
        self.right_results = cache(self._right_results)

    def examine(self, unit: str, exercise: str, backend: Backend, entry: catalogue.Candidate | None = None) -> Finding:
        """Run all hidden tests of an exercise on the code behind a backend.

        entry: the known answer, if the code is one.
        """
        runs = list(self._runs(unit, exercise, backend, entry))
        library_calls = {name for run in runs for name in run.library_calls}
        return Finding([run.verdict for run in runs], tuple(run.trace for run in runs), library_calls)

    def tests(self, unit: str, exercise: str) -> list[str]:
        """Return the names of the exercise's hidden tests."""
        return [test.name for test in self._graders[unit][exercise]]

    def has_secret(self, unit: str) -> bool:
        """Return whether a secret seeds the cases of the unit's hidden tests."""
        return any(test.secret for tests in self._graders[unit].values() for test in tests)

    def _right_results(self, unit: str, exercise: str, test: str) -> RightResults:
        """Return the operations of a hidden test on the solution, with the fingerprints of their results."""
        bench = _Remembering(candidate_bench(unit, None))
        list(self.verdicts(unit, exercise, bench, [test]))
        prints = [fingerprint(result) for result in bench.results]
        return tuple(bench.operations), torch.stack(prints) if prints else torch.zeros(0, 3, dtype=torch.float64)

    def prints_of(self, unit: str, misconception: str, operations: tuple[Operation[Any], ...]) -> torch.Tensor:
        """Return the fingerprints (see `core.edit_trials`) of a misconception's results, (operation, 3)."""
        bench = candidate_bench(unit, catalogue.misconceptions(unit)[misconception].recreated())
        prints: torch.Tensor = bench.ask(TryEdits(((),), operations))[0]
        return prints

    def verdicts(self, unit: str, exercise: str, backend: Backend, names: Sequence[str]) -> Iterator[Verdict]:
        """Yield the verdicts of the hidden tests `names` in order. Each test runs when its verdict is requested."""
        tests = {test.name: test for test in self._graders[unit][exercise]}
        return (run.verdict for run in self._runs(unit, exercise, backend, None, [tests[name] for name in names]))

    def diagnose(self, unit: str, exercise: str, finding: Finding, *, is_exact: bool = False) -> Diagnosis | None:
        """Return the one or two misconceptions that explain an answer's failed tests, or None.

        finding: the answer's. is_exact: search only for one misconception that behaves like the answer in all tests.
        """
        if all(_has_passed_or_is_missing(verdict) for verdict in finding.verdicts):
            return None  # a comparison with each misconception would take seconds
        if any(verdict.lost for verdict in finding.verdicts):
            return None  # no misconception hangs or crashes
        failed = [verdict for verdict in finding.verdicts if verdict.outcome == "failed"]
        has_one_error = len({verdict.seen for verdict in failed}) == 1 and failed[0].raised
        return self._diagnose(unit, exercise, finding, is_exact=is_exact or has_one_error)

    def failed_tests(self, unit: str, exercise: str, misconception: str) -> frozenset[str]:
        """Return the names of the hidden tests that a misconception fails."""
        misconceptions, _ = self._known(unit, exercise)
        behaviour = next(one.behaviour for one in misconceptions if one.entry.name == misconception)
        return frozenset(trace.test for trace in behaviour.transcript if trace.outcome == "failed")

    def learn(self, unit: str) -> None:
        """Record the behaviour of a unit's misconceptions now, so that diagnosing the first wrong answer is quick."""
        solutions = content.solutions(unit)
        for exercise in self._graders[unit]:
            bench = _LocalBench({**solutions, exercise: _always_raising(solutions[exercise])}, watch=False)
            self._diagnose(unit, exercise, self.examine(unit, exercise, bench), is_exact=True)

    def _diagnose(self, unit: str, exercise: str, finding: Finding, *, is_exact: bool) -> Diagnosis | None:
        tests = [verdict.test for verdict in finding.verdicts]
        device_tests = {test.name for test in tests if test.probes_device}
        advisory_tests = {test.name for test in tests if not test.points}
        misconceptions, pairs = self._known(unit, exercise)
        return diagnose(finding.transcript, misconceptions, pairs, device_tests, advisory_tests, is_exact=is_exact)

    def _hunted(self, unit: str) -> dict[str, PackedFunction]:
        """Return the wrong functions of the unit's counterexample exercises by name, packed as in the release."""
        tests = [test for of_exercise in self._graders[unit].values() for test in of_exercise]
        return {hunt.of: hunt.packed(unit) for test in tests if (hunt := hunt_of(test)) is not None}

    def _misconceptions(self, unit: str, exercise: str) -> tuple[list[Misconception], Pairs]:
        """Return the exercise's misconceptions, and the search for pairs of them."""

        def behaviour(make: Callable[[], catalogue.Candidate]) -> Behaviour:
            # The answer is created again for each question, so that the code of thousands of pairs need not be stored.
            return Behaviour(
                lambda: self._traces(unit, exercise, make), lambda question: self._answered(unit, make(), question)
            )

        def combined(one: Misconception, other: Misconception) -> Behaviour | None:
            pair = one.entry, other.entry
            return behaviour(partial(catalogue.combined, *pair)) if catalogue.can_be_combined(*pair) else None

        def moved(one: Misconception, other: Misconception) -> Iterator[tuple[Misconception, Behaviour]]:
            for entry, there in catalogue.moved(one.entry, other.entry):
                yield one if entry is one.entry else other, behaviour(there.recreated)

        entries = {name: one for name, one in catalogue.misconceptions(unit).items() if one.exercise == exercise}
        misconceptions = [
            Misconception(entry, behaviour(partial(entries.__getitem__, name))) for name, entry in entries.items()
        ]
        solution = behaviour(lambda: catalogue.solutions(unit)[exercise])
        return misconceptions, Pairs(solution, misconceptions, combined, moved)

    def _traces(self, unit: str, exercise: str, make: Callable[[], catalogue.Candidate]) -> Iterator[Trace]:
        """Run the hidden tests on a known answer and yield the traces. make: returns the answer; called first."""
        entry = make().recreated()
        for run in self._runs(unit, exercise, candidate_bench(unit, entry), entry):
            yield run.trace

    def _answered(self, unit: str, entry: catalogue.Candidate, question: Question) -> Any:
        """Return the response of a known answer to a question."""
        bench = candidate_bench(unit, entry)
        if question.event is None:
            tests = [test for test in self._graders[unit][entry.exercise] if test.name == question.test]
            (run,) = self._runs(unit, entry.exercise, bench, entry, tests)
            return run.trace
        recording = Recording(bench, entry.name, entry.exercise)
        with suppress(StudentFault):
            for operation in question.operations:
                recording.ask(operation)
        return recording.events[-1].shown

    def _runs(
        self,
        unit: str,
        exercise: str,
        backend: Backend,
        entry: catalogue.Candidate | None,
        tests: Sequence[HiddenTest] | None = None,
    ) -> Iterator[_TestRun]:
        """Run hidden tests one after another and yield the results; after a hang or a crash, the rest is not run.

        tests: by default all of the exercise.
        """
        right = candidate_bench(unit, None).ask(KindOf(exercise))
        kinds: Mapping[str, Kind] = {}
        is_lost = False
        for test in self._graders[unit][exercise] if tests is None else tests:
            if is_lost:
                verdict = not_run(test)
                yield _TestRun(verdict, Trace(test.name, verdict.outcome, ()), frozenset(), kinds)
                continue
            run_test = partial(_run_test, test, {exercise: right}, kinds, entry)
            if isinstance(backend, SandboxedNotebook):
                what = unit, exercise, test.name, frozenset(kinds.items())
                run = self._verdicts.find(what, backend, run_test, is_cacheable=_follows_from_the_answers)
            else:
                run = run_test(backend)
            yield run
            kinds, is_lost = run.kinds, run.verdict.lost is not None


def _has_passed_or_is_missing(verdict: Verdict) -> bool:
    return verdict.outcome == "passed" or verdict.missing or verdict.seen.startswith(NOT_WRITTEN)


def _always_raising(right: Any) -> Any:
    """Return a function, or a subclass of the right class, that raises an exception in every call."""

    def raises(*args: Any, **named: Any) -> Any:
        raise RuntimeError

    return type(right.__name__, (right,), {"__init__": raises}) if isinstance(right, type) else raises


def _run_test(
    test: HiddenTest,
    right: Mapping[str, Kind],
    known: Mapping[str, Kind],
    entry: catalogue.Candidate | None,
    backend: Backend,
) -> _TestRun:
    """Run one hidden test on the code behind a backend.

    right: the kind of the exercise's solution, function or class. known: the kinds of names that earlier tests used.
    entry: the known answer, if the code is one.
    """
    recording = Recording(backend, entry.name, entry.exercise) if entry else Recording(backend)
    student = StudentProxy(recording, right, known=known)
    verdict = run_test(student, test)
    trace = Trace(test.name, verdict.outcome, tuple(recording.events), verdict.signature)
    return _TestRun(verdict, trace, frozenset(recording.library_calls), student.kinds)


def _follows_from_the_answers(run: _TestRun) -> bool:
    """Return whether a test's verdict would be the same for the same answers, so that it may be cached.

    It may not be cached after a hang or crash, which may be due to lack of time. An error in a hidden test is reported
    each time.
    """
    return run.verdict.lost is None and run.verdict.outcome != "grader_error"


class _Remembering:
    """A wrapper of a bench that records all operations and their results."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.operations: list[Operation[Any]] = []
        self.results: list[Any] = []

    def ask(self, operation: Operation[T]) -> T:
        """Have the bench carry out an operation, record the operation with its result, and return the result."""
        result = self._bench.ask(operation)
        self.operations.append(operation)
        self.results.append(result)
        return result


class _LocalBench(Bench):
    """A bench in this process whose results are packed and unpacked, as if they came from a worker."""

    def __init__(self, names: Mapping[str, Any], *, watch: bool) -> None:
        super().__init__(names)
        self._watch = watch
        if watch:
            observe_operators()
            observe_functions()

    def ask(self, operation: Operation[T]) -> T:
        """Execute the operation; return its result, packed and unpacked, with the libraries that the code called."""
        library_calls.take_recorded()  # drops the hidden test's own calls
        result: Any = super().ask(operation)
        if isinstance(operation, NamedParameters):
            result = decode_parameters(round_trip(result))
        if isinstance(result, Observation):
            result.value = round_trip(result.value)
            result.library_calls = library_calls.take_recorded() if self._watch else []
        arrived: T = result
        return arrived


def candidate_bench(unit: str, candidate: catalogue.Candidate | None, *, watch: bool = False) -> Bench:
    """Return a bench in this process with the unit's solutions, one of them replaced by a candidate.

    watch: True to record the libraries that the code calls.
    """
    names = dict(content.solutions(unit))
    if candidate is not None:
        names[candidate.exercise] = candidate.answer
    return _LocalBench(names, watch=watch)
