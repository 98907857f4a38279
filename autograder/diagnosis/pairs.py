"""Finds two known mistakes that an answer makes at once: the pair that shows, together, exactly what it shows.

Many exercises have thousands of pairs, and to try one takes a millisecond. So the mistakes are first asked one by one,
a question of each grader: where one of two shows nothing, both together mostly show what the other does. A pair that
fits the answer so far is asked where both show something, and compared as a whole if it fits there too.

That rule can lose a name, and never gives a wrong one: a pair is told only if its whole fingerprint is the answer's,
and no other pair's is. Of several nothing is told, not even a mistake that all of them have: who mends it finds an
answer that is as wrong as before. A pair that shows the same as a right answer or a single mistake, such as one of its
parts, is never found: an answer that shows this is right, or has its name before pairs are looked for.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations

from .behaviour import Behaviour
from .cpu_limit import OverLimit, cpu_limit
from .fingerprint import Fingerprint
from .question import Question, question, telling
from .shown import Shown, alike, shown
from .suspect import Suspect

MOST_PAIRS = 2_000
"""Tried for one answer, or none is told: some two seconds, if they are the first. Those that were tried before count
too, so that the name of an answer does not depend on what was marked before it."""
MOST_SECONDS = 10.0
"""CPU seconds for one answer, and for one pair. They end a search with slow hidden tests, and a pair of misconceptions
that never ends. The longest search that finds a pair takes about 4 s, and twice as many on a busy machine."""

Pair = tuple[int, int]
"""The places of two suspects, the lower one first."""
Places = int
"""Of several suspects, a bit for each."""


class Pairs:
    """The pairs of an exercise's known mistakes, with what was found out about each."""

    def __init__(
        self,
        right: Behaviour,
        suspects: Sequence[Suspect],
        combined: Callable[[Suspect, Suspect], Behaviour | None],
        moved: Callable[[Suspect, Suspect], Iterable[tuple[Suspect, Behaviour]]],
    ) -> None:
        """right: what the solution shows. combined: what two mistakes show together; None where they cannot be.
        moved: which of two is combined with the other in another code than its own, and what it shows there alone.
        """
        self._right = right
        self._suspects = suspects
        self._combined = combined
        self._moved = moved

    @cached_property
    def _pairs(self) -> dict[Pair, Behaviour]:
        """What the pairs show that can stand together."""
        places = combinations(range(len(self._suspects)), 2)
        made = (((i, j), self._combined(self._suspects[i], self._suspects[j])) for i, j in places)
        return {pair: behaviour for pair, behaviour in made if behaviour is not None}

    @cached_property
    def _beside(self) -> dict[int, Places]:
        """By a suspect's place, with which others it can stand together."""
        beside = dict.fromkeys(range(len(self._suspects)), 0)
        for one, other in self._pairs:
            beside[one] |= 1 << other
            beside[other] |= 1 << one
        return beside

    def explaining(self, fingerprint: Fingerprint) -> tuple[Suspect, Suspect] | None:
        """The only pair that shows this, which nothing single does; None where it is not known to be the only one."""
        answer = _Answer(fingerprint)
        try:
            found = self._among(self._possible(answer), answer)
            for pair in found if len(found) == 1 else ():
                found = found | self._among(self._rivals(pair, answer), answer)
        except _TooMany:
            return None
        if len(found) != 1:
            return None
        ((one, other),) = found
        return self._if_the_same(self._suspects[one], self._suspects[other])

    def _if_the_same(self, one: Suspect, other: Suspect) -> tuple[Suspect, Suspect] | None:
        """The pair; None where an edit, in the code of the other, is not the mistake that its sentence tells."""
        try:
            with cpu_limit(MOST_SECONDS):
                same = (there.known.is_that_of(tuple(each.behaviour.known)) for each, there in self._moved(one, other))
                return (one, other) if all(same) else None
        except (Exception, OverLimit):  # an edit that is no code there
            return None

    def _among(self, pairs: Iterable[tuple[Pair, Question | None]], answer: "_Answer") -> set[Pair]:
        """Those that show what the answer does; raises _TooMany."""
        found = set()
        for pair, at in pairs:
            answer.count()
            if self._shows(pair, at, answer):
                found.add(pair)
        return found

    def _possible(self, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """The pairs that fit what their parts show, each with the question that is left."""
        caught = _bits(n for n, suspect in enumerate(self._suspects) if suspect.caught_by in answer.failed)
        beside = {place: others & caught for place, others in self._beside.items() if caught >> place & 1}
        beside, visible = _with_any(beside), dict[Question, Places]()
        if not (questions := self._questions(answer)):
            return
        first = questions[0]
        for at in questions:  # more may be added on the way
            if not beside or at in visible:
                continue
            answer.check_time()
            told, right = answer.at(at), self._right.at(at)
            shows = {place: self._suspects[place].behaviour.at(at) for place in beside}
            visible[at] = _bits(place for place in beside if not alike(shows[place], right))
            same = _bits(place for place in beside if alike(shows[place], told))
            for place in beside:
                # Of two that are visible all is possible; else what shows is what the answer shows.
                others = -1 if same >> place & 1 else visible[at]
                beside[place] &= others if visible[at] >> place & 1 else same
            if at == first:  # beside one that shows here what the answer does, the other is what shows next
                alone = [self._suspects[place].behaviour for place in beside if same >> place & 1]
                questions[1:1] = filter(None, map(answer.differs_from, alone))  # these divide the pairs most
            beside = _with_any(beside)
            if sum(others.bit_count() for others in beside.values()) <= 2 * len(beside):
                break  # to try what is left costs no more than the next question
        for pair in combinations(sorted(beside), 2):
            one, other = pair
            if beside[one] >> other & 1 and beside[other] >> one & 1 and pair in self._pairs:
                both = 1 << one | 1 << other
                yield pair, next((at for at, shown in visible.items() if shown & both == both), None)

    def _questions(self, answer: "_Answer") -> list[Question]:
        """A question of each grader, the first where the answer is not right: where it is not, or its last."""
        places = list(answer.differences(self._right))
        if not places:  # it fails by what no fingerprint keeps
            return []
        first, *others = (question(answer.fingerprint, *place) for place in places)
        differ = {first.grader, *(at.grader for at in others)}
        right = tuple(self._right.known)
        last = [question(right, number, telling(trace)) for number, trace in enumerate(right)]
        others += [at for at in last if at.grader not in differ]
        return [first, *(at for at in others if at.event is not None)]  # all that a grader sees costs ten times as much

    def _rivals(self, found: Pair, answer: "_Answer") -> Iterator[tuple[Pair, Question | None]]:
        """Either mistake of a pair with every other: one may show less beside it than alone, and was ruled out."""
        for place in found:
            at = answer.differs_from(self._suspects[place].behaviour)
            for other in range(len(self._suspects)):
                if (pair := (min(place, other), max(place, other))) in self._pairs and pair != found:
                    yield pair, at

    def _shows(self, pair: Pair, at: Question | None, answer: "_Answer") -> bool:
        """Whether a pair shows what the answer does: at a question first, if there is one."""
        behaviour = self._pairs[pair]
        if at in behaviour.asked and not alike(behaviour.asked[at], answer.at(at)):
            return False
        try:
            with cpu_limit(MOST_SECONDS):
                same = at is None or alike(behaviour.at(at), answer.at(at))
                return same and behaviour.known.is_that_of(answer.fingerprint)
        except (Exception, OverLimit):  # two edits that together are no code, or that never end
            del self._pairs[pair]
            return False


class _TooMany(Exception):
    """There are more pairs than are tried for one answer, or they take too long."""


class _Answer:
    """The answer that is to be explained, and what was spent on it."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self.fingerprint = fingerprint
        self.failed = {trace.grader for trace in fingerprint if trace.outcome == "failed"}
        self._shown: dict[Question, Shown] = {}
        self._tried = 0
        self._begun = time.thread_time()

    def at(self, at: Question) -> Shown:
        """What it shows at a question."""
        if at not in self._shown:
            self._shown[at] = shown(at.answered(self.fingerprint))
        return self._shown[at]

    def differs_from(self, behaviour: Behaviour) -> Question | None:
        """What it answers differently before all else."""
        place = behaviour.known.first_difference(self.fingerprint)
        return None if place is None else question(self.fingerprint, *place)

    def differences(self, behaviour: Behaviour) -> Iterator[tuple[int, int | None]]:
        """What it answers differently in each grader."""
        return behaviour.known.differences(self.fingerprint)

    def count(self) -> None:
        """Counts a pair; raises _TooMany."""
        self._tried += 1
        if self._tried > MOST_PAIRS:
            raise _TooMany
        self.check_time()

    def check_time(self) -> None:
        """Raises _TooMany where too much time has passed."""
        if time.thread_time() - self._begun > MOST_SECONDS:
            raise _TooMany


def _with_any(beside: dict[int, Places]) -> dict[int, Places]:
    """Those that something can be beside."""
    return {place: others for place, others in beside.items() if others}


def _bits(places: Iterable[int]) -> Places:
    return sum(1 << place for place in places)
