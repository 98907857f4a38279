"""Right answers to `build_vocab`, as different students write them."""

from autograder.catalogue import right_answer


@right_answer("build_vocab")
def numbered_in_a_loop(sentence):
    """a loop over the sorted distinct words"""
    words = []
    for word in sentence.split():
        word = word.replace(",", "")
        if word and word not in words:
            words.append(word)
    words.sort()
    vocab = {}
    for word in words:
        vocab[word] = len(vocab)
    return vocab


@right_answer("build_vocab")
def zipped_with_a_range(sentence):
    """zip with a range, and commas dropped by join"""
    words = sorted({*"".join(c for c in sentence if c != ",").split()})
    return dict(zip(words, range(len(words)), strict=True))
