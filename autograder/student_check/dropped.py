"""What dropout did to attention weights, judged by its structure: which entries fell is chance."""

import torch

from ..core import dropout
from ..core.comparison import Mismatch, assert_real, describe
from .known import near, sums
from .trial import Call


def weights_dropped(call: Call) -> None:
    """Each weight falls with probability p, on its own, and what is kept is divided by 1 - p."""
    rule = call.step["dropped"]
    if not isinstance(call.value, torch.Tensor) or not isinstance(call.whole, torch.Tensor):
        raise Mismatch(f"The result is {describe(call.value)}; a tensor is expected.")
    right = rule.get("evaluation", {})
    expected = tuple(right.get("shape", call.whole.shape))
    if call.value.shape != expected:
        raise Mismatch(f"The result has shape {tuple(call.value.shape)}; {expected} is expected.")
    if call.whole.shape != expected:
        raise Mismatch(dropout.WRONG_ALREADY)
    assert_real(call.value)
    p, shape, names = rule["p"], [size for _, size in rule["view"]], [name for name, _ in rule["view"]]
    result, whole = (one.detach().double().reshape(shape) for one in (call.value, call.whole))
    if not bool(result.isfinite().all() & whole.isfinite().all()):
        raise Mismatch(dropout.NOT_FINITE)
    if right and not all(map(near, sums(call.whole), right["sums"])):
        raise Mismatch(dropout.WRONG_ALREADY)
    visible, gone = whole != 0, result == 0
    if bool((~visible & ~gone).any()):
        raise Mismatch("In training the result is not 0 in places where it is 0 in evaluation.")
    copies_agree, is_free = True, bool(rule.get("freely"))
    if is_module := "copy" in names:
        copies = names.index("copy")
        copies_agree = torch.equal(gone, gone.roll(1, copies))
        names.remove("copy")
        result, whole, visible, gone = (one.select(copies, 0) for one in (result, whole, visible, gone))
    repeated = dropout.repeats(gone, visible, tuple(names))
    seen = dropout.Structure(
        dropout.of_few_draws(dropout.dropped(result[visible], whole[visible], p), repeated),
        copies_agree,
        repeated if is_module or is_free else frozenset(),
        dropout.pairs(gone, visible, tuple(names)) if is_module or is_free else frozenset(),
        dropout.rules(gone, repeated) if is_free else frozenset(),
    )
    dropout.assert_weights_dropped(seen)
    if call.seen.gradients and not _flows(call):
        raise Mismatch("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")


def not_counted_out(calls: list[Call]) -> None:
    """Of weights that stand alone not always as many fall: how many do is chance."""
    fallen = {int((call.value == 0).sum()) for call in calls}
    if len(fallen) == 1:
        raise Mismatch(dropout.always_as_many(len(calls)))


def _flows(call: Call) -> bool:
    gradient, weights = call.seen.gradients[0], call.args[0]
    if gradient is None:
        raise Mismatch(dropout.DETACHED)
    return bool(torch.allclose(gradient.double() * weights.double(), call.value.detach().double(), rtol=1e-4))
