"""Right answers to `encode`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("encode")
def long_tensor_of_map(sentence, vocab):
    """torch.LongTensor of a map"""
    return torch.LongTensor(list(map(vocab.__getitem__, sentence.replace(",", "").split())))


@right_answer("encode")
def key_error_by_hand(sentence, vocab):
    """a KeyError raised by hand, long() at the end"""
    tokens = []
    for word in sentence.translate({ord(","): None}).split():
        if word not in vocab:
            raise KeyError(f"{word} is unknown")
        tokens.append(vocab[word])
    return torch.tensor(tokens).long()
