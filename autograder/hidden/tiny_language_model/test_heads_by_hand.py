"""The hidden graders of heads whose weights are set by hand: many matrices do, so what they make is looked at."""

import math
import re

import torch

from autograder.compare import RIGHT_NUMBERS, Mismatch, OddForm, complaints, describe
from autograder.graders import contracts
from autograder.graders.statements import assert_dtype, in_each

CLOSE = 0.01
SENTENCES = ([0, 1, 0, 2, 1, 1, 0], [2, 2, 0, 1, 2], [1], [3, 0, 0, 3, 1, 3, 3, 0, 2])
"""Words of which some come again, next to each other and further on."""
NUM_WORDS, NUM_PLACES = 4, 9
HEADS = ("itself", "first", "previous", "average", "same word")


def wanted(words):
    """By a head's name, the weights (T, T) that it gives."""
    T = len(words)
    i, j = torch.arange(T)[:, None], torch.arange(T)
    seen = j <= i
    where = {
        "itself": i == j,
        "first": j.expand(T, T) == 0,
        "previous": j == (i - 1).clamp(min=0),
        "average": seen,
        "same word": seen & (words[:, None] == words),
        "other words": seen & ((words[:, None] != words) | (i == j)),
        "two before": j == (i - 2).clamp(min=0),
        "last of the same word": (seen & (words[:, None] == words)) & (j == i),
        "word 0": seen & (words == 0),
    }
    return {name: one / one.sum(dim=-1, keepdim=True) for name, one in where.items()}


def matrices(found, num_words, num_places):
    """The three matrices in float64; raises Mismatch where that is not what was found."""
    d = num_words + num_places
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise Mismatch(f"The result is {describe(found)}; W_query, W_key and W_value are expected.")
    for name, one in zip(("W_query", "W_key", "W_value"), found, strict=True):
        if not isinstance(one, torch.Tensor) or one.dim() != 2 or len(one) != d or one.is_complex():
            raise Mismatch(f"{name} is {describe(one)}; a matrix with {d} rows is expected.")
        if not bool(one.isfinite().all()):
            raise Mismatch(f"{name} has infinite numbers, or NaN; finite ones are enough.")
    W_query, W_key, W_value = (one.detach().double() for one in found)
    if W_query.shape != W_key.shape:
        raise Mismatch("W_query and W_key are not as wide as each other, so no query meets a key.")
    if W_value.shape[1] != num_words:
        raise Mismatch(complaints.of_another_shape(f"W_value {describe(W_value)}", (d, num_words)))
    return W_query, W_key, W_value


def rows_alone(said):
    """What is said of matrices with the wrong number of rows, whatever their width is, which is the answer's choice."""
    return re.sub(r"shape \((\d+), \d+\); a matrix", r"shape (\1, ...); a matrix", said)


def in_a_batch(found):
    """Whether the three matrices are those of a batch of one, (1, d, d_k)."""
    return (
        isinstance(found, tuple | list)
        and bool(found)
        and all(isinstance(one, torch.Tensor) and one.dim() == 3 and len(one) == 1 for one in found)
    )


def attend(x, W_query, W_key, W_value):
    """Causal attention, (T, T) weights and what comes of them."""
    scores = (x @ W_query) @ (x @ W_key).T / math.sqrt(W_query.shape[1])
    weights = torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1)
    return weights, weights @ (x @ W_value)


@contracts.exercise("heads_by_hand", forbids=())
class TestHeadsByHand(contracts.Graders):
    def attended(self, student, head, sentence, num_places=NUM_PLACES, num_words=NUM_WORDS):
        """What the student's head does to a sentence: its words, its weights and its result."""
        words = torch.tensor(sentence)
        x = torch.cat([torch.eye(num_words)[words], torch.eye(num_places)[: len(words)]], dim=-1).double()
        with student.by_chance() as note:  # keeps what is noted, and not the numbers
            found = student.heads_by_hand(head, num_words, num_places)
            if odd := in_a_batch(found):
                found = tuple(one[0] for one in found)
            try:
                weights, result = attend(x, *matrices(found, num_words, num_places))
            except Mismatch as none:
                note(rows_alone(str(none)))
                raise
            alike = frozenset(name for name, one in wanted(words).items() if close(weights, one))
            peaked = bool((weights.amax(dim=-1) > 1 - CLOSE).all())
            mixed = how_mixed(result, weights @ x[:, :num_words])
            meant, average = wanted(words)[head] > 0, wanted(words)["average"]
            away = bool(((weights * meant).sum(dim=-1) < (average * meant).sum(dim=-1) - CLOSE).any())
            nothing = close(result, torch.zeros_like(result))
            note((alike, peaked, away, mixed, nothing, odd))
        return words, weights, result, x, odd

    def gives(self, student, head):
        def check(case):
            sentence, num_places = case
            words, weights, *_, odd = self.attended(student, head, sentence, num_places)
            right = wanted(words)[head]
            if not close(weights, right):
                i, j = ((weights - right).abs() > CLOSE).nonzero()[0].tolist()
                raise Mismatch(
                    f'In "{head}", token {i} of {len(words)} gives token {j} the weight {weights[i, j]:.3f}; '
                    f"{right[i, j]:.3f} is expected."
                )
            assert_no_batch(odd)

        in_each([(sentence, places) for sentence in SENTENCES for places in (NUM_PLACES, 12)], check)

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
        words, _, result, x, odd = self.attended(student, "average", SENTENCES[0])
        if not close(
            result, wanted(words)["average"].double() @ x[:, :NUM_WORDS]
        ):  # which zeros for all matrices do not give
            raise Mismatch("The weights are equal, but what comes of them is not the mean of the one-hot words.")
        assert_no_batch(odd)

    @contracts.points(3)
    def test_same_word(self, student):
        """In "same word", each token gives equal weights to all tokens up to itself that are the same word."""
        self.gives(student, "same word")

    @contracts.points(2)
    def test_values(self, student):
        """What a token gets is the mixture of the words that it attends to, as one-hot vectors."""
        for head in HEADS:
            _, weights, result, x, odd = self.attended(student, head, SENTENCES[0])
            if not close(result, weights @ x[:, :NUM_WORDS]):
                raise Mismatch(f'In "{head}", the result is not the weights times the words\' one-hot vectors.')
            assert_no_batch(odd)

    @contracts.points(1)
    def test_other_sizes(self, student):
        """So it is for other numbers of words and of places."""
        for num_words, num_places in [(2, 30), (11, 5), (1, 1)]:
            sentence = [place * 7 % num_words for place in range(num_places)]
            for head in ("previous", "same word"):
                words, weights, *_, odd = self.attended(student, head, sentence, num_places, num_words)
                if not close(weights, wanted(words)[head]):
                    raise Mismatch(f'With {num_words} words and {num_places} places "{head}" attends elsewhere.')
                assert_no_batch(odd)

    @contracts.points(0.5, property=True, public=True)
    def test_float32(self, student):
        """The three matrices are float32, as parameters are."""
        for head in HEADS:
            with student.by_chance() as note:
                found = student.heads_by_hand(head, 3, 5)
                several = found if isinstance(found, tuple | list) else [found]
                note(tuple(str(getattr(one, "dtype", type(one).__name__)) for one in several))
            assert_dtype(found, torch.float32)


def how_mixed(result, right):
    """In what way the result is, or is not, the mixture of words."""
    if close(result, right):
        return "as wanted"
    if result.shape != right.shape:
        return "of another shape"
    scale = (result * right).sum() / (right * right).sum()
    if close(result, scale * right):
        return "scaled"
    return "shifted" if close(result, right + (result - right).mean()) else "otherwise"


def close(one, other):
    return one.shape == other.shape and bool(((one - other).abs() <= CLOSE).all())


def assert_no_batch(odd):
    if odd:
        raise OddForm("Each matrix has a dimension of size 1 too many.", RIGHT_NUMBERS)
