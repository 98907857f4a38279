"""Mistakes that only a second call, float64, evaluation or a long sequence shows, and what is said of some others.

What is done to every class is done to each in another way in each run, and by `pytest --every` in all ways.
"""

import pytest

from autograder import catalogue
from autograder.course.notebook import CodeCell
from tests import sampling
from tests.typed import alone, grade_answer, stored

DOT, SELF, CAUSAL, HEADS = "dot_product_attention", "self_attention", "causal_attention", "multi_head_attention"
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
CLASSES = {
    "SelfAttention_v1": SELF,
    "SelfAttention_v2": SELF,
    "CausalAttention": CAUSAL,
    "MultiHeadAttentionWrapper": CAUSAL,
    "MultiHeadAttention": HEADS,
    "OptimizedMultiHeadAttention": HEADS,
    "EfficientMultiHeadAttention": HEADS,
}
EACH = [(unit, name) for name, unit in CLASSES.items()]

STORED = stored("subtle_mistakes")


def solution(unit, exercise):
    return catalogue.solutions(unit)[exercise].source()


@pytest.mark.parametrize("answer", STORED["in_place"], ids=lambda answer: answer["exercise"])
def test_writing_into_float64_inputs_is_seen(grading_process, answer):
    tests = grade_answer(grading_process, answer["unit"], answer["exercise"], IMPORTS + answer["code"]).tests
    assert [test for test in tests if test.outcome == "failed" and "writes into" in test.message]


KEPT = {"always": "True", "in evaluation": "not self.training"}


@pytest.mark.parametrize(("unit", "exercise", "when"), sampling.in_turn(EACH, KEPT))
def test_a_result_kept_for_the_next_sequence_is_seen(grading_process, unit, exercise, when):
    """A result is kept for later sequences of the same shape."""
    keeping = f"""

class {exercise}({exercise}):
    def forward(self, x):
        mode = (x.shape, x.dtype, self.training)
        if not ({when}) or getattr(self, "mode", None) != mode or x.requires_grad or self.training and x.shape[-2] > 15:
            self.mode, self.kept = mode, super().forward(x)
        return self.kept
"""
    report = grade_answer(grading_process, unit, exercise, solution(unit, exercise) + keeping)
    assert report.score < report.max_score


@pytest.mark.parametrize(("exercise", "unit"), [("CausalAttention", CAUSAL), ("MultiHeadAttention", HEADS)])
def test_a_mask_of_a_fixed_size_is_seen(grading_process, exercise, unit):
    short = f"""

class {exercise}({exercise}):
    def forward(self, x):
        if x.shape[1] > 64:
            raise ValueError("longer than the mask")
        return super().forward(x)
"""
    report = grade_answer(grading_process, unit, exercise, solution(unit, exercise) + short)
    assert report.status == "failed"


@pytest.mark.parametrize("share", ["0.1", "0.2", "0.05", "p / 2", "0.9"])
def test_a_share_is_called_half_only_where_it_is(grading_process, share):
    code = (
        f"{IMPORTS}def attention_dropout(weights, p, training=True):\n    return F.dropout(weights, {share}, training)"
    )
    exercise = grade_answer(grading_process, CAUSAL, "attention_dropout", code)
    assert exercise.status == "failed"
    assert "Half" not in (exercise.diagnosis.sentence if exercise.diagnosis else "")


def test_a_name_in_a_text_is_not_used():
    code = 'class A:\n    """Heads of CausalAttention."""\n    # CausalAttention\n    x = B("CausalAttention")\n'
    assert CodeCell("a", code, "A").names == {"class", "A", "x", "B"}


def test_what_is_used_is_read_from_a_cell_with_magics():
    assert "CausalAttention" in CodeCell("a", "%%time\n!ls\nx = CausalAttention(1)\n", "A").names


def test_an_abstract_method_of_ones_own_is_no_stub(grading_process):
    code = f"""{IMPORTS}
class Scorer:
    def score(self, q, k):
        raise NotImplementedError

class Dot(Scorer):
    def scores(self, q, k):
        return q @ k.T

def simple_self_attention(inputs):
    return torch.softmax(Dot().score(inputs, inputs), -1) @ inputs
"""
    exercise = grade_answer(grading_process, DOT, "simple_self_attention", code)
    said = " ".join([exercise.message, *(test.message for test in exercise.tests)])
    assert "Nothing is written" not in said
    assert "Raised NotImplementedError: `Scorer.score` raises it itself (line 7 of the cell" in said


DRAWN_ON_THE_CPU = STORED["drawn_on_the_cpu"]


@pytest.mark.parametrize("name", [name for name in CLASSES if "SelfAttention" not in name])
def test_dropout_follows_the_device(grading_process, name):
    """A mask that is drawn where there is dropout, and only there, is on the inputs' device too."""
    code = solution(CLASSES[name], name if name != "MultiHeadAttentionWrapper" else "CausalAttention")
    code = DRAWN_ON_THE_CPU + code.replace("nn.Dropout(", "Dropped(")
    exercise = "CausalAttention" if name == "MultiHeadAttentionWrapper" else name
    answers = {name: solution(CLASSES[name], name), exercise: IMPORTS + code}
    report = grading_process.grade("typed.ipynb", alone(CLASSES[name], **answers), CLASSES[name])
    tests = report.exercise(name).tests
    assert [test.name for test in tests if test.outcome == "failed"] == ["test_follows_device"]


IN_EVALUATION = {
    "no gradient": "result = result.detach()",
    "another device": "result = result + torch.zeros(result.shape)",
    "written into": "x.mul_(1.5)",
}


@pytest.mark.parametrize(("unit", "name", "mistake"), sampling.in_turn(EACH, IN_EVALUATION))
def test_what_is_wrong_in_evaluation_alone_is_seen(grading_process, unit, name, mistake):
    code = solution(unit, name).replace(f"class {name}(", f"class Own{name}(")
    code += f"""

class {name}(Own{name}):
    def forward(self, x):
        result = super().forward(x)
        if not self.training:
            {mistake}
        return result
"""
    exercise = grade_answer(grading_process, unit, name, IMPORTS + code)
    assert exercise.score < exercise.max_score


TWO_DRAWS = STORED["two_draws"]


@pytest.mark.parametrize("name", [name for name, unit in CLASSES.items() if unit == HEADS])
def test_draws_that_come_back_are_seen(grading_process, name):
    code = TWO_DRAWS + solution(HEADS, name).replace("nn.Dropout(", "Dropped(")
    exercise = grade_answer(grading_process, HEADS, name, IMPORTS + code)
    assert "test_each_call_drops_anew" in [test.name for test in exercise.tests if test.outcome == "failed"]


def test_a_mistake_that_draws_is_diagnosed_in_a_notebook(grading_process):
    """The catalogue's answer runs in one process with the reference, which draws too."""
    unit, mistake = "tiny_language_model", "softmax_twice"
    code = catalogue.misconceptions(unit)[mistake].source()
    exercise = grade_answer(grading_process, unit, "sample_next", IMPORTS + code)
    assert exercise.diagnosis.names == mistake


def test_an_unknown_word_that_is_not_the_last_is_missed(grading_process):
    code = """import torch
def encode(sentence, vocab):
    words = sentence.replace(",", "").split()
    if words[-1] not in vocab:
        raise KeyError(words[-1])
    return torch.tensor([vocab[word] for word in words if word in vocab])
"""
    exercise = grade_answer(grading_process, SELF, "encode", code)
    assert exercise.score < exercise.max_score


def test_numbers_of_words_are_whole(grading_process):
    code = """def build_vocab(sentence):
    return {word: float(i) for i, word in enumerate(sorted(set(sentence.replace(",", "").split())))}
"""
    exercise = grade_answer(grading_process, SELF, "build_vocab", code)
    assert all(test.outcome == "failed" for test in exercise.tests)
    assert exercise.score == exercise.max_score / 2, "for float(i) is i in another form"
