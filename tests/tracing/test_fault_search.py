"""Fault location in this process, and its results if a worker sends false traces."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.edit_trials import cpu_limit
from autograder.core.observation import CELL_PREFIX
from autograder.core.operations import TraceRun
from autograder.core.packing import ProtocolError
from autograder.core.run_trace import MAX_MADE, Run, RunTracer, TracedCall, TracedTensor, pack_run, trace_run
from autograder.graders.decoding import decode_trace
from autograder.grading import reference_trace
from autograder.grading.reference_trace import trace_cases
from autograder.tracing.fault import FaultKind
from autograder.tracing.fault_search import locate_fault
from benchmarks.located.edits import right_sources
from benchmarks.located.measure import FILE, defined, run_of
from tests.typed import stored

ANSWERS = [(unit, exercise, name) for unit, exercise, name in right_sources() if trace_cases(unit, exercise)]


@cache
def known(unit, exercise):
    return [(case, reference_trace.reference_trace(unit, case)) for case in trace_cases(unit, exercise)]


def located(unit, exercise, source):
    answer = defined(unit, exercise, source)
    found = (
        locate_fault(right, lambda new, case=case: run_of(answer, case, new))
        for case, right in known(unit, exercise)
        if right
    )
    return next(filter(None, found), None)


@pytest.mark.parametrize("key", ANSWERS, ids=" ".join)
def test_of_a_right_answer_nothing_is_said(key):
    unit, exercise, _ = key
    answer = defined(unit, exercise, right_sources()[key])
    for case, right in known(unit, exercise):
        assert right is None or locate_fault(right, lambda new, case=case: run_of(answer, case, new)) is None


HEADS = right_sources()["multi_head_attention", "MultiHeadAttention", "MultiHeadAttention"]
CAUSAL = right_sources()["causal_attention", "CausalAttention", "CausalAttention"]
WRONG = {
    "heads cut without a transpose": (HEADS, "keys = self.W_key(x).view(pieces).transpose(1, 2)",
                                      "keys = self.W_key(x).view(b, self.num_heads, num_tokens, self.head_dim)"),
    "keys in the place of values": (HEADS, "values = self.W_value(x)", "values = self.W_key(x)"),
    "a mask one too far": (CAUSAL, "diagonal=1", "diagonal=2"),
    "no root": (CAUSAL, "scores / d_k ** 0.5, dim", "scores / d_k, dim"),
    "columns that sum to 1": (CAUSAL, "dim=-1", "dim=-2"),
    "heads merged without a transpose": (HEADS, "context.flatten(2)",
                                         "context.transpose(1, 2).reshape(b, num_tokens, -1)"),
    "returned too early": (HEADS, "return merged", "return context.flatten(2)"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_the_line_is_found(mistake):
    right, old, new = WRONG[mistake]
    unit, exercise = (
        ("multi_head_attention", "MultiHeadAttention") if right is HEADS else ("causal_attention", "CausalAttention")
    )
    assert right.count(old) == 1
    wrong = right.replace(old, new)
    (line,) = (n for n, one in enumerate(wrong.splitlines(), 1) if new in one)
    found = located(unit, exercise, wrong)
    assert found is not None
    assert found.lines == (line,)


def test_a_dropped_mask_is_missed_where_it_is_needed():
    masking = next(line.strip() for line in CAUSAL.splitlines() if "scores = scores.masked_fill(" in line)
    wrong = CAUSAL.replace(masking, "pass")
    found = located("causal_attention", "CausalAttention", wrong)
    assert found.step == "weights"
    assert found.kind == "missing"
    begins, ends = (wrong.splitlines()[line - 1] for line in found.lines)
    assert "scores = queries @ keys" in begins
    assert "softmax" in ends
    assert list(found.right_steps)[:3] == ["mask", "queries", "keys"]


def test_what_is_made_and_not_used_is_told_with_the_line_that_should_use_it():
    wrong = CAUSAL.replace("scores = scores.masked_fill(", "scores.masked_fill(")
    found = located("causal_attention", "CausalAttention", wrong)
    assert found.kind == "unused"
    made, user = (wrong.splitlines()[line - 1].strip() for line in found.lines)
    assert made.startswith("scores.masked_fill(")
    assert "softmax" in user


ANSWERED = {one["name"]: one for one in stored("located")}


@pytest.mark.parametrize("name", ANSWERED)
def test_the_lines_of_a_stored_answer_are_found(name):
    answer = ANSWERED[name]
    found = located(answer["unit"], answer["exercise"], answer["code"])
    assert found is not None
    assert list(found.lines) == answer["lines"]


def test_what_a_line_makes_twice_is_told_beside_what_the_same_call_needs():
    found = located("efficient_attention", "linear_attention", ANSWERED["one line makes two tensors"]["code"])
    positive = found.made > 1  # both are x + 1 there
    assert positive.any()
    assert torch.allclose(found.made[positive], found.expected[positive])


def test_two_slices_of_an_argument_are_not_made_of_each_other():
    source = "def f(x):\n    first, second = x[0], x[1]\n    x[0] = 0\n    return x + 1"
    scope = {}
    exec(compile(source, FILE, "exec"), scope)
    run = trace_run(lambda: scope["f"](torch.ones(2, 3)), RunTracer(FILE.__eq__, {}))
    operators = [one.operator for one in run.made]
    assert operators[:2] == ["select", "select"]
    assert [run.made[0].inputs, run.made[1].inputs] == [(), ()]
    written = next(number for number, one in enumerate(operators) if one in ("fill_", "copy_"))
    assert written in run.made[operators.index("add")].inputs


def test_two_wrong_lines_are_not_called_right():
    wrong = HEADS.replace("** 0.5", "").replace("context.flatten(2)", "2 * context.flatten(2)")
    lines = [n for n, one in enumerate(wrong.splitlines(), 1) if "softmax" in one or "2 * context" in one]
    found = located("multi_head_attention", "MultiHeadAttention", wrong)
    assert found is None or set(found.lines) <= set(lines)


def test_a_trial_replaces_the_same_tensors_as_a_recorded_run():
    source = """\
def f(x):
    state = torch.empty_like(x)
    for row in x.unbind(0):
        largest, at = (row * 2).max(dim=-1)
        state += largest * row
    return state
"""
    scope = {"torch": torch}
    exec(compile(source, FILE, "exec"), scope)
    x = torch.arange(6.0).reshape(2, 3)
    first = trace_run(lambda: scope["f"](x.clone()), RunTracer(FILE.__eq__, {}))
    changed = 0
    for number, one in enumerate(first.made):
        new = {number: one.values + 1}
        recorded, trial = (
            trace_run(lambda: scope["f"](x.clone()), RunTracer(FILE.__eq__, new, is_trial=is_trial))
            for is_trial in (False, True)
        )
        assert torch.equal(recorded.result, trial.result), one
        assert not trial.made
        changed += not torch.equal(recorded.result, first.result)
    assert changed > len(first.made) / 2


@pytest.mark.parametrize("mistake", WRONG)
def test_trials_find_the_fault_of_recorded_runs(mistake):
    right, old, new = WRONG[mistake]
    unit, exercise = (
        ("multi_head_attention", "MultiHeadAttention") if right is HEADS else ("causal_attention", "CausalAttention")
    )
    answer = defined(unit, exercise, right.replace(old, new))
    case, reference = known(unit, exercise)[0]
    tried = []

    def attempt(replaced):
        tried.append(replaced)
        torch.default_generator.manual_seed(0)
        call = TracedCall(answer, case.arguments, case.built, case.parameters, case.through).run
        return trace_run(call, RunTracer(FILE.__eq__, replaced, is_trial=True))

    def rerun(replaced):
        return run_of(answer, case, replaced)

    recorded, by_trials = locate_fault(reference, rerun), locate_fault(reference, rerun, attempt)
    assert (by_trials.lines, by_trials.kind) == (recorded.lines, recorded.kind)
    assert tried or recorded.kind is FaultKind.UNUSED or recorded.kind is FaultKind.WRONG_RETURN


def test_a_run_is_bounded():
    source = "def f(x):\n    for _ in range(2000):\n        x = x + 1\n    return x"
    scope = {}
    exec(compile(source, FILE, "exec"), scope)
    run = trace_run(lambda: scope["f"](torch.zeros(3000)), RunTracer(FILE.__eq__, {}))
    assert len(run.made) == MAX_MADE
    assert sum(one.values.numel() for one in run.made) <= 60_000
    assert decode_trace(pack_run(run)).result[0].tolist() == [2000.0] * 3000


def test_a_run_arrives_as_it_was():
    made = [
        TracedTensor(FILE, 3, "mm", torch.rand(2, 3).double(), (), 8),
        TracedTensor(FILE, 4, "t", torch.rand(3, 1, 2).double(), (0,), 4),
    ]
    run = Run(made, (torch.ones(2),), None, (FILE, 4))
    came = decode_trace(pack_run(run))
    for one, other in zip(came.made, made, strict=True):
        assert (one.file, one.line, one.operator, one.inputs, one.place) == (
            other.file, other.line, other.operator, other.inputs, other.place
        )  # fmt: skip
        assert torch.allclose(one.values, other.values)
    assert (came.returned, came.error) == ((FILE, 4), None)


WHOLE = pack_run(Run([TracedTensor(FILE, 3, "mm", torch.rand(2, 3).double(), (), 8)], torch.ones(2), None, (FILE, 3)))
MARKS = WHOLE[2]


def lie(place, value):
    return tuple(value if at == place else one for at, one in enumerate(WHOLE))


def marks(at, value):
    changed = MARKS.clone()
    changed[at] = value
    return lie(2, changed)


LIES = {
    "nothing": None,
    "a number": 3,
    "too short": WHOLE[:5],
    "a list": list(WHOLE),
    "files that are numbers": lie(0, 7),
    "operators that are a list": lie(1, ["mm"]),
    "more operators than marks": lie(1, "mm\nmm"),
    "marks that are floats": lie(2, MARKS.double()),
    "marks without end": lie(2, MARKS.repeat(100_000)),
    "marks left over": lie(2, torch.cat([MARKS, MARKS])),
    "a matrix of marks": lie(2, MARKS[None]),
    "no marks": lie(2, MARKS[:0]),
    "a file that is not there": marks(0, 4),
    "a negative file": marks(0, -1),
    "a negative line": marks(1, -3),
    "a line without end": marks(1, 1 << 62),
    "a negative place": marks(2, -1),
    "dimensions without end": marks(3, 1 << 40),
    "a negative size": marks(4, -2),
    "sizes whose product wraps to 0": lie(2, torch.tensor([0, 3, 8, 6, *[2048] * 6, 0])),
    "sizes without end": marks(4, 1 << 62),
    "inputs before anything": marks(6, 1),
    "too many numbers": lie(3, torch.zeros(100_000)),
    "too few numbers": lie(3, torch.zeros(2)),
    "numbers in words": lie(3, "1 2 3"),
    "numbers in float64": lie(3, torch.zeros(6, dtype=torch.float64)),
    "a result in words": lie(4, ["right"]),
    "results without end": lie(4, [torch.ones(1)] * 100),
    "a huge result": lie(4, [torch.ones(10_000)]),
    "a complex result": lie(4, [torch.ones(2, dtype=torch.complex64)]),
    "failure in words": lie(5, "yes"),
    "returned nowhere": lie(6, [3, 1]),
    "returned before the first line": lie(6, [0, 0]),
    "returned in words": lie(6, ["a", "b"]),
    "returned half": lie(6, [0]),
}


@pytest.mark.parametrize("told", LIES)
def test_what_is_no_run_is_not_read(told):
    with pytest.raises(ProtocolError):
        decode_trace(LIES[told])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e38, 0.0])
def test_a_run_of_strange_numbers_tells_nothing(number):
    """Numbers alone never make a fault of ours; no substitution repairs a worker that always sends the same."""
    _, right = known("self_attention", "SelfAttention_v1")[0]
    made = [
        TracedTensor(FILE, n + 1, "mm", torch.full((5, 4), number).double(), tuple(range(n))[-16:], 0)
        for n in range(MAX_MADE)
    ]
    run = Run(made, torch.full((5, 4), number), None, (FILE, 1))
    assert locate_fault(right, lambda _: run) is None


def test_a_forged_run_is_searched_in_bounded_time():
    """Hundreds of views, each of many before it: to follow every way through them would take years."""
    case, right = known("self_attention", "attention_scores")[0]
    queries, keys = case.arguments
    junk = torch.arange(float(len(queries) * len(keys))).view(len(queries), len(keys)) + 0.37
    made = [TracedTensor(FILE, 3, "clone", one.double(), (), n) for n, one in enumerate((queries, keys))]
    for n in range(2, 300):
        inputs = tuple(sorted({0, *range(max(0, n - 14), n)} - {1}))
        made.append(TracedTensor(FILE, 4, "view", (junk * 1.5 + n * 0.01).double(), inputs, n))
    results = [junk + 99, torch.zeros_like(junk), queries @ keys.mT]
    asked = []

    def again(replaced):
        asked.append(replaced)
        return Run([] if replaced else made, results[min(2, len(replaced))], None, (FILE, 4))

    with cpu_limit(60):
        locate_fault(right, again)
    assert any(asked)


BLOCK = "tiny_language_model", "TransformerBlock"


def test_what_was_made_of_what_does_not_depend_on_where_it_lies_in_memory():
    """A parameter that gets its numbers lets go of its memory, which the next tensor may get."""
    (case,) = trace_cases(*BLOCK)
    found, junk = [], []
    for number in range(6):
        junk.append(torch.randn(50 + 37 * number))  # so that each time other places are free
        right = reference_trace.reference_trace(BLOCK[0], case)
        found.append((right.ancestors, right.inputs))
    assert all(one == found[0] for one in found)


def test_a_run_with_something_replaced_is_sent_whole():
    """The results of the replacement are inspected as in the student's own kernel."""
    key = "self_attention", "attention_scores"
    scope = {"torch": torch}
    exec(compile(right_sources()[*key, "attention_scores"], f"{CELL_PREFIX}attention_scores", "exec"), scope)
    case = trace_cases(*key)[0]
    asked = TraceRun(case.exercise, Arguments(case.arguments))
    whole = decode_trace(asked.on(Bench(scope)))
    last = len(whole.made) - 1
    new = torch.zeros_like(whole.made[last].values).float()
    mended = decode_trace(replace(asked, numbers=(last,), replaced=(new,)).on(Bench(scope)))
    assert [one.operator for one in mended.made] == [one.operator for one in whole.made]
    assert whole.made[last].values.any()
    assert not mended.made[last].values.any()


def test_a_way_that_lies_too_often_is_not_told():
    unit, exercise, lines, code = (ANSWERED["all in one line"][name] for name in ("unit", "exercise", "lines", "code"))
    answer = defined(unit, exercise, code)
    cases = [(one, of) for one, of in known(unit, exercise) if not of.is_right(run_of(answer, one, {}))]
    case, right = cases[0]

    def again(new):
        return run_of(answer, case, new)

    assert list(locate_fault(right, again).lines) == lines
    quiet = replace(case, unreported=frozenset({locate_fault(right, again).kind}))
    assert locate_fault(replace(right, case=quiet), again) is None
