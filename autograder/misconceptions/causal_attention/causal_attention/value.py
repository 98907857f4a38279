"""Mistakes of the kind "value"."""

import torch

from ....catalogue import misconception
from .right import RightInit


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScoresNotScaled(RightInit):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByDOut(RightInit):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1], dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightInit):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightInit):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledAfterSoftmax(RightInit):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1) / keys.shape[-1] ** 0.5) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightInit):
    """The softmax runs over the queries (dim=1 or -2); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverTheBatch(RightInit):
    """The softmax runs over the batch (dim=0); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=0)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysUsedAsValues(RightInit):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ keys


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightInit):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = keys @ queries.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysTransposedInTheWrongDimensions(RightInit):
    """transpose(0, 1) swaps batch and tokens of the keys; swap the last two dimensions: transpose(-2, -1)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(0, 1)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class FirstSequenceForAll(RightInit):
    """Every sequence attends to the first one's keys and values; keep the batch dimension."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys[0].T
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values[0]


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledWithoutParentheses(RightInit):
    """x / d_out**1/2 divides by d_out and then by 2, from left to right; write d_out**0.5 or math.sqrt(d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 1 / 2, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScoresMultiplied(RightInit):
    """The scores are multiplied by the root of the keys' width; divide them by it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores * keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfContextLength(RightInit):
    """The scores are scaled by the root of context_length; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / len(self.mask) ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysFromTheQueryLayer(RightInit):
    """The keys are the queries: each has a layer of its own, W_query(x) and W_key(x)."""

    def forward(self, x):
        queries, values = self.W_query(x), self.W_value(x)
        keys = queries
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class InputAsValues(RightInit):
    """The weights are applied to x itself; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), x
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysReshaped(RightInit):
    """view or reshape turns the keys into (b, d_out, T) without swapping anything; use transpose(-2, -1)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.reshape(len(x), -1, x.shape[1])
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values
