"""Mistakes of the kind "edge"."""

import torch

from ....catalogue import misconception
from .right import RightInit, RightWeights


@misconception("CausalAttention", kind="edge", caught_by="test_context_vectors")
class BatchOfOneSqueezed(RightInit):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values).squeeze()


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class WholeMaskUsed(RightInit):
    """The mask is not cut to the sequence, so that ones shorter than context_length fail; cut it to [:T, :T]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask, float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class ExponentialsOverflow(RightInit):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        exponentials = torch.exp(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5).tril()
        return self.dropout(exponentials / exponentials.sum(dim=-1, keepdim=True)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class MaskCutFromTheEnd(RightInit):
    """The mask's last rows are used for a shorter sequence, which hide too little; cut it to [:T, :T]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[-x.shape[1] :, : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class FullLengthDemanded(RightInit):
    """Sequences shorter than context_length are refused; any length up to it is right."""

    def forward(self, x):
        if x.shape[1] != len(self.mask):
            raise ValueError("not context_length")
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusHundred(RightInit):
    """Hidden scores become -100, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -100.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusThousand(RightInit):
    """Hidden scores become -1000, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1e3)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusTenThousand(RightInit):
    """Hidden scores become -10000, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1e4)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class RenormalizedAfterSoftmax(RightInit):
    """Masked after the softmax, a row can be 0/0 where the future outweighs the rest; mask the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).tril()
        return self.dropout(weights / weights.sum(dim=-1, keepdim=True)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_scores_of_zero")
class ZerosTakenForHidden(RightInit):
    """Every score that is 0 becomes -inf, a visible one too; ask the mask, not the scores, what is hidden."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = (queries @ keys.transpose(1, 2)).tril()
        scores = scores.masked_fill(scores == 0, float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_context_vectors")
class FirstDimensionSqueezed(RightWeights):
    """`squeeze(0)` takes the batch dimension from a batch of one; leave it out."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return (self.dropout(weights) @ values).squeeze(0)
