class Flash(torch.autograd.Function):
    """Tiles in both directions: the backward pass computes them again."""

    @staticmethod
    def tile(q, k, i, j, causal, scale):
        s = q @ k.mT * scale
        if causal and i == j:
            s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), -torch.inf)
        return s

    @staticmethod
    def forward(ctx, Q, K, V, size, causal):
        T, scale = Q.shape[-2], Q.shape[-1] ** -0.5
        outs, logs = [], []
        for i in range(0, T, size):
            q = Q[..., i : i + size, :]
            m = None
            for j in range(0, i + 1 if causal else T, size):
                s = Flash.tile(q, K[..., j : j + size, :], i, j, causal, scale)
                top = s.amax(-1, keepdim=True)
                new = top if m is None else torch.maximum(m, top)
                p = torch.exp(s - new)
                a = 0 if m is None else torch.exp(m - new)
                l = p.sum(-1, keepdim=True) + (0 if m is None else a * l)
                o = p @ V[..., j : j + size, :] + (0 if m is None else a * o)
                m = new
            outs.append(o / l)
            logs.append(m + torch.log(l))
        out, log = torch.cat(outs, -2), torch.cat(logs, -2)
        ctx.save_for_backward(Q, K, V, out, log)
        ctx.size, ctx.causal = size, causal
        return out

    @staticmethod
    def backward(ctx, grad):
        Q, K, V, out, log = ctx.saved_tensors
        T, scale, size = Q.shape[-2], Q.shape[-1] ** -0.5, ctx.size
        dQ, dK, dV = torch.zeros_like(Q), torch.zeros_like(K), torch.zeros_like(V)
        delta = (grad * out).sum(-1, keepdim=True)
        for i in range(0, T, size):
            r = slice(i, i + size)
            for j in range(0, i + 1 if ctx.causal else T, size):
                c = slice(j, j + size)
                p = torch.exp(Flash.tile(Q[..., r, :], K[..., c, :], i, j, ctx.causal, scale) - log[..., r, :])
                g = grad[..., r, :]
                ds = p * (g @ V[..., c, :].mT - delta[..., r, :]) * scale
                dV[..., c, :] += p.mT @ g
                dQ[..., r, :] += ds @ K[..., c, :]
                dK[..., c, :] += ds.mT @ Q[..., r, :]
        return dQ, dK, dV, None, None


def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    return Flash.apply(queries, keys, values, block_size, causal)
