"""Search for the line at which the values of a run go wrong.

A tensor that no reference run made may still be right, because right code has many forms. So an unknown tensor alone
is no fault. A line is reported if the result is right once the line's tensor is replaced by a reference tensor, or if
the tensors of all other lines are known to be right. Example:

    scores = queries @ keys.mT              # line 2: matches a reference tensor
    weights = softmax(scores / d, dim=-1)   # line 3: unknown; with the reference's weights the result is right
    return weights @ values                 # line 4: unknown, but right with the right weights: line 3 is reported
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run
from .fault import FaultKind, LocatedFault, build_fault, is_intermediate, wrong_count, wrong_return
from .reference import Reference, RightTensor, has_same_values, is_unambiguous, squeezed_shape
from .substitutions import Correction, Rerun, SubstitutionRuns, result_tensors
from .tensor_status import RESHAPING, TensorStatus

_MAX_UNUSED = 4


def locate_fault(
    reference: Reference, rerun: Rerun, attempt: Rerun | None = None, *, in_shape: bool = False
) -> LocatedFault | None:
    """Return the fault of an answer on the reference's case; None if it is right, or if no line is found.

    rerun: runs the answer on the case, with some of its tensors replaced; the first call replaces nothing. What it
    raises is passed on. attempt: a quicker `rerun` that records no tensors; most substitutions do not correct the run.
    in_shape: True if both replace a tensor only by one of the same shape.
    """
    run = rerun({})
    if reference.is_right(run):
        return None
    status = TensorStatus(reference, run.made)
    runs = SubstitutionRuns(status, run, rerun, attempt, in_shape=in_shape)
    fault = _FaultSearch(status, run, runs).search()
    return None if fault is None or fault.kind in reference.case.unreported else fault


class _FaultSearch:
    """The search for the fault of one run."""

    def __init__(self, status: TensorStatus, run: Run, runs: SubstitutionRuns) -> None:
        self._reference = status.reference
        self._run = run
        self._made = run.made
        self._status = status
        self._runs = runs

    def search(self) -> LocatedFault | None:
        return wrong_count(self._status, self._run) or self._unused() or self._by_substitution()

    @cached_property
    def _used(self) -> set[int]:
        """The tensors that went into the result; all tensors if no traced tensor is the result."""
        results = set(result_tensors(self._run))
        ancestors = (self._status.ancestors[number] for number in results)
        return results.union(*ancestors) if results else set(range(len(self._made)))

    def _place(self, number: int) -> tuple[str, int]:
        return self._made[number].file, self._made[number].line

    def _by_substitution(self) -> LocatedFault | None:
        """Try substitutions in the order of the run, then the rules that need no correction."""
        correction: Correction | None = None
        for number in range(len(self._made)):
            if correction and not self._may_be_wrong_instead(number, correction):
                continue
            correction = self._runs.correct(number) or correction
            if correction and len(correction.substitution.replaced) == 1:
                break  # after a loop was corrected as a whole, a later tensor may be the only wrong one
        if self._runs.is_exhausted:
            return None if correction else self._only_line()
        fault = correction and self._corrected_line(correction)
        fault = fault or self._only_line() or wrong_return(self._status, self._run)
        if fault is None and (correction is None or correction.is_result):
            return self._first_of_two()
        return fault

    def _may_be_wrong_instead(self, number: int, correction: Correction) -> bool:
        """Return whether a tensor may be wrong besides or instead of the corrected ones."""
        status, replaced = self._status, correction.substitution.replaced
        if status.matches[number] or not status.ancestors[number].isdisjoint(replaced):
            return False
        is_in_same_loop = any(number in status.ancestors[other] for other in replaced)
        return not (is_in_same_loop and len(status.iterations(number)) > 1)

    def _corrected_line(self, correction: Correction) -> LocatedFault | None:
        """Return the fault of the corrected tensor's line; None if an earlier line may be wrong instead."""
        status, substitution = self._status, correction.substitution
        number = substitution.number
        if status.matches[number] and self._made[number].values.numel() == 1 and not substitution.is_swap:
            return None  # single elements match by chance
        # The first iteration of a loop may be right, as if every head uses the first head's weights.
        wrong = [other for other, values in substitution.replaced.items() if not self._makes(other, values)]
        if wrong and number not in wrong:
            number = wrong[0]
            substitution = replace(substitution, number=number, values=substitution.replaced[number])
            correction = replace(correction, substitution=substitution)
        ancestors = frozenset().union(*(status.ancestors[other] for other in substitution.replaced))
        elsewhere = {other for other in ancestors if self._place(other) != self._place(number)}
        if any(self._is_doubtful(other, correction) for other in elsewhere):
            return None
        is_right_mask = status.is_reference_mask(number)
        is_matched = bool(status.matches[number]) and all(status.matches[other] for other in wrong)
        file, concerned = self._made[number].file, [number]
        if is_right_mask:
            # It or its use is inverted: the lines that make the mask do not fit those that use it.
            masks = [other for other in status.ancestors[number] if status.is_mask[other]]
            chain = [*masks, *sorted(self._users_of_mask(number))]
            concerned += [other for other in chain if not (status.is_mask[other] and status.is_reshaped(other))]
        if substitution.is_swap:
            concerned += [user for other in substitution.replaced for user in self._users(other)]
        places = list(dict.fromkeys(map(self._place, sorted(concerned))))
        if substitution.is_swap and self._run.returned and all(map(self._is_returned, substitution.replaced)):
            places = list(dict.fromkeys([*places, self._run.returned]))  # the order may be wrong there
        if len(places) > 2 or any(place[0] != file for place in places):
            return None  # the fault may be in another cell
        is_single = len(status.iterations(number)) == 1 == len(places)
        if is_single and not is_matched and self._lacks_input(substitution.source):
            kind = FaultKind.MISSING_STEP
            places = [*self._last_right_place(self._used_too_early(number) or elsewhere, file), *places]
        elif substitution.is_swap:
            kind = FaultKind.SWAPPED
        elif is_right_mask:
            kind = FaultKind.INVERTED_MASK
        else:
            kind = FaultKind.WRONG_TENSOR if is_matched else FaultKind.WRONG_VALUES
        made, expected, step, is_on_the_way = self._tensors_to_show(correction)
        return build_fault(
            status, [line for _, line in places], file, number, kind, made, expected,
            step=step, is_intermediate=is_on_the_way,
        )  # fmt: skip

    def _is_returned(self, number: int) -> bool:
        """Return whether a tensor is a result, as it is or reshaped."""
        status, results = self._status, result_tensors(self._run)
        return any(r == number or (status.is_reshaped(r) and number in status.ancestors[r]) for r in results)

    def _makes(self, number: int, values: torch.Tensor) -> bool:
        """Return whether the uncorrected run makes these values already."""
        made = self._made[number].values
        return made.shape == values.shape and has_same_values(made, values)

    def _is_doubtful(self, number: int, correction: Correction) -> bool:
        """Return whether an earlier tensor may be the fault, although a later one was corrected."""
        status = self._status
        if number in correction.proven:
            return False
        if not status.is_suspect(number):
            return status.is_unusual_constant(number)
        # A line that computes proves more than one that reshapes: its inputs have the right sizes.
        is_computed = not status.is_reshaped(correction.substitution.number)
        return correction.is_result or not is_computed or not status.is_plausible(number)

    def _used_too_early(self, number: int) -> set[int]:
        """Return the right ancestors that are used by other operators than in the solution: a step may be missing."""
        status, too_early = self._status, set[int]()
        seen, pending = set[int](), list(self._made[number].inputs)
        while pending:
            ancestor = pending.pop()
            if ancestor in seen:
                continue
            seen.add(ancestor)
            if not status.matches[ancestor] or status.is_reshaped(ancestor):
                pending += self._made[ancestor].inputs
            if (
                status.matches[ancestor]
                and self._place(ancestor) != self._place(number)
                and not status.is_trivial[ancestor]
            ):
                operators = {_family(self._made[user].operator) for user in self._users(ancestor)}
                if (right := self._right_operators(ancestor)) and not operators & right:
                    too_early.add(ancestor)
        return too_early

    def _right_operators(self, number: int) -> set[str]:
        """Return the operators that the solution applies to a matched tensor, apart from reshaping."""
        reference = self._reference
        operators = {tensor.number: tensor.operator for tensor in reference.tensors if tensor.number is not None}
        pending = [match.number for match in self._status.matches[number]]
        right, seen = set[str](), set[int | None]()
        while pending:
            source = pending.pop()
            for later, inputs in reference.inputs.items():
                if source in inputs and later not in seen and later in operators:
                    seen.add(later)
                    if operators[later] in RESHAPING:
                        pending.append(later)
                    else:
                        right.add(_family(operators[later]))
        return right

    def _last_right_place(self, numbers: Iterable[int], file: str) -> list[tuple[str, int]]:
        """Return the place of the last matched tensor among these, in a list; an empty list if nothing matches."""
        status = self._status
        matched = [n for n in numbers if status.matches[n] and not status.is_mask[n] and not status.is_trivial[n]]
        in_file = [n for n in matched if self._made[n].file == file]
        return [self._place(max(in_file))] if in_file else []

    def _tensors_to_show(self, correction: Correction) -> tuple[torch.Tensor, torch.Tensor | None, str, bool]:
        """Return the wrong tensor, the right one if known, its step, and whether it is intermediate in its line.

        If the line makes a step of the solution, show that step instead of a tensor on the way to it.
        """
        status, substitution = self._status, correction.substitution
        number, needed, source = substitution.number, substitution.values, substitution.source
        made, next_step = self._made[number], self._next_step(source)
        later = [other for other in status.iterations(number) if other > number]
        # One call may reshape a tensor several times, which is no other iteration.
        others = [n for n in later if not (status.is_reshaped(n) and number in status.ancestors[n])]
        end = min(others, default=len(self._made))
        same_line = [n for n in range(number, end) if self._place(n) == self._place(number)]
        # For a constant, such as ones, show what the line computes from it.
        for last in reversed(same_line) if status.is_trivial[number] else ():
            there = self._made[last]
            corrected = correction.made[last] if last < len(correction.made) else made
            is_same_step = corrected.values.shape == there.values.shape and (
                (corrected.line, corrected.place) == (there.line, there.place)
            )
            if is_same_step and not has_same_values(corrected.values, there.values):
                return there.values, corrected.values, "", False
        for last in (n for n in reversed(same_line) if n == number or number in status.ancestors[n]):
            there = self._made[last]
            if (
                next_step
                and there.values.shape == next_step.values.shape
                and (there.operator == next_step.operator or {there.operator, next_step.operator} <= RESHAPING)
            ):
                expected = next_step.values if is_unambiguous(next_step.values, there.values) else None
                return there.values, expected, next_step.step, is_intermediate(status, last, same_line)
        for last in reversed(same_line):
            there = self._made[last]
            if there.values.numel() == made.values.numel() and has_same_values(there.values, made.values):
                # Functions of torch compute in shapes that students never see: show the last shape.
                if needed.shape == made.values.shape:
                    needed = needed.reshape(there.values.shape)
                made, number = there, last
                break
        step = next_step.step if next_step and next_step.number == source.number else ""
        # The order of permuted dimensions may be right or wrong, so no right tensor is shown.
        is_permuted = source.values.numel() == needed.numel() and (
            squeezed_shape(source.values.shape) != squeezed_shape(made.values.shape)
        )
        expected = needed if not is_permuted and is_unambiguous(needed, made.values) else None
        return made.values, expected, step, is_intermediate(status, number, same_line)

    def _lacks_input(self, source: RightTensor) -> bool:
        """Return whether the run lacks an input from which the solution makes the tensor."""
        if source.number is None:
            return False
        present = {match.number for matches in self._status.matches for match in matches}
        return any(number not in present for number in self._reference.inputs[source.number])

    def _next_step(self, source: RightTensor) -> RightTensor | None:
        """Return the first step of the solution that is this tensor, or is made from it."""
        if source.number is None:
            return None
        steps = [
            (tensor.number, tensor)
            for tensor in self._reference.tensors
            if tensor.step and tensor.number is not None
            and (tensor.number == source.number or source.number in self._reference.ancestors[tensor.number])
        ]  # fmt: skip
        return min(steps, key=lambda step: step[0])[1] if steps else None

    def _users(self, number: int) -> list[int]:
        """Return the tensors that are computed from this one, directly or after reshaping."""
        shapes, users = {number}, list[int]()
        for later in range(number + 1, len(self._made)):
            if shapes.intersection(self._made[later].inputs):
                (shapes.add if self._status.is_reshaped(later) else users.append)(later)
        return users

    def _users_of_mask(self, number: int) -> set[int]:
        """Return the tensors that are computed from a mask, and from the masks that are computed from it."""
        masks, users = {number}, set[int]()
        for later in range(number + 1, len(self._made)):
            if masks.intersection(self._made[later].inputs):
                users.add(later)
                if self._status.is_mask[later]:
                    masks.add(later)
        return users

    def _only_line(self) -> LocatedFault | None:
        """Return the fault if all suspect tensors that went into the result are from one line."""
        if self._run.error is not None:
            return None
        status = self._status
        suspects = sorted(
            number
            for number in self._used
            if status.is_suspect(number) or (status.is_mask[number] and number not in status.confirmed)
        )
        if not suspects and all(status.is_trivial[number] for number in self._used):
            suspects = sorted(number for number in self._used if not status.is_from_factory(number))
        if not suspects or len(set(map(self._place, suspects))) > 1:
            return None
        if any(map(self._is_from_slices, suspects)):
            return None  # the line that sliced may have sliced the wrong tensor
        if any(len(status.iterations(number)) > 1 for number in suspects) and self._lacks_only_elements():
            return None  # the loop may leave out iterations
        made = self._made[suspects[-1]]
        if any(status.is_unusual_constant(number) and self._made[number].line != made.line for number in self._used):
            return None
        return build_fault(status, [made.line], made.file, suspects[0], FaultKind.ONLY_LINE, made.values)

    def _lacks_only_elements(self) -> bool:
        """Return whether all wrong elements of the result have one initial value, as if no line had set them."""
        results, expected = list(tensors_in(self._run.result)), self._reference.results
        if len(results) != len(expected) or any(a.shape != b.shape for a, b in zip(results, expected, strict=True)):
            return False
        status = self._status
        initial = {
            float(self._made[number].values.flatten()[0])
            for number in self._used
            if status.is_from_factory(number) and status.is_trivial[number] and self._made[number].values.numel()
        }
        pairs = [(a.detach().double(), b.double()) for a, b in zip(results, expected, strict=True)]
        wrong = torch.cat([a[~torch.isclose(a, b, rtol=1e-4, atol=1e-6)] for a, b in pairs])
        right = sum(len(a.flatten()) for a, _ in pairs) - len(wrong)
        return len(wrong.unique()) == 1 and right > 0 and float(wrong[0]) in initial

    def _is_from_slices(self, number: int) -> bool:
        """Return whether a loop computes the tensor from slices that another line made."""
        status, made = self._status, self._made[number]
        if status.is_reshaped(number) or len(status.iterations(number)) == 1:
            return False
        return any(status.is_only_slice(part) and self._made[part].line != made.line for part in made.inputs)

    def _first_of_two(self) -> LocatedFault | None:
        """Return the fault of the first line with unknown tensors, if correcting this line and a later one helps."""
        if self._run.error is not None:
            return None
        status = self._status
        frontier = [
            number
            for number in range(len(self._made))
            if status.is_unknown(number) and not any(map(status.is_suspect, status.ancestors[number]))
        ]
        if not frontier:
            return None
        line = self._made[frontier[0]].line
        first = self._runs.first_of_two(number for number in frontier if self._made[number].line == line)
        if first is None or not is_unambiguous(first.values, self._made[first.number].values):
            return None
        made, same_line = self._made[first.number], [n for n, tensor in enumerate(self._made) if tensor.line == line]
        return build_fault(
            status, [line], made.file, first.number, FaultKind.FIRST_OF_TWO, made.values, first.values,
            is_intermediate=is_intermediate(status, first.number, same_line),
        )  # fmt: skip

    def _unused(self) -> LocatedFault | None:
        """Return the fault if a right tensor is made and a later line uses its input instead."""
        status, runs_left = self._status, _MAX_UNUSED

        def says_something(number: int) -> bool:
            return not status.is_trivial[number] and not status.is_mask[number]

        for number, made in enumerate(self._made):
            if number in self._used or not status.matches[number] or not says_something(number):
                continue
            for source in made.inputs:
                users = [n for n in self._used if n > number and source in self._made[n].inputs]
                if not users or not says_something(source) or runs_left <= 0:
                    continue
                runs_left -= 1
                if self._runs.is_corrected_by({source: made.values}):
                    wrong, user = self._made[source].values, self._made[min(users)]
                    if user.file != made.file:
                        return None
                    lines = [made.line, user.line]
                    return build_fault(status, lines, made.file, number, FaultKind.UNUSED, wrong, made.values)
        return None


def _family(operator: str) -> str:
    """Return the operator, or `mm` for all that multiply matrices."""
    return "mm" if operator in ("bmm", "mv", "dot", "addmm", "baddbmm") else operator
