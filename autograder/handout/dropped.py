"""What dropout did to attention weights, judged by its structure: which entries fell is chance."""

import torch

from ..compare import Mismatch, describe
from ..compare.of_dropout import (
    ALL_DROPPED,
    ANOTHER_SHARE,
    CHANGED,
    DETACHED,
    NONE_DROPPED,
    NOT_FINITE,
    NOT_RESCALED,
    NOT_THE_WEIGHTS,
    TURNED_ROUND,
    WRONG_ALREADY,
    always_as_many,
)
from .known import near, sums
from .trial import Call

_SIGMAS = 6


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
        raise Mismatch(WRONG_ALREADY)
    if call.value.is_complex():
        raise Mismatch("The result is complex; real numbers are expected.")
    p, shape, names = rule["p"], [size for _, size in rule["view"]], [name for name, _ in rule["view"]]
    result, whole = (one.detach().double().reshape(shape) for one in (call.value, call.whole))
    if not bool(result.isfinite().all() & whole.isfinite().all()):
        raise Mismatch(NOT_FINITE)
    if right and not all(map(near, sums(call.whole), right["sums"])):
        raise Mismatch(WRONG_ALREADY)
    seen, gone = whole != 0, result == 0
    if bool((~seen & ~gone).any()):
        raise Mismatch("In training the result is not 0 in places where it is 0 in evaluation.")
    if "copy" in names:
        copies = names.index("copy")
        if not torch.equal(gone, gone.roll(1, copies)):
            raise Mismatch(NOT_THE_WEIGHTS)
    share = float(gone[seen].double().mean())
    if share in (0.0, 1.0):
        raise Mismatch(ALL_DROPPED if share else NONE_DROPPED)
    for dim, name in enumerate(names):
        both = seen & seen.roll(1, dim)
        if name != "copy" and bool(both.any()) and bool((gone == gone.roll(1, dim))[both].all()) and shape[dim] > 1:
            raise Mismatch(f"Every {name} has the same places dropped; each weight is dropped on its own.")
    entries = int(seen.sum()) / (2 if "copy" in names else 1)
    if _far(share, p, entries):
        if not _far(share, 1 - p, entries):
            raise Mismatch(TURNED_ROUND)
        raise Mismatch(ANOTHER_SHARE)
    kept = seen & ~gone
    if not torch.allclose(result[kept], whole[kept] / (1 - p), rtol=1e-4, atol=0):
        if torch.allclose(result[kept], whole[kept], rtol=1e-4, atol=0):
            raise Mismatch(NOT_RESCALED)
        raise Mismatch(CHANGED)
    if rule.get("freely"):
        _freely(gone, names)
    if call.seen.gradients and not _flows(call):
        raise Mismatch("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")


def _far(share: float, wanted: float, entries: float) -> bool:
    return bool(abs(share - wanted) > _SIGMAS * (wanted * (1 - wanted) / entries) ** 0.5)


def _freely(gone: torch.Tensor, names: list[str]) -> None:
    counts = gone.sum(-1)
    if not bool(gone.diagonal(dim1=-2, dim2=-1).any()):
        raise Mismatch("The diagonal is never dropped; each weight is dropped on its own.")
    if bool((counts == counts.flatten()[0]).all()):
        raise Mismatch("Every row loses the same number of weights; each weight is dropped on its own.")
    if gone.shape[-1] == gone.shape[-2] and torch.equal(gone, gone.mT):
        raise Mismatch("What is dropped is the same on both sides of the diagonal; each weight is dropped on its own.")
    share = float(gone.double().mean())
    for dim, name in enumerate(names):
        half = gone.shape[dim] // 2
        for one, other in (
            (range(0, 2 * half, 2), range(1, 2 * half, 2)),
            (range(half), range(half, 2 * half)),
            (range(half), range(gone.shape[dim] - 1, gone.shape[dim] - 1 - half, -1)),
        ):
            both = gone.index_select(dim, torch.tensor(one)) & gone.index_select(dim, torch.tensor(other))
            if _far(float(both.double().mean()), share**2, both.numel()):
                raise Mismatch(f"One {name} tells what is dropped at another; each weight is dropped on its own.")


def not_counted_out(calls: list[Call]) -> None:
    """Of weights that stand alone not always as many fall: how many do is chance."""
    fallen = {int((call.value == 0).sum()) for call in calls}
    if len(fallen) == 1:
        raise Mismatch(always_as_many(len(calls)))


def _flows(call: Call) -> bool:
    gradient, weights = call.seen.gradients[0], call.args[0]
    if gradient is None:
        raise Mismatch(DETACHED)
    return bool(torch.allclose(gradient.double() * weights.double(), call.value.detach().double(), rtol=1e-4))
