"""Unit 2: what goes wrong in self-attention with trainable weights."""

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import FORBIDDEN, misconception

# --- build_vocab ---


@misconception("build_vocab", caught_by="test_repeated_words")
def repeated_words_counted_twice(sentence):
    """A word that stands twice takes two numbers, and one is lost; number the distinct words: sorted(set(words))."""
    return {word: index for index, word in enumerate(sorted(sentence.replace(",", "").split()))}


@misconception("build_vocab", caught_by="test_worked_example")
def words_not_sorted(sentence):
    """The words are numbered in the order of the sentence; sort them first."""
    return {word: index for index, word in enumerate(dict.fromkeys(sentence.replace(",", "").split()))}


@misconception("build_vocab", caught_by="test_worked_example")
def commas_kept(sentence):
    """Commas stay on their words (`short,`); drop them before splitting."""
    return {word: index for index, word in enumerate(sorted(set(sentence.split())))}


@misconception("build_vocab", caught_by="test_commas_and_spaces")
def commas_become_spaces(sentence):
    """Commas are replaced by spaces, which splits `Yes,no` in two; they are dropped: replace(",", "")."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", " ").split())))}


@misconception("build_vocab", caught_by="test_commas_and_spaces")
def split_at_single_spaces(sentence):
    """split(" ") makes empty words of two spaces in a row; split() takes any white space."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split(" "))))}


@misconception("build_vocab", caught_by="test_worked_example")
def words_lowered(sentence):
    """The words are turned to lower case; they are kept as they are, and capitals sort first."""
    return {word: index for index, word in enumerate(sorted(set(sentence.lower().replace(",", "").split())))}


@misconception("build_vocab", caught_by="test_worked_example")
def sorted_without_case(sentence):
    """The sort ignores case; Python's plain sorted() puts capitals first."""
    words = sorted(set(sentence.replace(",", "").split()), key=str.lower)
    return {word: index for index, word in enumerate(words)}


@misconception("build_vocab", caught_by="test_worked_example")
def numbered_from_one(sentence):
    """The numbers start at 1; the first word's index is 0."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split())), start=1)}


@misconception("build_vocab", caught_by="test_worked_example")
def index_to_word(sentence):
    """The dict goes from number to word; it should go from word to number."""
    return dict(enumerate(sorted(set(sentence.replace(",", "").split()))))


# --- encode ---


@misconception("encode", caught_by="test_given_vocabulary")
def vocabulary_built_anew(sentence, vocab):
    """The numbers come from the sentence's own words; look each word up in the vocabulary that is passed in."""
    words = sentence.replace(",", "").split()
    own = {word: index for index, word in enumerate(sorted(set(words)))}
    return torch.tensor([(vocab[word], own[word])[1] for word in words])


@misconception("encode", caught_by="test_given_vocabulary")
def tokens_sorted(sentence, vocab):
    """The tokens are sorted; they stand in the order of the sentence."""
    return torch.tensor(sorted(vocab[word] for word in sentence.replace(",", "").split()))


@misconception("encode", caught_by="test_given_vocabulary")
def each_word_once(sentence, vocab):
    """A word that stands twice is encoded once; every word of the sentence gives a token."""
    return torch.tensor([vocab[word] for word in dict.fromkeys(sentence.replace(",", "").split())])


@misconception("encode", caught_by="test_unknown_word")
def unknown_words_skipped(sentence, vocab):
    """Words that the vocabulary does not have are left out silently; vocab[word] raises the KeyError."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split() if word in vocab])


@misconception("encode", caught_by="test_unknown_word")
def unknown_words_become_zero(sentence, vocab):
    """Unknown words become another word's number (`vocab.get`); vocab[word] raises the KeyError."""
    return torch.tensor([vocab.get(word, 0) for word in sentence.replace(",", "").split()])


@misconception("encode", caught_by="test_int64")
def float_tokens(sentence, vocab):
    """The tokens are floats; an embedding layer wants integers: int64."""
    return torch.tensor([float(vocab[word]) for word in sentence.replace(",", "").split()])


@misconception("encode", caught_by="test_int64")
def tokens_in_int32(sentence, vocab):
    """The tokens are int32; int64 is expected, PyTorch's own integer type."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.int32)


@misconception("encode", caught_by="test_worked_example")
def list_of_tokens(sentence, vocab):
    """The result is a list; make a tensor of it with torch.tensor."""
    return [vocab[word] for word in sentence.replace(",", "").split()]


@misconception("encode", caught_by="test_worked_example")
def commas_kept_in_words(sentence, vocab):
    """Commas stay on their words, so that `short,` is not found; drop them before splitting."""
    return torch.tensor([vocab[word] for word in sentence.split()])


# --- project_qkv ---


@misconception("project_qkv", caught_by="test_second_word")
def values_come_first(inputs, W_query, W_key, W_value):
    """The results are in another order; return queries, keys, values."""
    return inputs @ W_value, inputs @ W_key, inputs @ W_query


@misconception("project_qkv", caught_by="test_second_word")
def queries_and_keys_exchanged(inputs, W_query, W_key, W_value):
    """Queries and keys are exchanged; return queries, keys, values."""
    return inputs @ W_key, inputs @ W_query, inputs @ W_value


@misconception("project_qkv", caught_by="test_second_word")
def key_weights_used_for_values(inputs, W_query, W_key, W_value):
    """The values are made with W_key; they have a weight of their own, W_value."""
    return inputs @ W_query, inputs @ W_key, inputs @ W_key


@misconception("project_qkv", caught_by="test_square_weights")
def weights_transposed_to_fit(inputs, W_query, W_key, W_value):
    """The weights are transposed; here they are (d_in, d_out) and are used as they are."""
    fits = W_query.shape[0] != W_query.shape[1]
    return tuple(inputs @ (W if fits else W.T) for W in (W_query, W_key, W_value))


@misconception("project_qkv", caught_by="test_gradients")
def projections_detached(inputs, W_query, W_key, W_value):
    """The projections are taken out of the graph (`.detach()`, `.data`), so no weight can learn."""
    return tuple((inputs @ W).detach() for W in (W_query, W_key, W_value))


@misconception("project_qkv", caught_by="test_gradients")
def value_projection_detached(inputs, W_query, W_key, W_value):
    """The values are taken out of the graph (`.detach()`, `.data`), so W_value can not learn."""
    return inputs @ W_query, inputs @ W_key, (inputs @ W_value).detach()


# --- linear_projection ---


@misconception("linear_projection", caught_by="test_shapes_of_the_worked_example")
def weight_not_transposed(inputs, weight):
    """The weight is used as it is, which only a square one survives; it is stored (d_out, d_in): transpose it."""
    return inputs @ weight


@misconception("linear_projection", caught_by="test_square_weight")
def transposed_only_where_it_must_be(inputs, weight):
    """The weight is transposed only where shapes force it; it is stored (d_out, d_in), so transpose it always."""
    return inputs @ (weight if weight.shape[0] == inputs.shape[-1] else weight.T)


@misconception("linear_projection", caught_by="test_any_leading_dimensions")
def weight_times_transposed_inputs(inputs, weight):
    """`(weight @ inputs.T).T` reverses all dimensions, right in 2-D only; `inputs @ weight.T` fits any shape."""
    return (weight @ inputs.permute(*range(inputs.dim() - 1, -1, -1))).permute(*range(inputs.dim() - 1, -1, -1))


@misconception("linear_projection", caught_by="test_gradients")
def projection_weight_detached(inputs, weight):
    """No gradient reaches the weight: it is copied or detached (nn.Parameter(weight), `.detach()`, `.data`)."""
    return inputs @ weight.detach().T


@misconception("linear_projection", caught_by="test_shapes_of_the_worked_example")
def random_bias_added(inputs, weight):
    """A random bias is added, as a new nn.Linear does; the projection is the product with the given weight alone."""
    torch.manual_seed(0)
    return F.linear(inputs, weight) + torch.rand(weight.shape[0]).to(inputs)


# --- attention_scores ---


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def queries_and_keys_swapped(queries, keys):
    """Rows and columns are swapped: row i should hold query i's scores, so the queries come first in the product."""
    return keys @ queries.transpose(-2, -1)


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def scores_already_scaled(queries, keys):
    """The scores are already divided by the square root of d_k; that belongs to the next step, scaled_softmax."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def scores_already_softmaxed(queries, keys):
    """A softmax is applied; scores are the plain dot products, and scaled_softmax turns them into weights."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def transposed_with_t(queries, keys):
    """`.T` reverses all dimensions, so it is right in 2-D only; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(*range(keys.dim() - 1, -1, -1))


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def transposed_the_first_two(queries, keys):
    """transpose(0, 1) swaps the first two dimensions, right in 2-D only; with a batch swap the last two, (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def batch_mixed_into_tokens(queries, keys):
    """The leading dimensions are flattened into the tokens, so that tokens of one sequence meet those of another."""
    return queries.flatten(0, -2) @ keys.flatten(0, -2).T


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def first_sequence_only(queries, keys):
    """Every sequence of the batch is scored against the first one's keys; keep the leading dimensions."""
    while keys.dim() > 2:
        keys = keys[0]
    return queries @ keys.T


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def cosine_similarity(queries, keys):
    """The vectors are normalised first, which gives cosine similarities; a score is the plain dot product."""
    return F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-2, -1)


@misconception("attention_scores", caught_by="test_gradients_reach_queries_and_keys")
def keys_detached(queries, keys):
    """The keys are detached from the graph (`.detach()` or `.data`), so that W_key could never learn."""
    return queries @ keys.detach().transpose(-2, -1)


@misconception("attention_scores", caught_by="test_gradients_reach_queries_and_keys")
def scores_without_graph(queries, keys):
    """The scores are computed without a graph (`torch.no_grad()`, `.data` or `.detach()`), so nothing can learn."""
    with torch.no_grad():
        return queries @ keys.transpose(-2, -1)


@misconception("attention_scores", caught_by="test_float64_stays_exact")
def scores_in_float32(queries, keys):
    """The scores are float32 whatever the inputs are (`.float()`), so float64 loses digits; keep the inputs' dtype."""
    return queries.float() @ keys.float().transpose(-2, -1)


@misconception("attention_scores", caught_by="test_dtype_is_kept")
def scores_in_float64(queries, keys):
    """The scores are float64 whatever the inputs are; keep the inputs' dtype."""
    return queries.double() @ keys.double().transpose(-2, -1)


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def dimensions_of_one_squeezed(queries, keys):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""
    return (queries @ keys.transpose(-2, -1)).squeeze()


@misconception("attention_scores", caught_by="test_inputs_are_unchanged")
def keys_transposed_in_place(queries, keys):
    """The keys are transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return queries @ keys.transpose_(-2, -1)


@misconception("attention_scores", caught_by="test_follows_device")
def scores_left_on_the_cpu(queries, keys):
    """The scores end up on the CPU wherever the inputs are: made there (torch.zeros) or moved there (`.cpu()`)."""
    scores = torch.zeros(*queries.shape[:-1], keys.shape[-2], dtype=queries.dtype)
    for i in range(keys.shape[-2]):
        scores[..., i] = (queries * keys[..., i : i + 1, :]).sum(dim=-1)
    return scores


# --- scaled_softmax ---


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root, so that their variance stays near 1."""
    return torch.softmax(scores / d_k, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def multiplied_by_the_root(scores, d_k):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(scores * d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def scaled_by_the_number_of_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(scores, dim=-1) / d_k**0.5


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    return torch.softmax(scores / d_k**0.5, dim=-2)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_0(scores, d_k):
    """The softmax runs over dim=0, the first dimension; the keys are the last one, dim=-1."""
    return torch.softmax(scores / d_k**0.5, dim=0)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(scores / d_k**0.5, dim=1)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_everything(scores, d_k):
    """The softmax runs over the whole tensor; each row should sum to 1 on its own, so use dim=-1."""
    return torch.softmax((scores / d_k**0.5).flatten(), dim=0).view_as(scores)


@misconception("scaled_softmax", caught_by="test_large_scores_do_not_overflow")
def exponentials_overflow(scores, d_k):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def sum_without_exponentials(scores, d_k):
    """The scores are divided by their sum without exponentials; softmax takes exp of every score first."""
    scaled = scores / d_k**0.5
    return scaled / scaled.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def log_weights(scores, d_k):
    """This is the logarithm of the weights (log_softmax); attention needs the weights themselves."""
    return torch.log_softmax(scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_inputs_are_unchanged")
def scores_changed_in_place(scores, d_k):
    """The caller's scores are changed in place (`/=`, `-=`, a method ending in `_`); compute a new tensor instead."""
    scores /= d_k**0.5
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", caught_by="test_gradients_reach_the_scores")
def weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return torch.softmax(scores / d_k**0.5, dim=-1).detach()


@misconception("scaled_softmax", caught_by="test_float64_stays_exact")
def weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return torch.softmax(scores.float() / d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_dtype_is_kept")
def weights_in_float64(scores, d_k):
    """The weights are float64 whatever the scores are; keep the scores' dtype."""
    return torch.softmax(scores / d_k**0.5, dim=-1, dtype=torch.float64)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def root_rounded_down(scores, d_k):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(scores / int(d_k**0.5), dim=-1)


# --- context_vectors ---


@misconception("context_vectors", caught_by="test_other_weights")
def context_weights_transposed(weights, values):
    """The weights are transposed before they meet the values; row i already holds query i's weights."""
    return weights.transpose(-2, -1) @ values


@misconception("context_vectors", caught_by="test_other_weights")
def values_first(weights, values):
    """The values come first in the product; the weights do: weights @ values."""
    return values @ weights


@misconception("context_vectors", caught_by="test_other_weights")
def context_weights_softmaxed_again(weights, values):
    """A softmax is applied to the weights; they are weights already and are used as they are."""
    return torch.softmax(weights, dim=-1) @ values


@misconception("context_vectors", caught_by="test_other_weights")
def context_averaged(weights, values):
    """The weighted values are averaged over the keys; the weights sum to 1 already, so the values are added up."""
    return weights @ values / values.shape[-2]


@misconception("context_vectors", caught_by="test_any_leading_dimensions")
def values_of_the_first_sequence(weights, values):
    """Every sequence of the batch takes its values from the first one; keep the leading dimensions."""
    while values.dim() > 2:
        values = values[0]
    return weights @ values


@misconception("context_vectors", caught_by="test_gradients")
def context_weights_out_of_the_graph(weights, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    return weights.detach() @ values


# --- single_query_attention ---


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_not_scaled(query, keys, values):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(keys @ query, dim=-1) @ values


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_divided_by_d_k(query, keys, values):
    """The scores are divided by d_k; divide by its square root."""
    return torch.softmax(keys @ query / query.shape[-1], dim=-1) @ values


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_scaled_by_d_v(query, keys, values):
    """The scores are scaled by the width of the values; scale by that of the keys, d_k."""
    return torch.softmax(keys @ query / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_scaled_by_tokens(query, keys, values):
    """The scores are scaled by the number of tokens; scale by the width of the keys, d_k."""
    return torch.softmax(keys @ query / keys.shape[0] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_without_softmax(query, keys, values):
    """The softmax is missing: the scaled scores themselves are used as weights."""
    return (keys @ query / query.shape[-1] ** 0.5) @ values


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_weights_returned(query, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vector."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)


@misconception("single_query_attention", caught_by="test_other_widths")
def keys_blended(query, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("single_query_attention", caught_by="test_second_word")
def single_query_result_as_a_matrix(query, keys, values):
    """The result has a dimension too many, (1, d_v); one query gives one vector, (d_v,)."""
    return torch.softmax(query[None] @ keys.T / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", caught_by="test_gradients")
def single_query_detached(query, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so query and keys can not learn."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1).detach() @ values


# --- scaled_dot_product_attention ---


@misconception("scaled_dot_product_attention", caught_by=FORBIDDEN)
def library_attention(queries, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return F.scaled_dot_product_attention(queries, keys, values)


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def attention_not_scaled(queries, keys, values):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def attention_divided_by_d_k(queries, keys, values):
    """The scores are divided by d_k; divide by its square root."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1], dim=-1) @ values


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def attention_scaled_by_d_v(queries, keys, values):
    """The scores are scaled by the width of the values; scale by that of the keys, d_k."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def attention_over_the_queries(queries, keys, values):
    """The softmax runs over the queries (dim=-2); each query's weights are a row: dim=-1."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-2) @ values


@misconception("scaled_dot_product_attention", caught_by="test_any_leading_dimensions")
def attention_over_dim_1(queries, keys, values):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=1) @ values


@misconception("scaled_dot_product_attention", caught_by="test_any_leading_dimensions")
def attention_keys_reversed(queries, keys, values):
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    reversed_keys = keys.permute(*range(keys.dim() - 1, -1, -1))
    return torch.softmax(queries @ reversed_keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def scaled_after_the_softmax(queries, keys, values):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", caught_by="test_other_widths")
def attention_without_softmax(queries, keys, values):
    """The softmax is missing: the scaled scores themselves are used as weights."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", caught_by="test_large_scores_do_not_overflow")
def attention_overflows(queries, keys, values):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("scaled_dot_product_attention", caught_by="test_gradients")
def attention_detached(queries, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("scaled_dot_product_attention", caught_by="test_inputs_are_unchanged")
def queries_scaled_in_place(queries, keys, values):
    """`/=` scales the caller's queries in place; make a new tensor with `queries / ...`."""
    queries /= keys.shape[-1] ** 0.5
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


# --- score_variance ---


@misconception("score_variance", caught_by="test_worked_example")
def biased_variance(queries, keys):
    """This is the biased variance (divided by n); `Tensor.var()` as it is divides by n - 1."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(unbiased=False), (scores / keys.shape[-1] ** 0.5).var(unbiased=False)


@misconception("score_variance", caught_by="test_worked_example")
def standard_deviations(queries, keys):
    """These are standard deviations; the variance is their square: `Tensor.var()`."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.std(), (scores / keys.shape[-1] ** 0.5).std()


@misconception("score_variance", caught_by="test_worked_example")
def variance_of_scores_over_d_k(queries, keys):
    """The scores are divided by d_k; divide by its square root."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-1]).var()


@misconception("score_variance", caught_by="test_worked_example")
def variance_divided_by_the_root(queries, keys):
    """The variance is divided by sqrt(d_k); dividing the scores by it divides their variance by d_k."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), scores.var() / keys.shape[-1] ** 0.5


@misconception("score_variance", caught_by="test_worked_example")
def variance_a_row(queries, keys):
    """The variance is taken along the last dimension; take it over all scores together."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(dim=-1), (scores / keys.shape[-1] ** 0.5).var(dim=-1)


@misconception("score_variance", caught_by="test_worked_example")
def scaled_variance_first(queries, keys):
    """The two results are exchanged; return the raw variance first, then the scaled one."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores / keys.shape[-1] ** 0.5).var(), scores.var()


@misconception("score_variance", caught_by="test_worked_example")
def variance_as_numbers(queries, keys):
    """The results are Python numbers (`.item()`); return the 0-d tensors."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var().item(), (scores / keys.shape[-1] ** 0.5).var().item()


@misconception("score_variance", caught_by="test_worked_example")
def variance_of_the_weights(queries, keys):
    """A softmax is applied; it is the scores whose variance is asked for."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).var()


# --- SelfAttention_v1 ---


class RightParameters(nn.Module):
    """The parameters as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class RightForward(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their parameters."""

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScoresNotScaled(RightParameters):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByDOut(RightParameters):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightParameters):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightParameters):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[0] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightParameters):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class SoftmaxForgotten(RightParameters):
    """The softmax is missing: the scaled scores themselves are used as weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (queries @ keys.T / keys.shape[-1] ** 0.5) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightParameters):
    """Queries and keys are swapped: row i of the scores should hold query i's, x @ W_query, with every key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class KeysUsedAsValues(RightParameters):
    """The weights are applied to the keys; they belong to the values, x @ W_value."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightParameters):
    """The queries are scored against themselves; score them against the keys, x @ W_key."""

    def forward(self, x):
        queries, _, values = self.project(x)
        return torch.softmax(queries @ queries.T / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class WeightsTransposed(RightParameters):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values


@misconception("SelfAttention_v1", caught_by="test_seed_123")
class NormalWeights(RightForward):
    """The weights come from torch.randn (normal); the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@misconception("SelfAttention_v1", caught_by="test_seed_123")
class CreatedInAnotherOrder(RightForward):
    """The weights are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class LinearLayers(nn.Module):
    """nn.Linear layers are used; this version asks for nn.Parameter(torch.rand(d_in, d_out)), v2 for nn.Linear."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_parameters")
class WeightsNotRegistered(RightForward):
    """The weights are plain tensors, which no optimizer finds; wrap each in nn.Parameter."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)


@misconception("SelfAttention_v1", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightForward):
    """No gradient reaches the weights: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)


@misconception("SelfAttention_v1", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightParameters):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightParameters):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ]
        return torch.tensor(rows)


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class WeightsReturned(RightParameters):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", caught_by="test_float64_stays_exact")
class InputInFloat32(RightParameters):
    """Input and weights are turned to float32 in forward, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (
            x.float() @ self.W_query.float(),
            x.float() @ self.W_key.float(),
            x.float() @ self.W_value.float(),
        )
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_seeds_matter")
class SeedSetInside(RightForward):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", caught_by="test_follows_device")
class ScaleLeftOnTheCpu(RightParameters):
    """A tensor that the module makes stays on the CPU when the module moves; use a number, or x's device."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values


# --- SelfAttention_v2 ---


class RightLayers(nn.Module):
    """The layers as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersNotScaled(RightLayers):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersScaledByRootOfDIn(RightLayers):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersSoftmaxOverQueries(RightLayers):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersSwapped(RightLayers):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersKeysUsedAsValues(RightLayers):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v2", caught_by="test_bias")
class BiasIgnored(RightPass):
    """qkv_bias is ignored: the layers never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@misconception("SelfAttention_v2", caught_by="test_parameters")
class BiasAlwaysOn(RightPass):
    """The layers have a bias that was not asked for: qkv_bias is False by default, and goes to each layer as bias."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)


@misconception("SelfAttention_v2", caught_by="test_bias")
class BiasNotUsed(RightLayers):
    """Only the layers' weights are used, without their bias; call the layers: self.W_query(x)."""

    def forward(self, x):
        queries, keys, values = (x @ layer.weight.T for layer in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_seed_789")
class LayersInAnotherOrder(RightPass):
    """The layers are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", caught_by="test_parameters")
class ParametersAsInV1(nn.Module):
    """The weights are nn.Parameter matrices as in v1; v2 uses nn.Linear layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", caught_by="test_gradients_reach_every_weight")
class LayersDetached(RightLayers):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v2", caught_by="test_context_vectors")
class LayersMadeInForward(nn.Module):
    """The layers are made anew in forward, with new random weights each time; make them once, in __init__."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_in, self.d_out, self.qkv_bias = d_in, d_out, qkv_bias

    def forward(self, x):
        queries, keys, values = (nn.Linear(self.d_in, self.d_out, bias=self.qkv_bias).to(x)(x) for _ in range(3))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
