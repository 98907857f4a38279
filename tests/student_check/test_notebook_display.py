"""Cells of the notebooks that show the student's own functions at work."""

import matplotlib as mpl
import pytest
import torch

from autograder.student_check.notebook_functions import draw, show


def unwritten():
    raise NotImplementedError


def test_several_results_stand_below_each_other_and_show_their_numbers_alone(capsys):
    weight = torch.ones(2, requires_grad=True)
    show(lambda: (weight * 2, torch.zeros(2)), lambda: weight.sum(), lambda: ("a", weight), lambda: None, unwritten)
    assert capsys.readouterr().out.splitlines() == [
        "tensor([2., 2.])", "tensor([0., 0.])", "tensor(2.)", "('a', tensor([1., 1.], requires_grad=True))",
        "unwritten is not written yet",
    ]  # fmt: skip


def test_a_label_stands_above_its_result(capsys):
    show({"yours": lambda: 3, "theirs": unwritten}, lambda: 4)
    assert capsys.readouterr().out.splitlines() == ["yours:", "3", "theirs:", "unwritten is not written yet", "4"]


@pytest.fixture
def drawn(monkeypatch):
    """The numbers in a picture of a matrix, each with its colour."""
    mpl.use("agg")
    from matplotlib import pyplot

    def drawn(*matrices):
        monkeypatch.setattr(pyplot, "show", lambda: None)
        makers = {f"number {number}": lambda one=one: torch.tensor(one) for number, one in enumerate(matrices)}
        draw(makers, [f"word {row}" for row in range(len(matrices[0]))])
        texts = [(text.get_text(), text.get_color()) for axes in pyplot.gcf().axes for text in axes.texts]
        pyplot.close()
        return texts

    return drawn


def test_numbers_in_a_picture_have_as_many_digits_each(drawn):
    texts = drawn([[0.2006, 1.0], [2.3e-8, 0.0]])
    assert texts == [("0.20", "black"), ("1.00", "white"), ("0.00", "black"), ("0", "black")]
    assert [text for text, _ in drawn([[True, False], [False, True]])] == ["1", "0", "0", "1"]
    assert drawn([[0.5, float("-inf")], [2000.25, -3.0]]) == [
        ("0.5", "black"), ("-inf", "black"), ("2000", "white"), ("-3", "black"),
    ]  # fmt: skip


def test_what_is_far_from_zero_is_dark_and_has_white_numbers(drawn):
    assert [colour for _, colour in drawn([[-1.0, 0.0], [0.3, 1.0]])] == ["white", "black", "black", "white"]
    assert [colour for _, colour in drawn([[-2.0, -1.0], [-0.5, -0.25]])] == ["white", "black", "black", "black"]


def test_pictures_beside_each_other_have_one_scale(drawn):
    assert [colour for _, colour in drawn([[1.0]], [[2.0]])] == ["black", "white"]
