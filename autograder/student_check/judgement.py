"""Judgement of the student check's examples, by the same functions as in hidden tests: see `core.judgement`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch

from ..core import complaints, constructed_answers, random_results
from ..core.bench import seed_in_use
from ..core.comparison import (
    Expected,
    Mismatch,
    OddForm,
    any_identical,
    as_expected,
    assert_close,
    assert_equal,
    assert_real,
    describe,
    difference,
    identical,
)
from ..core.cost import Cost, Maximum, exceeded_limits, uncountable_message
from ..core.judgement import (
    assert_arrived,
    assert_cost,
    assert_devices,
    assert_dtype,
    assert_gradients,
    assert_parameters,
    assert_shapes,
    assert_unchanged,
    is_near,
    is_refusal,
    not_finite,
    value_sums,
)
from ..core.lost_aspects import OF_COUNTING
from .examples import COMES_FIRST, Call, StepRunner, decode_value, inspected_result, judge_hunt_input

_USUAL = 1e-4
"""Tolerance of an example that states none."""
_FAR = 1e6
"""Numbers from this size on are written with a power of ten."""
_LONGEST = 200


def judge_example(
    names: Mapping[str, Any], example: Mapping[str, Any], runner: StepRunner | None = None, *, is_wrong: bool = False
) -> StepRunner:
    """Run an example on the notebook's code, and judge it. Return the runner, by default a new one.

    names: the notebook's. is_wrong: True if a value was wrong in another example, so that it may be wrong here, too.
    Raises Mismatch if the example fails, StudentFault, and what the student's code raises.
    """
    aspects = set(example.get("looks_at", ["value"]))
    runner = runner or StepRunner(names)
    calls: list[Call] = []
    parameters: list[Any] = []
    odd: tuple[OddForm, Call | None] | None = None  # sizes of 1 can make any result right in another form
    seed_in_use(0)
    for step in example["steps"]:
        if step["operation"] == "load" and "unbiased" in example and runner.lacks_biases(step):
            runner.begin_again()
            of_variant = {**_without_variant(example), "steps": example["unbiased"]}
            return judge_example(names, of_variant, runner, is_wrong=is_wrong)
        if is_wrong and "value" in aspects and step["operation"] == "cost" and "name" in step:
            _judge_uncounted(runner, step)
        result = _run_step(runner, step)
        if isinstance(result, Call):
            calls.append(result)
            for judge in _judges(step, aspects):
                try:
                    judge(result)
                except OddForm as mismatch:
                    odd = odd or (mismatch, runner.last_call)
        elif step["operation"] == "parameters":
            parameters.append(result)
            if "parameters" in aspects:
                assert_parameters(result, step["right"])
    if odd:
        odd_form, runner.last_call = odd
        raise odd_form
    if "other parameters" in aspects and _all_alike(parameters):
        raise Mismatch(complaints.SAME_WEIGHTS)
    if "hunt" in aspects:
        for call in calls:
            _own_comes_first(names, call.step["hunt"])
            verdict = judge_hunt_input(call.value, call.step["hunt"], names)
            if verdict.problem:
                raise Mismatch(verdict.problem, behaviour=verdict.why)
    if "steady" in aspects:
        _steady(calls)
    if "counted" in aspects:
        _random_number_dropped([call for call in calls if call.step["dropped"].get("lone")])
    if "anew" in aspects and any_identical([call.value for call in calls]):
        raise Mismatch("Two calls give exactly the same: nothing is dropped, or a seed is set, or a draw kept, inside.")
    if "varies" in aspects:
        _varies(calls)
    return runner


def _without_variant(example: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in example.items() if key != "unbiased"}


def _judges(step: Mapping[str, Any], aspects: set[str]) -> list[Callable[[Call], None]]:
    return [judge for aspect, (part, judge) in _JUDGES.items() if aspect in aspects and (part in step or not part)]


def _own_comes_first(names: Mapping[str, Any], hunt: Mapping[str, Any]) -> None:
    """Raise Mismatch unless the student's own function of a bug hunt passes its examples of values."""
    for example in filter(_judges_values, hunt.get("examples", ())):
        try:
            judge_example(names, {**example, "looks_at": ["value"]})
        except Exception as error:
            if hunt["of"] not in names or is_stub(error):
                raise Mismatch(f"Write {hunt['of']} first: {COMES_FIRST}") from None
            raise Mismatch(f"{hunt['of']} does not pass its check yet, so mend that first: {COMES_FIRST}") from None


def _judges_values(example: Mapping[str, Any]) -> bool:
    return "value" in example.get("looks_at", ["value"]) and not example.get("property")


def _run_step(runner: StepRunner, step: Mapping[str, Any]) -> Any:
    """Run a step and return its result. Raise Mismatch if a step with `refuses` raises none of its errors."""
    if "refuses" not in step:
        return runner.run(step)
    try:
        result = runner.run(step)
    except Exception as error:
        if not is_refusal([kind.__name__ for kind in type(error).__mro__], step["refuses"]):
            raise
        return None
    returned = result.value if isinstance(result, Call) else None
    raise Mismatch(complaints.RAISES_NOTHING, behaviour=(returned,))


def _judge_uncounted(runner: StepRunner, step: Mapping[str, Any]) -> None:
    """Raise Mismatch if a counted call of a function returns a wrong value. Counting would take several times as long.

    The value is judged before the cost, so a wrong value decides.
    """
    state = torch.get_rng_state()
    with torch.no_grad(), suppress(OddForm):
        _value(runner.run({**step, "operation": "call"}))
    torch.set_rng_state(state)


def message_with_values(mismatch: Mismatch) -> str:
    """Return the mismatch's message with both values, because students may see the examples' values."""
    if mismatch.compared is None:
        return str(mismatch)
    actual, expected = mismatch.compared
    is_number = isinstance(expected, int | float) and type(actual) is type(expected)
    if is_number and str(mismatch).endswith("which is not the expected value."):
        return f"{str(mismatch).partition(' is ')[0]} is {str(actual)[:_LONGEST]}; {expected} is expected."
    if not isinstance(expected, tuple | Expected):
        return f"{str(mismatch).rstrip('.')}: it is {str(actual)[:_LONGEST]!r}; {expected!r} is expected."
    message = difference(actual, expected, describe, _first_position, what=mismatch.what)
    return f"{message} {mismatch.right}" if isinstance(mismatch, OddForm) else message or str(mismatch)


def _first_position(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    position = tuple((~close).nonzero()[0].tolist())
    own, right = (_number(one[position].item()) for one in (actual, expected))
    for digits in (6, 8, 10, 12):
        if own == right:
            own, right = (f"{one[position].item():.{digits}g}" for one in (actual, expected))
    values = f"{own} where {right} is expected."
    if not position:
        return f"is {values}"
    return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(position)}, is {values}"


def _number(value: float) -> str:
    if not abs(value) < _FAR:
        return f"{value:.5g}"
    short = f"{value:.4f}".removesuffix(".0000")
    return "0" if short == "-0" else short


def is_stub(error: BaseException) -> bool:
    """Return whether an error is that of an exercise's stub."""
    return isinstance(error, NotImplementedError) and not str(error)


def _value(call: Call) -> None:
    right, close = inspected_result(call.step), call.step.get("close", _USUAL)
    if isinstance(right, tuple | torch.Tensor):
        assert_close(call.value, as_expected(right, close))
    else:
        assert_equal(call.value, right)


def _gradients(call: Call) -> None:
    close = call.step.get("close", _USUAL)
    gradients = [as_expected(decode_value(one), close) for one in call.step["gradients"]]
    named = {
        name: as_expected(decode_value(one), close) for name, one in call.step.get("parameter_gradients", {}).items()
    }
    assert_gradients(call.seen, gradients, named)


def _shapes(call: Call) -> None:
    assert_shapes(call.value, [one["shape"] for one in call.step["cotangents"]])


def _arrival(call: Call) -> None:
    _shapes(call)
    gradients = {complaints.argument(number): call.seen.gradients[number] for number in call.step["arrives_at"]}
    assert_arrived(gradients | {complaints.parameter(name): one for name, one in call.seen.parameter_gradients.items()})


def _finite(call: Call) -> None:
    _shapes(call)
    if faults := not_finite(call.seen):
        raise Mismatch(faults[0])


def _device(call: Call) -> None:
    if call.step["operation"] == "probe":
        assert_devices((), call.seen[0])
    else:
        assert_devices(call.seen.devices, "")


def _cost(call: Call) -> None:
    cost, limits = _cost_of(call), call.step["limits"]
    with _behaviour(lambda: repr(exceeded_limits(cost, limits))):
        assert_cost(cost, limits, _at, is_counted=False)


def _countable(call: Call) -> None:
    cost = _cost_of(call)
    if problem := uncountable_message(cost, _at):
        raise Mismatch(problem, OF_COUNTING, behaviour=cost.uncounted.of)


def _cost_of(call: Call) -> Cost:
    operations, *each = call.seen.cost
    return Cost(operations, *(Maximum(*one) for one in each))


@contextmanager
def _behaviour(behaviour: Callable[[], str]) -> Iterator[None]:
    """Add the behaviour in words to a Mismatch that is raised in the block."""
    try:
        yield
    except Mismatch as mismatch:
        mismatch.behaviour = behaviour()
        raise


def _head(call: Call) -> None:
    check = constructed_answers.assert_mixes if call.step["head"]["mixture"] else constructed_answers.assert_attends
    sentences = call.step["head"]["sentences"]
    try:
        heads = [constructed_answers.attended(sentence, call.value, *call.args) for sentence in sentences]
    except Mismatch as mismatch:
        mismatch.behaviour = constructed_answers.behaviour_without_weights(mismatch)
        raise
    with _behaviour(lambda: repr(list(map(constructed_answers.behaviour, heads)))):
        for head in heads:
            check(head)


_OF_DRAWS = {
    "support": random_results.assert_support,
    "shares": random_results.assert_shares,
    "ties": random_results.assert_ties,
}


def _draws(call: Call) -> None:
    logits, temperature, top_k = call.args
    words = random_results.as_words(call.value, len(logits))
    drawn = words, logits[0], temperature, top_k
    kind = call.step["draws"]
    with _behaviour(
        lambda: random_results.fault_where_tied(*drawn) if kind == "ties" else repr(sorted(random_results.law(*drawn)))
    ):
        _OF_DRAWS[kind](*drawn)


def _at(most: Maximum) -> str:
    return f" in line {most.line} of the cell" if most.line else ""


def _all_alike(parameters: list[Any]) -> bool:
    first, *others = parameters
    return bool(first) and all(
        one.keys() == first.keys() and all(identical(first[name], one[name]) for name in first) for one in others
    )


def _varies(calls: list[Call]) -> None:
    """Raise Mismatch if all calls of a step return the same; two of them may do so by chance."""
    for first in calls:
        if all(identical(first.value, one.value) for one in calls if one.step == first.step):
            raise Mismatch(random_results.ALWAYS_THE_SAME)


def _steady(calls: list[Call]) -> None:
    """Raise Mismatch if results of two calls differ at a position at which the right results are equal."""
    first, *others = calls
    right = decode_value(first.step["result"])
    for call in calls:
        if not isinstance(call.value, torch.Tensor):
            raise Mismatch(f"The result is {describe(call.value)}, not a tensor.")
        if call.value.shape != right.shape:
            raise Mismatch(f"The result has shape {tuple(call.value.shape)}; {tuple(right.shape)} is expected.")
    for call in others:
        stays = torch.isclose(right, decode_value(call.step["result"]), rtol=1e-6, atol=1e-6)
        alike = torch.isclose(first.value.double(), call.value.double(), rtol=1e-5, atol=1e-5, equal_nan=True)
        if bool((stays & ~alike).any()):
            if bool(stays.all()):
                raise Mismatch("Two calls with the same input differ: is something drawn by chance in it?")
            token = (stays & ~alike).nonzero()[0, -2].item()
            raise Mismatch(complaints.changed_by_the_future(int(token)))


def _weights_dropped(call: Call) -> None:
    """Raise Mismatch unless each weight is dropped independently with probability p, and others divided by 1 - p."""
    rule = call.step["dropped"]
    if not isinstance(call.value, torch.Tensor) or not isinstance(call.whole, torch.Tensor):
        raise Mismatch(f"The result is {describe(call.value)}; a tensor is expected.")
    right = rule.get("evaluation", {})
    expected = tuple(right.get("shape", call.whole.shape))
    if call.value.shape != expected:
        raise Mismatch(f"The result has shape {tuple(call.value.shape)}; {expected} is expected.")
    if call.whole.shape != expected:
        raise Mismatch(random_results.WRONG_ALREADY)
    assert_real(call.value)
    p, shape, names = rule["p"], [size for _, size in rule["view"]], [name for name, _ in rule["view"]]
    result, whole = (one.detach().double().reshape(shape) for one in (call.value, call.whole))
    if not bool(result.isfinite().all() & whole.isfinite().all()):
        raise Mismatch(random_results.NOT_FINITE)
    if right and not all(map(is_near, value_sums(call.whole), right["sums"])):
        raise Mismatch(random_results.WRONG_ALREADY)
    visible, gone = whole != 0, result == 0
    if bool((~visible & ~gone).any()):
        raise Mismatch("In training the result is not 0 in places where it is 0 in evaluation.")
    copies_agree, is_free = True, bool(rule.get("freely"))
    if is_module := "copy" in names:
        copies = names.index("copy")
        copies_agree = torch.equal(gone, gone.roll(1, copies))
        names.remove("copy")
        result, whole, visible, gone = (one.select(copies, 0) for one in (result, whole, visible, gone))
    repeated = random_results.repeats(gone, visible, tuple(names))
    seen = random_results.Structure(
        random_results.of_few_draws(random_results.dropped(result[visible], whole[visible], p), repeated),
        copies_agree,
        repeated if is_module or is_free else frozenset(),
        random_results.pairs(gone, visible, tuple(names)) if is_module or is_free else frozenset(),
        random_results.rules(gone, repeated) if is_free else frozenset(),
    )
    sets = (seen.entries.outcomes, seen.entries.changes, seen.repeats)
    with _behaviour(lambda: repr([seen.entries.share, *map(sorted, sets)])):
        random_results.assert_weights_dropped(seen)
    if call.seen.gradients and not _has_dropout_gradient(call):
        raise Mismatch("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")


def _random_number_dropped(calls: list[Call]) -> None:
    """Raise Mismatch if all calls drop the same number of weights, because that number is random."""
    numbers = {int((call.value == 0).sum()) for call in calls}
    if len(numbers) == 1:
        raise Mismatch(random_results.always_as_many(len(calls)))


def _has_dropout_gradient(call: Call) -> bool:
    gradient, weights = call.seen.gradients[0], call.args[0]
    if gradient is None:
        raise Mismatch(random_results.DETACHED)
    return bool(torch.allclose(gradient.double() * weights.double(), call.value.detach().double(), rtol=1e-4))


_JUDGES: dict[str, tuple[str, Callable[[Call], None]]] = {
    "value": ("result", _value),
    "gradients": ("gradients", _gradients),
    "arrival": ("arrives_at", _arrival),
    "finite": ("cotangents", _finite),
    "unchanged": ("", lambda call: assert_unchanged(getattr(call.seen, "changed", ()))),
    "dtype": ("dtype", lambda call: assert_dtype(call.value, getattr(torch, call.step["dtype"]))),
    "device": ("", _device),
    "dropped": ("dropped", _weights_dropped),
    "head": ("head", _head),
    "draws": ("draws", _draws),
    "cost": ("limits", _cost),
    "countable": ("limits", _countable),
}
"""By aspect, the field of a step that the judge needs (empty if none), and the judge."""
