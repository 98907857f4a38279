"""What a call costs is counted: each cost here is known by other means, and no route to a large tensor is missed."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from autograder.compare import Mismatch, Undecided
from autograder.graders.collected import Verdict
from autograder.graders.statements import assert_costs_no_more
from autograder.handout.judgement import judged
from autograder.handout.trial import Wrong
from autograder.marking.scoring import mark
from autograder.marking.written_calls import as_json
from autograder.sandbox.inside.arguments import Arguments
from autograder.sandbox.inside.bench import Bench
from autograder.sandbox.inside.cost import of_call
from autograder.student.face import Student

T, HD = 32, 2
Q, K, V = torch.randn(3, T, HD, generator=torch.Generator().manual_seed(0)).unbind()


def cost(call, *args, of=None):
    """What a call costs; its lines are those of this file."""
    return of_call(call, Arguments(args), of or call, lambda file: file == __file__)


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
    cost = of_call(lambda x: x @ x + _Named(made_of(x)).sum(), Arguments((torch.ones(5, 5),)), None, lambda file: False)
    assert cost.operations > 2 * 5**3


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
            "twice": lambda: layer(x) + layer(x),
            "not": lambda: x.sum() + self.mask.sum(),
        }
        return ways[how]()


@pytest.mark.parametrize(
    ("how", "rows"), [("layer", T), ("matrix", T), ("einsum", T), ("together", T), ("twice", 2 * T), ("not", 0)]
)
def test_the_rows_of_each_parameter_are_counted(how, rows):
    module = Projects()
    found = cost(module, Q, how, of=module)
    assert found.rows.count == rows
    assert found.rows.of == ("matrix" if how == "matrix" else "layer.weight" if rows else "")
    assert found.largest.count < T * T  # the buffer was there before


@pytest.mark.parametrize(
    "call",
    [
        lambda q: torch.fft.fft(q).real,
        lambda q: torch.from_numpy(q.numpy() * 2),
        lambda q: torch.tensor(q.tolist()) * 2,
        lambda q: torch.linalg.inv(q.T @ q),
        lambda q: q.to_sparse().to_dense(),
    ],
    ids=["fft", "numpy", "lists", "inverse", "sparse"],
)
def test_what_is_not_counted_is_said(call):
    assert cost(call, Q).uncounted


@pytest.mark.parametrize("call", [by_matmul, by_einsum, by_broadcasting, by_rows, into_one_memory, with_a_mask])
def test_usual_operators_are_all_counted(call):
    assert cost(call, Q, K, V).uncounted == []


def student(**names):
    return Student(Bench(names))


def test_limits_are_told_with_what_was_seen():
    own = student(f=by_matmul).f
    assert_costs_no_more(own, {"largest": T * T, "alive": 3 * T * T}, Q, K, V)
    with pytest.raises(Mismatch, match=r"There is a tensor of shape \(32, 32\): 1,024 numbers; 512 are enough."):
        assert_costs_no_more(own, {"largest": 512}, Q, K, V)
    with pytest.raises(Mismatch, match=r"It takes [\d,]+ operations; 10 are enough"):
        assert_costs_no_more(own, {"operations": 10}, Q, K, V)
    with pytest.raises(Mismatch, match=r"held at once have [\d,]+ numbers; 10 are enough"):
        assert_costs_no_more(own, {"alive": 10}, Q, K, V)


def test_blocks_of_a_generator_count_as_long_as_they_are_kept():
    one_by_one = student(f=lambda blocks: sum(block.sum() for block in blocks)).f
    kept = student(f=lambda blocks: sum(block.sum() for block in list(blocks))).f
    blocks = list(Q)
    for own in (one_by_one, kept):
        assert_costs_no_more(own, {"alive": 4 * HD}, blocks)
    assert_costs_no_more(one_by_one, {"alive": 4 * HD}, blocks, once=True)
    with pytest.raises(Mismatch, match="held at once"):
        assert_costs_no_more(kept, {"alive": 4 * HD}, blocks, once=True)


def test_what_cannot_be_counted_decides_nothing_unless_a_limit_is_passed_all_the_same():
    own = student(f=lambda q: torch.fft.fft(q).real).f
    with pytest.raises(Undecided, match="_fft_r2c"):
        assert_costs_no_more(own, {"largest": 1000}, Q)
    with pytest.raises(Mismatch):
        assert_costs_no_more(own, {"largest": 10}, Q)


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
    judged({"f": lambda q, k, v: v * 2}, example)
    with pytest.raises(Wrong, match=r"There is a tensor of shape \(32, 32\): 1,024 numbers; 512 are enough."):
        judged({"f": by_matmul}, example)


def grader(name, points):
    kinds = {"forbids": (), "is_property": False, "is_public": False, "is_essential": False}
    return SimpleNamespace(name=name, statement=name, points=points, **kinds)


def test_what_is_not_decided_counts_neither_way():
    undecided = Verdict(grader("memory", 1.0), "not_run", "why", undecided=True)
    verdicts = [Verdict(grader("values", 2.0), "passed"), undecided, Verdict(grader("more", 2.0), "failed", "it")]
    exercise = SimpleNamespace(name="f", points=8.0)
    report = mark(exercise, verdicts, library_calls=set())
    assert (report.score, report.status, report.tests[1].max_points) == (4.0, "failed", 0.0)
    assert mark(exercise, verdicts[:2], library_calls=set()).status == "passed"
