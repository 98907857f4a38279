"""A hidden test's finding is cached for equal answers, and computed again for others."""

import itertools

import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.operations import Call, KindOf
from autograder.graders import backend
from autograder.graders.backend import TranscriptCache
from autograder.sandbox.client import Response, TimedOut
from autograder.sandbox.worker.protocol import Frame
from tests.typed import alone, grade_answer, solution_sources

UNIT = "dot_product_attention"


class Code:
    """Code that answers with the next of these words; an exception is raised in the place of an answer."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def exchange(self, asked):
        self.asked.append(asked.header)
        number, answer = len(self.asked), self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Response(number, Frame(b'{"number":%d,"value":"%s"}' % (number, answer.encode()), b""))

    def read(self, operation, answered):
        return answered.frame.head.decode().split('"')[-2]


@pytest.fixture
def before():
    return TranscriptCache()


@pytest.fixture
def look():
    """Asks a second thing where the first answer is `more`; counts how often it looks."""

    def look(code):
        look.times += 1
        found = [code.ask(KindOf("first"))]
        if found[0] == "more":
            found.append(code.ask(KindOf("second")))
        return found

    look.times = 0
    return look


def found(before, look, *answers, what="it", keep=True):
    code = Code(*answers)
    result = before.find(what, code, look, is_cacheable=lambda _: keep)
    return result, [header["name"] for header in code.asked]


def test_the_same_answers_are_looked_at_once(before, look):
    for _ in range(3):
        assert found(before, look, "more", "yes") == (["more", "yes"], ["first", "second"])
    assert look.times == 1


def test_other_answers_are_looked_at_and_nothing_is_asked_twice(before, look):
    assert found(before, look, "more", "yes")[0] == ["more", "yes"]
    assert found(before, look, "more", "no") == (["more", "no"], ["first", "second"])
    assert found(before, look, "less") == (["less"], ["first"])
    assert found(before, look, "less") == (["less"], ["first"])
    assert look.times == 3


def test_of_something_else_nothing_is_known(before, look):
    found(before, look, "less")
    found(before, look, "less", what="another")
    assert look.times == 2


def test_what_does_not_follow_from_the_answers_is_not_kept(before, look):
    found(before, look, "less", keep=False)
    found(before, look, "less")
    assert look.times == 2


def test_trouble_comes_to_whoever_asks_and_is_not_kept(before, look):
    found(before, look, "more", "yes")
    for _ in range(2):
        with pytest.raises(TimedOut):
            found(before, look, "more", TimedOut())
        with pytest.raises(TimedOut):
            found(before, look, TimedOut())
    assert look.times == 5


def test_after_trouble_that_was_caught_it_goes_on(before):
    def look(code):
        try:
            return [code.ask(KindOf("first"))]
        except TimedOut:
            return [code.ask(KindOf("second"))]

    for _ in range(2):
        assert found(before, look, TimedOut(), "late") == (["late"], ["first", "second"])
    assert found(before, look, "early") == (["early"], ["first"])


def test_what_asks_by_chance_goes_on_as_if_nothing_were_known(before):
    numbers = itertools.count()

    def look(code):
        first = code.ask(KindOf("first"))
        return [first, code.ask(Call("f", Arguments((torch.tensor(next(numbers)),))))]

    assert found_of_calls(before, look, "m", "y") == ["m", "y"]
    assert found_of_calls(before, look, "m", "z", "other") == ["m", "other"]  # `z` is to what the first look asked
    assert next(numbers) == 2
    for number in (3, 4):
        assert found_of_calls(before, look, "m", "y") == ["m", "y"]
        assert next(numbers) == 2 * number - 2


def found_of_calls(before, look, *answers):
    return before.find("it", Code(*answers), look, is_cacheable=lambda _: True)


def test_memory_does_not_grow_with_a_class(before, look):
    for number in range(3 * backend.MAX_RESULTS):
        found(before, look, f"answer {number}")
    looked = look.times
    found(before, look, "answer 0")
    assert look.times == looked
    found(before, look, f"answer {3 * backend.MAX_RESULTS - 1}")
    assert look.times == looked + 1


def test_nor_with_how_large_answers_are(before, look, monkeypatch):
    """Results may hold tensors of answers, so a large result is not cached, and all results together are bounded."""
    monkeypatch.setattr(backend, "MAX_BYTES", 100)
    monkeypatch.setattr(backend, "MAX_BYTES_OF_ALL", 150)
    for answer, times in [("long" * 30, 1), ("long" * 30, 2), ("a", 3), ("a", 3), ("b" * 60, 4), ("b" * 60, 4)]:
        found(before, look, answer, what=answer)
        assert look.times == times
    for times in (5, 6):  # there is no room any more
        found(before, look, "c" * 60, what="c")
        assert look.times == times


@pytest.mark.parametrize(
    ("head", "is_told"),
    [(b'{"number":7,"value":1}', True), (b'{"value":1,"number":7}', False), (b'{"number":8,"value":1}', False)],
)
def test_an_answer_of_another_form_has_no_digest(head, is_told):
    assert bool(Response(7, Frame(head, b"")).digest) is is_told


def test_the_digest_tells_json_from_tensors():
    one, other = (
        Response(1, Frame(b'{"number":1,' + head, tail)).digest for head, tail in [(b"a", b"b"), (b"ab", b"")]
    )
    assert one != other


def test_a_second_submission_gets_what_it_gets_alone(grading_process):
    """Marked once more, after itself and after others: the same report, whichever answers were seen before."""
    code = "def softmax(x, dim=-1):\n    e = torch.exp(x)\n    return e / e.sum(dim, keepdim=True)\n"
    own, right = alone(UNIT, softmax=code), alone(UNIT, softmax=solution_sources(UNIT)["softmax"])
    reports = [grading_process.grade("one.ipynb", notebook, UNIT) for notebook in (own, right, own, right, own)]
    assert reports[0] == reports[2] == reports[4]
    assert reports[1] == reports[3]
    wrong, whole = (report.exercise("softmax") for report in reports[:2])
    assert wrong.diagnosis
    assert wrong.score < whole.score == whole.max_score


RIGHT = """
import os

def softmax(x, dim=-1):
    ...
    exponentials = (x - x.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)
"""


def test_what_was_answered_before_python_ended_is_still_read(grading_process):
    """Its first answers are those of a right one that was marked before, so the next thing is asked ahead."""
    assert grade_answer(grading_process, UNIT, "softmax", RIGHT).status == "passed"
    ends = RIGHT.replace("...", "if x.dim() == 3:\n        os._exit(1)")  # the second thing that a grader asks
    report = grade_answer(grading_process, UNIT, "softmax", ends)
    assert report.status == "crashed"
    assert report.tests[0].outcome == "passed"
