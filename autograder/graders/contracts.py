"""What an exercise's class of graders is made of, and what most exercises ask for.

    @contracts.exercise("dot_product_scores")
    class TestDotProductScores(contracts.Graders):
        def draw(self, rng, T=7, d=4):
            return rng.randn(d), rng.randn(T, d)

        test_gradients = contracts.gradients("Gradients flow back to the query and to the inputs.")

A grader that is declared so is what a method would be that is written there: its name seeds what it draws, its
statement is the docstring that students read, and it stands where it is declared. It calls what `callee` gives with
what `draw` draws: of other sizes where it says `of`, and with what else it names. `built` goes to `callee`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from ..core import comparison as compare
from ..core import complaints
from ..core.comparison import Mismatch, OddForm, assert_close, identical
from ..core.faults import Raised
from . import memory_limit, statements
from .fixtures import Cases, Reference
from .proxy import CallableProxy, InstanceProxy, StudentProxy
from .statements import assert_unchanged, in_both_modes, in_each, in_float64, transplant

Method = Callable[..., None]
Sizes = tuple[Any, ...]
Built = Mapping[str, Any]
AS_EVER: Built = {}
ONE_KIND: Sequence[Built] = (AS_EVER,)
"""Where a grader tries several kinds of calls, they are named in `each`, as `draw` takes them; usually it is one."""
EXACT_ROOT = 64
"""A width for float64: its root, and 1 over that, are exact however they are taken.

Elsewhere widths are 3, 5, 6, 15 and the like, where half of d, its logarithm and its root without the digits are all
far from its root, as they are not for 4 and 16.
"""


class Graders:
    """The graders of an exercise: what they call, with what, and what a result is held to."""

    exercise: str
    assert_right = staticmethod(assert_close)

    def callee(self, face: StudentProxy | Reference, **built: Any) -> Any:
        """The function. Where a class is asked for, its graders build an instance here."""
        return getattr(face, self.exercise)

    def draw(self, rng: Cases, *sizes: Any, **named: Any) -> tuple[Any, ...]:
        """The arguments of a call; without sizes, of one that is like any other."""
        raise NotImplementedError

    def for_reference(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with which the reference returns the same for large inputs, and soonest."""
        return args

    def pair(
        self, student: StudentProxy, reference: Reference, *, exactly: bool = False, **built: Any
    ) -> tuple[CallableProxy, CallableProxy]:
        """The student's and the right one, instances with the same parameters: of the same names, where `exactly`."""
        own = self.callee(student, **built)
        return own, transplant(self.callee(reference, **built), own, exactly=exactly)

    def assert_agree(
        self, student: StudentProxy, reference: Reference, *args: Any, tolerance: float | None = None, **built: Any
    ) -> None:
        """Called with these arguments, both give the same."""
        own, right = self.pair(student, reference, **built)
        self.assert_right(own(*args), right(*args), tolerance=tolerance)


def exercise(name: str, *, forbids: Sequence[str] | None = None) -> Callable[[type[Graders]], type[Graders]]:
    """Marks the class of an exercise's graders. forbids: what an answer may not call, if not what the course says."""

    def mark(graders: type[Graders]) -> type[Graders]:
        graders.exercise = name
        return pytest.mark.exercise(name, forbids=forbids)(graders)

    return mark


def points(weight: float, **kinds: bool) -> Callable[[Method], Method]:
    """Marks a grader with what it weighs, and with its kinds: see `fixtures`."""

    def mark(grader: Method) -> Method:
        for kind in (kind for kind, is_so in kinds.items() if is_so):
            grader = getattr(pytest.mark, kind)(grader)
        return pytest.mark.points(weight)(grader)

    return mark


@dataclass(frozen=True)
class Given:
    """What a grader is given."""

    student: StudentProxy
    reference: Reference
    rng: Cases


def contract(
    usual: float, *, public: bool = False, essential: bool = False, **kinds: bool
) -> Callable[[Method], Callable[..., Method]]:
    """Makes of what is asked in many exercises what declares a grader of one; it weighs `usual`, or what is said."""

    def made(ask: Method) -> Callable[..., Method]:
        def declare(
            statement: str,
            *args: Any,
            weight: float = usual,
            public: bool = public,
            essential: bool = essential,
            **named: Any,
        ) -> Method:
            def grader(self: Graders, student: StudentProxy, reference: Reference, rng: Cases) -> None:
                ask(self, Given(student, reference, rng), *args, **named)

            grader.__doc__ = statement
            return points(weight, public=public, essential=essential, **kinds)(grader)

        return declare

    return made


@contract(2, public=True)
def gives(self: Graders, given: Given, args: Sizes, right: Any, row: int | None = None) -> None:
    """What a worked example gives, or a row of it."""
    result = self.callee(given.student)(*args)
    self.assert_right(result if row is None else compare.row(result, row), right)


@contract(2)
def agree(self: Graders, given: Given, cases: Sequence[Sizes], built: Built = AS_EVER, **named: Any) -> None:
    """Both give the same for arguments of each of these sizes; all are tried before one is complained of."""
    own, right = self.pair(given.student, given.reference, **built)
    drawn = [self.draw(given.rng, *sizes, **named) for sizes in cases]
    in_each(drawn, lambda args: self.assert_right(own(*args), right(*args)))


@contract(2)
def agree_in_turn(self: Graders, given: Given, cases: Sequence[Sizes], **named: Any) -> None:
    """Both give the same for arguments of each of these sizes; after one whose numbers are wrong no other is tried."""
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
    """Both give the same for a long sequence, of whose vectors the last three are looked at."""
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
    """Both give the same where the result is as wide as the input, to which it could be added, in both modes."""
    own, right = self.pair(given.student, given.reference, **built)
    args = self.draw(given.rng, *of, **named)
    for _ in in_both_modes(own):
        self.assert_right(own(*args), right(*args))


@contract(1)
def biased(self: Graders, given: Given, **named: Any) -> None:
    """Both give the same where a bias is asked for, and each bias gets its gradient."""
    own, right = self.pair(given.student, given.reference, exactly=True, bias=(True,))
    args = self.draw(given.rng, **named)
    self.assert_right(own(*args), expected := right(*args))
    statements.assert_biases_learn(own, right, *args, cotangent=given.rng.randn(*expected.value.shape))


@contract(1)
def large_scores(self: Graders, given: Given, of: Sizes = (), **named: Any) -> None:
    """Both give the same where scores are too large for exp, and gradients are numbers."""
    own, right = self.pair(given.student, given.reference)
    args = self.draw(given.rng, *of, **named)
    statements.assert_right_where_large(given.student, own, right, *args, check=self.assert_right)


@contract(1)
def gradients(self: Graders, given: Given, of: Sizes = (), **named: Any) -> None:
    """The gradients of all inputs and parameters are right for a drawn one of the result, 0 where that is infinite."""
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
    """What comes of float64 inputs, and parameters, is as exact as float64 is."""
    own = in_float64(self.callee(given.student, **built))
    right = transplant(self.callee(given.reference, **built), own)
    for kind in each:
        args = self.draw(given.rng.of(torch.float64), *of, **named, **kind)
        self.assert_right(own(*args), right(*args))


@contract(1, property=True)
def unchanged(self: Graders, given: Given, built: Built = AS_EVER, each: Sequence[Built] = ONE_KIND) -> None:
    """The call writes into none of its arguments, in their own dtype and in float64, which `.double()` leaves alone."""
    own = self.callee(given.student, **built)
    drawn = [self.draw(given.rng, **kind) for kind in each]
    changed: Sequence[int] = ()
    for args in drawn:
        for _ in in_both_modes(own):
            changed = changed or own.observe(*args).changed
    if not changed:
        with suppress(Raised):  # what does not work in float64 is not what is asked here
            for args in drawn:
                changed = changed or in_float64(own).observe(*statements.in_dtype(args, torch.float64)).changed
    assert_unchanged(changed)


@contract(0.5, property=True, device=True)
def device(self: Graders, given: Given, built: Built = AS_EVER, each: Sequence[Built] = ONE_KIND) -> None:
    """On another device everything the code makes is there too, and so is the result."""
    for kind in each:
        own, right = (self.callee(face, **built) for face in (given.student, given.reference))
        args = self.draw(given.rng, **kind)
        statements.assert_follows_device(own, *args, reference=right, check=self.assert_right)


@contract(0.5, property=True)
def dtype(self: Graders, given: Given, each: Sequence[Built] = ONE_KIND) -> None:
    """The result has the inputs' dtype, float64 or float32; an instance's that of its parameters, float32."""
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
    """float16 and bfloat16 work and stay what they are. It only tells: on a CPU few meet them."""
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
    """What is right stays within these limits, which are counted and not timed: see `core.cost`.

    drawn: as in `draw`. many, with_many: the sizes, of which the number of tokens is the largest, and what else is
    drawn, of a call that gives the right result in little memory too. Then only this call and the operations decide.
    if_slow: what else is drawn if that call takes too long.
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
    """An instance has parameters of these names and shapes, and no others."""
    statements.assert_parameter_shapes(self.callee(given.student), right)


@contract(0.5, property=True)
def seeds(self: Graders, given: Given) -> None:
    """An instance that is built under another seed starts with other weights."""
    drawn = []
    for seed in (1, 2):
        given.student.manual_seed(seed)
        drawn.append(self.callee(given.student).named_parameters())
    if drawn[0] and all(identical(one, other) for one, other in zip(*(d.values() for d in drawn), strict=False)):
        raise Mismatch(complaints.SAME_WEIGHTS)
