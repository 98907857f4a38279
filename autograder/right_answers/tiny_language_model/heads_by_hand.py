"""Right answers to `heads_by_hand`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("heads_by_hand")
def matrices_of_zeros_filled(head, num_words, num_places):
    """zeros, written into one by one; large numbers in the keys"""
    d = num_words + num_places
    W_query, W_key, W_value = torch.zeros(d, d), torch.zeros(d, d), torch.zeros(d, num_words)
    for word in range(num_words):
        W_value[word, word] = 1.0
    if head == "same word":
        for word in range(num_words):
            W_query[word, word], W_key[word, word] = 1.0, 500.0
    for place in range(num_places):
        at = num_words + place
        if head == "itself":
            W_query[at, at], W_key[at, at] = 1.0, 500.0
        elif head == "first":
            W_query[at, num_words] = 1.0
        elif head == "previous":
            W_query[at, max(num_words, at - 1)], W_key[at, at] = 1.0, 500.0
    if head == "first":
        W_key[num_words, num_words] = 500.0
    return W_query, W_key, W_value


@right_answer("heads_by_hand")
def one_matrix_of_scores(head, num_words, num_places):
    """the scores of all pairs of numbers as W_query, the identity as W_key; the first token's previous is hidden"""
    d = num_words + num_places
    scores = torch.zeros(d, d)
    if head == "itself":
        scores[num_words:, num_words:] = torch.eye(num_places)
    elif head == "first":
        scores[:, num_words] = 1.0
    elif head == "previous":
        scores[num_words:, num_words:] = torch.eye(num_places).roll(-1, dims=1)
    elif head == "same word":
        scores[:num_words, :num_words] = torch.eye(num_words)
    return 100.0 * d * scores, torch.eye(d), torch.eye(d)[:, :num_words]


@right_answer("heads_by_hand")
def the_earlier_the_larger(head, num_words, num_places):
    """scores that grow with the distance for the first; squares of distances for the token itself and the one before"""
    words, places = torch.arange(num_words), torch.arange(num_places).float()
    W_value = torch.cat([torch.eye(num_words), torch.zeros(num_places, num_words)])
    if head == "same word":
        one = torch.nn.functional.one_hot(words).float() * 10.0 * num_words**0.25
        both = torch.cat([one, torch.zeros(num_places, num_words)])
        return both, both, W_value
    if head == "average":
        return torch.ones(len(W_value), 2), torch.zeros(len(W_value), 2), W_value
    wanted = {"itself": places, "first": 0 * places, "previous": places - 1}[head]
    # -(wanted - place)^2 = 2 wanted place - place^2 and what is the same for all keys
    query = torch.stack([2 * wanted, -torch.ones_like(places)], dim=1) * 20.0
    key = torch.stack([places, places**2], dim=1)
    nothing = torch.zeros(num_words, 2)
    return torch.cat([nothing, query]), torch.cat([nothing, key]), W_value
