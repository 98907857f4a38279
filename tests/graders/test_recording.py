"""A transcript holds what identifies a mistake, and not what is an author's choice."""

import pytest
import torch

from autograder.core.arguments import Arguments
from autograder.core.bench import Bench
from autograder.core.observation import StudentFault
from autograder.core.operations import Call
from autograder.graders.backend import Recording


def recorded(function, *args):
    """Return the entry of a call that raises in the transcript."""
    recording = Recording(Bench({"f": function}))
    with pytest.raises(StudentFault):
        recording.ask(Call("f", Arguments(args)))
    return recording.events[-1].shown


def refusing(words):
    def f(x):
        if x.shape[-1] % 2:
            raise ValueError(words)

    return f


def test_the_words_of_an_answers_own_exception_are_not_recorded():
    assert recorded(refusing("odd"), torch.ones(3)) == recorded(refusing("the width is odd"), torch.ones(3))
    assert recorded(refusing("odd"), torch.ones(3)) == "raised ValueError"


def asserting(x):
    assert x.shape[-1] % 2 == 0, "odd"


def test_assert_raises_in_own_words_too():
    assert recorded(asserting, torch.ones(3)) == "raised AssertionError"


def test_a_librarys_message_is_recorded():
    shown = recorded(lambda x: x @ x, torch.ones(2, 3))
    assert shown.startswith("raised RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert recorded(torch.nn.functional.softmax, "x") != recorded(torch.nn.functional.softmax, 1.0)
