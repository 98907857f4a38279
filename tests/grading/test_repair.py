"""Repairs of wrong answers: candidate edits, their search in a worker, and what is reported of them.

The answers in tests/answers/repaired were written from the exercise texts by people who had seen neither the hidden
tests nor the known misconceptions. The first line of each file names the lines that are wrong.
"""

import ast
import hashlib
import json
import shutil
from functools import cache
from itertools import count
from textwrap import indent

import pytest
import torch
from msgspec.structs import replace

from autograder import catalogue, course
from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.edit_trials import Redefine, TryEdits, equal_fingerprints, fingerprint
from autograder.core.operations import Call
from autograder.course.cells import code_cells, filled_in
from autograder.course.notebook import parse
from autograder.graders.budget import OutOfBudget
from autograder.graders.collection import collect
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.grading.examiner import Examiner
from autograder.grading.inverses import inverse_edits, inverses
from autograder.grading.repair_search import MAX_EXERCISE_SECONDS, MAX_SECONDS, RepairTime
from autograder.grading.repairs import RepairCache
from autograder.grading.unexplained_answer import UnexplainedAnswer
from autograder.pool.requests import FindRepairs, GradeNotebook
from autograder.report import Behaviour
from autograder.tracing.definitions import Definition
from autograder.tracing.repair_operators import generic_edits
from tests import REPOSITORY, TESTS, forked_command
from tests.held_out import held_out
from tests.sampling import thinned
from tests.typed import stored

REPAIRED = sorted((TESTS / "answers" / "repaired").glob("*.py"))
INPUTS = Arguments((torch.tensor([1.0, 2.0]),))


def definition(text, name="f"):
    return Definition(name, "cell", text, 1)


def edited(text):
    """All texts that one generic edit makes of a definition."""
    return {definition(text).edited(edit).text for edit in generic_edits(definition(text))}


# What a student wrote, and what a teacher would change it to.
EDITS = stored("repair_edits")


@pytest.mark.parametrize("name", EDITS)
def test_a_generic_edit_makes(name):
    before, after = ("def f(x, m):\n" + indent(body, "    ") + "\n" for body in EDITS[name])
    assert after in edited(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.p = torch.ones(3)", 'self.register_buffer("p", torch.ones(3))'),
        ("self.p = nn.Parameter(torch.ones(3))", 'self.register_buffer("p", torch.ones(3))'),
    ],
)
def test_a_tensor_becomes_a_buffer(before, after):
    text = "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {}\n"
    assert text.format(after) in edited(text.format(before))


def test_an_option_is_passed_on():
    text = "def f(x, eps=1e-6, *, scale=1.0):\n    return rms_norm(x{})\n"
    assert {text.format(", eps=eps"), text.format(", scale=scale")} <= edited(text.format(""))
    assert text.format(", eps, eps=eps") not in edited(text.format(", eps"))


def test_most_edits_are_valid_code():
    for unit in ("self_attention", "tiny_language_model"):
        for name, solution in thinned(catalogue.solutions(unit).items(), 4, by=lambda item: item[0]):
            whole = definition(solution.source() + "\n", name)
            texts = [whole.edited(edit).text for edit in generic_edits(whole)]
            invalid = [text for text in texts if not _is_valid(text)]
            assert len(invalid) <= len(texts) / 100


def _is_valid(text):
    try:
        return bool(ast.parse(text))
    except SyntaxError:
        return False


def test_positions_count_bytes():
    text = "def f(x, größe):\n    return größe * x + größe\n"
    assert "def f(x, größe):\n    return größe * x - größe\n" in edited(text)


def test_an_edit_follows_another_one_in_the_same_text():
    whole = definition("def f(x):\n    return x + 1, x - 1\n")
    first, second = (whole.encoded.index(sign) for sign in (b"x + 1", b"x - 1"))
    edits = {edit.spans: edit for edit in generic_edits(whole)}
    one, other = (edits[(begin, begin + 5, "x"),] for begin in (first, second))
    assert one.is_apart_from(other)
    assert whole.edited(one).edited(other.after(one)).text == "def f(x):\n    return x, x\n"


def test_sizes_are_no_operands_that_are_missing():
    texts = edited("def f(x, m):\n    b, T = x.shape\n    scores = x @ m\n    return scores\n")
    assert "def f(x, m):\n    b, T = x.shape\n    scores = m + (x @ m)\n    return scores\n" in texts
    assert not any("b + (x @ m)" in text or "(x @ m) + T" in text for text in texts)
    assert any("(x @ m) / T" in text for text in texts)


@pytest.mark.parametrize(("line", "rank"), [("x.data = m.T", 2), ("x = m.T", 5)])
def test_a_copy_is_likely_where_a_value_is_stored(line, rank):
    whole = definition(f"def f(x, m):\n    {line}\n    return x\n")
    (copy,) = (edit for edit in generic_edits(whole) if edit.spans[0][2] == "(m.clone())")
    assert copy.rank == rank


def test_an_inverse_repairs_code_with_other_names():
    known = inverses(
        one for one in catalogue.misconceptions("self_attention").values() if one.exercise == "scaled_softmax"
    )
    student = definition("def f(logits, width):\n    return torch.softmax(logits / width, dim=-1)\n")
    edits = {student.edited(edit).text: edit.misconceptions for edit in inverse_edits(student, known)}
    right = "def f(logits, width):\n    return torch.softmax(logits / width ** 0.5, dim=-1)\n"
    assert "divided_by_d_k" in edits[right]


def test_a_redefinition_ends_with_the_next_one():
    bench = Bench({"f": lambda x: x, "g": lambda x: -x})
    bench.ask(Redefine((("f", "def f(x):\n    return g(x) * 3\n", "cell", 1),)))
    assert bench.ask(Call("f", INPUTS)).value.tolist() == [-3.0, -6.0]
    bench.ask(Redefine((("g", "def g(x):\n    return x\n", "cell", 1),)))
    assert bench.ask(Call("f", INPUTS)).value.tolist() == [1.0, 2.0]


def test_variants_that_raise_or_never_end_do_not_stop_the_others():
    bench = Bench({"f": lambda x: x})
    bodies = ["return y", "while True: pass", "return (", "return 2 * x"]
    variants = tuple((("f", f"def f(x):\n    {body}\n", "cell", 1),) for body in bodies)
    prints = bench.ask(TryEdits(variants, (Call("f", INPUTS),)))
    expected = fingerprint(Bench({"f": lambda x: x + x}).ask(Call("f", INPUTS)))
    assert equal_fingerprints(prints[:, 0], expected).tolist() == [False, False, False, True]
    assert prints[0, 0, 0] < 0
    assert prints[1, 0, 0] <= 0


@pytest.mark.parametrize(
    "other", [torch.tensor([2.0, 1.0]), torch.tensor([1.0, 2.0]).double(), [1.0, 2.0], torch.ones(2, 1)]
)
def test_prints_differ(other):
    assert not equal_fingerprints(fingerprint(other), fingerprint(torch.tensor([1.0, 2.0])))


@cache
def right(unit):
    return {name: solution.source() for name, solution in catalogue.solutions(unit).items()}


def submission(unit, exercise, code):
    content = filled_in(unit, {**right(unit), exercise: code})
    return GradeNotebook("homework.ipynb", content, unit, hashlib.sha256(content).hexdigest())


def repaired(grading_process, unit, exercise, code):
    """The report with repairs, which are searched even if a misconception is known."""
    request = submission(unit, exercise, code)
    report = grading_process.report(request)
    unexplained = [
        replace(one, diagnosis=None, behaviour=Behaviour("", [])) if one.name == exercise else one
        for one in report.exercises
    ]
    after = grading_process.report(FindRepairs(request, replace(report, exercises=unexplained)))
    assert (after.score, [one.tests for one in after.exercises]) == (
        report.score,
        [one.tests for one in report.exercises],
    )
    return after.exercise(exercise)


@pytest.mark.parametrize("file", thinned(REPAIRED, 4, by=lambda file: file.stem), ids=lambda file: file.stem)
def test_the_repair_is_on_the_wrong_lines(grading_process, file):
    unit, exercise, _ = file.stem.split("__")
    code = file.read_text()
    wrong = {
        line.strip() for part in code.splitlines()[0].split("# line: ")[1].split(" ;; ") for line in part.split(" || ")
    }
    report = repaired(grading_process, unit, exercise, code)
    changed = [{change.before.strip() for change in repair.changes} for repair in report.repairs]
    assert any(lines & wrong for lines in changed)
    assert {code.splitlines()[line - 1].strip() for line in report.whereabouts.lines} & wrong
    assert "all tests pass, which was tried" in report.whereabouts.told


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("self_attention__scaled_dot_product_attention__sd_w3", "by its square root twice"),
        ("self_attention__single_query_attention__sq_w6", "or the context vectors"),
        ("causal_attention__CausalAttention__ca_w3", "make nn.Dropout in __init__"),
        ("inference__KVCache__kv_swapped_first", ""),  # no two mistakes: keys and values are swapped once
    ],
)
def test_a_diagnosis_advises_nothing_that_the_code_does(grading_process, name, says):
    unit, exercise, _ = name.split("__")
    (file,) = (one for one in REPAIRED if one.stem == name)
    diagnosis = grading_process.report(submission(unit, exercise, file.read_text())).exercise(exercise).diagnosis
    assert says in diagnosis.sentence if says else diagnosis is None


def test_an_edit_that_makes_a_mistake_of_its_own_is_no_repair(grading_process):
    # `return b` would be a known mistake, and one edit away from this.
    code = """def merge_states(a, b):
    larger = torch.maximum(a[0], b[0])
    down_a = torch.exp(a[0] - larger)
    down_b = torch.exp(b[0] - larger)
    total = a[1] * down_a + b[1] * down_b
    output = a[2] * down_b + b[2] * down_a
    return larger, total, output
"""
    report = repaired(grading_process, "efficient_attention", "merge_states", code)
    assert report.repairs == []


def test_no_repair_means_no_claim(grading_process):
    code = "def scaled_softmax(scores, d_k):\n    return scores.new_zeros(3)\n"
    report = repaired(grading_process, "self_attention", "scaled_softmax", code)
    assert report.repairs == []
    assert report.diagnosis is None


def test_the_misconception_is_named_if_its_inverse_repairs_the_answer(grading_process):
    code = "def scaled_softmax(s, width):\n    print('hello')\n    return F.softmax(s / width, dim=-1)\n"
    report = repaired(grading_process, "self_attention", "scaled_softmax", code)
    assert report.diagnosis.name == "divided_by_d_k"
    assert [change.line for repair in report.repairs[:1] for change in repair.changes] == [3]


def held_out_answer(unit, name):
    return next(one for one in held_out(unit) if one.name == name)


def test_an_edit_that_is_right_only_for_few_queries_is_no_repair(grading_process):
    # With `c + 2` the blocks overlap, so that all queries are there if there are fewer than eight.
    one = held_out_answer("self_attention", "query_chunks_drop_the_rest")
    report = repaired(grading_process, "self_attention", one.exercise, one.code)
    changed = [change.after.strip() for repair in report.repairs for change in repair.changes]
    assert changed
    assert not any("c + 2" in line for line in changed)


def test_a_repair_is_not_named_by_a_misconception_with_other_results(grading_process):
    one = held_out_answer("self_attention", "casefolded_and_counted")
    report = repaired(grading_process, "self_attention", one.exercise, one.code)
    assert report.repairs
    assert report.diagnosis is None


def repairs_in(kind, fork_server, code):
    """Search repairs of a `scaled_softmax` in workers of this kind of SandboxedNotebook."""
    unit = course.unit("self_attention")

    def start(cells, *, is_alone=False):
        names = [one.name for one in unit.exercises]
        return kind(fork_server("A"), cells, "cpu", exercises=names, is_alone=is_alone)

    cells = code_cells(parse(submission(unit.name, "scaled_softmax", code).content), unit)
    answer = UnexplainedAnswer(Examiner(collect()), unit, unit.exercise("scaled_softmax"), cells, start)
    return RepairCache().find_repairs(answer, frozenset(), RepairTime(lambda: 0.0))


def test_no_worker_is_started_after_the_budget_is_used_up(fork_server):
    asked = []

    class Spent(SandboxedNotebook):
        def ask(self, operation):
            if isinstance(operation, TryEdits | Redefine):
                asked.append(type(operation))
                if len(operation.variants if isinstance(operation, TryEdits) else ()) > 20:
                    raise OutOfBudget
            return super().ask(operation)

    code = "def scaled_softmax(scores, d_k):\n    a = scores.sin()\n    b = a.cos()\n    return b\n"
    assert repairs_in(Spent, fork_server, code) == []
    assert TryEdits in asked
    assert Redefine not in asked


def test_code_that_never_ends_when_it_is_edited_costs_only_the_repair(grading_process):
    code = "def scaled_softmax(scores, d_k):\n    n = 0\n    while n < 3:\n        n += 1\n    return scores * n\n"
    report = repaired(grading_process, "self_attention", "scaled_softmax", code)
    assert report.status == "failed"
    assert report.repairs == []


def test_equal_code_is_searched_once_and_verified_for_each_submission(fork_server):
    unit = course.unit("self_attention")
    exercise, examiner, cache, searches = unit.exercise("scaled_softmax"), Examiner(collect()), RepairCache(), []

    def start(cells, *, is_alone=False):
        searches.extend([cells] * is_alone)
        names = [one.name for one in unit.exercises]
        wrong = examiner.hunted(unit.name)
        return SandboxedNotebook(fork_server("A"), cells, "cpu", exercises=names, wrong=wrong, is_alone=is_alone)

    def found(scale, above="", workers=lambda: 0.0):
        code = "def scaled_softmax(s, width):\n    return F.softmax(SCALE * s / width, dim=-1)\n"
        code = f"{above}SCALE = {scale}\n\n{code}"
        cells = code_cells(parse(submission(unit.name, exercise.name, code).content), unit)
        answer = UnexplainedAnswer(examiner, unit, exercise, cells, start)
        repairs = cache.find_repairs(answer, frozenset(), RepairTime(workers))
        assert all(answer.is_repaired(one) for one in repairs)
        return repairs

    def lines(repairs):
        return [line for one in repairs for step in one.steps for line in step.lines]

    first, again = found(1), found(1, "# Mine.\n")
    assert len(searches) == 1
    assert lines(again) == [line + 1 for line in lines(first)] != []
    # With another constant the cached repairs do not earn the points. The new search has no time.
    assert found(3, workers=count(0, MAX_SECONDS + 1).__next__) == []
    assert len(searches) == 2


def test_statements_that_the_test_does_not_reach_get_no_unlikely_edits(fork_server):
    tried = []

    class Recorded(SandboxedNotebook):
        def ask(self, operation):
            if isinstance(operation, TryEdits):
                tried.extend(text for variant in operation.variants for _, text, _, _ in variant)
            return super().ask(operation)

    code = "def scaled_softmax(scores, d_k):\n    a = scores.sin(7)\n    b = scores.cos()\n    return b\n"
    repairs_in(Recorded, fork_server, code)
    assert any("scores.sin(7).flatten()" in text for text in tried)
    assert not any("scores.cos().flatten()" in text for text in tried)


def test_an_exercise_and_a_submission_have_limits():
    workers = [0.0]
    time = RepairTime(lambda: workers[0])
    seen = [(time.is_short, time.is_over)]
    for seconds in (MAX_EXERCISE_SECONDS - 1, MAX_EXERCISE_SECONDS + 1):
        workers[0] = seconds
        seen.append((time.is_short, time.is_over))
    workers[0] = MAX_SECONDS - 1
    time.begin_exercise()
    seen.append((time.is_short, time.is_over))
    workers[0] = MAX_SECONDS + 1
    time.begin_exercise()
    seen.append((time.is_short, time.is_over))
    assert seen == [(False, False), (False, False), (False, True), (True, False), (True, True)]


def test_a_class_gets_its_points_first_and_repairs_after(tmp_path):
    unit = "self_attention"
    file = next(one for one in REPAIRED if one.stem == "self_attention__score_variance__two")
    content = submission(unit, "score_variance", file.read_text()).content
    folder = tmp_path / "submitted" / "bob" / unit
    folder.mkdir(parents=True)
    (folder / f"{unit}.ipynb").write_bytes(content)
    reports = []
    for options in (["--no-repair"], []):
        ended = forked_command.autograder("grade", unit, "--course", tmp_path, *options, cwd=REPOSITORY, timeout=300)
        assert ended.returncode == 0, ended.stderr
        report = tmp_path / "autograded" / "bob" / unit / "report.json"
        reports.append(json.loads(report.read_text()))
    before, after = reports
    assert before["score"] == after["score"]
    assert (before["repairs_searched"], after["repairs_searched"]) == (False, True)
    assert all(exercise["repairs"] == [] for exercise in before["exercises"])
    (wrong,) = [exercise for exercise in after["exercises"] if exercise["repairs"]]
    assert wrong["name"] == "score_variance"
    assert "which was tried" in wrong["whereabouts"]["told"]
    page = tmp_path / "feedback" / "bob" / unit / f"{unit}.html"
    assert "which was tried" in page.read_text()

    # nbgrader's own autograde, which formgrader's button runs, finds the same.
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    for kind in ("source", "release"):
        shutil.copytree(REPOSITORY / kind / unit, tmp_path / kind / unit)
    (tmp_path / "autograded" / "bob" / unit / "report.json").unlink()
    ended = forked_command.nbgrader("autograde", unit, "--student", "bob", "--force", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    by_nbgrader = json.loads((tmp_path / "autograded" / "bob" / unit / "report.json").read_text())
    assert by_nbgrader["exercises"] == after["exercises"]
    assert "which was tried" in (tmp_path / "autograded" / "bob" / unit / f"{unit}.ipynb").read_text()
