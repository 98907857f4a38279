"""What a notebook shows of a student's own functions."""

import matplotlib as mpl
import pytest
import torch

from autograder.student_check.notebook_display import draw, show


def unwritten():
    raise NotImplementedError


def test_several_results_stand_below_each_other_and_show_their_numbers_alone(capsys):
    weight = torch.ones(2, requires_grad=True)
    show(lambda: (weight * 2, torch.zeros(2)), lambda: weight.sum(), lambda: ("a", weight), lambda: None, unwritten)
    assert capsys.readouterr().out.splitlines() == [
        "tensor([2., 2.])", "tensor([0., 0.])", "tensor(2.)", "('a', tensor([1., 1.], requires_grad=True))",
        "not written yet",
    ]  # fmt: skip


@pytest.fixture
def drawn(monkeypatch):
    """The numbers in a picture of a matrix, each with its colour."""
    mpl.use("agg")
    from matplotlib import pyplot

    def drawn(matrix):
        monkeypatch.setattr(pyplot, "show", lambda: None)
        draw({"it": lambda: torch.tensor(matrix)}, [f"word {row}" for row in range(len(matrix))])
        (axes,) = pyplot.gcf().axes
        texts = [(text.get_text(), text.get_color()) for text in axes.texts]
        pyplot.close()
        return texts

    return drawn


def test_numbers_in_a_picture_have_as_many_digits_each(drawn):
    texts = drawn([[0.2006, 1.0], [2.3e-8, 0.0]])
    assert texts == [("0.20", "black"), ("1.00", "white"), ("0.00", "black"), ("0", "black")]
    assert [text for text, _ in drawn([[True, False], [False, True]])] == ["1", "0", "0", "1"]
    assert [text for text, _ in drawn([[0.5, float("-inf")], [2000.25, -3.0]])] == ["0.5", "-inf", "2000", "-3"]


def test_what_is_dark_has_white_numbers_also_where_others_are_negative(drawn):
    assert [colour for _, colour in drawn([[-1.0, 0.0], [0.3, 1.0]])] == ["black", "black", "black", "white"]
    assert [colour for _, colour in drawn([[-2.0, -1.0], [-0.5, -0.25]])] == ["black", "black", "white", "white"]
