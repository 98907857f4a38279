"""Mistakes of the kind "mask"."""

import torch
import torch.nn.functional as F
from torch import nn

from ....catalogue import misconception
from .right import RightInit, RightPass


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class NotMasked(RightInit):
    """Nothing is masked: every token attends to the ones after it; make those scores -inf before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class SeesTheNextToken(RightInit):
    """Each token still sees the one right after it; the mask starts one above the diagonal: diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=2).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class DoesNotSeeItself(RightInit):
    """The diagonal is masked too: no token sees itself, and the first one's row, all -inf, is NaN; use diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class SeesOnlyTheFuture(RightInit):
    """The past is masked and the future left visible; hide what is above the diagonal."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=-1).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskInverted(RightInit):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(~self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeZero(RightInit):
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), 0.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeMinusOne(RightInit):
    """Hidden scores become -1, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeMinusTen(RightInit):
    """Hidden scores become -10, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -10.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomePlusInfinity(RightInit):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskedAfterSoftmax(RightInit):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).tril()) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_after_eval")
class MaskOnlyInTraining(RightInit):
    """The future is hidden in training only; a causal model hides it after eval() too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskOnlyAfterEval(RightInit):
    """The future is hidden after eval() only; hide it in training too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if not self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskOfTheWrongWidth(RightPass):
    """The mask has d_out tokens; a sequence has up to context_length."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(d_out, d_out).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class FirstSequenceMasked(RightInit):
    """Only the first sequence of a batch is masked; one mask serves all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = torch.cat([scores[:1].masked_fill(self.hidden(scores), float("-inf")), scores[1:]])
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskAdded(RightInit):
    """The mask's zeros and ones are added to the scores, which hides nothing; make hidden ones -inf: masked_fill."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores + self.hidden(scores)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskTimesInfinity(RightInit):
    """The mask is multiplied by infinity, and 0 times infinity is NaN; use masked_fill or torch.where."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores + self.hidden(scores) * float("-inf")
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskBelowTheDiagonal(RightInit):
    """What is on the diagonal, below it and one above is hidden: torch.tril for torch.triu; hide what is above."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=1).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class LibraryMaskInverted(RightInit):
    """scaled_dot_product_attention attends where its attn_mask is True; hand it ~mask, or is_causal=True."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        p = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, self.hidden(queries @ keys.transpose(1, 2)), p)
