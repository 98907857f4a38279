"""The cost of a call is counted: each cost here is known by other means, and no route to a large tensor is missed."""

import ctypes
import gc
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.flop_counter import FlopCounterMode

from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.comparison import Expected, Mismatch, Unproven, assert_close
from autograder.core.cost import LEFT, OPERATOR, THREAD, UNSEEN, measure_cost
from autograder.core.countable import Sealed, SealedCostCounter
from autograder.graders.collection import Verdict
from autograder.graders.proxy import Reference, StudentProxy
from autograder.graders.statements import assert_costs_no_more, assert_dtype_kept, assert_follows_device
from autograder.grading.released_steps import as_json
from autograder.grading.scoring import score
from autograder.student_check.judgement import judge_example

torch.set_num_threads(1)  # as in a grading process
T, HD = 32, 2
Q, K, V = torch.randn(3, T, HD, generator=torch.Generator().manual_seed(0)).unbind()


def cost(call, *args, of=None):
    """Return the cost of a call; its lines are those of this file."""
    return measure_cost(
        call, Arguments(args), of or call, lambda file: file == __file__, counting=SealedCostCounter
    ).cost


def line_of(call):
    """The line below the first of a function."""
    return call.__code__.co_firstlineno + 1


def by_matmul(q, k, v):
    return (q @ k.T).softmax(-1) @ v


def by_einsum(q, k, v):
    return torch.einsum("id,jd->ij", q, k).softmax(-1) @ v


def by_broadcasting(q, k, v):
    return ((q[:, None] * k).sum(-1).softmax(-1)[..., None] * v).sum(1)


def by_rows(q, k, v):
    return torch.stack([k @ one for one in q]).softmax(-1) @ v


def into_one_memory(q, k, v):
    scores = q.new_empty(len(q) * len(k))
    for number, one in enumerate(q):
        scores[number * len(k) : (number + 1) * len(k)] = k @ one
    return scores.view(len(q), len(k)).softmax(-1) @ v


def grown(q, k, v):
    scores = q.new_empty(0)
    scores.resize_(len(q), len(k))
    return torch.mm(q, k.T, out=scores).softmax(-1) @ v


def by_distances(q, k, v):
    return torch.cdist(q, k).softmax(-1) @ v


def with_a_mask(q, k, v):
    hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(1)
    return v + hidden.sum() * 0


@pytest.mark.parametrize(
    "call", [by_matmul, by_einsum, by_broadcasting, by_rows, into_one_memory, grown, by_distances, with_a_mask]
)
def test_a_tensor_of_all_scores_is_seen_by_every_route(call):
    assert cost(call, Q, K, V).largest.count >= T * T


def test_pieces_that_are_all_held_are_seen():
    def pieces(q, k, v):
        rows = [k @ one for one in q]
        return torch.stack([row.softmax(-1) @ v for row in rows])

    found = cost(pieces, Q, K, V)
    assert found.largest.count < T * T <= found.alive.count
    assert line_of(pieces) <= found.alive.line <= line_of(pieces) + 1


def test_pieces_that_are_let_go_are_not_summed():
    def one_by_one(q, k, v):
        return torch.stack([(k @ one).softmax(-1) @ v for one in q])

    assert cost(one_by_one, Q, K, V).alive.count < 5 * T * HD


def test_the_largest_is_told_with_its_shape_and_line():
    found = cost(by_matmul, Q, K, V).largest
    assert (found.count, found.of, found.line) == (T * T, str((T, T)), line_of(by_matmul))


class _Named(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "made_of", [lambda x: x * 2.0, lambda x: (x * 2.0).tolist(), lambda x: 5], ids=["a tensor", "a list", "a size"]
)
def test_a_subclass_of_tensor_can_be_made_on_the_way(made_of):
    assert cost(lambda x: x @ x + _Named(made_of(x)).sum(), torch.ones(5, 5)).operations > 2 * 5**3


def test_what_is_given_is_not_counted_nor_are_its_views():
    def looks(q, k, v):
        return q.T, k.view(-1)[None], v.expand(5, T, HD)

    found = cost(looks, Q, K, V)
    assert (found.largest.count, found.alive.count, found.operations) == (0, 0, 0)


def test_an_expanded_tensor_is_as_large_as_what_it_repeats():
    assert cost(lambda q: (q * 2).sum()[None, None].expand(T, T), Q).largest.count == T * HD


def test_a_constant_that_is_used_counts():
    kept = torch.zeros(T, T)
    assert cost(lambda v: kept @ v, V).largest.count == T * T


@pytest.mark.parametrize(
    "call",
    [
        by_matmul,
        by_einsum,
        lambda q, k, v: F.linear(q, k) @ v,
        lambda q, k, v: torch.baddbmm(q, q[None], (k.T @ v)[None]),
    ],
)
def test_products_are_counted_as_pytorch_counts_them(call):
    with FlopCounterMode(display=False) as counted:
        call(Q, K, V)
    assert counted.get_total_flops() <= cost(call, Q, K, V).operations <= counted.get_total_flops() + 3 * T * T


def test_other_operators_take_a_step_for_each_element():
    assert cost(lambda q: q.exp(), Q).operations == T * HD
    assert cost(lambda q: q.sum(), Q).operations == T * HD
    assert cost(lambda q: (q.exp() * 2).amax(-1), Q).operations == 3 * T * HD
    assert cost(lambda q, k: q @ k[0], Q, K).operations == 2 * T * HD


class Projects(nn.Module):
    """Has a layer, a matrix, and a buffer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(HD, 3)
        self.matrix = nn.Parameter(torch.randn(HD, 3))
        self.register_buffer("mask", torch.zeros(T, T))

    def forward(self, x, how):
        layer = self.layer
        together = torch.cat([layer.weight, self.matrix.T])
        ways = {
            "layer": lambda: layer(x),
            "matrix": lambda: x @ self.matrix,
            "einsum": lambda: torch.einsum("td,od->to", x, layer.weight),
            "together": lambda: x @ together.T,
            "in parts": lambda: torch.cat([F.linear(x, part) for part in layer.weight.split(1)], dim=-1),
            "twice": lambda: layer(x) + layer(x),
            "not": lambda: x.sum() + self.mask.sum(),
        }
        return ways[how]()


@pytest.mark.parametrize(
    ("how", "rows"),
    [("layer", T), ("matrix", T), ("einsum", T), ("together", T), ("in parts", T), ("twice", 2 * T), ("not", 0)],
)
def test_the_rows_of_each_parameter_are_counted(how, rows):
    module = Projects()
    found = cost(module, Q, how, of=module)
    assert found.rows.count == rows
    assert found.rows.of == ("matrix" if how == "matrix" else "layer.weight" if rows else "")
    assert found.largest.count < T * T  # the buffer was there before


def in_a_thread(q, k, v):
    results = []
    thread = Thread(target=lambda: results.append(by_matmul(q, k, v)))
    thread.start()
    thread.join()
    return results[0] * 1


def in_a_pool_that_was_there_before(q, k, v):
    return POOL.submit(by_matmul, q, k, v).result() * 1


def without_modes(q, k, v):
    with _disable_current_modes():
        result = by_matmul(q, k, v)
    return result * 1


def without_functions(q, k, v):
    with torch._C.DisableTorchFunction():
        return torch.from_numpy(q.numpy() @ k.numpy().T) @ v


def by_single_elements(q, k, v):
    numbers = [[q[i, j].item() for j in range(HD)] for i in range(T)] * 8
    return torch.stack([torch.tensor(row) for row in numbers[:T]]) * sum(x.item() for x in k.flatten()) * v.sum().item()


def numbers_of(*tensors):
    return torch.cat(tensors).mul(2**26).int().flatten()


def as_bools(q, k, v):
    bits = numbers_of(q, k, v)[:, None].bitwise_and(2 ** torch.arange(27)) != 0
    return v * sum(map(sum, bits.tolist()))


def frames_of_callers(q, k, v):
    frame = sys._getframe()
    while "arguments" not in frame.f_locals:
        frame = frame.f_back
    return v * 1


def frames_of_an_error(q, k, v):
    try:
        raise ValueError
    except ValueError as error:
        return v * len(error.__traceback__.tb_frame.f_back.f_locals)


class _Spy(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return args[0]


SPY = torch.ones(()).as_subclass(_Spy)
KEPT, EMPTY = torch.zeros(T, T), torch.empty(0)


@torch.library.custom_op("kit_tests::cat_of_all", mutates_args=())
def _custom(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.T).softmax(-1) @ v


def in_torchscript():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.CompilationUnit("def f(q, k, v):\n    return (q @ k.t()).softmax(-1) @ v\n").f


POOL = ThreadPoolExecutor(1)
UNCOUNTABLE = {
    "fft": (lambda q, k, v: torch.fft.fft(q).real, OPERATOR),
    "NumPy": (lambda q, k, v: torch.from_numpy(q.numpy() * 2), LEFT),
    "DLPack": (lambda q, k, v: torch.from_dlpack(np.from_dlpack(q)) @ k.T @ v, LEFT),
    "a pointer": (lambda q, k, v: v * float(ctypes.c_float.from_address(q.data_ptr()).value), LEFT),
    "lists": (lambda q, k, v: torch.tensor([q.tolist(), k.tolist(), v.tolist()]) * 2, LEFT),
    "single elements": (by_single_elements, LEFT),
    "integers, a few at a time": (
        lambda q, k, v: v * sum(sum(part.tolist()) for part in numbers_of(q, k, v).split(8)),
        LEFT,
    ),
    "bools": (as_bools, LEFT),
    "memory that a kept tensor takes over": (lambda q, k, v: EMPTY.set_(q) @ k.T @ v, LEFT),
    "kept memory": (lambda q, k, v: torch.mm(q, k.T, out=KEPT) @ v, LEFT),
    "floats seen as larger ones": (lambda q, k, v: q.view(torch.float64).sum() + v, OPERATOR),
    "floats seen as complex ones": (lambda q, k, v: torch.view_as_complex(q).real[:, None] + v, OPERATOR),
    "frames of callers": (frames_of_callers, UNSEEN),
    "frames of an error": (frames_of_an_error, UNSEEN),
    "objects of callers": (lambda q, k, v: v * len(gc.get_referents(q)), UNSEEN),
    "a class with operators of its own": (lambda q, k, v: q.add(SPY), UNSEEN),
    "inverse": (lambda q, k, v: torch.linalg.inv(q.T @ q), OPERATOR),
    "sparse": (lambda q, k, v: q.to_sparse().to_dense(), OPERATOR),
    "a custom operator with a known name": (lambda q, k, v: _custom(q, k, v), OPERATOR),
    "a map": (lambda q, k, v: q.clone().apply_(lambda x: x * 2), LEFT),
    "a thread": (in_a_thread, THREAD),
    "a thread of before": (in_a_pool_that_was_there_before, THREAD),
    "functions switched off": (without_functions, LEFT),
}


@pytest.mark.parametrize(("call", "why"), UNCOUNTABLE.values(), ids=UNCOUNTABLE)
def test_what_is_not_counted_is_noted_with_its_reason(call, why):
    assert cost(call, Q, K, V).uncounted.of == why


def test_a_kernel_that_was_replaced_by_one_that_computes_more_is_noted():
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is what is meant
        library.impl("cosh", lambda x: x * (x @ x.T).sum(), "CPU")
    try:
        assert cost(lambda q: q.cosh(), Q).uncounted.of == UNSEEN
    finally:
        library._destroy()


def test_without_modes_the_same_is_counted():
    found, right = cost(without_modes, Q, K, V), cost(by_matmul, Q, K, V)
    assert found.operations >= right.operations
    assert (found.largest.count, found.uncounted.count) == (right.largest.count, 0)


def test_a_thread_without_the_elements_may_do_anything():
    def beside_a_clock(q, k, v):
        POOL.submit(lambda: [sum(range(1000)) for _ in range(50)]).result()
        return by_matmul(q, k, v)

    assert cost(beside_a_clock, Q, K, V).uncounted.count == 0


def test_what_a_call_keeps_can_be_used_after_it():
    masks = {}

    def causal(q, k, v):
        hidden = masks.setdefault(len(q), torch.ones(len(q), len(q), dtype=torch.bool).triu(1))
        return (q @ k.T).masked_fill(hidden, -torch.inf).softmax(-1) @ v

    counted = measure_cost(causal, Arguments((Q, K, V)), causal, lambda file: False, counting=SealedCostCounter).value
    q = Q.clone().requires_grad_()
    later = causal(q, K, V)
    later.sum().backward()
    assert type(later) is type(counted) is torch.Tensor
    assert_close(later.detach(), Expected(counted.double(), 1e-6))
    assert measure_cost(
        causal, Arguments((Q, K, V)), causal, lambda file: False, counting=SealedCostCounter
    ).cost.operations


def test_what_sealed_tensors_cannot_do_is_done_with_others():
    def in_numpy(q, k, v):
        return torch.from_numpy(q.numpy() @ k.numpy().T @ v.numpy())

    found = measure_cost(
        in_numpy, Arguments((Q, K, V)), in_numpy, lambda file: file == __file__, counting=SealedCostCounter
    )
    assert (found.cost.uncounted.of, found.cost.uncounted.line) == (LEFT, line_of(in_numpy))
    assert_close(found.value, Expected((Q @ K.T @ V).double(), 1e-4))


@pytest.mark.parametrize(
    "call",
    [
        in_torchscript(),
        lambda q, k, v: torch.vmap(lambda one: (k @ one).softmax(-1) @ v)(q),
        lambda q, k, v: torch.matmul(q, k.T, out=q.new_empty(T, T)) @ v,
        lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
        lambda q, k, v: F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], is_causal=True)[
            0, 0
        ],
        lambda q, k, v: torch.baddbmm(q[None], (q @ k.T)[None], v[None])[0],
        lambda q, k, v: (torch.mv(k, q[0]).softmax(-1) * torch.dot(q[0], k[0])) @ v,
        lambda q, k, v: F.elu(q) + 1 + torch.tensor(float("-inf")).clamp(min=0) + torch.zeros(()).item(),
    ],
    ids=["TorchScript", "vmap", "out=", "fused", "fused and causal", "baddbmm", "mv and dot", "scalars"],
)
def test_what_pytorch_does_by_other_ways_is_counted(call):
    assert cost(call, Q, K, V).uncounted.of == ""


def test_fused_attention_is_counted_as_two_products():
    assert cost(lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None]), Q, K, V).operations >= (
        4 * T * T * HD
    )


def test_memory_of_an_argument_counts_as_far_as_it_grows():
    def grows(q, k, v):
        q.set_()
        q.resize_(T, T)
        return torch.mm(v, k.T, out=q).softmax(-1) @ v

    def resizes(q, k, v):
        scores = v @ k.T
        q.resize_(T, T).copy_(scores[:, :1].expand(T, T))
        return v * 1

    assert cost(grows, Q.clone(), K, V).largest.count >= T * T
    assert cost(resizes, Q.clone(), K, V).largest.count >= T * T - Q.numel()


def test_a_complex_element_counts_as_two():
    assert cost(lambda q: torch.complex(q, q), Q).largest.count == 2 * T * HD


@pytest.mark.parametrize("call", [by_matmul, by_einsum, by_broadcasting, by_rows, into_one_memory, with_a_mask])
def test_usual_operators_are_all_counted(call):
    assert cost(call, Q, K, V).uncounted.count == 0


def student(**names):
    return StudentProxy(Bench(names))


def assert_within(own, limits, *args, **more):
    """Assert that the code stays within the limits, regardless of its result."""
    assert_costs_no_more(own, limits, None, *args, check=lambda found, right: None, **more)


def test_limits_are_told_with_what_was_seen():
    own = student(f=by_matmul).f
    assert_within(own, {"largest": T * T, "alive": 3 * T * T}, Q, K, V)
    with pytest.raises(Mismatch, match=r"The code makes a tensor of shape \(32, 32\): 1,024 numbers; 512 are enough."):
        assert_within(own, {"largest": 512}, Q, K, V)
    with pytest.raises(Mismatch, match=r"The call takes [\d,]+ operations; 10 are enough"):
        assert_within(own, {"operations": 10}, Q, K, V)
    with pytest.raises(Mismatch, match=r"in memory at the same time have [\d,]+ numbers; 10 are enough"):
        assert_within(own, {"alive": 10}, Q, K, V)


def test_what_is_cheap_and_wrong_earns_nothing():
    own = student(f=lambda q, k, v: torch.zeros_like(v)).f
    with pytest.raises(Mismatch, match="differs"):
        assert_costs_no_more(own, {"largest": T * T}, Expected(by_matmul(Q, K, V).double(), 1e-5), Q, K, V)


def test_blocks_of_a_generator_count_as_long_as_they_are_kept():
    one_by_one = student(f=lambda blocks: sum(block.sum() for block in blocks)).f
    kept = student(f=lambda blocks: sum(block.sum() for block in list(blocks))).f
    blocks = list(Q)
    for own in (one_by_one, kept):
        assert_within(own, {"alive": 4 * HD}, blocks)
    assert_within(one_by_one, {"alive": 4 * HD}, blocks, once=True)
    with pytest.raises(Mismatch, match="in memory at the same time"):
        assert_within(kept, {"alive": 4 * HD}, blocks, once=True)


def test_what_cannot_be_counted_fails_where_the_count_decides_and_names_no_operator():
    own = student(f=lambda q: torch.fft.fft(q).real).f
    with pytest.raises(Mismatch, match="cannot be counted") as found:
        assert_within(own, {"operations": 10_000}, Q)
    assert "fft" not in str(found.value)
    assert_within(own, {"largest": 1000}, Q, is_counted=False)
    with pytest.raises(Mismatch, match="10 are enough"):
        assert_within(own, {"largest": 10}, Q, is_counted=False)


def test_under_gradients_nothing_is_kept_for_them():
    def in_turn(q):
        for _ in range(20):
            q = q * 2
        return q

    with torch.enable_grad():
        assert cost(in_turn, Q.clone().requires_grad_()).alive.count <= 3 * T * HD


def test_the_check_says_the_same():
    args = [as_json(one, 6) for one in (Q, K, V)]
    step = {"operation": "cost", "name": "f", "args": args, "limits": {"largest": 512}}
    example = {"looks_at": ["cost"], "steps": [step]}
    judge_example({"f": lambda q, k, v: v * 2}, example)
    with pytest.raises(Mismatch, match=r"The code makes a tensor of shape \(32, 32\): 1,024 numbers; 512 are enough."):
        judge_example({"f": by_matmul}, example)


def test_a_call_whose_value_is_wrong_is_not_counted_if_an_example_failed_before():
    x = {"shape": [2], "values": [1.0, 2.0]}
    step = {"operation": "cost", "name": "f", "args": [x], "result": x, "limits": {"operations": 100}}
    example, seen = {"statement": "", "looks_at": ["cost", "value"], "steps": [step]}, []

    def wrong(x):
        seen.append(type(x))
        return x * 2

    def right(x):
        seen.append(type(x))
        return x * 1

    for is_wrong, kinds in ((False, [Sealed]), (True, [torch.Tensor])):
        with pytest.raises(Mismatch, match="differs"):
            judge_example({"f": wrong}, example, is_wrong=is_wrong)
        assert seen == kinds
        seen.clear()
    judge_example({"f": right}, example, is_wrong=True)
    assert seen == [torch.Tensor, Sealed]
    with pytest.raises(Mismatch, match="operations"):
        judge_example({"f": lambda x: x.repeat(200)[:2]}, example, is_wrong=True)


def grader(name, points, **kinds):
    usual = {"forbids": (), "is_property": False, "is_public": False, "is_essential": False}
    return SimpleNamespace(name=name, statement=name, points=points, **{**usual, **kinds})


def test_a_property_whose_value_is_wrong_counts_unless_all_other_values_are_right():
    unproven = Verdict(grader("dtype", 1.0, is_property=True), "passed", "It differs.", unproven=True)
    exercise = SimpleNamespace(name="f", points=4.0)
    for outcome, points in (("passed", 0.0), ("failed", 1.0)):
        values = [Verdict(grader("values", 2.0), "passed"), Verdict(grader("more", 1.0), outcome)]
        report = score(exercise, [*values, unproven], library_calls=set())
        assert report.tests[2].points == points
    assert report.tests[2].outcome == "passed"
    assert "It differs." not in report.tests[2].message


def test_a_value_of_another_dtype_is_compared():
    own = student(f=lambda x: x * 2 if x.dtype == torch.float32 else torch.zeros_like(x)).f
    with pytest.raises(Unproven):
        assert_dtype_kept(own, Reference({"f": lambda x: x * 2}).f, Q.double(), check=assert_close)


def test_a_value_on_another_device_is_compared():
    own = student(f=lambda x: x * 2 if x.is_cuda else x).f
    with pytest.raises(Mismatch, match="other"):
        assert_follows_device(own, Q, reference=Reference({"f": lambda x: x}).f)
    with pytest.raises(Unproven):
        assert_follows_device(student(f=lambda x: x * 2).f, Q, reference=Reference({"f": lambda x: x}).f)
