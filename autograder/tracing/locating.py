"""Finds the line where a run leaves the way that is right.

A tensor that no right run made may still be right: there are more ways than are known. So nothing is called wrong for
being unknown. A line is named where the run comes right once what the line made is replaced by what is right, and
where all the others are known to be right.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch

from ..core.run_trace import Run
from .located import Located, Telling
from .mending import Again, Mended, Mending, made_last
from .reference import Reference, Right, alone_fits, same, without_ones
from .returned import Returned
from .standing import SHAPING, Standing

_MAX_UNUSED = 4


def locate(reference: Reference, again: Again) -> Located | None:
    """The line where the answer goes wrong on the reference's case; None where it does not, or no line can be told."""
    run = again({})
    found = None if reference.is_right(run) else _Search(reference, run, again).found()
    return None if found is None or found.how in reference.case.untold else found


class _Search:
    def __init__(self, reference: Reference, run: Run, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._made = run.made
        self._standing = Standing(reference, run.made)
        self._mending = Mending(reference, run, self._standing, again)
        self._telling = Telling(reference, self._standing)
        self._returned = Returned(reference, run, self._standing, self._telling)

    def found(self) -> Located | None:
        return self._returned.of_another_kind() or self._unused() or self._by_mending()

    def _by_mending(self) -> Located | None:
        mended: Mended | None = None
        before = self._standing.before
        for number in range(len(self._made)):
            if mended and (before[number].intersection(mended.by.replaced) or not self._is_apart(number, mended)):
                continue
            mended = self._mending.at(number) or mended
            if mended and len(mended.by.replaced) == 1:
                break  # of a loop, what goes into a later turn is still to be tried
        if self._mending.is_over:
            return self._in_the_only_line() if mended is None else None
        located = (mended and self._located(mended)) or self._in_the_only_line() or self._returned.too_early()
        if located is None and (mended is None or mended.is_last):
            return self._first_of_two()
        return located

    def _is_apart(self, number: int, mended: Mended) -> bool:
        """Whether it may be wrong beside what was mended, or instead of it: it is not known and in no loop with it."""
        standing = self._standing
        went_in = any(number in standing.before[one] for one in mended.by.replaced)
        return not standing.known[number] and not (went_in and len(standing.turns(number)) > 1)

    def _located(self, mended: Mended) -> Located | None:
        standing, right = self._standing, mended.by.right
        first = mended.by.number
        if standing.known[first] and self._made[first].values.numel() == 1 and not mended.by.is_swap:
            return None  # one number is like another by chance
        # In a loop the first turn may be right by itself, as where every head takes what belongs to the first.
        wrong = [one for one, new in mended.by.replaced.items() if not self._makes(one, new)]
        if wrong and first not in wrong:
            by = replace(mended.by, number=wrong[0], values=mended.by.replaced[wrong[0]])
            mended = replace(mended, by=by)
        number, made = mended.by.number, self._made[mended.by.number]
        before = frozenset().union(*(standing.before[one] for one in mended.by.replaced))
        elsewhere = {one for one in before if self._place(one) != self._place(number)}
        if any(self._stays_doubtful(one, mended) or self._is_odd(one, mended) for one in elsewhere):
            return None
        is_mask_turned = standing.is_known_mask(number)
        is_another = bool(standing.known[number]) and all(standing.known[one] for one in wrong)
        concerned = [number]
        if is_mask_turned:
            # It is right for those who use it the other way round: the two do not fit, and either may be meant.
            chain = [one for one in standing.before[number] if standing.mask[one]] + sorted(self._users(number))
            concerned += [one for one in chain if not (standing.mask[one] and standing.is_shaping(one))]
        if mended.by.is_swap:
            concerned += [user for one in mended.by.replaced for user in self._first_users(one)]
        places = list(dict.fromkeys(map(self._place, sorted(concerned))))
        if len(places) > 2 or any(file != made.file for file, _ in places):
            return None  # it may be in another cell
        is_alone = len(standing.turns(number)) == 1 == len(places)
        is_missing = is_alone and not is_another and self._is_missing_before(right)
        if is_missing:
            known = self._too_early(number) or elsewhere
            places = list(dict.fromkeys([*self._last_known(known, made.file), *places]))
        how = "swapped" if mended.by.is_swap else "mask" if is_mask_turned else "another" if is_another else "mended"
        there, needed, step, is_inner = self._in_the_end(number, mended)
        return self._telling.located(
            [line for _, line in places], made.file, number, "missing" if is_missing else how, there, needed,
            step=step, is_inner=is_inner,
        )  # fmt: skip

    def _makes(self, number: int, values: torch.Tensor) -> bool:
        """Return whether the answer itself makes these values."""
        made = self._made[number].values
        return made.shape == values.shape and same(made, values)

    def _too_early(self, number: int) -> set[int]:
        """What it was made of that is right, but used as nothing is that is right: of that a step may be missing."""
        standing, found = self._standing, set[int]()
        seen, pending = set[int](), list(self._made[number].inputs)
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            if not standing.known[one] or standing.is_shaping(one):
                pending += self._made[one].inputs
            if standing.known[one] and self._place(one) != self._place(number) and not standing.neutral[one]:
                uses = {_kind(self._made[user].operator) for user in self._first_users(one)}
                if (right := self._uses_of(one)) and not uses & right:
                    found.add(one)
        return found

    def _uses_of(self, number: int) -> set[str]:
        """The operators by which the solution goes on with what this is."""
        reference = self._reference
        operators = {right.number: right.operator for right in reference.rights if right.number is not None}
        pending = [reference.rights[one].number for one in self._standing.known[number]]
        found, seen = set[str](), set[int | None]()
        while pending:
            one = pending.pop()
            for later, inputs in reference.inputs.items():
                if one in inputs and later not in seen and later in operators:
                    seen.add(later)
                    if operators[later] in SHAPING:
                        pending.append(later)
                    else:
                        found.add(_kind(operators[later]))
        return found

    def _last_known(self, among: Iterable[int], file: str) -> list[tuple[str, int]]:
        """Where the last of these was made that is known for right."""
        standing = self._standing
        known = [n for n in among if standing.known[n] and not standing.mask[n] and not standing.neutral[n]]
        return [self._place(max(own))] if (own := [n for n in known if self._made[n].file == file]) else []

    def _place(self, number: int) -> tuple[str, int]:
        """The file and the line that it was made in."""
        return self._made[number].file, self._made[number].line

    def _in_the_end(self, number: int, mended: Mended) -> tuple[torch.Tensor, torch.Tensor | None, str, bool]:
        """What the line makes, what it should if that is known, the solution's step that this is, if it is one, and
        whether the line makes more of it."""
        made, needed, right = self._made[number], mended.by.values, mended.by.right.values
        named = self._next_step(mended.by.right)
        later_turn = min((turn for turn in self._standing.turns(number) if turn > number), default=len(self._made))
        same_line = [n for n in range(number, later_turn) if self._place(n) == self._place(number)]
        for last in reversed(same_line) if self._standing.neutral[number] else ():
            # Of the same number everywhere, as ones are, what counts is what the line makes of it.
            there, mend = self._made[last], mended.made[last] if last < len(mended.made) else made
            is_other = mend.values.shape == there.values.shape and not same(mend.values, there.values)
            if is_other and (mend.line, mend.place) == (there.line, there.place):
                return there.values, mend.values, "", False
        for last in (n for n in reversed(same_line) if n == number or number in self._standing.before[n]):
            one = self._made[last]
            # Better than what is on the way to it: the step itself, if the line makes that.
            if named and one.values.shape == named.values.shape and _are_alike(one.operator, named.operator):
                told = named.values if alone_fits(named.values, one.values) else None
                return one.values, told, named.step, self._telling.is_inner(last, same_line)
        for last in reversed(same_line) if needed.shape == made.values.shape else ():
            one = self._made[last]
            if one.values.numel() == needed.numel() and same(one.values, made.values):
                # A library's function works in a shape that the student never sees.
                made, needed, number = one, needed.reshape(one.values.shape), last
                break
        is_step = named is not None and named.number == mended.by.right.number
        # What has its dimensions in another order may be needed so or otherwise: that is not told.
        is_turned = right.numel() == needed.numel() and without_ones(right.shape) != without_ones(made.values.shape)
        is_told = not is_turned and alone_fits(needed, made.values)
        step = named.step if named and is_step else ""
        return made.values, needed if is_told else None, step, self._telling.is_inner(number, same_line)

    def _stays_doubtful(self, number: int, mended: Mended) -> bool:
        """Whether what came before may be where it went wrong."""
        if not self._standing.may_be_wrong(number) or number in mended.proven:
            return False
        # What the mended line was computed with has the sizes that are needed. A line that reshapes proves less.
        is_computed = not self._standing.is_shaping(mended.by.number)
        return mended.is_last or not is_computed or not self._standing.is_plausible(number)

    def _is_odd(self, number: int, mended: Mended) -> bool:
        return self._standing.is_odd(number) and number not in mended.proven

    def _is_missing_before(self, right: Right) -> bool:
        """Whether what the solution makes it of was not made either: then a step is missing, in whichever line."""
        if right.number is None:
            return False
        there = {self._reference.rights[one].number for known in self._standing.known for one in known}
        return any(one not in there for one in self._reference.inputs[right.number])

    def _next_step(self, right: Right) -> Right | None:
        """The first of the solution's steps that this is, or that is made of it."""
        if right.number is None:
            return None
        before = self._reference.before
        steps = [one for one in self._reference.rights if one.step and one.number is not None]
        later = [one for one in steps if one.number == right.number or right.number in before[one.number or 0]]
        return min(later, key=lambda one: one.number or 0, default=None)

    def _first_users(self, number: int) -> list[int]:
        """What is computed with it, be it in another shape."""
        shapes, found = {number}, list[int]()
        for later in range(number + 1, len(self._made)):
            if shapes.intersection(self._made[later].inputs):
                (shapes.add if self._standing.is_shaping(later) else found.append)(later)
        return found

    def _users(self, number: int) -> set[int]:
        """What comes of a mask, up to what is none itself."""
        masks, users = {number}, set[int]()
        for later in range(number + 1, len(self._made)):
            if masks.intersection(self._made[later].inputs):
                users.add(later)
                if self._standing.mask[later]:
                    masks.add(later)
        return users

    def _in_the_only_line(self) -> Located | None:
        """Where all that the result is made of is known to be right, but for what one line makes."""
        if self._run.error is not None:
            return None
        standing, last = self._standing, made_last(self._run)
        behind = set(last).union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
        doubtful = sorted(
            number
            for number in behind
            if standing.may_be_wrong(number) or (standing.mask[number] and number not in standing.comes_right)
        )
        if not doubtful and all(standing.neutral[number] for number in behind):
            doubtful = sorted(number for number in behind if not standing.is_new(number))
        if not doubtful or len({self._place(number) for number in doubtful}) > 1:
            return None
        if any(self._goes_through_parts(number) for number in doubtful):
            return None  # another may have been taken apart
        made = self._made[doubtful[-1]]
        if any(standing.is_odd(number) and self._made[number].line != made.line for number in behind):
            return None
        return self._telling.located([made.line], made.file, doubtful[0], "one line", made.values)

    def _goes_through_parts(self, number: int) -> bool:
        """Whether it is made in a loop, of slices that another line made."""
        standing, made = self._standing, self._made[number]
        if standing.is_shaping(number) or len(standing.turns(number)) == 1:
            return False
        return any(standing.is_only_a_part(one) and self._made[one].line != made.line for one in made.inputs)

    def _first_of_two(self) -> Located | None:
        """Where the run comes right once this line and a later one are mended."""
        if self._run.error is not None:
            return None
        standing = self._standing
        frontier = [
            number
            for number in range(len(self._made))
            if standing.is_unknown(number) and not any(map(standing.may_be_wrong, standing.before[number]))
        ]
        if not frontier:
            return None
        line = self._made[frontier[0]].line
        first = self._mending.at_first(number for number in frontier if self._made[number].line == line)
        if first is None or not alone_fits(first.values, self._made[first.number].values):
            return None
        made = self._made[first.number]
        is_inner = self._telling.is_inner(
            first.number, [n for n in range(len(self._made)) if self._made[n].line == line]
        )
        return self._telling.located(
            [line], made.file, first.number, "first of two", made.values, first.values, is_inner=is_inner
        )

    def _unused(self) -> Located | None:
        """Where something right is made, and what follows uses that of which it was made."""
        standing = self._standing
        last = set(made_last(self._run))
        used = last.union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
        left = _MAX_UNUSED
        for number, made in enumerate(self._made):
            if number in used or not standing.known[number] or standing.neutral[number] or standing.mask[number]:
                continue
            for one in made.inputs:
                later = [n for n in used if n > number and one in self._made[n].inputs]
                if not later or standing.neutral[one] or standing.mask[one] or left <= 0:
                    continue
                left -= 1
                if self._mending.comes_right({one: made.values}):
                    there, user = self._made[one].values, self._made[min(later)]
                    if user.file != made.file:
                        return None
                    return self._telling.located(
                        [made.line, user.line], made.file, number, "unused", there, made.values
                    )
        return None


def _kind(operator: str) -> str:
    """The operator; of those that multiply matrices, the same."""
    return "mm" if operator in ("bmm", "mv", "dot", "addmm", "baddbmm") else operator


def _are_alike(one: str, other: str) -> bool:
    """Whether two operators do the same: compute alike, or but put numbers into another shape."""
    return one == other or {one, other} <= SHAPING
