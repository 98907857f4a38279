"""Notebooks through the real two processes: what each earns, and that no exercise pays for another's trouble."""

import json

import pytest

from autograder import catalogue, course
from autograder.core.observation import Raised
from autograder.course.cells import filled_in
from autograder.course.notebook_file import read_at
from autograder.graders.backend import Recording
from autograder.graders.proxy import StudentProxy
from autograder.report import NOT_WRITTEN
from tests import RELEASE, SOURCE, sampling
from tests.typed import alone, solved

UNIT = "self_attention"


@pytest.fixture
def mark_one(grading_process):
    """Grade one exercise of the unit with this answer."""

    def mark_one(exercise, code):
        return grading_process.grade("typed.ipynb", alone(UNIT, **{exercise: code}), UNIT).exercise(exercise)

    return mark_one


def statuses(report):
    return {exercise.name: exercise.status for exercise in report.exercises}


def messages(exercise):
    return " ".join([exercise.message, *(test.message for test in exercise.tests)])


@pytest.mark.parametrize("unit", course.unit_names())
def test_stub_notebook_scores_zero(grading_process, unit):
    report = grading_process.grade(unit, read_at(RELEASE / unit / f"{unit}.ipynb").content)
    assert (report.status, report.score, report.isolation) == ("graded", 0.0, "A")
    assert all(exercise.message.startswith(NOT_WRITTEN) for exercise in report.exercises)


@pytest.mark.parametrize("unit", course.unit_names())
def test_source_notebook_scores_full(grading_process, unit):
    report = grading_process.grade(unit, read_at(SOURCE / unit / f"{unit}.ipynb").content)
    assert report.score == report.max_score == course.unit(unit).max_score
    assert set(statuses(report).values()) == {"passed"}


TRIVIAL_FUNCTIONS = {
    "None": "return None",
    "zeros": "return torch.zeros(1)",
    "zeros of the right shape": "return torch.zeros(*a.shape[:-1], b if isinstance(b, int) else b.shape[-2])",
    "ones like the first": "return torch.ones_like(a)",
    "the first argument": "return a",
}


@pytest.mark.parametrize("body", TRIVIAL_FUNCTIONS.values(), ids=TRIVIAL_FUNCTIONS)
def test_trivial_functions_score_zero(grading_process, body):
    answers = {name: f"def {name}(a, b):\n    {body}" for name in ("attention_scores", "scaled_softmax")}
    report = grading_process.grade("typed.ipynb", alone(UNIT, **answers), UNIT)
    assert [report.exercise(name).score for name in answers] == [0, 0]


TRIVIAL_FORWARDS = {
    "None": "return None",
    "zeros": "return torch.zeros(x.shape[0], self.d_out)",
    "ones": "return torch.ones(x.shape[0], self.d_out)",
    "the input": "return x",
}


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        pytest.param(body, parameters, id=f"{name}-{'with parameters' if parameters else 'without'}")
        for place, (name, body) in enumerate(TRIVIAL_FORWARDS.items())
        for parameters in (True, False)
        if sampling.every or parameters == place % 2
    ],
)
def test_trivial_module_scores_zero(mark_one, body, parameters):
    """Each with parameters or without; `pytest --every` tries each with and without."""
    weights = "".join(
        f"        self.{name} = nn.Parameter(torch.rand(d_in, d_out))\n"
        for name in (("W_query", "W_key", "W_value") if parameters else ())
    )
    code = (
        "class SelfAttention_v1(nn.Module):\n    def __init__(self, d_in, d_out):\n        super().__init__()\n"
        f"        self.d_out = d_out\n{weights}    def forward(self, x):\n        {body}"
    )
    assert mark_one("SelfAttention_v1", code).score == 0


SCALED_SOFTMAX = "def scaled_softmax(scores, d_k):\n    "

TROUBLE = {
    "syntax error": ("def scaled_softmax(scores, d_k)\n    return scores", "error", "cells_failed"),
    "exception at import": ("1 / 0\n" + SCALED_SOFTMAX + "pass", "error", "cells_failed"),
    "cell emptied": ("", "missing", "graded"),
    "a NumPy array": (SCALED_SOFTMAX + "return scores.detach().numpy()", "failed", "graded"),
}
"""Other faults of submissions are in tests/misbehaving/."""


@pytest.mark.parametrize(("code", "status", "submission"), TROUBLE.values(), ids=TROUBLE)
def test_a_fault_costs_only_its_own_exercise(mark, code, status, submission):
    report = mark(scaled_softmax=code)
    assert report.exercise("scaled_softmax").score == 0
    found = statuses(report)
    assert found.pop("scaled_softmax") == status
    assert set(found.values()) == {"passed"}
    assert report.status == submission


STRANGE = {
    "asks for help": "help(torch.softmax)\n",
    "writes a module": "open('my_helper.py', 'w').write('x = 1')\nimport my_helper\n",
    "prints half a character": "print(chr(0xd800))\n",
}


@pytest.mark.parametrize("code", STRANGE.values(), ids=STRANGE)
def test_a_strange_cell_costs_nothing(mark, code):
    right = catalogue.solutions(UNIT)["scaled_softmax"].source()
    report = mark(scaled_softmax=code + right)
    assert (report.status, report.score) == ("graded", report.max_score)


def test_an_exercise_of_the_wrong_kind_is_reported(mark_one):
    exercise = mark_one("SelfAttention_v1", "def SelfAttention_v1(d_in, d_out): pass")
    assert (exercise.status, exercise.message) == (
        "failed",
        "`SelfAttention_v1` is a function; it should be a class.",
    )


def test_a_missing_forward_is_not_an_unwritten_stub(mark_one):
    code = (
        "class SelfAttention_v1(nn.Module):\n    def foward(self, x): return x\n"
        "    def __init__(self, a, b):\n        super().__init__()"
    )
    assert 'is missing the required "forward" function' in messages(mark_one("SelfAttention_v1", code))


def test_half_a_character_in_an_error_is_only_an_error(mark_one):
    exercise = mark_one("scaled_softmax", SCALED_SOFTMAX + "raise ValueError(chr(0xd800))")
    assert "Raised ValueError: ?" in messages(exercise)


STRANGE_RESULTS = {
    "float8": "return torch.zeros(6, 6).to(torch.float8_e4m3fn)",
    "complex": "return torch.zeros(6, 6, dtype=torch.complex64)",
    "a subclass that raises": "class L(list):\n        def __iter__(self): raise OSError\n    return L([1])",
    "a lazy parameter": "return nn.LazyLinear(3).weight",
    "a generator": "return (x for x in scores)",
    "a meta tensor": "return torch.zeros(6, 6, device='meta')",
}


@pytest.mark.parametrize("body", STRANGE_RESULTS.values(), ids=STRANGE_RESULTS)
def test_a_strange_result_is_a_wrong_result(mark_one, body):
    exercise = mark_one("scaled_softmax", SCALED_SOFTMAX + body)
    assert (exercise.status, exercise.score) == ("failed", 0)
    assert {test.outcome for test in exercise.tests} <= {"failed", "withheld"}


def test_the_next_submission_is_untouched(mark):
    patched = "torch.softmax = lambda *a, **k: None\ntorch.Tensor.__matmul__ = lambda a, b: a\n"
    mark(scaled_softmax=patched + SCALED_SOFTMAX + "pass")
    assert mark().score == course.unit(UNIT).max_score


def test_warnings_and_stderr_cost_nothing(mark):
    loud = "import sys, warnings\nwarnings.warn('careful')\nprint('oh', file=sys.stderr)\n"
    body = "\n    warnings.warn('again'); print('oh', file=sys.stderr)\n"
    answer = catalogue.right_answers(UNIT)["functional_softmax"].source().replace("\n", body, 1)
    report = mark(scaled_softmax=loud + answer)
    assert (report.status, report.score) == ("graded", report.max_score)


def test_of_two_definitions_the_last_counts(mark_one):
    right = catalogue.solutions(UNIT)["scaled_softmax"].source()
    wrong = catalogue.misconceptions(UNIT)["divided_by_d_k"].source()
    assert mark_one("scaled_softmax", f"{wrong}\n\n{right}").status == "passed"
    assert mark_one("scaled_softmax", f"{right}\n\n{wrong}").status == "failed"


IPYTHON = """%matplotlib inline
!pip install einops
%pip install einops
files = !ls
%no_such_magic at all
%timeit sum(range(10))
%time total = sum(range(10))
import matplotlib.pyplot as plt
from IPython.display import HTML, display
plt.plot([1, 2]); plt.show()
display(HTML("<b>bold</b>")); display(plt.gcf())
len?
await __import__("asyncio").sleep(0)
"""


def test_ipython_lines_plots_and_displays_cost_nothing(mark):
    right = catalogue.right_answers(UNIT)["functional_softmax"].source()
    report = mark(scaled_softmax=IPYTHON + right, attention_scores="%%bash\necho hello")
    assert report.exercise("scaled_softmax").status == "passed"
    assert (report.exercise("attention_scores").status, report.status) == ("missing", "graded")
    timed = mark(scaled_softmax="%%time\n" + right, attention_scores="%%timeit\nx = 1")
    assert timed.exercise("scaled_softmax").status == "passed"


WRONG_RESULTS = {
    "None": ("return None", "is None; a tensor of shape"),
    "a list": ("return scores.tolist()", "is a list of 6; a tensor"),
    "a NumPy array": (
        "return torch.softmax(scores / d_k ** 0.5, dim=-1).detach().numpy()",
        "is a numpy.ndarray; a tensor",
    ),
    "a wrong dtype": ("return torch.softmax(scores / d_k ** 0.5, dim=-1).half()", "differs in"),
    "a wrong shape": (
        "return torch.softmax(scores / d_k ** 0.5, dim=-1)[..., :1]",
        "has shape (5, 1); (5, 5) is expected",
    ),
    "NaN": ("return scores / 0 * 0", "has NaN in 25 of 25 places, first at [0, 0]"),
    "an exception": ("raise ValueError('no idea')", "Raised ValueError: no idea (line 2 of the cell `scaled_softmax`)"),
    "a module that is missing": ("import einopsy", "ModuleNotFoundError: No module named 'einopsy'"),
}


@pytest.mark.parametrize(("body", "words"), WRONG_RESULTS.values(), ids=WRONG_RESULTS)
def test_a_wrong_return_value_is_described_in_words(mark_one, body, words):
    exercise = mark_one("scaled_softmax", SCALED_SOFTMAX + body)
    assert exercise.status == "failed"
    assert words in messages(exercise)


def test_wrong_signature(mark_one):
    exercise = mark_one("scaled_softmax", "def scaled_softmax(scores): return scores")
    assert (exercise.status, exercise.score) == ("failed", 0)
    assert "TypeError: scaled_softmax() takes 1 positional argument but 2 were given" in messages(exercise)


def test_forbidden_library_costs_the_exercise(mark_one):
    code = """
def attention_scores(queries, keys):
    F.scaled_dot_product_attention(queries[None], keys[None], keys[None])
    return queries @ keys.transpose(-2, -1)
"""
    exercise = mark_one("attention_scores", code)
    assert (exercise.status, exercise.score) == ("forbidden", 0)
    assert "a library's attention" in exercise.message


SAMPLE = {
    "value": "divided_by_d_k",
    "shape": "softmax_over_dim_1",
    "edge": "exponentials_overflow",
    "gradient": "weights_detached",
    "initialisation": "NormalWeights",
    "dtype": "weights_in_float32",
    "side effect": "scores_changed_in_place",
    "device": "scores_left_on_the_cpu",
    "contract": "BiasIgnored",
    "exception": "unknown_words_skipped",
    "hard-coded output": "WorkedExampleTypedIn",
    "several results": "scaled_variance_first",
}


@pytest.mark.parametrize("name", SAMPLE.values(), ids=SAMPLE)
def test_a_mistake_is_named_through_both_processes(mark_one, name):
    entry = catalogue.misconceptions(UNIT)[name]
    exercise = mark_one(entry.exercise, entry.source())
    assert exercise.diagnosis is not None
    assert exercise.diagnosis.name == name


def test_right_answers_get_full_marks_through_both_processes(mark):
    """One notebook with another style in every exercise."""
    styles = {entry.exercise: entry for entry in catalogue.right_answers(UNIT).values()}
    report = mark(**{exercise: entry.source() for exercise, entry in styles.items()})
    assert [e.name for e in report.exercises if e.status != "passed"] == []


def test_an_unknown_mistake_gets_no_name(mark_one):
    code = SCALED_SOFTMAX + "return torch.softmax(scores / (d_k + 1) ** 0.5, dim=-1)"
    exercise = mark_one("scaled_softmax", code)
    assert (exercise.status, exercise.diagnosis) == ("failed", None)
    assert "differs in" in messages(exercise)


def test_an_error_says_where_it_was_raised(mark_one):
    exercise = mark_one("scaled_softmax", SCALED_SOFTMAX + "x = 1\n    return scores / (x - 1 + scor)")
    assert "NameError: name 'scor' is not defined (line 3 of the cell `scaled_softmax`)" in messages(exercise)


def test_grading_is_repeatable(mark):
    answers = {"scaled_softmax": catalogue.misconceptions(UNIT)["root_rounded_down"].source()}
    assert mark(**answers) == mark(**answers)


@pytest.mark.parametrize("values", ["torch.eye(len(words))", "torch.zeros(len(words), 0)", "['a'] * len(words)"])
def test_a_vocabulary_of_other_things_than_numbers_is_a_mistake_and_not_our_fault(mark_one, values):
    code = (
        f"def build_vocab(sentence):\n    words = sorted(set(sentence.split()))\n    return dict(zip(words, {values}))"
    )
    assert mark_one("build_vocab", code).status == "failed"


def test_a_cell_with_a_name_without_end_and_marks_of_its_own_stays_short(grading_process):
    notebook = json.loads(filled_in(UNIT, {}))
    metadata = {"nbgrader": {"grade_id": "<b>" * 100_000}}
    notebook["cells"].append({"cell_type": "code", "id": "x", "metadata": metadata, "source": "1 / 0"})
    report = grading_process.grade("named.ipynb", json.dumps(notebook).encode(), UNIT)
    assert len(report.message) < 300


def test_an_error_claimed_before_anything_was_called_is_the_students():
    """A worker that a submission has taken over may answer every question with the refusal that a grader waits for."""

    class Claims:
        def ask(self, operation):
            raise Raised("ValueError", "no", None, ["ValueError"])

    student = StudentProxy(Recording(Claims()))
    with pytest.raises(Raised), student.refusing(frozenset({"ValueError"})):
        student.split_heads(1, 2)


CAUSAL = "causal_attention"


def mark_causal(grading_process, exercise, old, new, notebook=solved):
    """Marks the unit's solutions, one of them changed; or, with `alone`, this and what it uses."""
    answer = catalogue.solutions(CAUSAL)[exercise].source()
    assert old in answer
    return grading_process.grade("typed.ipynb", notebook(CAUSAL, **{exercise: answer.replace(old, new)}), CAUSAL)


def test_a_root_taken_with_a_tensor_is_right_in_the_class_and_in_what_uses_it(grading_process):
    """In float64 it is as exact as float32, which shows only where the width is no square."""
    report = mark_causal(grading_process, "CausalAttention", "d_k ** 0.5", "torch.sqrt(torch.tensor(d_k))")
    assert report.score == report.max_score


@pytest.mark.parametrize(
    ("exercise", "old", "new", "words"),
    [
        ("CausalAttention", "triu(diagonal=1)", "triu(diagonal=0)", "Some weights are NaN or infinite."),
        (
            "causal_head",
            "return weights",
            "return nn.functional.dropout(weights, 0.1)",
            "Two calls with the same input",
        ),
        (
            "causal_head",
            "    num_tokens",
            "    raise NotImplementedError()\n    num_tokens",
            "of the cell `causal_head` and ends the call there",
        ),
    ],
)
def test_a_sentence_names_the_cause(grading_process, exercise, old, new, words):
    marked = mark_causal(grading_process, exercise, old, new, alone).exercise(exercise)
    assert any(words in said for said in (marked.message, *(test.message for test in marked.tests)))


SPARED = {
    "the diagonal": "(torch.rand_like(weights) >= p) | torch.eye(*weights.shape[-2:], device=weights.device).bool()",
    "a number": "torch.rand_like(weights).argsort(-1) >= int(p * weights.shape[-1])",
    "the first key": "(torch.rand_like(weights) >= p) | (torch.arange(weights.shape[-1], device=weights.device) == 0)",
}
LARGE = {CAUSAL: "CausalAttention", "multi_head_attention": "MultiHeadAttention"}


@pytest.mark.parametrize(
    ("unit", "exercise", "kept"),
    [
        pytest.param(unit, exercise, kept, id=f"{unit}-{spared}")
        for place, (spared, kept) in enumerate(SPARED.items())
        for number, (unit, exercise) in enumerate(LARGE.items())
        if sampling.every or number == place % len(LARGE)
    ],
)
def test_dropout_that_spares_is_caught_in_the_large_classes(grading_process, unit, exercise, kept):
    """Each in one of them; `pytest --every` tries each in both."""
    right = catalogue.solutions(unit)[exercise].source()
    drop = f"""class Sparing(nn.Dropout):
    def forward(self, weights):
        p = self.p
        return weights * ({kept}) / (1 - p) if self.training else weights


"""
    assert "nn.Dropout(dropout)" in right
    answer = drop + right.replace("nn.Dropout(dropout)", "Sparing(dropout)")
    failed = [
        test
        for test in grading_process.grade("typed.ipynb", alone(unit, **{exercise: answer}), unit)
        .exercise(exercise)
        .tests
        if test.outcome == "failed"
    ]
    assert [test.name for test in failed] == ["test_dropout_in_training"]
    assert "Does your code protect some positions, or drop a fixed number?" in failed[0].message


def test_an_exercise_that_uses_a_wrong_one_gets_no_diagnosis(grading_process):
    """Dropout is forgotten in CausalAttention; the wrapper passes on what it gets."""
    report = mark_causal(
        grading_process,
        "CausalAttention",
        "self.dropout(torch.softmax(scores / d_k ** 0.5, dim=-1))",
        "torch.softmax(scores / d_k ** 0.5, dim=-1)",
    )
    attention, wrapper = report.exercise("CausalAttention"), report.exercise("MultiHeadAttentionWrapper")
    assert attention.diagnosis.name == "DropoutForgotten"
    assert (wrapper.status, wrapper.diagnosis) == ("failed", None)
    assert wrapper.message.startswith("It uses your `CausalAttention`, which is not right yet")


PAIRWISE = """
def pairwise_scores(inputs):
    scores = torch.empty(len(inputs), len(inputs))
    for i, query in enumerate(inputs):
        scores[i] = inputs @ query
    return scores
"""
CALLS_IT = """
def attention_weights(inputs):
    return torch.softmax(pairwise_scores(inputs), dim=-1)

def simple_self_attention(inputs):
    return attention_weights(inputs) @ inputs
"""
HAS_ONE_OF_ITS_OWN = """
def simple_self_attention(inputs):
    pairwise_scores = inputs @ inputs.T
    return torch.softmax(pairwise_scores, dim=0) @ inputs
"""


@pytest.mark.parametrize(("code", "is_used"), [(CALLS_IT, True), (HAS_ONE_OF_ITS_OWN, False)], ids=["used", "local"])
def test_the_wrong_answers_that_an_answer_uses_are_those_in_its_own_code(grading_process, code, is_used):
    """The solution of simple_self_attention uses no other exercise."""
    notebook = solved("dot_product_attention", pairwise_scores=PAIRWISE, simple_self_attention=code)
    report = grading_process.grade("typed.ipynb", notebook, "dot_product_attention")
    cause, answer = report.exercise("pairwise_scores"), report.exercise("simple_self_attention")
    assert (cause.status, answer.status) == ("failed", "failed")
    assert answer.message.startswith("It uses your `pairwise_scores`, which is not right yet") == is_used
    assert (answer.diagnosis is None) == (answer.whereabouts is None) == is_used
