"""If values are right and another requirement is not met, grading and the check both report the line that breaks it."""

import inspect
import linecache

import pytest
import torch

from autograder import catalogue
from autograder.core import complaints
from autograder.core.comparison import Mismatch, assert_close, golden
from autograder.core.device_probe import ELSEWHERE
from autograder.core.judgement import assert_arrived, assert_devices, assert_dtype, assert_gradient, assert_unchanged
from autograder.core.lost_aspects import find_lost_aspect
from autograder.core.run_trace import TracedCall
from autograder.grading import release_data
from autograder.grading.reference_trace import trace_cases
from autograder.student_check.fault_location import located_fault
from autograder.student_check.unit_data import STEPS, data_file, packed_unit
from benchmarks.located.edits import right_sources
from benchmarks.located.measure import FILE, defined
from tests.typed import alone, stored

WRONG = {one["kind"]: one for one in stored("aspects")}
"""Wrong answers; the line to report ends in `# here`, and `aspect` and `details` are their hidden tests' mismatch."""


def line_of(kind):
    return next(n for n, text in enumerate(WRONG[kind]["code"].splitlines(), start=1) if "# here" in text)


def lost(kind, source):
    """Return the reported lines, in the order of the trace cases."""
    unit, exercise, aspect, details = (WRONG[kind][name] for name in ("unit", "exercise", "aspect", "details"))
    answer = defined(unit, exercise, source)
    cases = trace_cases(unit, exercise)
    asked = [TracedCall(answer, case.arguments, case.built, case.parameters, case.through) for case in cases]
    return [one.line for one in (find_lost_aspect(aspect, tuple(details), each, FILE.__eq__) for each in asked) if one]


@pytest.mark.parametrize("kind", WRONG)
def test_the_line_is_found(kind):
    assert set(lost(kind, WRONG[kind]["code"])) == {line_of(kind)}


@pytest.mark.parametrize("kind", WRONG)
def test_of_a_right_answer_no_line_is_found(kind):
    for (unit, exercise, _), source in right_sources().items():
        if (unit, exercise) == (WRONG[kind]["unit"], WRONG[kind]["exercise"]):
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
    source = WRONG["gradient"]["code"].replace("q, k = F.elu(queries) + 1,", "q, k = F.elu(queries.detach()) + 1,")
    source = source.replace("(weights / total).detach()", "weights / total")
    assert set(lost("gradient", source)) == {2}
    both = source.replace(
        "    total = ", "    values = values * queries.mean().detach() / queries.mean().detach()\n    total = "
    )
    assert lost("gradient", both) == []


@pytest.mark.parametrize("kind", WRONG)
def test_marking_and_the_check_say_the_same(kind, grading_process, tmp_path):
    unit, exercise, source, said = (WRONG[kind][name] for name in ("unit", "exercise", "code", "says"))
    mismatch = WRONG[kind]["aspect"], tuple(WRONG[kind]["details"])
    report = grading_process.grade("x.ipynb", alone(unit, **{exercise: source}), unit).exercise(exercise)
    assert [one.message for one in report.tests if one.outcome == "failed"]
    told = report.whereabouts
    assert told.lines == [line_of(kind)]
    assert said in told.told

    data = tmp_path / data_file(unit)
    data.write_bytes(packed_unit(unit, {STEPS: {exercise: release_data.written_traces(unit, exercise)}}))
    file = f"<ipython-input-{exercise}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = dict(vars(inspect.getmodule(catalogue.solutions(unit)[exercise].answer)))
    exec(compile(source, file, "exec"), names)
    assert located_fault(names, exercise, data, [mismatch], is_wrong=False)[0] == told.told


def test_what_is_not_asked_is_not_told(grading_process):
    """Values apart, a line is looked for only where a complaint is about it."""
    source = WRONG["writes"]["code"].replace("total.mul_(fa)  # here", "total = total * fa")
    report = grading_process.grade("x.ipynb", alone("efficient_attention", merge_states=source), "efficient_attention")
    assert report.exercise("merge_states").whereabouts is None
    assert torch.is_grad_enabled()
