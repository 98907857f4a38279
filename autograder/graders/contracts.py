"""Contracts: hidden tests that most exercises share, declared in an exercise's class of hidden tests.

    @contracts.exercise("dot_product_scores")
    class TestDotProductScores(contracts.Graders):
        def draw(self, rng, T=7, d=4):
            return rng.randn(d), rng.randn(T, d)

        test_gradients = contracts.gradients("Gradients flow back to the query and to the inputs.")

A declared contract is a test method of the class. Its name seeds its random cases, and its statement is the docstring
that students read. It calls the result of `callee` with the arguments that `draw` returns. `of` contains the sizes for
`draw`, further keyword arguments are passed on to `draw`, and `built` is passed on to `callee`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from ..core import complaints
from ..core.comparison import Mismatch, OddForm, assert_close, identical
from ..core.observation import Raised
from . import memory_limit, statements
from .proxy import CallableProxy, Cases, InstanceProxy, Reference, StudentProxy
from .statements import assert_unchanged, in_both_modes, in_each, in_float64, transplant

Method = Callable[..., None]
Sizes = tuple[Any, ...]
Built = Mapping[str, Any]
AS_EVER: Built = {}
ONE_KIND: Sequence[Built] = (AS_EVER,)
"""Default of the parameter `each`, which has keyword arguments of `draw` for each kind of call that is tested."""
EXACT_ROOT = 64
"""A width for tests in float64: its root, and the inverse of the root, are exact in any order of computation.

Other tests use widths such as 3, 5, 6 and 15, whose root differs clearly from half the width, its logarithm and the
rounded root. For 4 and 16 it does not.
"""


class Graders:
    """Base class of an exercise's hidden tests: the code to call, its arguments, and the comparison of results."""

    exercise: str
    assert_right = staticmethod(assert_close)

    def callee(self, face: StudentProxy | Reference, **built: Any) -> Any:
        """Return the function to call. For an exercise with a class, override this to build and return an instance.

        face: the student's code or the reference. built: arguments from `built` in a declaration.
        """
        return getattr(face, self.exercise)

    def draw(self, rng: Cases, *sizes: Any, **named: Any) -> tuple[Any, ...]:
        """Return random arguments for a call. sizes: the sizes of the case; by default those of an ordinary case."""
        raise NotImplementedError

    def for_reference(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return other arguments with which the reference returns the same result faster, for large inputs."""
        return args

    def pair(
        self, student: StudentProxy, reference: Reference, *, exactly: bool = False, **built: Any
    ) -> tuple[CallableProxy, CallableProxy]:
        """Return the student's and the reference's callee, with equal parameters if they are instances.

        exactly: all parameter names must be equal. built: passed on to `callee`.
        """
        own = self.callee(student, **built)
        return own, transplant(self.callee(reference, **built), own, exactly=exactly)

    def assert_agree(
        self, student: StudentProxy, reference: Reference, *args: Any, tolerance: float | None = None, **built: Any
    ) -> None:
        """Raise Mismatch unless the student's code and the reference return the same for these arguments."""
        own, right = self.pair(student, reference, **built)
        self.assert_right(own(*args), right(*args), tolerance=tolerance)


def exercise(name: str, *, forbids: Sequence[str] | None = None) -> Callable[[type[Graders]], type[Graders]]:
    """Return a decorator that marks a class as the hidden tests of an exercise.

    forbids: libraries that answers may not call; None for those that the course forbids.
    """

    def mark(graders: type[Graders]) -> type[Graders]:
        graders.exercise = name
        return pytest.mark.exercise(name, forbids=forbids)(graders)

    return mark


def points(weight: float, **kinds: bool) -> Callable[[Method], Method]:
    """Return a decorator that marks a hidden test with its weight and its kinds, such as `public`: see `collection`."""

    def mark(grader: Method) -> Method:
        for kind in (kind for kind, is_so in kinds.items() if is_so):
            grader = getattr(pytest.mark, kind)(grader)
        return pytest.mark.points(weight)(grader)

    return mark


@dataclass(frozen=True)
class Given:
    """The arguments of a hidden test: the student's code, the reference, and the generator of cases."""

    student: StudentProxy
    reference: Reference
    rng: Cases


def contract(
    usual: float, *, public: bool = False, essential: bool = False, **kinds: bool
) -> Callable[[Method], Callable[..., Method]]:
    """Return a decorator that turns a test function into a contract, with which a class declares a hidden test.

    usual: the default weight of the hidden test. The statement in the declaration becomes the test's docstring.
    """

    def as_contract(test: Method) -> Callable[..., Method]:
        def declare(
            statement: str,
            *args: Any,
            weight: float = usual,
            public: bool = public,
            essential: bool = essential,
            **named: Any,
        ) -> Method:
            def grader(self: Graders, student: StudentProxy, reference: Reference, rng: Cases) -> None:
                test(self, Given(student, reference, rng), *args, **named)

            grader.__doc__ = statement
            return points(weight, public=public, essential=essential, **kinds)(grader)

        return declare

    return as_contract


@contract(2, public=True)
def gives(self: Graders, given: Given, args: Sizes, right: Any, row: int | None = None) -> None:
    """The result of a worked example, or one row of it, is right."""
    result = self.callee(given.student)(*args)
    self.assert_right(result if row is None else statements.row(result, row), right)


@contract(2)
def agree(self: Graders, given: Given, cases: Sequence[Sizes], built: Built = AS_EVER, **named: Any) -> None:
    """Student and reference return the same for all sizes. All cases run before a failure is reported."""
    own, right = self.pair(given.student, given.reference, **built)
    drawn = [self.draw(given.rng, *sizes, **named) for sizes in cases]
    in_each(drawn, lambda args: self.assert_right(own(*args), right(*args)))


@contract(2)
def agree_in_turn(self: Graders, given: Given, cases: Sequence[Sizes], **named: Any) -> None:
    """Student and reference return the same for all sizes. The first wrong value ends the test."""
    odd: OddForm | None = None  # sizes of 1 can make any result right in another form
    for sizes in cases:
        try:
            self.assert_agree(given.student, given.reference, *self.draw(given.rng, *sizes, **named))
        except OddForm as found:
            odd = odd or found
    if odd:
        raise odd


@contract(0.5)
def long_sequences(self: Graders, given: Given, of: Sizes, built: Built) -> None:
    """Student and reference return the same last three vectors for a long sequence. of: sizes for `draw`."""
    args = self.draw(given.rng, *of)
    own, right = self.pair(given.student, given.reference, **built)
    ends = [
        face.assemble({}, computes="module(x)[:, -3:]", others=("module",)) for face in (given.student, given.reference)
    ]
    with given.student.refusing(statements.NO_ROOM):
        found = ends[0](*args, own)
    self.assert_right(found, ends[1](*args, right))


@contract(0.5, essential=True)
def nothing_added(self: Graders, given: Given, of: Sizes = (), built: Built = AS_EVER, **named: Any) -> None:
    """Student and reference return the same in both modes, so that no input is added to the result."""
    own, right = self.pair(given.student, given.reference, **built)
    args = self.draw(given.rng, *of, **named)
    for _ in in_both_modes(own):
        self.assert_right(own(*args), right(*args))


@contract(1)
def biased(self: Graders, given: Given, **named: Any) -> None:
    """Student and reference return the same with `bias=True`, and each bias gets its gradient."""
    own, right = self.pair(given.student, given.reference, exactly=True, bias=(True,))
    args = self.draw(given.rng, **named)
    self.assert_right(own(*args), expected := right(*args))
    statements.assert_biases_learn(own, right, *args, cotangent=given.rng.randn(*expected.value.shape))


@contract(1)
def large_scores(self: Graders, given: Given, of: Sizes = (), **named: Any) -> None:
    """Student and reference return the same for scores that are too large for exp, and all gradients are finite."""
    own, right = self.pair(given.student, given.reference)
    args = self.draw(given.rng, *of, **named)
    statements.assert_right_where_large(given.student, own, right, *args, check=self.assert_right)


@contract(1)
def gradients(self: Graders, given: Given, of: Sizes = (), **named: Any) -> None:
    """All gradients are right for a random gradient of the result. That gradient is 0 where the result is infinite."""
    own, right = self.pair(given.student, given.reference)
    args = self.draw(given.rng, *of, **named)
    results = right(*args)
    values = [one.value for one in (results if isinstance(results, tuple) else (results,))]
    cotangent = tuple(given.rng.randn(*value.shape).masked_fill(value.isinf(), 0.0) for value in values)
    statements.assert_same_gradients(own, right, *args, cotangent=cotangent)


@contract(1)
def float64(
    self: Graders,
    given: Given,
    of: Sizes = (),
    built: Built = AS_EVER,
    each: Sequence[Built] = ONE_KIND,
    **named: Any,
) -> None:
    """The result for float64 inputs and parameters is exact to float64."""
    own = in_float64(self.callee(given.student, **built))
    right = transplant(self.callee(given.reference, **built), own)
    for kind in each:
        args = self.draw(given.rng.of(torch.float64), *of, **named, **kind)
        self.assert_right(own(*args), right(*args))


@contract(1, property=True)
def unchanged(self: Graders, given: Given, built: Built = AS_EVER, each: Sequence[Built] = ONE_KIND) -> None:
    """The call writes into none of its arguments, in their own dtype or in float64, which `.double()` does not copy."""
    own = self.callee(given.student, **built)
    drawn = [self.draw(given.rng, **kind) for kind in each]
    changed: Sequence[int] = ()
    for args in drawn:
        for _ in in_both_modes(own):
            changed = changed or own.observe(*args).changed
    if not changed:
        with suppress(Raised):  # another test requires float64
            for args in drawn:
                changed = changed or in_float64(own).observe(*statements.in_dtype(args, torch.float64)).changed
    assert_unchanged(changed)


@contract(0.5, property=True, device=True)
def device(self: Graders, given: Given, built: Built = AS_EVER, each: Sequence[Built] = ONE_KIND) -> None:
    """On another device all tensors that the code creates are on that device, and so is the result."""
    for kind in each:
        own, right = (self.callee(face, **built) for face in (given.student, given.reference))
        args = self.draw(given.rng, **kind)
        statements.assert_follows_device(own, *args, reference=right, check=self.assert_right)


@contract(0.5, property=True)
def dtype(self: Graders, given: Given, each: Sequence[Built] = ONE_KIND) -> None:
    """The result has the inputs' dtype, float64 or float32; for an instance its parameters' dtype, float32."""
    own, right = (self.callee(face) for face in (given.student, given.reference))
    for kind in each:
        if isinstance(own, InstanceProxy):
            args = self.draw(given.rng, **kind)
            statements.assert_dtype(found := own(*args), torch.float32)
            statements.assert_returns_right(found, own, right, *args, check=self.assert_right)
        else:
            args = self.draw(given.rng.of(torch.float64), **kind)
            statements.assert_dtype_kept(own, right, *args, check=self.assert_right)


@contract(0, property=True)
def half_precision(self: Graders, given: Given) -> None:
    """float16 and bfloat16 work and are kept. An advisory test, because few use these on a CPU."""
    for dtype in (torch.float16, torch.bfloat16):
        args = self.draw(given.rng.of(dtype))
        self.assert_agree(given.student, given.reference, *args)
        statements.assert_dtype(self.callee(given.student)(*args), dtype)


@contract(1)
def costs_no_more(
    self: Graders,
    given: Given,
    of: Sizes = (),
    drawn: Built = AS_EVER,
    built: Built = AS_EVER,
    many: Sizes = (),
    with_many: Built = AS_EVER,
    if_slow: Built = AS_EVER,
    **limits: int,
) -> None:
    """The call returns the right result within limits of cost, which is counted, not timed: see `core.cost`.

    of, drawn: sizes and further arguments for `draw`. many, with_many: the same for a large call, which must also
    return the right result in little memory; the largest size is the number of tokens. With `many`, only that call and
    the number of operations decide. if_slow: further arguments for `draw` if the large call takes too long.
    """
    own, right = self.pair(given.student, given.reference, **built)
    args = self.draw(given.rng, *of, **drawn)
    statements.assert_costs_no_more(own, limits, right(*args), *args, is_counted=not many, check=self.assert_right)

    def large(confined: StudentProxy, limit: memory_limit.MemoryLimit) -> memory_limit.LargeCall:
        sizes = [int(size * limit.tokens) if size == max(many) else size for size in many]
        args = self.draw(given.rng, *sizes, **{**with_many, **(if_slow if limit.is_patient else AS_EVER)})
        own, for_reference = self.callee(confined, **built), self.for_reference(args)
        return memory_limit.LargeCall(lambda: own(*args), lambda: right(*for_reference), (self.exercise, args))

    if many:
        memory_limit.assert_fits(given.student, large, self.assert_right)


@contract(0.5, property=True)
def parameters(self: Graders, given: Given, right: dict[str, tuple[int, ...]]) -> None:
    """An instance has exactly the parameters of these names and shapes."""
    statements.assert_parameter_shapes(self.callee(given.student), right)


@contract(0.5, property=True)
def seeds(self: Graders, given: Given) -> None:
    """Instances that are built with different seeds have different initial weights."""
    drawn = []
    for seed in (1, 2):
        given.student.manual_seed(seed)
        drawn.append(self.callee(given.student).named_parameters())
    if drawn[0] and all(identical(one, other) for one, other in zip(*(d.values() for d in drawn), strict=False)):
        raise Mismatch(complaints.SAME_WEIGHTS)
