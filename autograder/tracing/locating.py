"""Finds the line where a run leaves the way that is right.

A tensor that no right run made may still be right: there are more ways than are known. So nothing is called wrong for
being unknown. A line is named where the run comes right once what the line made is replaced by what is right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations

import torch

from ..sandbox.inside.nesting import tensors_in
from ..sandbox.inside.tracing import Made, Run
from .reference import Reference, Right, all_before, is_mask, same

MAX_RUNS = 120
"""Of one answer, all attempts together."""

_FINITE = 1e6
MOST_TURNS, MOST_STEPS = 4, 6
"""Of a loop whose turns each make another step."""

Again = Callable[[Mapping[int, torch.Tensor]], Run]
"""Runs the answer once more, with some of the tensors that it makes replaced."""

_MAKE_NEW = ("_like", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "fill_", "zero_")
"""How the operators are called that take only a shape of what they are given."""
_SHAPING = {
    "view", "_unsafe_view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "clone", "slice",
    "select", "split", "unbind", "_to_copy", "as_strided", "_reshape_alias", "split_with_sizes", "movedim", "chunk",
}  # fmt: skip


@dataclass(frozen=True)
class Located:
    """Where an answer goes wrong."""

    file: str
    lines: tuple[int, ...]
    """One; or two that do not fit each other, as where a mask is made and where it is used the other way round."""
    made: torch.Tensor
    """What is there."""
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


@dataclass(frozen=True)
class _Mended:
    number: int
    right: Right
    values: torch.Tensor


class _Search:
    def __init__(self, reference: Reference, run: Run, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._made = run.made
        self._again = again
        self._left = MAX_RUNS
        self._before = all_before(run.made)
        self._known = [reference.known(made.values) for made in run.made]
        self._present = {right for known in self._known for right in known}
        self._scaled = [
            not known and reference.is_scaled(made.values) for known, made in zip(self._known, run.made, strict=True)
        ]
        self._neutral = list[bool]()
        for made in run.made:
            self._neutral.append(self._is_neutral(made))
        self._call_of = _calls(run.made)
        self._calls: dict[tuple[int | str, ...], list[int]] = {}
        for number, call in enumerate(self._call_of):
            self._calls.setdefault(call, []).append(number)
        self._mask = [is_mask(made.values) for made in run.made]
        self._comes_right = {
            earlier
            for number, known in enumerate(self._known)
            if known and not self._neutral[number] and not self._mask[number]
            for earlier in self._before[number]
        }
        """What something right was made of: it is right, whether known or not."""

    def found(self) -> Located | None:
        mended: _Mended | None = None
        for number in range(len(self._made)):
            if mended and mended.number in self._before[number]:
                continue
            mended = self._mend(number, only_masks=mended is not None) or mended
        if self._left <= 0:
            return None
        if mended is None:
            return self._all_in_one_line() or self._returned_too_early()
        return self._located(mended)

    def _is_neutral(self, made: Made) -> bool:
        """Whether it tells nothing: a number alone, or the same one everywhere that was made of nothing that tells."""
        values = made.values
        if not values.numel():
            return True
        if values.numel() == 1:
            return bool(values == values.round()) and all(self._neutral[one] for one in made.inputs)
        if bool((values != values.flatten()[0]).any()):
            return False
        return any(part in made.operator for part in _MAKE_NEW) or all(self._neutral[one] for one in made.inputs)

    def _mend(self, number: int, *, only_masks: bool) -> _Mended | None:
        """What makes the run right in the place of this tensor; of one made in a loop, in that of all of them."""
        turns = self._turns(number)
        shaping = self._made[number].operator in _SHAPING
        ways: Iterator[tuple[Right, torch.Tensor, dict[int, torch.Tensor]]] = iter(())
        if len(turns) > 1 and number == turns[0] and self._is_unknown(number):
            ways = self._in_their_places(turns)
        if len(turns) == 1 or shaping:
            alone = ((right, values, {number: values}) for right, values in self._in_its_place(number, only_masks))
            ways = chain(ways, alone)
        for right, values, replaced in ways:
            if self._left <= 0:
                return None
            self._left -= 1
            if self._reference.is_right(self._again(replaced)):
                return _Mended(number, right, values)
        return None

    def _turns(self, number: int) -> list[int]:
        """The tensors that the same call made, in a loop or in a function that is called more than once."""
        return self._calls[self._call_of[number]]

    def _in_their_places(self, turns: list[int]) -> Iterator[tuple[Right, torch.Tensor, dict[int, torch.Tensor]]]:
        """What could be right in the places of all that a loop made: something right, cut up."""
        shapes = {self._made[one].values.shape for one in turns}
        if len(shapes) != 1:
            return
        (shape,) = shapes
        yield from self._steps_in_turn(turns, shape)
        if len(turns) == len(self._reference.result) and all(one.shape == shape for one in self._reference.result):
            results = self._reference.result
            yield Right(results[0], ""), results[0], dict(zip(turns, results, strict=True))
        for right in self._reference.rights:
            if right.is_part or is_mask(right.values) or right.values.numel() != len(turns) * shape.numel():
                continue
            squeezed = right.values.squeeze()
            for order in permutations(range(squeezed.dim())):
                turned = squeezed.permute(order)
                if turned.shape[turned.dim() - len(_squeezed(shape)) :] == _squeezed(shape):
                    pieces = turned.reshape(len(turns), *shape)
                    yield right, pieces[0], dict(zip(turns, pieces, strict=True))

    def _steps_in_turn(
        self, turns: list[int], shape: torch.Size
    ) -> Iterator[tuple[Right, torch.Tensor, dict[int, torch.Tensor]]]:
        """Steps of the solution, one for each turn, as queries, keys and values are often made."""
        steps = [right for right in self._reference.rights if right.step and right.values.numel() == shape.numel()]
        if not 1 < len(turns) <= MOST_TURNS or len(steps) > MOST_STEPS:
            return
        for some in combinations(sorted(steps, key=lambda one: one.number or 0), len(turns)):
            if len({right.values.shape for right in some}) != 1:
                continue
            for order in permutations(range(some[0].values.dim())):
                turned = [right.values.permute(order) for right in some]
                if _squeezed(turned[0].shape) == _squeezed(shape):
                    pieces = [one.reshape(shape) for one in turned]
                    yield some[0], pieces[0], dict(zip(turns, pieces, strict=True))
            if some[0].values.shape != shape:
                pieces = [right.values for right in some]
                yield some[0], pieces[0], dict(zip(turns, pieces, strict=True))

    def _in_its_place(self, number: int, only_masks: bool) -> Iterator[tuple[Right, torch.Tensor]]:
        """What could be right in the place of a tensor, likely ones first."""
        made = self._made[number]
        rights = self._reference.rights
        if self._mask[number] or self._is_last_constant(number):
            yield from self._masks(made)
            return
        if self._neutral[number] or self._scaled[number]:
            return
        if number in self._comes_right and not self._known[number]:
            return
        if known := self._known[number]:
            for right in rights if not only_masks else ():
                if right.number is not None and self._beside(known, right) and right.values.shape == made.values.shape:
                    yield right, right.values
            return
        wanted = [(n, right) for n, right in enumerate(rights) if not right.is_part and not is_mask(right.values)]
        wanted.sort(key=lambda one: (one[1].number is None, one[0] in self._present, one[1].operator != made.operator))
        scaled = [Right(one, "mul") for one in self._reference.scaled if one.numel() == made.values.numel()]
        seen = [made.values]
        own = [right for _, right in wanted if right.number is not None]
        others = [right for _, right in wanted if right.number is None]
        for right in (*own, *scaled, *others):
            for values in _arrangements(right, made):
                if not any(one.shape == values.shape and same(one, values) for one in seen):
                    seen.append(values)
                    yield right, values

    def _is_last_constant(self, number: int) -> bool:
        """Whether it is the same everywhere, as a mask never is, and no mask was made of it."""
        made = self._made[number]
        if made.values.dim() < 2 or made.values.numel() < 2 or not self._neutral[number]:
            return False
        return not any(
            number in self._before[later] and self._mask[later] for later in range(number + 1, len(self._made))
        )

    def _masks(self, made: Made) -> Iterator[tuple[Right, torch.Tensor]]:
        seen = [made.values]
        shape = _squeezed(made.values.shape)
        for right in self._reference.rights:
            size = right.values.squeeze()
            if right.is_part or not is_mask(size) or tuple(size.shape) != shape[max(len(shape) - size.dim(), 0) :]:
                continue
            hidden = size != 0
            filled = made.values[made.values != 0].flatten()[:1].item() if bool((made.values != 0).any()) else 1.0
            for one in (hidden, ~hidden):
                values = torch.where(one, filled, 0.0).to(made.values.dtype).expand(shape).reshape(made.values.shape)
                if not any(torch.equal(other, values) for other in seen):
                    seen.append(values)
                    yield right, values

    def _beside(self, known: list[int], right: Right) -> bool:
        """Whether this one neither comes of what is known of the tensor nor is what it comes of."""
        if right.is_part or right.number is None or is_mask(right.values):
            return False
        before = self._reference.before
        numbers = [n for one in known if (n := self._reference.rights[one].number) is not None]
        return bool(numbers) and all(
            n != right.number and n not in before[right.number] and right.number not in before[n] for n in numbers
        )

    def _located(self, mended: _Mended) -> Located | None:
        number, made = mended.number, self._made[mended.number]
        for one in self._before[number]:
            # What came before may be where it went wrong, if it is not known to be right.
            if self._may_be_wrong(one) and self._made[one].line != made.line:
                return None
        lines = {made.line}
        if self._mask[number] and self._known[number]:
            # It is right for those who use it the other way round: the two do not fit, and either may be meant.
            lines |= {self._made[one].line for one in self._before[number] if self._mask[one]}
            lines |= {self._made[one].line for one in self._users(number)}
            if len(lines) > 2:
                return None
        turns = self._turns(number)
        inputs = {one for turn in turns for one in self._made[turn].inputs if self._made[one].line != made.line}
        if len(turns) > 1 and any(self._is_only_a_part(one) for one in inputs):
            return None  # one of another may stand in its place
        is_missing = len(turns) == 1 and len(lines) == 1 and self._is_missing_before(mended.right)
        elsewhere = {one for one in self._before[number] if self._made[one].line != made.line}
        known = [one for one in elsewhere if self._known[one] and not self._mask[one] and not self._neutral[one]]
        if is_missing and known:
            lines.add(self._made[max(known)].line)
        there, needed = made.values, mended.values
        named = self._next_step(mended.right)
        if named is not None:
            # Better than what is on the way to it: what the line makes in the end, if it is that.
            same_line = [n for n in range(number, len(self._made)) if self._made[n].line == made.line]
            for last in reversed(same_line):
                if self._made[last].values.shape == named.values.shape and not self._mask[last]:
                    there, needed = self._made[last].values, named.values
                    break
        step = named.step if named else ""
        return Located(
            made.file,
            tuple(sorted(lines)),
            there,
            step,
            needed,
            self._steps(number),
            "missing" if is_missing else "mended",
        )

    def _is_only_a_part(self, number: int) -> bool:
        known = self._known[number]
        return bool(known) and all(self._reference.rights[one].is_part for one in known)

    def _is_missing_before(self, right: Right) -> bool:
        """Whether what the solution makes it of was not made either: then a step is missing, in whichever line."""
        if right.number is None:
            return False
        there = {self._reference.rights[one].number for one in self._present}
        return any(one not in there for one in self._reference.inputs[right.number])

    def _next_step(self, right: Right) -> Right | None:
        """The first of the solution's steps that this is, or that is made of it."""
        if right.number is None:
            return None
        before = self._reference.before
        steps = [one for one in self._reference.rights if one.step and one.number is not None]
        later = [one for one in steps if one.number == right.number or right.number in before[one.number or 0]]
        return min(later, key=lambda one: one.number or 0, default=None)

    def _is_in_a_loop(self, number: int) -> bool:
        return len(self._turns(number)) > 1 and self._made[number].operator not in _SHAPING

    def _users(self, number: int) -> set[int]:
        """What comes of a mask, up to what is none itself."""
        masks, users = {number}, set[int]()
        for later in range(number + 1, len(self._made)):
            if masks.intersection(self._made[later].inputs):
                users.add(later)
                if self._mask[later]:
                    masks.add(later)
        return users

    def _unknown(self) -> list[int]:
        return [number for number in range(len(self._made)) if self._is_unknown(number)]

    def _may_be_wrong(self, number: int) -> bool:
        """Whether it is not known for right: what is only like something right, or overflows, may be what is wrong."""
        if self._known[number] or self._neutral[number] or self._mask[number]:
            return False
        is_finite = bool(self._made[number].values.abs().le(_FINITE).all())
        return number not in self._comes_right or not is_finite

    def _is_unknown(self, number: int) -> bool:
        fine = self._known[number] or self._neutral[number] or self._scaled[number]
        return not fine and number not in self._comes_right

    def _all_in_one_line(self) -> Located | None:
        """Where all but what one line makes is known to be right."""
        unknown = self._unknown()
        if self._run.error is not None or len({self._made[one].line for one in unknown}) != 1:
            return None
        if any(self._mask):
            return None
        made = self._made[unknown[-1]]
        if self._run.returned != (made.file, made.line):
            return None
        if any(self._is_in_a_loop(one) for number in unknown for one in (number, *self._before[number])):
            return None
        return Located(made.file, (made.line,), made.values, "", None, self._steps(unknown[0]), "one line")

    def _returned_too_early(self) -> Located | None:
        """Where all that was made is right, and what is returned is not the last of it."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) != len(self._reference.result):
            return None
        if self._unknown() or any(self._reference.rights[one].is_part for known in self._known for one in known[:1]):
            return None
        for one, right in zip(results, self._reference.result, strict=True):
            if one.shape == right.shape and same(one, right):
                continue
            if not self._reference.known(one) or is_mask(one):
                return None
            file, line = self._run.returned
            return Located(file, (line,), one, "", right, self._steps(len(self._made)), "returned")
        return None

    def _steps(self, until: int) -> dict[str, int]:
        steps: dict[str, int] = {}
        for number, known in enumerate(self._known[:until]):
            for one in known:
                if step := self._reference.rights[one].step:
                    steps.setdefault(step, self._made[number].line)
        return steps


def _calls(made: Sequence[Made]) -> list[tuple[int | str, ...]]:
    """For each tensor, the call that made it, the same in each turn of a loop, and its number among what that gave."""
    calls: list[tuple[int | str, ...]] = []
    for number, one in enumerate(made):
        before = made[number - 1] if number else None
        same_call = before is not None and (one.line, one.place, one.operator, one.inputs) == (
            before.line, before.place, before.operator, before.inputs
        )  # fmt: skip
        place = int(calls[-1][-1]) + 1 if same_call and one.inputs else 0
        calls.append((one.line, one.place, one.operator, place))
    return calls


def _arrangements(right: Right, made: Made) -> Iterator[torch.Tensor]:
    """What is right, as it would stand in the place of what was made."""
    values = right.values
    if sorted(_squeezed(values.shape)) == sorted(_squeezed(made.values.shape)):
        squeezed = values.squeeze()
        for order in permutations(range(squeezed.dim())):
            turned = squeezed.permute(order)
            if _squeezed(turned.shape) == _squeezed(made.values.shape):
                yield turned.reshape(made.values.shape)
        if values.shape != made.values.shape:
            yield values
    elif values.numel() == made.values.numel() or right.operator == made.operator:
        yield values


def _squeezed(shape: torch.Size) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
