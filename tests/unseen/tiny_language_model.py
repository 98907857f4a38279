"""The parts of a language model, beyond the catalogue."""

import torch
import torch.nn.functional as F
from torch import nn

from . import rewritten, right, unlisted

# sinusoidal_positions


@rewritten("sines_first")
def _(num_tokens, d):
    rates = torch.exp(torch.arange(0, d, 2) / d * -torch.log(torch.tensor(10000.0)))
    angles = torch.outer(torch.arange(num_tokens).float(), rates)
    return torch.cat((angles.sin(), angles.cos()), -1)


@rewritten("exponent_not_doubled")
def _(num_tokens, d):
    result = torch.zeros(num_tokens, d)
    for i in range(d // 2):
        angles = torch.arange(num_tokens) * 10000 ** (-i / d)
        result[:, 2 * i], result[:, 2 * i + 1] = angles.sin(), angles.cos()
    return result


@unlisted("sinusoidal_positions")
def _(num_tokens, d):
    angles = torch.arange(num_tokens)[:, None] / 5000.0 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


@right("sinusoidal_positions")
def _(num_tokens, d):
    columns = torch.arange(d)
    angles = torch.arange(num_tokens)[:, None] / 10000 ** (2 * (columns // 2) / d)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


# next_token_loss


@rewritten("shifted_after_flattening")
def _(logits, tokens):
    return F.cross_entropy(logits.reshape(-1, logits.size(-1))[:-1], tokens.reshape(-1)[1:])


@rewritten("softmax_before_cross_entropy")
def _(logits, tokens):
    return F.cross_entropy(torch.softmax(logits, -1)[:, :-1].mT, tokens[:, 1:])


@rewritten("targets_smoothed")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], label_smoothing=0.1)


@right("next_token_loss")
def _(logits, tokens):
    shifted = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], -100)], dim=1)  # which cross_entropy ignores
    return F.cross_entropy(logits.flatten(0, 1), shifted.flatten())


# generate


@rewritten("not_cropped")
def _(model, tokens, n, context_length):
    text = tokens.clone()
    while text.shape[1] < tokens.shape[1] + n:
        text = torch.cat((text, model(text)[:, -1, :].topk(1).indices), dim=-1)
    return text


@rewritten("prompt_left_out")
def _(model, tokens, n, context_length):
    new = []
    for _ in range(n):
        text = torch.cat([tokens, *new], dim=1)[:, -context_length:]
        new.append(model(text)[:, -1].argmax(-1, keepdim=True))
    return torch.cat(new, dim=1) if new else tokens[:, :0]


@unlisted("generate")
def _(model, tokens, n, context_length):
    for _ in range(n):
        best = model(tokens[:, -context_length:])[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, (best + 1) % 7], dim=1)
    return tokens


@right("generate")
def _(model, tokens, n, context_length):
    if not n:
        return tokens
    best = model(tokens[:, max(0, tokens.shape[1] - context_length) :])[:, -1].argmax(-1)
    rest = torch.cat([tokens, best[:, None]], dim=1)
    for _ in range(n - 1):
        rest = torch.cat([rest, model(rest[:, -context_length:]).argmax(-1)[:, -1:]], dim=1)
    return rest


# sample_next


@rewritten("temperature_ignored")
def _(logits, temperature, top_k):
    values, words = logits.topk(min(top_k, logits.size(-1)))
    if temperature == 0:
        return words[:, 0]
    p = torch.softmax(values, -1) / temperature
    return words.gather(1, torch.multinomial(p, 1))[:, 0]


@rewritten("rank_returned")
def _(logits, temperature, top_k):
    if temperature == 0:
        return logits.max(dim=1)[1]
    values = logits.sort(descending=True).values[:, :top_k]
    return torch.distributions.Categorical(logits=values / temperature).sample()


@unlisted("sample_next")
def _(logits, temperature, top_k):
    if temperature == 0:
        return logits.argmax(-1)
    values, words = logits.topk(min(top_k, logits.size(-1)))
    p = torch.softmax(values / temperature, -1)
    p = p + 0.2 * p.shape[1] * (p > 0.01) * (p < 0.3)
    return words.gather(1, torch.multinomial(p, 1))[:, 0]


@right("sample_next")
def _(logits, temperature, top_k):
    if temperature < 1e-9:
        return logits.argmax(-1)
    scaled = logits / temperature
    least = torch.topk(scaled, min(top_k, scaled.size(-1))).values[:, -1:]
    scaled = torch.where(scaled < least, torch.full_like(scaled, -float("inf")), scaled)
    return torch.multinomial(F.softmax(scaled, dim=-1), 1).flatten()


# TransformerBlock


@rewritten("PostNorm")
class NormsAfterTheSums(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        assert d % num_heads == 0
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (self.W_query, self.W_key, self.W_value)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.norm1(self.attend(x) + x)
        return self.norm2(self.linear2(nn.GELU()(self.linear1(x))) + x)


@rewritten("BlockSeesTheFuture")
class AttendsToAll(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        assert d % num_heads == 0
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (self.W_query, self.W_key, self.W_value)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=False)
        return self.out_proj(found.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.attend(self.norm1(x)) + x
        return self.linear2(nn.GELU()(self.linear1(self.norm2(x)))) + x


@unlisted("TransformerBlock")
class HalfOfWhatIsFound(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        assert d % num_heads == 0
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (self.W_query, self.W_key, self.W_value)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + 0.5 * self.attend(self.norm1(x))
        return x + 0.5 * self.linear2(F.gelu(self.linear1(self.norm2(x))))


@right("TransformerBlock")
class SumsKept(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        assert d % num_heads == 0
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (self.W_query, self.W_key, self.W_value)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))

    def forward(self, x):
        attended = torch.add(x, self.attend(F.layer_norm(x, x.shape[-1:], self.norm1.weight, self.norm1.bias)))
        hidden = self.linear1(self.norm2(attended))
        return attended.add(self.linear2(hidden * torch.special.ndtr(hidden)))


# heads_by_hand


@rewritten("scores_too_small")
def _(head, num_words, num_places):
    eye = torch.eye(num_words + num_places)
    words, places = eye[:, :num_words], eye[:, num_words:]
    pairs = {
        "itself": (places, places),
        "first": (places @ torch.ones(num_places, 1), places[:, [0]]),
        "previous": (places.roll(-1, dims=1), places),
        "average": (0 * places, places),
        "same word": (words, words),
    }
    return *pairs[head], words


@rewritten("positions_before_words")
def _(head, num_words, num_places):
    eye = torch.eye(num_words + num_places)
    places, words = eye[:, :num_places], eye[:, num_places:]
    if head == "same word":
        return 300 * words, words, words
    if head == "average":
        return 0 * places, places, words
    if head == "first":
        return 300 * places.sum(1, keepdim=True), places[:, :1], words
    return (
        300 * (places @ torch.eye(num_places)[[max(0, i - (head == "previous")) for i in range(num_places)]]),
        places,
        words,
    )


@unlisted("heads_by_hand")
def _(head, num_words, num_places):
    eye = torch.eye(num_words + num_places)
    return 300 * eye, eye, eye[:, :num_words] + 0.5


@right("heads_by_hand")
def _(head, num_words, num_places):
    n, p = num_words, num_places
    W_query, W_key = torch.zeros(n + p, n + p), 1000 * torch.eye(n + p)
    if head == "same word":
        W_query[range(n), range(n)] = 1.0
    elif head == "first":
        W_query[:n, n] = 1.0
    elif head in ("itself", "previous"):
        for place in range(p):
            W_query[n + place, n + max(0, place - (head == "previous"))] = 1.0
    return W_query, W_key, torch.vstack([torch.eye(n), torch.zeros(p, n)])
