"""What goes wrong in `pairwise_scores`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def features_against_features(inputs):
    """The columns meet each other (inputs.T @ inputs, a (d, d) matrix); tokens are rows: inputs @ inputs.T."""
    return inputs.T @ inputs


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_already_weights(inputs):
    """A softmax is applied already; pairwise scores are the plain dot products."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def no_score_with_itself(inputs):
    """A token's score with itself is left out (0 on the diagonal); every token meets every token, itself included."""
    scores = inputs @ inputs.T
    return scores - torch.diag(scores.diagonal())


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def upper_half_only(inputs):
    """Only one half of the matrix is filled; every token meets every token, in both orders."""
    return torch.triu(inputs @ inputs.T)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_cosines(inputs):
    """The tokens are normalised first, which gives cosine similarities; a score is the plain dot product."""
    unit = F.normalize(inputs, dim=-1)
    return unit @ unit.T


@misconception("pairwise_scores", kind="dtype", caught_by="test_float64_stays_exact")
def pairwise_in_float32(inputs):
    """The scores are float32 whatever the inputs are, so float64 loses digits; keep the inputs' dtype."""
    return inputs.float() @ inputs.float().T
