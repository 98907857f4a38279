"""Run an answer again with some of its tensors replaced, until the result is right.

The candidates for what a tensor of a run should have been are reference tensors. Example: line 3 makes an unknown
tensor of shape (4, 5). The candidates are the reference tensors of 20 elements, permuted and reshaped to (4, 5).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run, TracedTensor
from .reference import LARGE, Reference, RightTensor, has_same_values, squeezed_shape
from .tensor_status import RESHAPING, TensorStatus, permutations_to

_MAX_CANDIDATES, _MAX_RESHAPED = 24, 6
"""Limits of candidates for one tensor; for one that only reshapes an unknown tensor, which had its own."""
_MAX_ITERATIONS, _MAX_STEPS = 4, 6
"""Limits of a loop's iterations and the solution's steps, if each iteration may make another step."""
_MAX_RUNS = 120
"""Maximum number of runs of one answer."""
_MAX_FIRST = 16
"""Maximum number of substitutions for the first of two wrong lines."""
_UNRECORDED = torch.Size([0])
"""The shape that a record has instead of the elements of a large tensor."""
Rerun = Callable[[Mapping[int, torch.Tensor]], Run]
"""Runs the answer again. Its argument: new tensors by the numbers of those that they replace."""


@dataclass(frozen=True)
class Substitution:
    """Tensors to put into a run, instead of those that the answer makes."""

    number: int
    """The first tensor to replace."""
    source: RightTensor
    """The reference tensor from which the new tensors are made."""
    values: torch.Tensor
    """The new values of tensor `number`."""
    replaced: dict[int, torch.Tensor]
    """The new values of all tensors to replace."""
    is_swap: bool = False
    """True if two tensors that are right change places."""


Candidate = tuple[RightTensor, torch.Tensor]
"""A reference tensor, and the values made from it for one tensor of the run."""
GroupCandidate = tuple[RightTensor, list[torch.Tensor]]
"""A reference tensor, and the values made from it for a group of tensors of the run."""


def substitutions(status: TensorStatus, number: int) -> Iterator[Substitution]:
    """Yield substitutions for a tensor, likely ones first; for a tensor made in a loop, also for all iterations."""
    iterations = status.iterations(number)
    candidates: Iterator[Substitution] = iter(())
    group = status.unpacked(number) or (iterations if len(iterations) > 1 and number == iterations[0] else [])
    if group:
        pieces = _other_pieces(status, group)
        if any(map(status.is_unknown, group)):
            pieces = chain(_for_group(status, group), pieces)
        candidates = (
            Substitution(number, source, values[0], dict(zip(group, values, strict=True))) for source, values in pieces
        )
    if len(iterations) == 1 or status.is_reshaped(number):
        single = (
            Substitution(number, source, values, {number: values}) for source, values in _for_tensor(status, number)
        )
        candidates = chain(candidates, single)
    swaps = (
        Substitution(number, source, replaced[number], replaced, is_swap=True)
        for source, replaced in _swaps(status, group or [number])
    )
    only_reshapes = status.is_reshaped(number) and any(map(status.is_unknown, status.made[number].inputs))
    return islice(chain(candidates, swaps), _MAX_RESHAPED if only_reshapes else _MAX_CANDIDATES)


def _for_group(status: TensorStatus, group: list[int]) -> Iterator[GroupCandidate]:
    """Yield the pieces of reference tensors for all tensors that a loop made."""
    reference, made = status.reference, [status.made[number].values for number in group]
    shape, count = made[0].shape, len(group)
    is_even = all(tensor.shape == shape for tensor in made)
    if is_even:
        yield from _step_for_each(reference, shape, count)
        if count == len(reference.results) and all(result.shape == shape for result in reference.results):
            yield RightTensor(reference.results[0], ""), reference.results
    for whole in reference.whole_tensors if is_even else ():
        if whole.values.numel() != count * shape.numel():
            continue
        squeezed = whole.values.squeeze()
        for order in permutations(range(squeezed.dim())):
            permuted = squeezed.permute(order)
            if permuted.shape[permuted.dim() - len(squeezed_shape(shape)) :] == squeezed_shape(shape):
                yield whole, list(permuted.reshape(count, *shape))
    for whole in reference.whole_tensors:
        for dim, size in enumerate(whole.values.shape):
            if size == count and (pieces := _cropped(whole.values.split(1, dim), dim, made)):
                yield whole, pieces


def _cropped(pieces: Sequence[torch.Tensor], dim: int, made: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the pieces, cropped to the sizes of the loop's tensors; empty if a piece is too small."""
    cropped = list[torch.Tensor]()
    for piece, there in zip(pieces, made, strict=True):
        whole, sizes = piece if piece.dim() == there.dim() else piece.squeeze(dim), there.shape
        if whole.dim() != len(sizes) or any(size > of for size, of in zip(sizes, whole.shape, strict=True)):
            return []
        cropped.append(whole[tuple(map(slice, sizes))])
    return cropped


def _step_for_each(reference: Reference, shape: torch.Size, count: int) -> Iterator[GroupCandidate]:
    """Yield a step of the solution for each iteration: loops often make queries, keys and values."""
    steps = [tensor for tensor in reference.tensors if tensor.step and tensor.values.numel() == shape.numel()]
    if not 1 < count <= _MAX_ITERATIONS or len(steps) > _MAX_STEPS:
        return
    for chosen in combinations(sorted(steps, key=lambda step: step.number or 0), count):
        if len({step.values.shape for step in chosen}) != 1:
            continue
        for order in permutations(range(chosen[0].values.dim())):
            permuted = [step.values.permute(order) for step in chosen]
            if squeezed_shape(permuted[0].shape) == squeezed_shape(shape):
                yield chosen[0], [piece.reshape(shape) for piece in permuted]
        if chosen[0].values.shape != shape:
            yield chosen[0], [step.values for step in chosen]


def _for_tensor(status: TensorStatus, number: int) -> Iterator[Candidate]:
    """Yield candidates for one tensor, likely ones first."""
    reference, made = status.reference, status.made[number]
    if status.is_mask[number] or _may_be_mask(status, number):
        yield from _masks(reference, made)
    elif status.is_trivial[number]:
        if status.is_from_factory(number) and made.values.numel() > 1:  # the initial value of a sum or product
            filled = (torch.full_like(made.values, constant) for constant in (0.0, 1.0))
            yield from ((RightTensor(values, ""), values) for values in filled if not torch.equal(values, made.values))
    elif status.is_prescaled[number]:
        yield from _other_prescaled(reference, made)
    elif status.matches[number] or number not in status.confirmed:
        seen = [made.values]
        for source, values in _others(status, number) if status.matches[number] else _computed(status, made):
            if not any(earlier.shape == values.shape and has_same_values(earlier, values) for earlier in seen):
                seen.append(values)
                yield source, values


def _computed(status: TensorStatus, made: TracedTensor) -> Iterator[Candidate]:
    """Yield reference tensors for an unknown tensor, the solution's own before those of alternative solutions.

    Of the solution's, those that the run lacks come first, then those that the same operator makes.
    """
    present = {match for matches in status.matches for match in matches}
    ranked = sorted(
        status.reference.whole_tensors,
        key=lambda tensor: (tensor.number is None, tensor in present, tensor.operator != made.operator),
    )
    from_solution = [tensor for tensor in ranked if tensor.number is not None]
    prescaled = [
        RightTensor(scaled, "mul") for scaled in status.reference.prescaled if scaled.numel() == made.values.numel()
    ]
    shape = made.values.shape
    for source in [*from_solution, *prescaled, *ranked[len(from_solution) :]]:
        values = source.values
        permuted = list(permutations_to(values, shape))
        yield from ((source, arrangement) for arrangement in permuted)
        is_related = permuted or values.numel() == shape.numel() or source.operator == made.operator
        if values.shape != shape and is_related:
            yield source, values


def _other_prescaled(reference: Reference, made: TracedTensor) -> Iterator[Candidate]:
    """Yield the other prescaled tensors of this shape, except those that share an element with this one.

    Tensors that share one are the same scores with and without a mask.
    """
    squeezed = made.values.squeeze()
    for other in reference.prescaled:
        if other.shape == squeezed.shape and not bool(torch.isclose(other, squeezed, rtol=1e-4, atol=1e-6).any()):
            yield RightTensor(other, "mul"), other.reshape(made.values.shape)


def _may_be_mask(status: TensorStatus, number: int) -> bool:
    """Return whether a constant may be in a mask's place: it has two dimensions, and no mask is made from it."""
    made = status.made[number]
    if made.values.dim() < 2 or made.values.numel() < 2 or not status.is_trivial[number]:
        return False
    return not any(
        number in status.ancestors[later] and status.is_mask[later] for later in range(number + 1, len(status.made))
    )


def _masks(reference: Reference, made: TracedTensor) -> Iterator[Candidate]:
    """Yield masks that hide the positions that reference tensors hide, or all others, filled like the run's mask."""
    seen = [made.values]
    shape = squeezed_shape(made.values.shape)
    fill = (made.values[made.values != 0].flatten()[:1].tolist() or [1.0])[0]
    # An infinity that is added may as well have the wrong sign as the wrong positions.
    fills = [fill, -fill] if abs(fill) > LARGE else [fill]
    for hidden in reference.hidden_positions:
        if tuple(hidden.shape) != shape[max(len(shape) - hidden.dim(), 0) :]:
            continue
        for filled in fills:
            for positions in (hidden, ~hidden):
                mask = torch.where(positions, filled, 0.0).to(made.values.dtype)
                values = mask.expand(shape).reshape(made.values.shape)
                if not any(torch.equal(other, values) for other in seen):
                    seen.append(values)
                    yield RightTensor(hidden, ""), values


def _others(status: TensorStatus, number: int) -> Iterator[Candidate]:
    """Yield other right tensors for a matched one that is wrongly used: queries for keys."""
    if status.is_rightly_used[number]:
        return
    made = status.made[number]
    for other in _unrelated(status.reference, status.matches[number]):
        yield from ((other, values) for values in permutations_to(other.values, made.values.shape))
        # Another argument may have other sizes.
        if made.operator in RESHAPING and other.is_given and other.values.dim() == made.values.dim():
            yield other, other.values


def _other_pieces(status: TensorStatus, group: list[int]) -> Iterator[GroupCandidate]:
    """Yield the same pieces of other right tensors, for a loop over the pieces of a matched one."""
    if any(not status.matches[number] for number in group) and not status.is_reshaped(group[0]):
        return
    if all(status.is_rightly_used[number] for number in group):
        return
    for whole, blocks in status.wholes_of(group):
        shape = whole.values.shape
        for other in _unrelated(status.reference, [whole]):
            if other.values.shape == shape:
                shapes = [status.made[number].values.shape for number in group]
                yield other, [other.values[block].reshape(to) for block, to in zip(blocks, shapes, strict=True)]
            elif other.is_given and other.values.shape[:1] == shape[:1] == (len(group),):
                yield other, list(other.values)


def _swaps(status: TensorStatus, group: list[int]) -> Iterator[tuple[RightTensor, dict[int, torch.Tensor]]]:
    """Yield exchanges of matched tensors with later ones of the same line, if both are wrongly used."""
    made, first = status.made, group[0]

    def are_wrongly_used(numbers: list[int]) -> bool:
        return all(status.matches[number] and not status.is_rightly_used[number] for number in numbers)

    if not are_wrongly_used(group):
        return
    for later in range(group[-1] + 1, len(made)):
        others = status.unpacked(later) or [later]
        if made[later].line != made[first].line:
            return
        if len(others) != len(group) or not are_wrongly_used(others):
            continue
        if first in status.ancestors[later] or made[later].values.shape != made[first].values.shape:
            continue
        pairs = list(zip(group, others, strict=True))
        if not all(has_same_values(made[number].values, made[other].values) for number, other in pairs):
            replaced = {number: made[other].values for number, other in pairs}
            replaced |= {other: made[number].values for number, other in pairs}
            yield status.matches[later][0], replaced


def _unrelated(reference: Reference, matches: list[RightTensor]) -> list[RightTensor]:
    """Return the reference tensors that are neither ancestors nor descendants of the matched ones.

    If a matched one is an input, the other inputs are unrelated as well.
    """
    numbers = [match.number for match in matches if match.number is not None]
    is_input = any(_is_input(reference, match) for match in matches)
    ancestors = reference.ancestors

    def is_unrelated(number: int) -> bool:
        return all(n != number and n not in ancestors[number] and number not in ancestors[n] for n in numbers)

    return [
        tensor
        for tensor in reference.whole_tensors
        if (is_input and _is_input(reference, tensor))
        or (tensor.number is not None and numbers and is_unrelated(tensor.number))
    ]


def _is_input(reference: Reference, tensor: RightTensor) -> bool:
    """Return whether a tensor is an argument or a parameter, or a reshaped one."""
    if tensor.is_given:
        return True
    if tensor.number is not None:
        return tensor.operator in RESHAPING and not reference.ancestors[tensor.number]
    inputs = (other.values for other in reference.tensors if other.is_given and not other.is_slice)
    return any(values.shape == tensor.values.shape and has_same_values(values, tensor.values) for values in inputs)


@dataclass(frozen=True)
class Correction:
    """A substitution with which the result is right."""

    substitution: Substitution
    proven: frozenset[int]
    """The tensors that went into the right result: they are right."""
    is_result: bool
    """True if the result itself was replaced, which proves nothing about earlier tensors."""
    made: Sequence[TracedTensor]
    """The tensors of the corrected run."""


class SubstitutionRuns:
    """The runs of one answer with substitutions. Their number is limited."""

    def __init__(self, status: TensorStatus, run: Run, rerun: Rerun, attempt: Rerun | None, *, in_shape: bool) -> None:
        """run: the answer's run without substitutions. rerun, attempt, in_shape: see `fault_search.locate_fault`."""
        self._status = status
        self._reference = status.reference
        self._run = run
        self._rerun = rerun
        self._attempt = attempt or rerun
        self._in_shape = in_shape
        self._runs_left = _MAX_RUNS

    @property
    def is_exhausted(self) -> bool:
        """True if the limit was reached, so that later tensors may not have been tried."""
        return self._runs_left <= 0

    def correct(self, number: int) -> Correction | None:
        """Return a substitution for this tensor with which the result is right; None if none is found.

        A tensor made in a loop is replaced in all iterations.
        """
        for substitution in substitutions(self._status, number):
            if self.is_exhausted:
                return None
            if run := self._corrected(substitution.replaced, substitution.replaced):
                return self._correction(substitution, run)
        return None

    def is_corrected_by(self, replaced: Mapping[int, torch.Tensor]) -> bool:
        """Return whether the result is right with these tensors replaced."""
        return self._corrected(replaced, replaced) is not None

    def _corrected(self, replaced: Mapping[int, torch.Tensor], numbers: Iterable[int]) -> Run | None:
        """Return the run with these tensors replaced if its result is right; None if not.

        numbers: tensors that have to be those of the first run. Only a run with a right result is recorded.
        """
        if not (self._may_run() and self._replaces(replaced) and self._reference.is_right(self._attempt(replaced))):
            return None
        run = self._rerun(replaced)
        return run if self._reference.is_right(run) and self._has_same_places(run, numbers) else None

    def _replaces(self, replaced: Mapping[int, torch.Tensor]) -> bool:
        """Return whether a run replaces any of these tensors: if not, its result is as wrong as before."""
        made = self._run.made
        return not self._in_shape or any(
            number >= len(made) or made[number].values.shape in (values.shape, _UNRECORDED)
            for number, values in replaced.items()
        )

    def _has_same_places(self, run: Run, numbers: Iterable[int]) -> bool:
        """Return whether the same calls as in the first run made these tensors of another run.

        Example: an answer stores a tensor in its first run. Later runs do not make it, so its number is another's.
        """
        old, new = self._run.made, run.made
        return all(
            number < len(new)
            and (old[number].file, old[number].line, old[number].place)
            == (new[number].file, new[number].line, new[number].place)
            for number in numbers
        )

    def first_of_two(self, numbers: Iterable[int]) -> Substitution | None:
        """Return a substitution for one of these tensors that needs another one, on a later line, to correct the run.

        A line between the two must make a right tensor from the first.
        """
        candidates = chain.from_iterable(substitutions(self._status, number) for number in numbers)
        for substitution in islice(candidates, _MAX_FIRST):
            if not self._may_run():
                return None
            run = self._rerun(substitution.replaced)
            if run.error is None and self._is_corrected_later(run, substitution):
                return substitution
        return None

    def _is_corrected_later(self, run: Run, first: Substitution) -> bool:
        status = TensorStatus(self._reference, run.made, self._status)
        descendants = [n for n in range(first.number + 1, len(run.made)) if first.number in status.ancestors[n]]
        if not any(self._is_newly_right(number, status, first) for number in descendants):
            return False
        for substitution in chain.from_iterable(
            substitutions(status, n) for n in filter(status.is_unknown, descendants)
        ):
            if self.is_exhausted:
                return False
            if self._corrected({**first.replaced, **substitution.replaced}, first.replaced):
                return True
        return False

    def _is_newly_right(self, number: int, status: TensorStatus, first: Substitution) -> bool:
        """Return whether a computed tensor on another line matches only since the substitution."""
        if not status.matches[number] or status.is_trivial[number] or status.is_mask[number]:
            return False
        is_new = number >= len(self._run.made) or not self._status.matches[number]
        is_elsewhere = status.made[number].line != self._run.made[first.number].line
        return is_new and is_elsewhere and not status.is_reshaped(number)

    def _may_run(self) -> bool:
        """Count one more run; return False if the limit was reached before."""
        if self.is_exhausted:
            return False
        self._runs_left -= 1
        return True

    def _correction(self, substitution: Substitution, run: Run) -> Correction:
        replaced, pending = substitution.replaced, result_tensors(run)
        is_result = any(number in replaced for number in pending)
        used = set[int]()
        while pending:
            number = pending.pop()
            if number not in replaced and number not in used:
                used.add(number)
                pending += run.made[number].inputs
        # With a substitution the code may take another branch: then numbers stand for other tensors.
        pairs = zip(run.made, self._run.made, strict=False)
        same = {n for n, (new, old) in enumerate(pairs) if (new.line, new.place) == (old.line, old.place)}
        return Correction(substitution, frozenset(used & same), is_result, run.made)


def result_tensors(run: Run) -> list[int]:
    """Return the numbers of the tensors with the shape and values of a result."""
    results = list(tensors_in(run.result))
    return [
        number
        for number, made in enumerate(run.made)
        if any(result.shape == made.values.shape and has_same_values(result, made.values) for result in results)
    ]
