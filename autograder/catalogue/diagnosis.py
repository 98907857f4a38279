"""Diagnose an answer: name the misconception that behaves exactly like it. A wrong name is worse than none.

If no misconception has the answer's transcript, two are searched that it has at once: the pair with its transcript.
Many exercises have thousands of pairs, and trying one takes a millisecond. So the search asks the single misconceptions
first, one question of each hidden test. Where one of two shows nothing, the pair mostly shows what the other shows. A
pair that fits the answer so far is asked a question on which both show something, and its transcript is compared only
if that fits, too.

This rule can lose a pair but never gives a wrong one: a pair is returned only if its whole transcript is the answer's,
and no other pair's is. Of several pairs none is returned, not even a misconception that all of them have: a student who
corrects only that has an answer that is as wrong as before. A pair that behaves like a right answer or a single
misconception is never found: such an answer is right, or was diagnosed before pairs are searched.

At last a misconception explains those failed tests in which the answer shows the same. An answer may differ from a
misconception where both are right, or have one more mistake. So only the tests that the misconception fails are
compared. In `divided_by_d_k` with one more mistake in dropout, seven of eight tests that dividing by d_k fails show the
same, number for number, and the eighth needs dropout.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from ..core.edit_trials import OverLimit, cpu_limit
from ..core.explanations import Explanation, explain, explained_by
from ..report import Diagnosis, Mistake
from .behaviour import Behaviour, Misconception, Question, last_telling_event, question_at
from .transcript import (
    Place,
    Signature,
    Trace,
    Transcript,
    are_alike,
    are_equal_traces,
    signature,
    whole,
    without_gradients,
    without_initial_weights,
)

MOST_PAIRS = 2_000
"""Pairs that are tried for one answer; with more, none is returned. They take about two seconds when they are new.
Pairs that were tried for earlier answers count, too: a diagnosis must not depend on what was graded before."""
MOST_SECONDS = 10.0
"""CPU seconds for one answer, and for one pair. They end a search with slow hidden tests, and a pair of misconceptions
that never ends. The longest search that finds a pair takes about 4 s, and twice as many on a busy machine."""
Pair = tuple[int, int]
"""The numbers of two misconceptions, the lower one first."""


class Pairs:
    """The pairs of an exercise's misconceptions, and their behaviour as far as it is known."""

    def __init__(
        self,
        right: Behaviour,
        misconceptions: Sequence[Misconception],
        combined: Callable[[Misconception, Misconception], Behaviour | None],
        moved: Callable[[Misconception, Misconception], Iterable[tuple[Misconception, Behaviour]]],
    ) -> None:
        """right: the solution's behaviour.

        combined: gives the behaviour of two misconceptions in one answer; None if they cannot be combined.
        moved: gives those of two that are combined in other code than their own, and their behaviour in that code.
        """
        self._right = right
        self._misconceptions = misconceptions
        self._combined = combined
        self._moved = moved

    @cached_property
    def _pairs(self) -> dict[Pair, Behaviour]:
        """The pairs that can be combined."""
        pairs = combinations(range(len(self._misconceptions)), 2)
        behaviours = (((i, j), self._combined(self._misconceptions[i], self._misconceptions[j])) for i, j in pairs)
        return {pair: behaviour for pair, behaviour in behaviours if behaviour is not None}

    @cached_property
    def _partners(self) -> dict[int, set[int]]:
        """By a misconception's number, the numbers of those with which it can be combined."""
        partners: dict[int, set[int]] = {number: set() for number in range(len(self._misconceptions))}
        for one, other in self._pairs:
            partners[one].add(other)
            partners[other].add(one)
        return partners

    def explaining(self, transcript: Transcript) -> tuple[Misconception, Misconception] | None:
        """Return the only pair with this transcript; None if it is not known to be the only one."""
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
        """Return the pair; None if an edit means another misconception in the code of the other one."""
        try:
            with cpu_limit(MOST_SECONDS):
                for its, moved in self._moved(one, other):
                    if not moved.transcript.equals(tuple(its.behaviour.transcript)):
                        return None
                return one, other
        except (Exception, OverLimit):  # the edit is no valid code there
            return None

    def _matching(self, pairs: Iterable[tuple[Pair, Question | None]], answer: "_Answer") -> set[Pair]:
        """Return the pairs that behave like the answer; raises _TooMany."""
        found = set()
        for pair, question in pairs:
            answer.count()
            if self._matches(pair, question, answer):
                found.add(pair)
        return found

    def _possible(self, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """Yield the pairs that fit the behaviour of their parts, each with a question on which both show something."""
        detected = {n for n, one in enumerate(self._misconceptions) if one.entry.caught_by in answer.failed}
        partners = {number: others & detected for number, others in self._partners.items() if number in detected}
        partners, visible = _with_any(partners), dict[Question, set[int]]()
        if not (questions := self._questions(answer)):
            return
        first = questions[0]
        for question in questions:  # more may be added on the way
            if not partners or question in visible:
                continue
            answer.check_time()
            response, right = answer.at(question), self._right.at(question)
            responses = {number: self._misconceptions[number].behaviour.at(question) for number in partners}
            visible[question] = {number for number in partners if not are_alike(responses[number], right)}
            same = {number for number in partners if are_alike(responses[number], response)}
            for number in partners:
                # Two that are visible can show anything together; of any other two, the answer shows what one shows.
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
        """Return a question of each hidden test, where the answer is not right, or about the last telling event.

        The first question is about the first difference from the solution.
        """
        places = list(answer.differences(self._right))
        if not places:  # it fails for a reason that no transcript holds
            return []
        first, *others = (question_at(answer.transcript, *place) for place in places)
        differ = {first.test, *(question.test for question in others)}
        right = tuple(self._right.transcript)
        last = [question_at(right, number, last_telling_event(trace)) for number, trace in enumerate(right)]
        others += [question for question in last if question.test not in differ]
        return [first, *(one for one in others if one.event is not None)]  # a whole trace costs ten times as much

    def _rivals(self, found: Pair, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """Yield the pairs that share a misconception with this one: its partner may have hidden it in a question."""
        for number in found:
            question = answer.differs_from(self._misconceptions[number].behaviour)
            for other in range(len(self._misconceptions)):
                if (pair := (min(number, other), max(number, other))) in self._pairs and pair != found:
                    yield pair, question

    def _matches(self, pair: Pair, question: Question | None, answer: "_Answer") -> bool:
        """Return whether a pair behaves like the answer; the question is asked first, if there is one."""
        behaviour = self._pairs[pair]
        if question in behaviour.asked and not are_alike(behaviour.asked[question], answer.at(question)):
            return False
        try:
            with cpu_limit(MOST_SECONDS):
                fits = question is None or are_alike(behaviour.at(question), answer.at(question))
                return fits and behaviour.transcript.equals(answer.transcript)
        except (Exception, OverLimit):  # two edits that together are no valid code, or never end
            del self._pairs[pair]
            return False


class _TooMany(Exception):
    """There are more pairs than are tried for one answer, or they take too long."""


class _Answer:
    """The answer that is diagnosed, and the effort spent on it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.failed = {trace.test for trace in transcript if trace.outcome == "failed"}
        self._asked: dict[Question, Signature] = {}
        self._tried = 0
        self._begun = time.thread_time()

    def at(self, question: Question) -> Signature:
        """Return the signature of its response to a question."""
        if question not in self._asked:
            self._asked[question] = signature(question.answered(self.transcript))
        return self._asked[question]

    def differs_from(self, behaviour: Behaviour) -> Question | None:
        """Return the question of the first difference from a known answer."""
        place = behaviour.transcript.first_difference(self.transcript)
        return None if place is None else question_at(self.transcript, *place)

    def differences(self, behaviour: Behaviour) -> Iterator[Place]:
        """Yield the first place of each hidden test at which it differs from a known answer."""
        return behaviour.transcript.differences(self.transcript)

    def count(self) -> None:
        """Count a pair; raises _TooMany."""
        self._tried += 1
        if self._tried > MOST_PAIRS:
            raise _TooMany
        self.check_time()

    def check_time(self) -> None:
        """Raise _TooMany if the search takes too long."""
        if time.thread_time() - self._begun > MOST_SECONDS:
            raise _TooMany


def _with_any(partners: dict[int, set[int]]) -> dict[int, set[int]]:
    """Return those that have a partner."""
    return {number: others for number, others in partners.items() if others}


def diagnose_by_tests(
    transcript: Transcript, misconceptions: Sequence[Misconception], advisory_tests: Collection[str]
) -> Diagnosis | None:
    """Return the one misconception, or the two, that explain the tests that an answer fails.

    The diagnosis is partial if other tests fail, too. None if `core.explanations` finds none certain enough.
    advisory_tests: those of weight 0.
    """
    shown = {trace.test: trace for trace in transcript if trace.test not in advisory_tests}
    failed = {trace.test for trace in shown.values() if trace.outcome == "failed"}
    found = explain(list(_explanations(shown, misconceptions)), failed)
    if not found:
        return None
    first, *second = (one.misconception.entry for one in found)
    beside = Mistake(second[0].name, second[0].sentence) if second else None
    return Diagnosis(first.name, first.sentence, beside, explained_by(found) != failed)


def _explanations(
    shown: Mapping[str, Trace], misconceptions: Sequence[Misconception]
) -> Iterator[Explanation[Misconception]]:
    for one in misconceptions:
        first = next(iter(one.behaviour.transcript))  # it has run already, and leaves most out
        if first.outcome == "failed" and first.test in shown and not _shows_the_same(one, shown[first.test], first):
            continue
        test = one.entry.caught_by or ""
        if test not in shown or not _shows_the_same(one, shown[test], one.behaviour.trace(test)):
            continue  # to run one test for each misconception is quick
        wrong = [trace for trace in one.behaviour.transcript if trace.outcome == "failed" and trace.test in shown]
        alike = {trace.test for trace in wrong if _shows_the_same(one, shown[trace.test], trace)}
        others = frozenset(trace.test for trace in wrong) - alike
        yield Explanation(one, one.entry.sentence, frozenset(alike), others)


def _shows_the_same(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether both fail a test alike; gradients of wrong values follow the way to them."""
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
    """Return the misconception with this transcript, or the one or two that explain the failed tests.

    pairs: searches for pairs, which can take seconds. is_exact: only a misconception with the whole transcript will do.
    device_tests: the hidden tests about devices. advisory_tests: those of weight 0.
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
    if not is_exact and (pair := pairs.explaining(transcript)) is not None:
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
    return None if is_exact else diagnose_by_tests(transcript, possible, advisory_tests)


def _named(one: Misconception) -> Diagnosis:
    return Diagnosis(one.entry.name, one.entry.sentence)
