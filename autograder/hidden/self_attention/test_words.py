"""The hidden graders of the functions that turn words into tokens."""

import torch

from autograder.core.comparison import assert_close, assert_equal, golden
from autograder.graders import contracts
from autograder.graders.statements import assert_gives_dtype, assert_raises


@contracts.exercise("build_vocab", forbids=[])
class TestBuildVocab(contracts.Graders):
    @contracts.points(1, public=True)
    def test_worked_example(self, student):
        """The six words of the worked example get the numbers 0 to 5 in sorted order, capitals first."""
        vocab = student.build_vocab("Life is short, eat dessert first")
        assert_equal(vocab, {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5})

    @contracts.points(1, public=True, essential=True)
    def test_repeated_words(self, student):
        """A word that appears twice gets one number, and no number is skipped."""
        vocab = student.build_vocab("a cat saw the dog, the dog saw the cat")
        assert_equal(vocab, {"a": 0, "cat": 1, "dog": 2, "saw": 3, "the": 4})

    @contracts.points(2)
    def test_commas_and_spaces(self, student):
        """Only commas are dropped, any white space separates words, and capitals stay capitals."""
        vocab = student.build_vocab("  Yes,no , maybe\tB b, don't end.  ")
        assert_equal(vocab, {"B": 0, "Yesno": 1, "b": 2, "don't": 3, "end.": 4, "maybe": 5})


@contracts.exercise("encode", forbids=[])
class TestEncode(contracts.Graders):
    @contracts.points(2, public=True)
    def test_worked_example(self, student):
        """The sentence of the worked example becomes 0 4 5 2 1 3."""
        vocab = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
        tokens = student.encode("Life is short, eat dessert first", vocab)
        assert_close(tokens, golden([0, 4, 5, 2, 1, 3]))

    @contracts.points(2, public=True, essential=True)
    def test_given_vocabulary(self, student):
        """The tokens are the numbers in the given vocabulary, for any sentence made of its words."""
        tokens = student.encode("b a, c a", {"a": 7, "c": 3, "b": 11, "unused": 0})
        assert_close(tokens, golden([11, 7, 3, 7]))

    @contracts.points(1)
    def test_commas_and_spaces(self, student):
        """Only commas are dropped, and any white space separates words."""
        tokens = student.encode(" Yes,no  don't,\tend. ", {"Yesno": 4, "don't": 2, "end.": 3})
        assert_close(tokens, golden([4, 2, 3]))

    @contracts.points(1)
    def test_one_word(self, student):
        """One word gives a tensor of one token, of shape (1,)."""
        assert_close(student.encode("b", {"a": 2, "b": 5}), golden([5]))

    @contracts.points(1, property=True)
    def test_int64(self, student, reference):
        """The result is an int64 tensor, which an embedding layer needs."""
        assert_gives_dtype(student.encode, reference.encode, torch.int64, "b a", {"a": 0, "b": 1})

    @contracts.points(1, property=True)
    def test_unknown_word(self, student):
        """A word that is not in the vocabulary raises KeyError."""
        for sentence in ("a b", "b a"):
            assert_raises("KeyError", student.encode, sentence, {"a": 0})
