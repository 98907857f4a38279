"""Judgement of an answer: its observations, its points and the misconceptions that explain its failed tests.

The hidden tests and the student check share these functions. Each assertion raises Mismatch, whose message reveals no
expected value.

A misconception explains an answer's failed tests if both fail them with equal signatures. The student check compares
signatures of its examples, and grading those of the hidden tests. The signature of a failed example or test is made of
what its judge found: the message, and the value that is wrong. So code may differ from a misconception in everything
that no example inspects.
"""

import zlib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from . import complaints
from .arguments import tensors_in
from .comparison import Expected, Mismatch, assert_close, describe, difference, largest_size
from .cost import Cost, Limits, LineInWords, exceeded_message, uncountable_message
from .device_probe import BY_NUMBERS, ELSEWHERE, MIXED
from .lost_aspects import OF_COUNTING, OF_DEVICE, OF_DTYPE, OF_GRADIENT, OF_WRITING
from .observation import Observation, Raised, StudentFault, has_own_words, without_style
from .operations import is_bias

_MOST_SUMMED = 100_000
"""Most elements of a tensor that is summed; right results in hidden tests have less than a tenth of that."""
ANY_GRADIENTS = "any gradients"
"""Field of a released mistake: true if its sentence says nothing about gradients."""
Signature = list[int | float]
"""A checksum of everything exact, and sums over the elements of the wrong value."""


def assert_gradients(seen: Observation[Any], gradients: Sequence[Any], parameter_gradients: Mapping[str, Any]) -> None:
    """Raise Mismatch unless the gradients are the expected ones.

    An expected None accepts any gradient. A bias that the code lacks needs no gradient.
    """
    every = [*gradients, *parameter_gradients.values()]
    for number, expected in enumerate(gradients):
        if expected is not None:
            assert_gradient(seen.gradients[number], expected, complaints.argument(number), every)
    for name, expected in parameter_gradients.items():
        if not is_bias(name) or name in seen.parameter_gradients:
            assert_gradient(seen.parameter_gradients.get(name), expected, complaints.parameter(name), every)


def assert_gradient(gradient: Any, expected: Any, where: complaints.Part, every: Iterable[Any] = ()) -> None:
    """Raise Mismatch unless a gradient arrived and is the expected one. where: the tensor that it belongs to.

    every: the expected gradients of the same call. Their largest element counts for the tolerance, because all of them
    are computed from the same terms. Example: the gradient of the keys' bias is exactly 0, a sum of the terms that make
    up the gradient of the keys' weight.
    """
    assert_arrived({where: gradient})
    if isinstance(expected, Expected):
        size = largest_size(*(one.value for one in every if isinstance(one, Expected)))
        expected = Expected(expected.value, expected.tolerance, size)
    try:
        assert_close(gradient, expected, what=f"The gradient of {where}")
    except Mismatch as wrong:
        wrong.aspect = OF_GRADIENT
        raise


def assert_shapes(value: Any, shapes: Sequence[Sequence[int]]) -> None:
    """Raise Mismatch unless the results are tensors of these shapes. Gradients are computed only after this check."""
    results = value if isinstance(value, tuple | list) else [value]
    if len(results) != len(shapes):
        raise Mismatch(complaints.of_another_shape(describe(value), shapes[0]))
    for result, shape in zip(results, shapes, strict=True):
        if not isinstance(result, torch.Tensor) or tuple(result.shape) != tuple(shape):
            raise Mismatch(complaints.of_another_shape(describe(result), shape))


def assert_arrived(gradients: Mapping[complaints.Part, Any]) -> None:
    """Raise Mismatch if a gradient is None. gradients: by the tensor that each belongs to."""
    for where, gradient in gradients.items():
        if gradient is None:
            raise Mismatch(complaints.detached(where), OF_GRADIENT, [where.key] if where.key else [])


def not_finite(seen: Observation[Any]) -> list[str]:
    """Return a message for the result, and for each gradient, that has NaN or infinite values."""
    gradients = {complaints.argument(number): gradient for number, gradient in enumerate(seen.gradients)}
    gradients |= {complaints.parameter(name): gradient for name, gradient in seen.parameter_gradients.items()}
    is_finite = all(bool(value.isfinite().all()) for value in tensors_in(seen.value))
    messages = [] if is_finite else [complaints.RESULT_NOT_FINITE]
    return messages + [
        complaints.not_finite(where)
        for where, gradient in gradients.items()
        if isinstance(gradient, torch.Tensor) and not bool(gradient.isfinite().all())
    ]


def assert_unchanged(changed: Sequence[int]) -> None:
    """Raise Mismatch if a call wrote into its arguments. changed: the positions of the changed arguments."""
    if changed:
        raise Mismatch(complaints.writes_into(changed), OF_WRITING, [str(changed[0])])


def assert_dtype(value: Any, dtype: torch.dtype) -> None:
    """Raise Mismatch unless the value is a tensor of this dtype, or a tuple or list of such tensors and of ints."""
    if isinstance(value, tuple | list):
        for item in [one for one in value if type(one) is not int] or value:
            assert_dtype(item, dtype)
        return
    if not isinstance(value, torch.Tensor):
        raise Mismatch(f"The result is {describe(value)}, not a tensor.")
    if value.dtype != dtype:
        dtypes = [str(one).removeprefix("torch.") for one in (value.dtype, dtype)]
        raise Mismatch(f"The result is {value.dtype}; {dtype} is expected.", OF_DTYPE, dtypes)


def assert_devices(devices: Sequence[str], verdict: str) -> None:
    """Raise Mismatch unless the code follows its inputs to another device.

    devices: those of a call's results. verdict: that of a device probe.
    """
    if len(devices) > 1:
        raise Mismatch("The outputs are on different devices.", OF_DEVICE)
    if found := complaints.device_message(verdict):
        kind = verdict.removesuffix(BY_NUMBERS)
        raise Mismatch(found, OF_DEVICE, [kind] if kind in (MIXED, ELSEWHERE) else [])


def is_refusal(kinds: Sequence[str], errors: Sequence[str]) -> bool:
    """Return whether an exception rejects an input.

    kinds: names of the exception's class and its base classes. errors: names of the exception classes that count as
    rejections. The NotImplementedError of an unwritten answer never counts.
    """
    return bool(set(errors) & set(kinds)) and "NotImplementedError" not in kinds


def assert_parameters(parameters: Mapping[str, torch.Tensor], shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise Mismatch unless an instance has exactly the parameters of these names and shapes."""
    found = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    if found != {name: tuple(shape) for name, shape in shapes.items()}:
        raise Mismatch(complaints.other_parameters(found))


def assert_cost(cost: Cost, limits: Limits, at: LineInWords, *, is_counted: bool = True) -> None:
    """Raise Mismatch if the cost exceeds a limit.

    is_counted: raise it for an uncountable call too. A limit of operations always implies this.
    """
    if found := exceeded_message(cost, limits, at):
        raise Mismatch(found)
    if (is_counted or "operations" in limits) and (why := uncountable_message(cost, at)):
        raise Mismatch(why, OF_COUNTING)


@dataclass(frozen=True)
class TestShare:
    """One test of an exercise, and the share of its weight that the answer earns."""

    __test__ = False  # the name would make pytest collect it

    weight: float
    share: float | None
    """1 if the test passed, 0.5 if only the form of its result is wrong, else 0; None if it was not run."""
    is_property: bool = False
    """The test is conditional: it earns nothing unless a test of hidden values passes."""
    is_public: bool = False
    is_essential: bool = False
    """An answer that fails the test earns at most half of the exercise's points, unless only its form is wrong."""


@dataclass(frozen=True)
class Points:
    """The points of an exercise's tests, in their order."""

    each: tuple[float, ...]
    withheld: tuple[bool, ...]
    """True for a test that would earn points if a test of hidden values passed."""
    tried: float
    """The maximum points of the tests that were run."""
    is_halved: bool
    """True if a failed essential test reduced the points to half of the exercise's."""

    @property
    def earned(self) -> float:
        """The exercise's points."""
        return sum(self.each)


def distribute(tests: Sequence[TestShare], total: float) -> Points:
    """Distribute an exercise's points among its tests by weight. total: the exercise's points.

    Students know the results of public tests, so passing them proves nothing. Conditional tests earn nothing unless a
    test of hidden values passes or none was run.

    Example: a test of hidden values fails, a conditional test of equal weight passes, and the exercise has 2 points.
    The conditional test would earn 1 point, which is withheld.
    """
    worth = total / sum(test.weight for test in tests)
    hidden_values = [test.share for test in tests if not test.is_property and not test.is_public]
    is_proven = any(hidden_values) or (bool(hidden_values) and all(share is None for share in hidden_values))
    withheld = tuple(test.is_property and not is_proven for test in tests)
    each = [
        0.0 if held else (test.share or 0.0) * test.weight * worth for test, held in zip(tests, withheld, strict=True)
    ]
    earned = sum(each)
    is_halved = earned > total / 2 and any(test.is_essential and test.share == 0.0 for test in tests)
    if is_halved:
        each = [points * (total / 2 / earned) for points in each]
    tried = sum(test.weight * worth for test in tests if test.share is not None)
    return Points(tuple(each), withheld, tried, is_halved)


T = TypeVar("T")
_LEAST_TESTS, _LEAST_SHARE = 5, 0.6
"""The tests, and their share, in which an answer must show the same as a misconception if it does not in all."""


@dataclass(frozen=True)
class Explanation(Generic[T]):
    """A misconception, and the tests of the answer that it explains."""

    misconception: T
    sentence: Hashable
    """Equal for misconceptions that need not be distinguished."""
    tests: frozenset[Hashable]
    """The tests that the misconception fails and in which the answer shows the same."""
    others: frozenset[Hashable]
    """The tests that the misconception fails and in which the answer shows something else."""
    has_numbers: bool = True
    """False if the answer shows no number in the explained tests, only NaN or infinity, to which many mistakes lead."""

    @property
    def is_sound(self) -> bool:
        """True if the answer shows the same in all tests that the misconception fails, or in most of many."""
        agreed = len(self.tests)
        return not self.others or (agreed >= _LEAST_TESTS and agreed >= _LEAST_SHARE * (agreed + len(self.others)))

    def says_less_than(self, other: "Explanation[T]") -> bool:
        """Return whether another misconception explains the same tests and more, or fits them better."""
        return self.tests < other.tests or (self.tests == other.tests and len(self.others) > len(other.others))


def explain(every: Sequence[Explanation[T]], failed: Set[Hashable]) -> list[Explanation[T]]:
    """Return the one explanation, or the two, of the tests that an answer fails; empty if nothing explains two tests.

    A misconception explains a test if both fail it and the answer shows the same there. An answer may differ from a
    misconception where both are right, or have one more mistake. So only the tests that the misconception fails are
    compared.

    Empty also if misconceptions with different sentences may explain the same test: one of them would be wrong.
    every: the explanations by each misconception. failed: the tests that the answer fails.
    """
    sound = [one for one in every if one.is_sound and one.tests]
    best = [one for one in sound if not any(map(one.says_less_than, sound))]

    def is_doubtful(one: Explanation[T]) -> bool:
        others = [other for other in every if other.sentence != one.sentence]
        # The answer may be one of these, with a second mistake that hides it in further tests.
        rivals = (other for other in others if one.tests <= other.tests and other.others <= failed)
        return any(rivals) or any(one.tests & other.tests for other in best if other in others)

    certain = [one for one in best if not is_doubtful(one)]
    by_sentence = {one.sentence: one for one in sorted(certain, key=lambda one: len(one.tests))}
    found = sorted(by_sentence.values(), key=lambda one: -len(one.tests))[:2]
    if explained_by(found) != failed:
        found = [one for one in found if len(one.tests) > 1 and one.has_numbers]
    return found


def explained_by(found: Sequence[Explanation[T]]) -> frozenset[Hashable]:
    """Return the tests that some explanations explain together."""
    return frozenset[Hashable]().union(*(one.tests for one in found))


@dataclass(frozen=True)
class CommonMistakes:
    """The common mistakes that code shows in its failed examples."""

    sentences: tuple[str, ...] = ()
    are_together: bool = False
    """True if the code has all of these mistakes; false if it has one of them."""
    explained: int = 0
    """The number of failed examples in which they show the same as the code."""


def matching_mistakes(
    signatures: Mapping[int, Signature], mistakes: Sequence[Mapping[str, Any]], of_gradients: Collection[int] = ()
) -> CommonMistakes:
    """Return the common mistakes that explain failed examples. signatures: by the examples' numbers.

    mistakes: as released, each with the sentences that the examples cannot tell apart. of_gradients: the numbers of
    examples that inspect only gradients, which depend on how a wrong value is computed. If nothing else explains an
    answer, they are compared only for mistakes about gradients.
    """
    found = explain([_explanation(signatures, mistake, ()) for mistake in mistakes], signatures.keys())
    if not found:
        found = explain([_explanation(signatures, mistake, of_gradients) for mistake in mistakes], signatures.keys())
    if any(len(one.misconception) > 1 for one in found):
        found = found[:1]
    sentences = tuple(sentence for one in found for sentence in one.misconception)
    return CommonMistakes(sentences, len(found) > 1, len(explained_by(found)))


def _explanation(
    signatures: Mapping[int, Signature], mistake: Mapping[str, Any], of_gradients: Collection[int]
) -> Explanation[tuple[str, ...]]:
    """Return a mistake as an explanation. of_gradients: examples that need only fail, if others show the mistake."""
    shows = {int(number): signature for number, signature in mistake["shows"].items()}
    common = shows.keys() & signatures
    alike = {number for number in common if match(signatures[number], shows[number])}
    if mistake.get(ANY_GRADIENTS) and not alike <= set(of_gradients):
        alike |= common.intersection(of_gradients)
    sentences = tuple(mistake["sentences"])
    numbers = any(has_numbers(signatures[number]) for number in alike)
    return Explanation(sentences, sentences, frozenset(alike), frozenset(shows) - alike, numbers)


def signature_of(error: BaseException) -> Signature:
    """Return the signature of an example that failed with this error.

    An exception counts with its words, which contain the sizes that met, unless its author chose them.
    """
    kind = error.type_name if isinstance(error, Raised) else type(error).__name__
    try:
        if isinstance(error, Mismatch):
            return _signature_of(*_wrong_part(error))
        if isinstance(error, Raised):  # its text has the line, which differs between answers
            has_words, words = not error.has_own_words, error.message
        else:
            has_words, words = isinstance(error, StudentFault) or not has_own_words(error), str(error)
        return [_checksum(f"{kind}: {without_style(words)}"), 1.0] if has_words else [_checksum(kind)]
    except Exception:  # the answer's own class of tensors, or a list that holds itself
        return [_checksum(kind)]


def whole_signature(error: BaseException) -> Signature:
    """Return the signature of a hidden test's error. If a call has several results, the right ones count, too."""
    results = error.compared[0] if isinstance(error, Mismatch) and error.compared else None
    try:
        return [*signature_of(error), *(value_sums(results) if isinstance(results, tuple | list) else [])]
    except Exception:  # as above
        return signature_of(error)


def is_telling(signature: Signature) -> bool:
    """Return whether a signature is more than an error of the code's own `raise`, in which many mistakes end."""
    return any(isinstance(number, float) for number in signature)


def has_numbers(signature: Signature) -> bool:
    """Return whether a signature is of more than NaN and infinities."""
    return any(isinstance(number, float) and number for number in signature)


def match(one: Signature, other: Signature) -> bool:
    """Return whether two signatures are equal but for the last digits."""
    return len(one) == len(other) and all(map(is_near, one, other))


def value_sums(value: Any) -> list[float]:
    """Return sums over the elements of a value, which differ between most values."""
    return _described(value)[1]


def is_near(one: float, other: float) -> bool:
    """Return whether two numbers are equal but for the last digits; integers must be equal in all digits."""
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _signature_of(what: Any, value: Any, right: Any) -> Signature:
    exact, sums = _described(value)
    has_shape = isinstance(right, Expected) and getattr(value, "shape", None) == right.value.shape
    if has_shape and match(sums, value_sums(right.value)):
        return [_checksum(f"{what} nearly"), _size(value - right.value)]
    return [_checksum(repr((what, exact))), *(sums or [1.0])]


def _wrong_part(mismatch: Mismatch) -> tuple[Any, Any, Any]:
    """Return what is wrong in words, the wrong value, and the right one: of several results the first wrong one."""
    if mismatch.compared is None:
        shown = mismatch.behaviour
        return (shown, None, None) if isinstance(shown, str) else (str(mismatch), shown, None)
    actual, expected = mismatch.compared
    if isinstance(expected, tuple) and isinstance(actual, tuple | list) and len(actual) == len(expected):
        for number, (one, right) in enumerate(zip(actual, expected, strict=True)):
            if difference(one, right, str, lambda *_: "differs") is not None:
                return (mismatch.what, number), one, right
    return mismatch.what, actual, expected


def _size(gap: torch.Tensor) -> float:
    """Return a number that is near that of another gap if one is at most ten times as large as the other."""
    return float(gap.detach().double().nan_to_num(0.0, 0.0, 0.0).abs().max().clamp(min=1e-30).log10()) / 1000


def _described(value: Any) -> tuple[Any, list[float]]:
    """Return the exact part of a value (shape, integers, words), and sums over its elements."""
    if isinstance(value, tuple | list):
        parts = [_described(item) for item in value]
        return [exact for exact, _ in parts], [number for _, sums in parts for number in sums]
    if isinstance(value, dict):
        return sorted(map(repr, value.items())), []
    if isinstance(value, float):
        return _described(torch.tensor(value))
    if isinstance(value, int | str):
        return value, []
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, []
    if value.numel() > _MOST_SUMMED:
        return list(value.shape), []
    broken, sums = tensor_sums(value)
    return (list(value.shape), broken), sums


def tensor_sums(tensor: torch.Tensor) -> tuple[list[int], list[float]]:
    """Return the numbers of NaN, inf and -inf in a tensor, and two sums over its other elements."""
    flat = tensor.detach().flatten().double()
    broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # so that one huge element does not hide the others
    places = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
    weighed = flat * torch.cos(places * 2.399963)  # the golden angle, whose cosines never repeat: the order counts
    return broken, [float(flat.abs().sum()), float(weighed.sum())]


def _checksum(exact: str) -> int:
    return zlib.crc32(exact.encode())
