"""If values are right and another requirement is not met, grading and the check both report the line that breaks it."""

import inspect
import linecache

import pytest
import torch

from autograder import catalogue
from autograder.core import complaints
from autograder.core.comparison import Mismatch, assert_close, golden
from autograder.core.device_probe import ELSEWHERE, MIXED
from autograder.core.judgement import assert_arrived, assert_devices, assert_dtype, assert_gradient, assert_unchanged
from autograder.core.lost_aspects import TracedCall, find_lost_aspect
from autograder.grading import reference_trace
from autograder.grading.trace_cases import trace_cases
from autograder.student_check.fault_location import fault_message
from autograder.student_check.unit_data import STEPS, data_file, packed_unit
from tests.located.edits import right_sources
from tests.located.measure import FILE, defined
from tests.typed import alone

# Of each the line that is to be told ends in `# here`.
WRONG = {
    "writes": ("efficient_attention", "merge_states", """\
def merge_states(a, b):
    m = torch.maximum(a[0], b[0])
    fa, fb = torch.exp(a[0] - m), torch.exp(b[0] - m)
    total, output = a[1], a[2]
    total.mul_(fa)  # here
    return m, total + fb * b[1], fa * output + fb * b[2]
""", "writes into the first argument"),
    "dtype": ("inference", "share_heads", """\
def share_heads(x, num_heads):
    b, groups, T, hd = x.shape
    each = num_heads // groups
    out = torch.zeros(b, num_heads, T, hd, device=x.device)  # here
    for h in range(num_heads):
        out[:, h] = x[:, h // each]
    return out
""", "makes numbers in torch.float32"),
    "gradient": ("efficient_attention", "linear_attention", """\
def linear_attention(queries, keys, values, causal=False):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    weights = q @ k.transpose(-2, -1)
    if causal:
        weights = weights.tril()
    total = weights.sum(dim=-1, keepdim=True).detach()
    weights = (weights / total).detach()  # here
    return weights @ values
""", "ends the way of the gradient to the first argument"),
    "no_grad": ("efficient_attention", "linear_attention", """\
def linear_attention(queries, keys, values, causal=False):
    q = F.elu(queries) + 1
    with torch.no_grad():  # here
        k = F.elu(keys) + 1
        k = k * 1.0
    weights = q @ k.transpose(-2, -1)
    if causal:
        weights = weights.tril()
    return weights / weights.sum(dim=-1, keepdim=True) @ values
""", "ends the way of the gradient to the second argument"),
    "numbers": ("tiny_language_model", "next_token_loss", """\
def next_token_loss(logits, tokens):
    log_p = torch.log_softmax(logits[:, :-1], dim=-1)
    total, count = 0.0, 0
    for s in range(tokens.shape[0]):
        for t in range(tokens.shape[1] - 1):
            total -= log_p[s, t, tokens[s, t + 1]].item()  # here
            count += 1
    return torch.tensor(total / count, dtype=logits.dtype, device=logits.device)
""", "plain numbers carry no gradient"),
    "device": ("inference", "share_heads", """\
def share_heads(x, num_heads):
    groups = x.shape[1]
    of = torch.arange(num_heads) // (num_heads // groups)
    out = torch.zeros(x.shape[0], num_heads, *x.shape[2:], dtype=x.dtype)  # here
    return out + x[:, of]
""", "makes a tensor that stays on the CPU"),
    "kept": ("causal_attention", "CausalAttention", """\
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()  # here

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], -torch.inf)
        return self.dropout(torch.softmax(scores, dim=-1)) @ values
""", "A tensor that the module keeps moves with it as a buffer"),
}  # fmt: skip
ASPECTS = {
    "writes": ("writes", ("0",)),
    "dtype": ("dtype", ("float32", "float64")),
    "gradient": ("gradient", ("0",)),
    "no_grad": ("gradient", ("1",)),
    "numbers": ("gradient", ("0",)),
    "device": ("device", (MIXED,)),
    "kept": ("device", (MIXED,)),
}
"""The mismatches that the hidden tests of these answers raise."""


def line_of(kind):
    return next(n for n, text in enumerate(WRONG[kind][2].splitlines(), start=1) if "# here" in text)


def lost(kind, source):
    """Return the reported lines, in the order of the trace cases."""
    unit, exercise = WRONG[kind][:2]
    aspect, details = ASPECTS[kind]
    answer = defined(unit, exercise, source)
    cases = trace_cases(unit, exercise)
    asked = [TracedCall(answer, case.arguments, case.built, case.parameters, case.through) for case in cases]
    return [one.line for one in (find_lost_aspect(aspect, details, each, FILE.__eq__) for each in asked) if one]


@pytest.mark.parametrize("kind", WRONG)
def test_the_line_is_found(kind):
    assert set(lost(kind, WRONG[kind][2])) == {line_of(kind)}


@pytest.mark.parametrize("kind", WRONG)
def test_of_a_right_answer_no_line_is_found(kind):
    unit, exercise = WRONG[kind][:2]
    for (of, name, _), source in right_sources().items():
        if (of, name) == (unit, exercise):
            assert lost(kind, source) == []


def mismatch(judge, *args):
    with pytest.raises(Mismatch) as caught:
        judge(*args)
    return caught.value.aspect, caught.value.details


def test_a_mismatch_names_its_aspect_and_what_the_search_for_the_line_needs():
    assert mismatch(assert_unchanged, [1, 2]) == ("writes", ("1",))
    assert mismatch(assert_arrived, {complaints.argument(2): None}) == ("gradient", ("2",))
    assert mismatch(assert_arrived, {complaints.parameter("W_key.weight"): None}) == ("gradient", ("W_key.weight",))
    assert mismatch(assert_arrived, {complaints.INPUT: None}) == ("gradient", ("0",))
    assert mismatch(assert_dtype, torch.ones(2), torch.bool) == ("dtype", ("float32", "bool"))
    assert mismatch(assert_devices, [], ELSEWHERE) == ("device", (ELSEWHERE,))
    wrong_gradient = assert_gradient, torch.ones(2), golden([2.0, 2.0]), complaints.argument(0)
    assert mismatch(*wrong_gradient) == ("gradient", ())
    assert mismatch(assert_close, torch.ones(2), golden([2.0, 2.0])) == ("value", ())


def test_two_ways_that_both_end_are_not_told_as_one():
    """Either line undone lets a gradient through: which of the two is meant is not known."""
    source = WRONG["gradient"][2].replace("q, k = F.elu(queries) + 1,", "q, k = F.elu(queries.detach()) + 1,")
    source = source.replace("(weights / total).detach()", "weights / total")
    assert set(lost("gradient", source)) == {2}
    both = source.replace(
        "    total = ", "    values = values * queries.mean().detach() / queries.mean().detach()\n    total = "
    )
    assert lost("gradient", both) == []


@pytest.mark.parametrize("kind", WRONG)
def test_marking_and_the_check_say_the_same(kind, grading_process, tmp_path):
    unit, exercise, source, said = WRONG[kind]
    report = grading_process.grade("x.ipynb", alone(unit, **{exercise: source}), unit).exercise(exercise)
    assert [one.message for one in report.tests if one.outcome == "failed"]
    told = report.whereabouts
    assert told.lines == [line_of(kind)]
    assert said in told.told

    data = tmp_path / data_file(unit)
    data.write_bytes(packed_unit(unit, {STEPS: {exercise: reference_trace.written_traces(unit, exercise)}}))
    file = f"<ipython-input-{exercise}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = dict(vars(inspect.getmodule(catalogue.solutions(unit)[exercise].answer)))
    exec(compile(source, file, "exec"), names)
    assert fault_message(names, exercise, data, [ASPECTS[kind]], is_wrong=False) == told.told


def test_what_is_not_asked_is_not_told(grading_process):
    """Values apart, a line is looked for only where a complaint is about it."""
    source = WRONG["writes"][2].replace("total.mul_(fa)  # here", "total = total * fa")
    report = grading_process.grade("x.ipynb", alone("efficient_attention", merge_states=source), "efficient_attention")
    assert report.exercise("merge_states").whereabouts is None
    assert torch.is_grad_enabled()
