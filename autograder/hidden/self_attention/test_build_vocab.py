"""The hidden graders of `build_vocab`."""

import pytest

from autograder.compare import assert_equal


@pytest.mark.exercise("build_vocab", forbids=[])
class TestBuildVocab:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The six words of the worked example get the numbers 0 to 5 in alphabetical order."""
        vocab = student.build_vocab("Life is short, eat dessert first")
        assert_equal(vocab, {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5})

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_repeated_words(self, student):
        """A word that stands twice gets one number, and no number is left out."""
        vocab = student.build_vocab("a cat saw the dog, the dog saw the cat")
        assert_equal(vocab, {"a": 0, "cat": 1, "dog": 2, "saw": 3, "the": 4})

    @pytest.mark.points(1)
    def test_commas_and_spaces(self, student):
        """Commas alone are dropped, any white space separates words, and capitals stay capitals."""
        vocab = student.build_vocab("  Yes,no , maybe\tB b, don't end.  ")
        assert_equal(vocab, {"B": 0, "Yesno": 1, "b": 2, "don't": 3, "end.": 4, "maybe": 5})
