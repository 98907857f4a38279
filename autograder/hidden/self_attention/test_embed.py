"""The hidden graders of looking tokens up in an embedding table."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.statements import assert_gives_dtype, assert_refuses, row

from .worked_examples import LIFE, LIFE_IS_SHORT, embedding_table

NO_SUCH_ROW = frozenset({"IndexError", "RuntimeError"})
"""Errors accepted for a token outside the vocabulary; F.one_hot raises RuntimeError."""


@contracts.exercise("embed", forbids=[])
class TestEmbed(contracts.Graders):
    def draw(self, rng, T=7, V=4, d=3):
        tokens = ((rng.of(torch.float64).rand(T) - 0.1) * V).long().clamp(0, V - 1)
        return tokens, rng.randn(V, d)

    @contracts.points(2, public=True)
    def test_worked_example(self, student):
        """The six words of the worked example get their rows of the table, with "Life" first."""
        rows = student.embed(torch.tensor(LIFE_IS_SHORT), embedding_table())
        assert_close(row(rows, 0), golden(LIFE))
        assert_close(rows, golden(embedding_table()[LIFE_IS_SHORT]))

    test_other_tables = contracts.agree(
        "Each token gets its own row, for any numbers of tokens, rows and columns.",
        [(5, 7, 3), (7, 4, 5), (4, 4, 4), (3, 9, 20)],
        public=True,
    )
    test_repeated_tokens = contracts.agree(
        "A token that appears twice gets its row twice, and the rows are in the order of the tokens.",
        [(9, 4, 3), (6, 1, 5), (4, 3, 3)],
    )
    test_one_token = contracts.agree(
        "One token gives one row, of shape (1, d).", [(1, 6, 4), (1, 1, 1)], weight=1, public=True
    )
    test_gradients = contracts.gradients(
        "Gradients flow back to the table; a row that is looked up several times gets their sum.", of=(9, 4, 3)
    )
    test_float64_stays_exact = contracts.float64("Rows of a float64 table have float64 precision.")

    @contracts.points(0.5, property=True, public=True)
    def test_no_such_row(self, student, rng):
        """A token of V or more raises IndexError."""
        table = rng.randn(4, 3)
        for tokens in ([1, 4], [7, 0]):
            assert_refuses(student, student.embed, torch.tensor(tokens), table, errors=NO_SUCH_ROW)

    test_inputs_are_unchanged = contracts.unchanged("The tokens and the table are not modified.")
    test_follows_device = contracts.device("The rows are on the device of the table.")

    @contracts.points(0.5, property=True)
    def test_dtype_is_kept(self, student, reference, rng):
        """The rows have the dtype of the table."""
        for dtype in (torch.float64, torch.float32):
            assert_gives_dtype(student.embed, reference.embed, dtype, *self.draw(rng.of(dtype)))
