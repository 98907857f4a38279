"""What goes wrong in `encode`."""

import torch

from ...catalogue import misconception


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def vocabulary_built_anew(sentence, vocab):
    """The numbers come from the sentence's own words; look each word up in the vocabulary that is passed in."""
    words = sentence.replace(",", "").split()
    own = {word: index for index, word in enumerate(sorted(set(words)))}
    return torch.tensor([(vocab[word], own[word])[1] for word in words])


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def tokens_sorted(sentence, vocab):
    """The tokens are sorted; they stand in the order of the sentence."""
    return torch.tensor(sorted(vocab[word] for word in sentence.replace(",", "").split()))


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def each_word_once(sentence, vocab):
    """A word that stands twice is encoded once; every word of the sentence gives a token."""
    return torch.tensor([vocab[word] for word in dict.fromkeys(sentence.replace(",", "").split())])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_skipped(sentence, vocab):
    """Words that the vocabulary does not have are left out silently; vocab[word] raises the KeyError."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split() if word in vocab])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_become_zero(sentence, vocab):
    """Unknown words become another word's number (`vocab.get`); vocab[word] raises the KeyError."""
    return torch.tensor([vocab.get(word, 0) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="dtype", caught_by="test_int64")
def float_tokens(sentence, vocab):
    """The tokens are floats; an embedding layer wants integers: int64."""
    return torch.tensor([float(vocab[word]) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="dtype", caught_by="test_int64")
def tokens_in_int32(sentence, vocab):
    """The tokens are int32; int64 is expected, PyTorch's own integer type."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.int32)


@misconception("encode", kind="contract", caught_by="test_worked_example")
def list_of_tokens(sentence, vocab):
    """The result is a list; make a tensor of it with torch.tensor."""
    return [vocab[word] for word in sentence.replace(",", "").split()]


@misconception("encode", kind="value", caught_by="test_worked_example")
def commas_kept_in_words(sentence, vocab):
    """Commas stay on their words, so that `short,` is not found; drop them before splitting."""
    return torch.tensor([vocab[word] for word in sentence.split()])
