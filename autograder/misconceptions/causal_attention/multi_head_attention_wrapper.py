"""What goes wrong in `MultiHeadAttentionWrapper`."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ...catalogue import misconception


class RightHeads(nn.Module):
    """The heads as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )


class SideBySide(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their heads."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsBelowEachOther(RightHeads):
    """The heads are concatenated along the tokens (dim=1); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=1)


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class HeadsInTheBatch(RightHeads):
    """The heads are concatenated along the batch (dim=0); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=0)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsSummed(RightHeads):
    """The heads' results are added up; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return sum(head(x) for head in self.heads)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsAveraged(RightHeads):
    """The heads' results are averaged; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads]).mean(dim=0)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsStacked(RightHeads):
    """The heads' results are stacked along a new first dimension; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsInADimensionOfTheirOwn(RightHeads):
    """The heads' results are stacked along a new dimension before the last; torch.cat(..., dim=-1) makes none."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsInterleaved(RightHeads):
    """The heads' numbers alternate; all of head 0 comes first, then all of head 1: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1).flatten(2)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsReversed(RightHeads):
    """The heads stand in reverse order; head 0 comes first."""

    def forward(self, x):
        return torch.cat([head(x) for head in reversed(self.heads)], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class FirstHeadRepeated(RightHeads):
    """The first head's result stands there num_heads times; call each head."""

    def forward(self, x):
        return torch.cat([self.heads[0](x) for _ in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadReturned(RightHeads):
    """Only one head's result is returned; put all of them side by side."""

    def forward(self, x):
        return self.heads[0](x)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class ListOfResults(RightHeads):
    """The result is a list of the heads' results; concatenate them: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return [head(x) for head in self.heads]


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class HeadsRunWithoutGradients(RightHeads):
    """The heads' results are detached from the graph, so no head can learn."""

    def forward(self, x):
        return torch.cat([head(x).detach() for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class OnlyOneHeadLearns(RightHeads):
    """All heads but the first are detached from the graph, so that they never learn."""

    def forward(self, x):
        return torch.cat([self.heads[0](x), *(head(x).detach() for head in self.heads[1:])], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheHeads(RightHeads):
    """Dropout is on the concatenated result as well; the heads' own dropout is all there is."""

    def forward(self, x):
        p = self.heads[0].dropout.p if len(self.heads) else 0.0
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), p, self.training)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class SameDropInEveryHead(RightHeads):
    """A seed is set before each head, so that all heads drop the same weights; leave seeds to the caller."""

    def forward(self, x):
        results = []
        for head in self.heads:
            torch.manual_seed(0)
            results.append(head(x))
        return torch.cat(results, dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class OneHeadManyTimes(SideBySide):
    """The list holds the same head num_heads times; make a new CausalAttention for each place."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList([CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads)


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class HeadsInAPlainList(SideBySide):
    """The heads are in a plain list, where no optimizer finds their parameters; use nn.ModuleList."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsDividedAmongDOut(SideBySide):
    """Each head is d_out // num_heads wide; here d_out is the width of one head, and the result is wider."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, max(1, d_out // num_heads), context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_bias")
class BiasNotPassedOn(SideBySide):
    """The heads have no bias with qkv_bias=True: pass qkv_bias on to each CausalAttention, and there to its layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutNotPassedOn(SideBySide):
    """No head drops anything in training: pass dropout on to each CausalAttention, which puts it on its weights."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class ContextLengthNotPassedOn(SideBySide):
    """The heads are built for other numbers of tokens than context_length; pass context_length on to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, d_out, dropout, qkv_bias) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class AlwaysTwoHeads(SideBySide):
    """There are always two heads; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(2))


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class HeadsUnderAnotherName(nn.Module):
    """The heads are kept under another name; the nn.ModuleList is called `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.attention_heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.attention_heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class ProjectionAdded(nn.Module):
    """A linear layer is added after the heads; their results side by side are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetForEachHead(SideBySide):
    """A seed is set inside, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class HeadsOfTheLibrary(nn.Module):
    """The heads are nn.MultiheadAttention; put your own CausalAttention into the list."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.MultiheadAttention(d_in, 1, dropout, qkv_bias, batch_first=True) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x, x, x, need_weights=False)[0] for head in self.heads], dim=-1)
