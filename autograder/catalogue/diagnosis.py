"""Diagnose a wrong answer: name the misconception that behaves exactly like it. A wrong name is worse than none.

If no misconception has the answer's transcript, the search looks for a pair of misconceptions that together have it.
Many exercises have thousands of pairs, and trying one takes a millisecond. So the search first asks the single
misconceptions one question of each hidden test (see `Question`). If one of two misconceptions does not change the
response, the pair usually responds like the other one; this rules out most pairs. A remaining pair is asked a question
to which both misconceptions change the response. Only if that fits, too, is its transcript compared.

The search can miss a pair but never returns a wrong one: a pair is returned only if its whole transcript is the
answer's, and no other pair's is. If several pairs fit, none is returned, and no misconception that all of them share,
because correcting only that would not help the student. Pairs that behave like a right answer or like a single
misconception need no search: such an answer is right, or was diagnosed before.

If there is no such pair, a misconception may still explain a part of the failed tests: those that it fails, too, and in
which the answer behaves exactly like it. The answer may have another mistake, which changes the other tests. Example:
an answer divides by d_k and has a mistake in dropout. Of the eight tests that `divided_by_d_k` fails, seven have the
same numbers for this answer; the eighth is about dropout.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from ..core.edit_trials import OverLimit, cpu_limit
from ..core.judgement import Explanation, explain, explained_by, has_numbers, is_telling, match
from ..report import Diagnosis, Mistake
from .transcript import (
    Behaviour,
    Misconception,
    Place,
    Question,
    Signature,
    Trace,
    Transcript,
    are_alike,
    are_equal_traces,
    last_telling_event,
    question_at,
    signature,
    whole,
    without_gradients,
    without_initial_weights,
)

MOST_PAIRS = 2_000
"""Most pairs that are tried for one answer; if there are more, none is returned. They take about two seconds.

Pairs that are cached from earlier answers count as well, so that a diagnosis does not depend on what was graded before.
"""
MOST_SECONDS = 10.0
"""Limit in CPU seconds for the search for one answer, and for running one pair, whose code may never end.

The longest search that finds a pair takes about 4 s, and 8 s on a busy machine.
"""
Pair = tuple[int, int]
"""The numbers of two misconceptions, the lower one first."""


class Pairs:
    """All pairs of an exercise's misconceptions, and the search for the pair that behaves like an answer."""

    def __init__(
        self,
        right: Behaviour,
        misconceptions: Sequence[Misconception],
        combined: Callable[[Misconception, Misconception], Behaviour | None],
        moved: Callable[[Misconception, Misconception], Iterable[tuple[Misconception, Behaviour]]],
    ) -> None:
        """right: the solution's behaviour.

        combined: returns the behaviour of an answer with both misconceptions; None if they cannot be combined.
        moved: returns each of two misconceptions whose edit was moved to other code to combine them, and the behaviour
        of that code with this edit only.
        """
        self._right = right
        self._misconceptions = misconceptions
        self._combined = combined
        self._moved = moved

    @cached_property
    def _pairs(self) -> dict[Pair, Behaviour]:
        """The behaviour of each pair that can be combined."""
        pairs = combinations(range(len(self._misconceptions)), 2)
        behaviours = (((i, j), self._combined(self._misconceptions[i], self._misconceptions[j])) for i, j in pairs)
        return {pair: behaviour for pair, behaviour in behaviours if behaviour is not None}

    @cached_property
    def _partners(self) -> dict[int, set[int]]:
        """For each misconception's number, the numbers of the misconceptions with which it can be combined."""
        partners: dict[int, set[int]] = {number: set() for number in range(len(self._misconceptions))}
        for one, other in self._pairs:
            partners[one].add(other)
            partners[other].add(one)
        return partners

    def explaining(self, transcript: Transcript) -> tuple[Misconception, Misconception] | None:
        """Return the pair that has this transcript; None unless exactly one is found within the limits."""
        answer = _Answer(transcript)
        try:
            found = self._matching(self._possible(answer), answer)
            for pair in found if len(found) == 1 else ():
                found = found | self._matching(self._rivals(pair, answer), answer)
        except _TooMany:
            return None
        if len(found) != 1:
            return None
        ((one, other),) = found
        return self._unless_changed(self._misconceptions[one], self._misconceptions[other])

    def _unless_changed(self, one: Misconception, other: Misconception) -> tuple[Misconception, Misconception] | None:
        """Return the pair; None if an edit that was moved to other code no longer behaves like its misconception."""
        try:
            with cpu_limit(MOST_SECONDS):
                for its, moved in self._moved(one, other):
                    if not moved.transcript.equals(tuple(its.behaviour.transcript)):
                        return None
                return one, other
        except (Exception, OverLimit):  # the edit is no valid code there
            return None

    def _matching(self, pairs: Iterable[tuple[Pair, Question | None]], answer: "_Answer") -> set[Pair]:
        """Return those of the given pairs that behave like the answer; raises _TooMany. pairs: see `_matches`."""
        found = set()
        for pair, question in pairs:
            answer.count()
            if self._matches(pair, question, answer):
                found.add(pair)
        return found

    def _possible(self, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """Yield the pairs that are possible given the behaviour of the single misconceptions.

        Each comes with a question to which both misconceptions respond unlike the solution, or None.
        """
        detected = {n for n, one in enumerate(self._misconceptions) if one.entry.caught_by in answer.failed}
        partners = {number: others & detected for number, others in self._partners.items() if number in detected}
        partners, visible = _with_any(partners), dict[Question, set[int]]()
        if not (questions := self._questions(answer)):
            return
        first = questions[0]
        for question in questions:  # the loop may insert more
            if not partners or question in visible:
                continue
            answer.check_time()
            response, right = answer.at(question), self._right.at(question)
            responses = {number: self._misconceptions[number].behaviour.at(question) for number in partners}
            visible[question] = {number for number in partners if not are_alike(responses[number], right)}
            same = {number for number in partners if are_alike(responses[number], response)}
            for number in partners:
                # Two misconceptions that both change the response can respond in any way together. If at most one
                # changes it, the pair must respond like one of the two.
                if number not in visible[question]:
                    partners[number] &= same
                elif number not in same:
                    partners[number] &= visible[question]
            if question == first:  # the partner of one that shows the same here decides the next difference
                single = [self._misconceptions[number].behaviour for number in partners if number in same]
                questions[1:1] = filter(None, map(answer.differs_from, single))  # these divide the pairs most
            partners = _with_any(partners)
            if sum(map(len, partners.values())) <= 2 * len(partners):
                break  # trying the rest costs no more than the next question
        for pair in combinations(sorted(partners), 2):
            one, other = pair
            if other in partners[one] and one in partners[other] and pair in self._pairs:
                yield pair, next((question for question, shown in visible.items() if shown.issuperset(pair)), None)

    def _questions(self, answer: "_Answer") -> list[Question]:
        """Return a question for each hidden test; the first is about the answer's first difference from the solution.

        Each question is about the first difference in its test or, without a difference, about the last event that
        shows values.
        """
        places = list(answer.differences(self._right))
        if not places:  # the answer fails for a reason that is not in its transcript
            return []
        first, *others = (question_at(answer.transcript, *place) for place in places)
        differ = {first.test, *(question.test for question in others)}
        right = tuple(self._right.transcript)
        last = [question_at(right, number, last_telling_event(trace)) for number, trace in enumerate(right)]
        others += [question for question in last if question.test not in differ]
        return [first, *(one for one in others if one.event is not None)]  # a whole trace takes ten times as long

    def _rivals(self, found: Pair, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """Yield the pairs that share a misconception with a matching pair, each with a question to ask it first.

        The search by questions may have missed them, if one misconception hides the other's effect.
        """
        for number in found:
            question = answer.differs_from(self._misconceptions[number].behaviour)
            for other in range(len(self._misconceptions)):
                if (pair := (min(number, other), max(number, other))) in self._pairs and pair != found:
                    yield pair, question

    def _matches(self, pair: Pair, question: Question | None, answer: "_Answer") -> bool:
        """Return whether a pair has the answer's transcript. question: asked first, to save time, unless it is None."""
        behaviour = self._pairs[pair]
        if question in behaviour.asked and not are_alike(behaviour.asked[question], answer.at(question)):
            return False
        try:
            with cpu_limit(MOST_SECONDS):
                fits = question is None or are_alike(behaviour.at(question), answer.at(question))
                return fits and behaviour.transcript.equals(answer.transcript)
        except (Exception, OverLimit):  # together, the two edits make invalid code, or code that never ends
            del self._pairs[pair]
            return False


class _TooMany(Exception):
    """Raised if the search exceeds its limit on pairs or on time."""


class _Answer:
    """The answer to be diagnosed, and a counter of the pairs and the time spent on it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.failed = {trace.test for trace in transcript if trace.outcome == "failed"}
        self._asked: dict[Question, Signature] = {}
        self._tried = 0
        self._begun = time.thread_time()

    def at(self, question: Question) -> Signature:
        """Return the signature of this answer's response to a question."""
        if question not in self._asked:
            self._asked[question] = signature(question.answered(self.transcript))
        return self._asked[question]

    def differs_from(self, behaviour: Behaviour) -> Question | None:
        """Return the question about this answer's first difference from a known answer, or None."""
        place = behaviour.transcript.first_difference(self.transcript)
        return None if place is None else question_at(self.transcript, *place)

    def differences(self, behaviour: Behaviour) -> Iterator[Place]:
        """Yield, for each hidden test, the first place at which this answer differs from a known answer."""
        return behaviour.transcript.differences(self.transcript)

    def count(self) -> None:
        """Count a pair that is tried; raises _TooMany if a limit is exceeded."""
        self._tried += 1
        if self._tried > MOST_PAIRS:
            raise _TooMany
        self.check_time()

    def check_time(self) -> None:
        """Raise _TooMany if the search takes too long."""
        if time.thread_time() - self._begun > MOST_SECONDS:
            raise _TooMany


def _with_any(partners: dict[int, set[int]]) -> dict[int, set[int]]:
    """Return the entries of those misconceptions that have a partner."""
    return {number: others for number, others in partners.items() if others}


def diagnose_by_tests(
    transcript: Transcript, misconceptions: Sequence[Misconception], advisory_tests: Collection[str]
) -> Diagnosis | None:
    """Return one or two misconceptions that each explain a part of the tests that an answer fails.

    The diagnosis is partial if other tests fail, too. None if `core.judgement` finds none certain enough.
    advisory_tests: those of weight 0.
    """
    shown = {trace.test: trace for trace in transcript if trace.test not in advisory_tests}
    failed = {trace.test for trace in shown.values() if trace.outcome == "failed"}
    found = explain(list(_explanations(shown, misconceptions, _behave_alike)), failed)
    found = found or explain(list(_explanations(shown, misconceptions, _fail_alike)), failed)
    if not found:
        return None
    first, *second = (one.misconception.entry for one in found)
    beside = Mistake(second[0].name, second[0].sentence) if second else None
    return Diagnosis(first.name, first.sentence, beside, explained_by(found) != failed)


def _explanations(
    shown: Mapping[str, Trace],
    misconceptions: Sequence[Misconception],
    are_the_same: Callable[[Misconception, Trace, Trace], bool],
) -> Iterator[Explanation[Misconception]]:
    """Yield the misconceptions that explain failed tests.

    are_the_same: returns whether the traces of an answer and of a misconception count as the same.
    """
    for one in misconceptions:
        first = next(iter(one.behaviour.transcript))  # it has run already, and rules out most misconceptions
        if first.outcome == "failed" and first.test in shown and not are_the_same(one, shown[first.test], first):
            continue
        test = one.entry.caught_by or ""
        if test not in shown or not are_the_same(one, shown[test], one.behaviour.trace(test)):
            continue  # to run one test for each misconception is quick
        wrong = [trace for trace in one.behaviour.transcript if trace.outcome == "failed" and trace.test in shown]
        alike = {trace.test for trace in wrong if are_the_same(one, shown[trace.test], trace)}
        others = frozenset(trace.test for trace in wrong) - alike
        numbers = any(has_numbers(shown[test].mistake) for test in alike)
        yield Explanation(one, one.entry.sentence, frozenset(alike), others, numbers)


def _fail_alike(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether a test found the same wrong in both: the rule of the student check."""
    return match(answer.mistake, misconception.mistake) and is_telling(answer.mistake)


def _behave_alike(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether an answer has the same trace of a test as a misconception.

    Gradients are compared only for misconceptions about gradients: they depend on how a wrong value is computed.
    """
    if answer.outcome != misconception.outcome:
        return False
    compared = whole if one.entry.kind == "gradient" else without_gradients
    return are_equal_traces(compared(answer), compared(misconception))


def diagnose(
    transcript: Transcript,
    misconceptions: Sequence[Misconception],
    pairs: Pairs,
    device_tests: Collection[str],
    advisory_tests: Collection[str] = (),
    *,
    is_exact: bool = False,
) -> Diagnosis | None:
    """Return the misconception, or the pair, that behaves like a wrong answer; else one or two that explain a part.

    transcript: the answer's. misconceptions, pairs: those of its exercise. The search for pairs can take seconds.
    device_tests: names of the hidden tests about devices. advisory_tests: names of those of weight 0. is_exact: search
    only for a single misconception. Return None if nothing fits.
    """
    failed = {trace.test for trace in transcript if trace.outcome == "failed"}
    # An answer that passes the test that detects a misconception has another one. So most need not run.
    possible = [one for one in misconceptions if one.entry.caught_by in failed]

    def alike(some: Iterable[Misconception], **how: Any) -> Iterator[Misconception]:
        return (one for one in some if one.behaviour.transcript.equals(transcript, **how))

    def first(some: Iterable[Misconception], **how: Any) -> Diagnosis | None:
        return next(map(_named, alike(some, **how)), None)

    if diagnosis := first(possible):
        return diagnosis
    # A pair may behave like the answer by chance where no numbers are compared, as with dropout. So a misconception
    # that explains all failed tests by itself goes before any pair.
    by_tests = None if is_exact else diagnose_by_tests(transcript, possible, advisory_tests)
    explains_all = by_tests is not None and by_tests.beside is None and not by_tests.is_partial
    if not (is_exact or explains_all) and (pair := pairs.explaining(transcript)) is not None:
        one, other = pair
        return Diagnosis(one.entry.name, one.entry.sentence, Mistake(other.entry.name, other.entry.sentence))
    # A tensor left on the CPU often accompanies another misconception, and should not hide its name.
    elsewhere = [one for one in possible if one.entry.kind != "device" and one.entry.caught_by not in device_tests]
    if diagnosis := first(elsewhere, without=device_tests):
        return diagnosis
    # Rounding in half precision differs between answers with one misconception.
    weighted = [one for one in possible if one.entry.caught_by not in advisory_tests]
    if diagnosis := first(weighted, without=advisory_tests):
        return diagnosis
    # Gradients of wrong values depend on how these are computed: detaching a maximum changes only the gradients.
    of_values = [one for one in weighted if one.entry.kind != "gradient"]
    same = list(alike(of_values, without=advisory_tests, compared=without_gradients))
    if len({one.entry.sentence for one in same}) == 1:
        return _named(same[0])
    of_any_weights = [one for one in possible if one.entry.whatever_weights]
    if diagnosis := first(of_any_weights, without=advisory_tests, compared=without_initial_weights):
        return diagnosis
    return by_tests


def _named(one: Misconception) -> Diagnosis:
    return Diagnosis(one.entry.name, one.entry.sentence)
