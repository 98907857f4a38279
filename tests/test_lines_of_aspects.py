"""Right values, and yet something that is asked is lost: the line of it is told, in marking and by the check alike."""

import inspect
import linecache

import pytest
import torch

from autograder import catalogue
from autograder.compare import complaints
from autograder.handout.data_file import data_of
from autograder.handout.line_told import line_told
from autograder.marking import right_steps
from autograder.marking.telling_cases import telling_cases
from autograder.sandbox.inside.device_probe import ELSEWHERE, MIXED
from autograder.sandbox.inside.lost_aspects import Asked, where_lost

from .located.edits import right_sources
from .located.measure import FILE, defined
from .typed import alone

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
}  # fmt: skip
COMPLAINTS = {
    "writes": complaints.writes_into([0, 1]),
    "dtype": "The result is torch.float32; torch.float64 is expected.",
    "gradient": complaints.detached(complaints.argument(0)),
    "no_grad": complaints.detached(complaints.argument(1)),
    "numbers": complaints.detached("the input"),
    "device": complaints.of_devices(MIXED),
}


def line_of(kind):
    return next(n for n, text in enumerate(WRONG[kind][2].splitlines(), start=1) if "# here" in text)


def lost(kind, source):
    """The lines that are found, in the telling cases one after the other."""
    unit, exercise = WRONG[kind][:2]
    aspect, details = complaints.aspect_of(COMPLAINTS[kind])
    answer = defined(unit, exercise, source)
    cases = telling_cases(unit, exercise)
    asked = [Asked(answer, case.arguments, case.built, case.parameters, case.through) for case in cases]
    return [one.line for one in (where_lost(aspect, details, each, FILE.__eq__) for each in asked) if one]


@pytest.mark.parametrize("kind", WRONG)
def test_the_line_is_found(kind):
    assert set(lost(kind, WRONG[kind][2])) == {line_of(kind)}


@pytest.mark.parametrize("kind", WRONG)
def test_of_a_right_answer_no_line_is_found(kind):
    unit, exercise = WRONG[kind][:2]
    for (of, name, _), source in right_sources().items():
        if (of, name) == (unit, exercise):
            assert lost(kind, source) == []


def test_what_a_complaint_is_about():
    """The sentences are what graders say: a change of their words may not end the telling in silence."""
    about = complaints.aspect_of
    assert about(complaints.writes_into([1])) == ("writes", ("1",))
    assert about(complaints.detached(complaints.argument(2))) == ("gradient", ("2",))
    assert about(complaints.detached("`W_key.weight`")) == ("gradient", ("W_key.weight",))
    assert about(complaints.detached("the input")) == ("gradient", ("0",))
    assert about("The result is torch.int64; torch.bool is expected.") == ("dtype", ("int64", "bool"))
    assert about(complaints.of_devices(ELSEWHERE)) == ("device", ())
    assert about("The result differs by 0.24.") is None
    assert about(complaints.not_finite("the first argument")) is None


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
def test_marking_and_the_check_say_the_same(kind, marker, tmp_path):
    unit, exercise, source, said = WRONG[kind]
    report = marker.mark("x.ipynb", alone(unit, **{exercise: source}), unit).exercise(exercise)
    assert [one.message for one in report.tests if one.outcome == "failed"]
    told = report.whereabouts
    assert told.lines == [line_of(kind)]
    assert said in told.told

    steps = tmp_path / "right_steps.json.gz"
    steps.write_bytes(data_of({exercise: right_steps.of_exercise(unit, exercise)}))
    file = f"<ipython-input-{exercise}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = dict(vars(inspect.getmodule(catalogue.solutions(unit)[exercise].answer)))
    exec(compile(source, file, "exec"), names)
    problems = [one.message for one in report.tests if one.outcome == "failed"]
    assert line_told(names, exercise, steps, problems, is_wrong=False) == told.told


def test_what_is_not_asked_is_not_told(marker):
    """Values apart, a line is looked for only where a complaint is about it."""
    source = WRONG["writes"][2].replace("total.mul_(fa)  # here", "total = total * fa")
    report = marker.mark("x.ipynb", alone("efficient_attention", merge_states=source), "efficient_attention")
    assert report.exercise("merge_states").whereabouts is None
    assert torch.is_grad_enabled()
