"""The hidden graders of heads whose weights are set by hand: see `core.constructed_answers`."""

import torch

from autograder.core import constructed_answers
from autograder.core.comparison import Mismatch
from autograder.graders import contracts
from autograder.graders.statements import assert_dtype, in_each

SENTENCES = ([0, 1, 0, 2, 1, 1, 0], [2, 2, 0, 1, 2], [1], [3, 0, 0, 3, 1, 3, 3, 0, 2])
"""Words of which some come again, next to each other and further on."""
NUM_WORDS, NUM_PLACES = 4, 9
HEADS = ("itself", "first", "previous", "average", "same word")


@contracts.exercise("heads_by_hand", forbids=())
class TestHeadsByHand(contracts.Graders):
    def attended(self, student, head, sentence, num_places=NUM_PLACES, num_words=NUM_WORDS):
        """Run the student's head on a sentence."""
        with student.by_chance() as note:  # keeps what is noted, and not the numbers
            found = student.heads_by_hand(head, num_words, num_places)
            try:
                seen = constructed_answers.attended(sentence, found, head, num_words, num_places)
            except Mismatch as none:
                note(constructed_answers.behaviour_without_weights(none))
                raise
            note(constructed_answers.behaviour(seen))
        return seen

    def gives(self, student, head):
        cases = [(sentence, places) for sentence in SENTENCES for places in (NUM_PLACES, 12)]
        in_each(cases, lambda case: constructed_answers.assert_attends(self.attended(student, head, *case)))

    @contracts.points(2)
    def test_itself(self, student):
        """In "itself", each token gives its whole weight to itself."""
        self.gives(student, "itself")

    @contracts.points(2)
    def test_first(self, student):
        """In "first", each token gives its whole weight to the first one."""
        self.gives(student, "first")

    @contracts.points(3)
    def test_previous(self, student):
        """In "previous", each token gives its whole weight to the one before it, and the first one to itself."""
        self.gives(student, "previous")

    @contracts.points(2)
    def test_average(self, student):
        """In "average", each token gets the mean of the words up to itself, with equal weights."""
        self.gives(student, "average")
        seen = self.attended(student, "average", SENTENCES[0])
        constructed_answers.assert_mixes(seen)  # which zeros for all matrices do not

    @contracts.points(3)
    def test_same_word(self, student):
        """In "same word", each token gives equal weights to all tokens up to itself that are the same word."""
        self.gives(student, "same word")

    @contracts.points(2)
    def test_values(self, student):
        """A token's result is the weighted sum of the one-hot vectors of the words that it attends to."""
        for head in HEADS:
            constructed_answers.assert_mixes(self.attended(student, head, SENTENCES[0]))

    @contracts.points(1)
    def test_other_sizes(self, student):
        """The heads are right for other numbers of words and positions."""
        for num_words, num_places in [(2, 30), (11, 5), (1, 1)]:
            sentence = [place * 7 % num_words for place in range(num_places)]
            for head in ("previous", "same word"):
                constructed_answers.assert_attends(self.attended(student, head, sentence, num_places, num_words))

    @contracts.points(0.5, property=True, public=True)
    def test_float32(self, student):
        """The three matrices are float32 tensors."""
        for head in HEADS:
            with student.by_chance() as note:
                found = student.heads_by_hand(head, 3, 5)
                several = found if isinstance(found, tuple | list) else [found]
                note(tuple(str(getattr(one, "dtype", type(one).__name__)) for one in several))
            assert_dtype(found, torch.float32)
