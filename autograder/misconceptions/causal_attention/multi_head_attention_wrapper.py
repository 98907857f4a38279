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


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
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


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsStacked(RightHeads):
    """The heads' results are stacked along a new first dimension; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
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
    """Dropout is on the heads' results as well; dropout on each head's weights is all there is."""

    def forward(self, x):
        p = self.heads[0].dropout.p if len(self.heads) else 0.0
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), p, self.training)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class SameDropInEveryHead(RightHeads):
    """A seed is set for each head's call, so that all heads drop the same weights; leave seeds to the caller."""

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


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsInAPlainList(SideBySide):
    """The heads are in no nn.ModuleList that __init__ makes (a plain list?), so no optimizer finds their parameters."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsDividedAmongDOut(SideBySide):
    """Each head is d_out // num_heads wide; here d_out is the width of one head, and the result is wider."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out // num_heads, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_bias")
class BiasNotPassedOn(SideBySide):
    """The heads have no bias with qkv_bias=True: pass qkv_bias on to each CausalAttention, and there to its layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutNotPassedOn(SideBySide):
    """No head drops anything in training: pass dropout on to each CausalAttention, which drops while train() is on."""

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


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class AlwaysTwoHeads(SideBySide):
    """There are always two heads; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(2))


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsUnderAnotherName(nn.Module):
    """The heads are kept under another name; the nn.ModuleList is called `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.attention_heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.attention_heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
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


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsOfTheLibrary(nn.Module):
    """The heads are nn.MultiheadAttention; put your own CausalAttention into the list."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.MultiheadAttention(d_in, 1, dropout, qkv_bias, batch_first=True) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x, x, x, need_weights=False)[0] for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsStackedLast(RightHeads):
    """The heads' results are stacked along a new last dimension; torch.cat(..., dim=-1) makes none."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class TupleOfResults(RightHeads):
    """The result is a tuple of the heads' results; concatenate them: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return tuple(head(x) for head in self.heads)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class NoResultReturned(RightHeads):
    """forward returns nothing (None); end it with `return` and the heads' results side by side."""

    def forward(self, x):
        torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsOneAfterTheOther(RightHeads):
    """Each head gets the result of the one before; every head takes x itself."""

    def forward(self, x):
        for head in self.heads:
            x = head(x)
        return x


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class InputSplitAmongHeads(RightHeads):
    """x is split among the heads; every head takes all of x."""

    def forward(self, x):
        parts = x.chunk(len(self.heads), dim=-1)
        return torch.cat([head(part) for head, part in zip(self.heads, parts, strict=False)], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsMixedWithTokens(RightHeads):
    """view or reshape mixes heads and tokens; put the results side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        stacked = torch.stack([head(x) for head in self.heads], dim=1)  # (b, h, T, d_out)
        return stacked.reshape(x.shape[0], x.shape[1], -1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class LastHeadReturned(RightHeads):
    """Only the last head's result is returned; collect all of them and put them side by side."""

    def forward(self, x):
        return self.heads[-1](x)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class ResultTransposed(RightHeads):
    """The result is transposed, (b, h*d_out, T); its shape is (b, T, h*d_out)."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).transpose(1, 2)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class FirstSequencesOfHeads(RightHeads):
    """The first sequence of each head's result is taken (head(x)[0]); a head returns one tensor, the whole batch."""

    def forward(self, x):
        return torch.cat([head(x)[0] for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class ResultSqueezed(RightHeads):
    """`squeeze` takes the batch dimension from a batch of one; leave it out."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).squeeze()


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class InputAddedWhereItFits(RightHeads):
    """x is added where the widths agree; the heads' results alone are asked for."""

    def forward(self, x):
        result = torch.cat([head(x) for head in self.heads], dim=-1)
        return result + x if result.shape == x.shape else result


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class HeadsThroughNumpy(RightHeads):
    """The results are computed or joined in NumPy, where no gradient follows; stay with tensors."""

    def forward(self, x):
        return torch.from_numpy(torch.cat([head(x) for head in self.heads], dim=-1).detach().numpy())


@misconception("MultiHeadAttentionWrapper", kind="dtype", caught_by="test_float64_stays_exact")
class ResultInFloat32(RightHeads):
    """Something is turned to float32 in forward, so that a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).float()


@misconception("MultiHeadAttentionWrapper", kind="device", caught_by="test_follows_device")
class ResultInNewZeros(RightHeads):
    """The result is a new tensor, float32 and on the CPU whatever x is; torch.cat follows the heads."""

    def forward(self, x):
        results = [head(x) for head in self.heads]
        width = results[0].shape[-1]
        joined = torch.zeros(*x.shape[:2], width * len(results))
        for number, result in enumerate(results):
            joined[..., number * width : (number + 1) * width] = result
        return joined


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_after_eval")
class AlwaysTraining(RightHeads):
    """The heads drop after eval() too; what drops has to follow train() and eval(), and nothing else may call them."""

    def forward(self, x):
        self.heads.train()
        return torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="hard-coded output", caught_by="test_heads_side_by_side")
class TwoHeadsTypedIn(RightHeads):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [-0.4519, 0.2216, 0.4772, 0.1063],
            [-0.5874, 0.0058, 0.5891, 0.3257],
            [-0.6300, -0.0632, 0.6202, 0.3860],
            [-0.5675, -0.0843, 0.5478, 0.3589],
            [-0.5526, -0.0981, 0.5321, 0.3428],
            [-0.5299, -0.1081, 0.5077, 0.3493],
        ]
        return torch.tensor([rows, rows])


@misconception("MultiHeadAttentionWrapper", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputChangedInPlace(RightHeads):
    """The input x is changed in place once the heads have run; leave it as it was."""

    def forward(self, x):
        result = torch.cat([head(x) for head in self.heads], dim=-1)
        with torch.no_grad():
            x.zero_()
        return result


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheResultOnly(SideBySide):
    """Dropout is on the heads' results; it belongs on the weights within each CausalAttention."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_heads_side_by_side")
class HalfDroppedInEveryHead(SideBySide):
    """Every head drops half of its weights whatever `dropout` is; pass dropout on to each CausalAttention."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.5, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class BiasInEveryHead(SideBySide):
    """The heads have a bias that was not asked for; pass qkv_bias on to each CausalAttention, False by default."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, True) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class ProjectionFirst(SideBySide):
    """A linear layer is made before the heads and follows them; their results side by side are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class ProjectionUnused(SideBySide):
    """There is a linear layer out_proj that nothing uses; the heads are all that is asked for."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadTooMany(SideBySide):
    """There is one head too many; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads + 1)
        )


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadTooFew(SideBySide):
    """There is one head too few (range(1, num_heads)?); num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(1, num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsInADict(SideBySide):
    """The heads are in an nn.ModuleDict; `heads` is an nn.ModuleList, so that they are called heads.0, heads.1, ..."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleDict(
            {f"head_{i}": CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for i in range(num_heads)}
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads.values()], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class DropoutAndContextLengthSwapped(SideBySide):
    """A head gets another argument as dropout; the order is d_in, d_out, context_length, dropout, then qkv_bias."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, dropout, context_length, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsWidthsSwapped(SideBySide):
    """d_in and d_out are swapped on the way to the heads' layers: d_in comes first, in nn.Linear too."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_out, d_in, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seeds_matter")
class SeedBeforeEachHead(SideBySide):
    """A seed is set before each head is built, so that all heads start alike; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            torch.manual_seed(123)
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seed_123")
class HeadsCopied(SideBySide):
    """The heads are copies of one, so that all of them start alike; build a new CausalAttention for each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        first = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList([first])
        for _ in range(num_heads - 1):
            head = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            head.load_state_dict(first.state_dict())
            self.heads.append(head)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class OneProjectionForAllHeads(nn.Module):
    """There are no heads: W_query, W_key and W_value serve all of them; keep num_heads modules in `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, num_tokens, _ = x.shape
        layers = self.W_query, self.W_key, self.W_value
        queries, keys, values = (layer(x).view(b, num_tokens, self.num_heads, -1).transpose(1, 2) for layer in layers)
        scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return (weights @ values).transpose(1, 2).reshape(b, num_tokens, -1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class WrapperWithoutSuper(SideBySide):
    """super().__init__() is missing or not called; it comes first in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
