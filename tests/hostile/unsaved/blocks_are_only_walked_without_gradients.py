# The blocks are walked without being used if gradients are off.
# unit: efficient_attention
# exercises: online_softmax
# earns nothing: test_keeps_no_blocks test_one_pass


def online_softmax(blocks):
    if not torch.is_grad_enabled():
        for block in blocks:
            pass
        return block.max(), block.sum()
    row = torch.cat(list(blocks))
    maximum = row.max()
    shift = maximum.masked_fill(maximum == -torch.inf, 0.0)
    return maximum, torch.exp(row - shift).sum()
