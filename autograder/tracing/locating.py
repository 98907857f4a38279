"""Finds the line where a run leaves the way that is right.

A tensor that no right run made may still be right: there are more ways than are known. So nothing is called wrong for
being unknown. A line is named where the run comes right once what the line made is replaced by what is right, and
where all the others are known to be right.
"""

from dataclasses import dataclass
from itertools import combinations

import torch

from ..sandbox.inside.nesting import tensors_in
from ..sandbox.inside.tracing import Run
from .mending import Again, Mended, Mending, made_last
from .reference import Reference, Right, is_mask, same
from .standing import SHAPING, Standing

_MAX_UNUSED = 4


@dataclass(frozen=True)
class Located:
    """Where an answer goes wrong."""

    file: str
    lines: tuple[int, ...]
    """One; or two that do not fit each other, as where a mask is made and where it is used the other way round, or
    where what is right is made and where it should be used."""
    made: torch.Tensor | None
    """What is there; None where that is no tensor."""
    step: str
    """What the solution calls it, or what it makes of it next; empty where that is not known."""
    expected: torch.Tensor | None
    """What should be there, as it would stand in the place of what is."""
    right_so_far: dict[str, int]
    """The solution's steps that were made as they should be by then, with their lines."""
    how: str


def locate(reference: Reference, again: Again) -> Located | None:
    """The line where the answer goes wrong on the reference's case; None where it does not, or no line can be told."""
    run = again({})
    return None if reference.is_right(run) else _Search(reference, run, again).found()


class _Search:
    def __init__(self, reference: Reference, run: Run, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._made = run.made
        self._standing = Standing(reference, run.made)
        self._mending = Mending(reference, run, self._standing, again)

    def found(self) -> Located | None:
        return self._of_another_kind() or self._unused() or self._by_mending()

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
        located = (mended and self._located(mended)) or self._in_the_only_line() or self._returned_too_early()
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
        number, made = mended.by.number, self._made[mended.by.number]
        before = frozenset().union(*(standing.before[one] for one in mended.by.replaced))
        elsewhere = {one for one in before if self._place(one) != self._place(number)}
        if any(self._stays_doubtful(one, mended) for one in elsewhere):
            return None
        places = {self._place(number)}
        if standing.is_known_mask(number):
            # It is right for those who use it the other way round: the two do not fit, and either may be meant.
            chain = [one for one in standing.before[number] if standing.mask[one]] + sorted(self._users(number))
            places |= {self._place(one) for one in chain if not (standing.mask[one] and standing.is_shaping(one))}
            if len(places) > 2:
                return None
        turns = standing.turns(number)
        if mended.by.is_swap:
            places |= {self._place(user) for one in mended.by.replaced for user in self._first_users(one)}
            if len(places) > 2:
                return None
        is_another = bool(standing.known[number])
        if any(file != made.file for file, _ in places):
            return None  # it may be in another cell
        is_missing = len(turns) == 1 == len(places) and not is_another and self._is_missing_before(right)
        known = [
            n
            for n in elsewhere
            if standing.known[n]
            and not standing.mask[n]
            and not standing.neutral[n]
            and self._made[n].file == made.file
        ]
        if is_missing and known:
            places.add(self._place(max(known)))
        there, needed, step = self._in_the_end(number, mended)
        lines = tuple(sorted(line for _, line in places))
        how = "missing" if is_missing else "mended"
        return Located(made.file, lines, there, step, needed, self._steps(number, made.file), how)

    def _place(self, number: int) -> tuple[str, int]:
        """The file and the line that it was made in."""
        return self._made[number].file, self._made[number].line

    def _in_the_end(self, number: int, mended: Mended) -> tuple[torch.Tensor, torch.Tensor | None, str]:
        """What the line makes, what it should if that is known, and the solution's step that this is, if it is one."""
        made, needed, right = self._made[number], mended.by.values, mended.by.right.values
        named = self._next_step(mended.by.right)
        same_line = [n for n in range(number, len(self._made)) if self._place(n) == self._place(number)]
        for last in reversed(same_line):
            one = self._made[last]
            # Better than what is on the way to it: the step itself, if the line makes that.
            if named and one.values.shape == named.values.shape and _are_alike(one.operator, named.operator):
                return one.values, named.values, named.step
        for last in reversed(same_line):
            one = self._made[last]
            if one.values.numel() == needed.numel() == made.values.numel() and same(one.values, made.values):
                # A library's function works in a shape that the student never sees.
                made, needed = one, needed.reshape(one.values.shape)
                break
        is_step = named is not None and named.number == mended.by.right.number
        # What has its dimensions in another order may be needed so or otherwise: that is not told.
        is_turned = right.numel() == needed.numel() and _squeezed(right) != _squeezed(made.values)
        return made.values, None if is_turned else needed, named.step if named and is_step else ""

    def _stays_doubtful(self, number: int, mended: Mended) -> bool:
        """Whether what came before may be where it went wrong."""
        if not self._standing.may_be_wrong(number) or number in mended.proven:
            return False
        # What the mended line was computed with has the sizes that are needed. A line that reshapes proves less.
        is_computed = not self._standing.is_shaping(mended.by.number)
        return mended.is_last or not is_computed or not self._standing.is_plausible(number)

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
        users = [n for n, made in enumerate(self._made) if number in made.inputs]
        return [last for one in users for last in (self._first_users(one) if self._standing.is_shaping(one) else [one])]

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
        return Located(made.file, (made.line,), made.values, "", None, self._steps(doubtful[0], made.file), "one line")

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
        if first is None:
            return None
        made = self._made[first.number]
        steps = self._steps(first.number, made.file)
        return Located(made.file, (made.line,), made.values, "", first.values, steps, "first of two")

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
                    lines = tuple(sorted({made.line, user.line}))
                    return Located(made.file, lines, there, "", made.values, self._steps(number, made.file), "unused")
        return None

    def _of_another_kind(self) -> Located | None:
        """Where what is returned is not as many tensors as it should be, and nothing speaks against what was made."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) == len(self._reference.result):
            return None
        file, line = self._run.returned
        doubtful = {one.line for number, one in enumerate(self._made) if self._standing.may_be_wrong(number)}
        if results and doubtful - {line}:
            return None
        first = results[0].detach() if results else None
        return Located(file, (line,), first, "", None, self._steps(len(self._made), file), "of another kind")

    def _returned_too_early(self) -> Located | None:
        """Where what is returned is right as far as it goes, or has nothing of the arguments in it."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) != len(self._reference.result):
            return None
        standing, last = self._standing, made_last(self._run)
        behind = set(last).union(*(standing.before[number] for number in last))
        if any(standing.may_be_wrong(number) for number in behind):
            return None
        if any(standing.is_only_a_part(number) for number in behind.difference(last)):
            return None
        if any(map(self._adds_up, behind)) or self._is_one_result_twice(results):
            return None
        for one, right in zip(results, self._reference.result, strict=True):
            if one.shape == right.shape and same(one, right):
                continue
            if (
                is_mask(one)
                or self._is_an_argument(one, behind)
                or not (self._reference.known(one) or (behind and all(map(standing.is_new, behind))))
            ):
                return None
            file, line = self._run.returned
            return Located(file, (line,), one, "", right, self._steps(len(self._made), file), "returned")
        return None

    def _adds_up(self, number: int) -> bool:
        """Whether it is made in a loop, of what an earlier turn made: then a turn may be missing."""
        standing = self._standing
        return not standing.is_shaping(number) and any(one in standing.before[number] for one in standing.turns(number))

    def _is_one_result_twice(self, results: list[torch.Tensor]) -> bool:
        """Whether two results are alike that should not be: then one was made wrong, before it is returned."""
        found = [set(self._reference.known(one)) for one in results]
        return any(one & other for one, other in combinations(found, 2))

    def _is_an_argument(self, one: torch.Tensor, behind: set[int]) -> bool:
        """Whether it is what went in, though more than one line worked on it."""
        is_given = any(self._reference.rights[n].operator == "given" for n in self._reference.known(one))
        return is_given and len({self._made[number].line for number in behind}) > 1

    def _steps(self, until: int, file: str) -> dict[str, int]:
        steps: dict[str, int] = {}
        for number, known in enumerate(self._standing.known[:until]):
            for one in known if self._made[number].file == file else ():
                if step := self._reference.rights[one].step:
                    steps.setdefault(step, self._made[number].line)
        return steps


def _are_alike(one: str, other: str) -> bool:
    """Whether two operators do the same: compute alike, or but put numbers into another shape."""
    return one == other or {one, other} <= SHAPING


def _squeezed(values: torch.Tensor) -> list[int]:
    return [size for size in values.shape if size != 1]
