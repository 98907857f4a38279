"""Messages on wrong answers: they say nothing false about the answer, and use only the student's own names."""

import re

import pytest
import torch

from autograder.core import dropout
from autograder.graders.collection import collect
from autograder.grading import examiner, reference_trace
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.grading.trace_cases import trace_cases
from autograder.tracing.explain import explain
from autograder.tracing.fault_search import locate_fault
from tests.located.edits import right_sources
from tests.located.measure import defined, run_of

SOURCES = right_sources()
CAUSAL = SOURCES["causal_attention", "CausalAttention", "CausalAttention"]
SDPA = ("self_attention", "scaled_dot_product_attention")


def said(unit, exercise, source):
    """Return the message on the faulty line of an answer; lines are numbered as in the source."""
    answer, lines = defined(unit, exercise, source), source.splitlines()
    for case in trace_cases(unit, exercise):
        known = reference_trace.reference_trace(unit, case)
        found = locate_fault(known, lambda new, case=case: run_of(answer, case, new))
        if not known.is_right(run_of(answer, case, {})):
            assert found, "no line is told"
            return explain(found, case, lambda _: lines)
    raise AssertionError("it is right")


def edited(old, new):
    assert CAUSAL.count(old) == 1
    return "causal_attention", "CausalAttention", CAUSAL.replace(old, new)


MASKING = next(line.strip() for line in CAUSAL.splitlines() if "scores = scores.masked_fill(" in line)
ANSWERS = {
    "other names": (*SDPA, """\
def scaled_dot_product_attention(q, k, v):
    dots = q @ k.transpose(-2, -1)
    shares = torch.softmax(dots / k.shape[-1], dim=-1)
    return shares @ v
""", ["Line 3 makes `shares` wrong.\n  line 3: shares", "too even"], ["scores", "weights", "As it should be"]),
    "a name for something else": ("multi_head_attention", "multi_head_scores", """\
def multi_head_scores(queries, keys):
    return torch.einsum("bhqd,bhkd->bhqk", queries, queries)
""", ["What line 2 makes is wrong.", "are two names mixed up?",
      "On the way to its result, the line makes:"], ["`keys`"]),
    "a mask and its use": (*edited("masked_fill(self", "masked_fill(~self"), ["do not fit together",
      "reads it with the opposite meaning: it keeps what should be hidden", "It is inverted: 0 where"], []),
    "a step left out": (*edited(MASKING, "pass"), ["a step there is wrong, or missing"], ["pass"]),
    "made and not used": (*edited(MASKING, MASKING.removeprefix("scores = ")), ["do not fit together",
      "makes is right, but line", "it uses the input of line"], []),
    "returned too early": (*SDPA, """\
def scaled_dot_product_attention(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
""", ["What line 3 returns is wrong.", "is a last step missing, or is another name meant?",
      "As it should be: `scores` (line 2)."], []),
    "a mask that is not turned": ("attention_masks", "CrossAttention", """\
class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.heads = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        q = self.W_query(x).unflatten(-1, self.heads).transpose(1, 2)
        k = self.W_key(context).unflatten(-1, self.heads).transpose(1, 2)
        v = self.W_value(context).unflatten(-1, self.heads).transpose(1, 2)
        mask = None if context_mask is None else context_mask[:, None, None, :]
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(found.transpose(1, 2).flatten(2))
""", ["This mask is the inverse of the required one"], ["two names"]),
    "states for arguments": ("efficient_attention", "merge_states", """\
def merge_states(a, b):
    maximum = torch.maximum(a[0], b[0])
    one, other = torch.exp(a[0] - maximum), torch.exp(b[0] - maximum)
    total = a[1] + b[1]
    return maximum, total, a[2] * one + b[2] * other
""", ["merge_states((a tensor of shape (5, 1), a tensor"], ["tensor(["]),
    "too many results": (*SDPA, """\
def scaled_dot_product_attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights
""", ["It returns 2 tensors; one tensor is required."], []),
    "results in each other's places": ("self_attention", "score_variance", """\
def score_variance(queries, keys):
    scores = queries @ keys.transpose(-2, -1)
    return (scores / keys.shape[-1] ** 0.5).var(), scores.var()
""", ["Two tensors, each right in itself, are swapped in this line"], []),
    "one cause in two lines": ("dot_product_attention", "softmax", """\
def softmax(scores, dim=0):
    high = scores.amax(dim=dim, keepdim=True)
    powers = (scores - high).exp()
    return powers / powers.sum(dim=dim, keepdim=True)
""", ["Line 2 makes `high` wrong."], ["shifted", "exponentials", "sums"]),
    "a sum along another dimension": ("causal_attention", "causal_softmax", """\
def causal_softmax(scores, d_k):
    visible = torch.ones_like(scores).tril().bool()
    powers = (scores / d_k**0.5).masked_fill(~visible, -torch.inf).exp()
    return powers / powers.sum(dim=1, keepdim=True)
""", ["made:   shape (2, 1, 5)", "needed: shape (2, 5, 1)"], []),
    "a number made above": ("attention_masks", "alibi_bias", """\
def alibi_bias(num_heads, num_tokens):
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for head in range(num_heads):
        slope, count = 0.5 ** (head + 1), 0
        for q in range(num_tokens):
            for k in range(q + 1):
                count += 1
                bias[head, q, k] = slope * (k - q)
    slope = 0
    return bias
""", ["What line 8 makes is wrong.", "If line 8 is right, look at what the line uses: "
      "head (line 3), q (line 5), k (line 6), slope (line 4)."], [
          "count", "bias (", "num_heads", "go into this line are right"]),
    "ones that a line cuts": ("causal_attention", "CausalAttention", CAUSAL.replace(
        "scores = scores.masked_fill(self.mask[:num_tokens, :num_tokens], float('-inf'))",
        "seen = torch.ones(num_tokens, num_tokens).tril(diagonal=1)\n"
        "        scores = scores.masked_fill(seen == 0, float('-inf'))",
    ), ["Line 23 makes `seen` wrong.", "made:   shape (5, 5), from [0, 1] on 1, 0, 0, 0, …",
        "needed: shape (5, 5), from [0, 1] on 0, 0, 0, 0, …"], []),
    "a layer made elsewhere": ("tiny_language_model", "TransformerBlock", """class TransformerBlock(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        self.num_heads, self.norm1, self.norm2 = num_heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value = (nn.Linear(d, d) for _ in range(3))
        self.out_proj, self.linear1, self.linear2 = nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.gelu = nn.GELU(approximate="tanh")

    def forward(self, x):
        normed = self.norm1(x)
        heads = [layer(normed).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
                 for layer in (self.W_query, self.W_key, self.W_value)]
        found = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out_proj(found.transpose(1, 2).flatten(2))
        widened = self.linear1(self.norm2(x))
        active = self.gelu(widened)
        return x + self.linear2(active)
""", ["Line 16 makes `active` wrong.",
      "If line 16 is right, look at what the line uses: self.gelu (line 7)."], ["widened ("]),
    "a name that is used again": ("tiny_language_model", "TransformerBlock", """class TransformerBlock(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        self.num_heads, self.norm1, self.norm2 = num_heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value = (nn.Linear(d, d) for _ in range(3))
        self.out_proj, self.linear1, self.linear2 = nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = self.norm1(x)
        heads = [layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
                 for layer in (self.W_query, self.W_key, self.W_value)]
        found = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.out_proj(found)
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))
""", ["If line 13 is right, look at what the line uses: x (line 9), self.out_proj (line 6), "],
      ["As it should be"]),
    "what a method keeps": ("inference", "KVCache", """class KVCache:
    def __init__(self):
        self.keys = self.values = None

    def append(self, keys, values):
        if self.keys is None or keys.shape[-2] > 1:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat([self.keys, keys], dim=-2)
            self.values = torch.cat([self.values, values], dim=-2)
""", ["What line 7 keeps is wrong.", "append(a tensor of shape (2, 6), a tensor of shape (2, 5)) and ",
      "A part of the required tensor is missing"], ["return"]),
    "a line of a method": ("inference", "KVCache", """class KVCache:
    def __init__(self):
        self.keys = self.values = None

    def append(self, keys, values):
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=-2)
            values = torch.cat([self.values[..., 1:, :], values], dim=-2)
        self.keys, self.values = keys, values
""", ["What line 8 makes is wrong."], ["return"]),
    "another name for the same": ("causal_attention", "causal_head", """\
def causal_head(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    values = keys
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    weights = torch.softmax(scores.masked_fill(mask, float("-inf")) / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values
""", ["What line 6 makes is wrong.", "Line 3 makes `values` another name for `keys`.",
      "As it should be: `scores` (line 2), `weights` (line 5)."], []),
    "a tensor that is not filled": ("dot_product_attention", "pairwise_scores", """\
def pairwise_scores(inputs):
    scores = torch.empty(6, 6)
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            scores[i, j] = torch.dot(one, other)
    return scores
""", ["What line 5 makes is wrong.", "look at what the line uses: scores (line 2)"], ["go into this line are right"]),
    "a divisor of ones": ("causal_attention", "renormalized_causal_weights", """\
def renormalized_causal_weights(weights):
    total = weights.sum(dim=-1, keepdim=True)
    kept = torch.tril(weights)
    return kept / total
""", ["What line 4 returns is wrong.", "As it should be: `kept` (line 3)."], ["goes into it is right", "`total`"]),
    "a small difference": (*SDPA, """\
def scaled_dot_product_attention(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    scores = scores * torch.linspace(1, 1.00012, 7)
    weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values
""", ["Line 3 makes `scores` wrong."], []),
    "roots of negative numbers": ("self_attention", "scaled_softmax", """\
def scaled_softmax(scores, d_k):
    return torch.softmax(scores * scores**-0.5, dim=-1)
""", ["the root of a negative number"], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_told_of_a_line_is_true_of_it(kind):
    unit, exercise, source, words, no_words = ANSWERS[kind]
    found = said(unit, exercise, source)
    assert found.splitlines()[-1].startswith(f"Tried on {exercise}{' after ' if exercise == 'KVCache' else '('}")
    # An excerpt begins where the printed numbers differ.
    excerpts = [re.findall(rf"{of}: +(shape .*?(?:on|with) |the number )(.*?)(?:,|$)", found, re.M)
                for of in ("made", "needed")]  # fmt: skip
    assert not excerpts[0] or excerpts[0] != excerpts[1], found
    for one in words:
        assert one in found, found
    for one in no_words:
        assert one not in found, found


class Typed:
    """An answer as the catalogue has one."""

    def __init__(self, exercise, source):
        self.exercise, self.text, self.name = exercise, source, exercise
        self.answer = defined("causal_attention", exercise, source)


def test_no_number_alone_is_taken_for_another():
    """A single 0 is like many."""
    source = """\
def sinusoidal_positions(num_tokens, d):
    table = torch.zeros(num_tokens, d)
    for place in range(num_tokens):
        for column in range(d):
            angle = place / 10000 ** (column / d)
            table[place, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return table
"""
    with pytest.raises(AssertionError, match="no line is told"):
        said("tiny_language_model", "sinusoidal_positions", source)


def complaints(source):
    """By its name, what each grader of CausalAttention that fails says."""
    answer = Typed("CausalAttention", source)
    seen = EXAMINER.examine("causal_attention", "CausalAttention", candidate_bench("causal_attention", answer))
    return {one.test.name: one.seen for one in seen.verdicts if one.outcome == "failed"}


EXAMINER = Examiner(collect())
DROPS = "self.dropout(torch.softmax("
UNSCALED = CAUSAL.replace(" ** 0.5", "")
WITH_DROPOUT = {
    "unscaled, and drops in evaluation": (
        UNSCALED.replace(DROPS, "nn.functional.dropout(p=self.dropout.p, input=torch.softmax("),
        {"test_dropout_in_training": dropout.WRONG_ALREADY, "test_after_eval": dropout.WRONG_ALREADY},
    ),
    "layers made anew in forward": (
        CAUSAL.replace("self.W_query(x)", "nn.Linear(x.shape[-1], self.W_query.out_features)(x)"),
        {"test_dropout_in_training": dropout.WRONG_ALREADY, "test_after_eval": dropout.WRONG_ALREADY},
    ),
    "drops in evaluation": (
        CAUSAL.replace(DROPS, "nn.functional.dropout(p=self.dropout.p, input=torch.softmax("),
        {"test_after_eval": "Some weights are zero after eval(); outside of training dropout does nothing."},
    ),
    "drops of the result too": (
        CAUSAL.replace("return weights @ values", "return self.dropout(weights @ values)"),
        {"test_dropout_in_training": dropout.NOT_THE_WEIGHTS},
    ),
    "another shape": (
        CAUSAL.replace("return weights @ values", "return (weights @ values)[0]"),
        {"test_gradients_with_dropout": "The result is a tensor of shape (7, 6); "
                                        "a tensor of shape (4, 7, 6) is expected."},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WITH_DROPOUT)
def test_dropout_and_gradients_are_not_blamed_for_what_is_wrong_without_them(kind):
    source, words = WITH_DROPOUT[kind]
    assert source != CAUSAL
    with torch.random.fork_rng():
        found = complaints(source)
    assert {name: found.get(name) for name in words} == words


def in_its_cell(body):
    """An answer that does this, as it would stand in a notebook."""
    name = SDPA[1]
    answer = Typed(name, f"def {name}(queries, keys, values):\n    {body}")
    names = {"torch": torch}
    exec(compile(answer.text, f"cell:{name}", "exec"), names)
    answer.answer = names[name]
    return answer


@pytest.mark.parametrize(
    ("body", "compares", "tries_pairs"),
    [
        ("raise NotImplementedError()", False, False),
        ("return queries.absent", True, False),
        ("return 9 * values", True, True),
    ],
    ids=["not written", "an error", "other numbers"],
)
def test_no_mistake_is_looked_for_where_none_can_be_told(monkeypatch, body, compares, tries_pairs):
    """To compare an answer with each known mistake takes a second, and with each two of them several."""
    looked_for, (unit, exercise) = [], SDPA
    monkeypatch.setattr(examiner, "diagnose", lambda *_, is_exact: looked_for.append(not is_exact))
    found = EXAMINER.examine(unit, exercise, candidate_bench(unit, in_its_cell(body)))
    assert EXAMINER.diagnose(unit, exercise, found) is None
    assert looked_for == [tries_pairs] * compares


def test_what_was_learnt_beforehand_no_wrong_answer_waits_for(monkeypatch):
    ready, (unit, exercise), run = Examiner(collect()), SDPA, []
    ready.learn(unit)
    found = ready.examine(unit, exercise, candidate_bench(unit, in_its_cell("return queries.absent")))
    monkeypatch.setattr(examiner, "candidate_bench", lambda _, mistake: run.append(mistake))
    assert ready.diagnose(unit, exercise, found) is None
    assert run == []
