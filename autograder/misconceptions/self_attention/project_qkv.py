"""What goes wrong in `project_qkv`."""

import torch

from ...catalogue import misconception
from ...six_words import SIX_WORDS as X


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def values_come_first(inputs, W_query, W_key, W_value):
    """The results are in another order; return queries, keys, values."""
    return inputs @ W_value, inputs @ W_key, inputs @ W_query


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def queries_and_keys_exchanged(inputs, W_query, W_key, W_value):
    """Queries and keys are exchanged; return queries, keys, values."""
    return inputs @ W_key, inputs @ W_query, inputs @ W_value


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def key_weights_used_for_values(inputs, W_query, W_key, W_value):
    """The values are made with W_key; they have a weight of their own, W_value."""
    return inputs @ W_query, inputs @ W_key, inputs @ W_key


@misconception("project_qkv", kind="edge", caught_by="test_square_weights")
def weights_transposed_to_fit(inputs, W_query, W_key, W_value):
    """The weights are transposed; here they are (d_in, d_out) and are used as they are."""
    fits = W_query.shape[0] != W_query.shape[1]
    return tuple(inputs @ (W if fits else W.T) for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def projections_detached(inputs, W_query, W_key, W_value):
    """The projections are taken out of the graph (`.detach()`, `.data`), so no weight can learn."""
    return tuple((inputs @ W).detach() for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def value_projection_detached(inputs, W_query, W_key, W_value):
    """The values are taken out of the graph (`.detach()`, `.data`), so W_value can not learn."""
    return inputs @ W_query, inputs @ W_key, (inputs @ W_value).detach()


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def values_before_keys(inputs, W_query, W_key, W_value):
    """Keys and values are exchanged; return queries, keys, values."""
    return inputs @ W_query, inputs @ W_value, inputs @ W_key


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def weights_transposed(inputs, W_query, W_key, W_value):
    """The weights are transposed, which only square ones survive; they are (d_in, d_out) already: inputs @ W_query."""
    return inputs @ W_query.T, inputs @ W_key.T, inputs @ W_value.T


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def weights_before_inputs(inputs, W_query, W_key, W_value):
    """The weights come first in the product; it is inputs @ W_query."""
    return W_query @ inputs, W_key @ inputs, W_value @ inputs


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def projections_left_transposed(inputs, W_query, W_key, W_value):
    """The results are transposed, (d_out, T): one token should be one row, inputs @ W_query."""
    return W_query.T @ inputs.T, W_key.T @ inputs.T, W_value.T @ inputs.T


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def query_weights_used_throughout(inputs, W_query, W_key, W_value):
    """All three are made with W_query; keys have W_key, values W_value."""
    return inputs @ W_query, inputs @ W_query, inputs @ W_query


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def query_weights_used_for_keys(inputs, W_query, W_key, W_value):
    """The keys are made with W_query; they have a weight of their own, W_key."""
    return inputs @ W_query, inputs @ W_query, inputs @ W_value


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def inputs_taken_for_values(inputs, W_query, W_key, W_value):
    """The inputs themselves are returned as values; multiply them by W_value."""
    return inputs @ W_query, inputs @ W_key, inputs


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def values_made_of_the_keys(inputs, W_query, W_key, W_value):
    """The values are made from the keys; all three are made from the inputs."""
    return inputs @ W_query, inputs @ W_key, inputs @ W_key @ W_value


@misconception("project_qkv", kind="contract", caught_by="test_other_widths")
def second_token_alone(inputs, W_query, W_key, W_value):
    """Only the second token is projected; every token has a query, a key and a value."""
    return inputs[1] @ W_query, inputs[1] @ W_key, inputs[1] @ W_value


@misconception("project_qkv", kind="contract", caught_by="test_other_widths")
def query_of_the_second_token(inputs, W_query, W_key, W_value):
    """Only the second token's query is returned; every token has one."""
    return inputs[1] @ W_query, inputs @ W_key, inputs @ W_value


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def projections_softmaxed(inputs, W_query, W_key, W_value):
    """A softmax is applied; queries, keys and values are plain products."""
    return tuple(torch.softmax(inputs @ W, dim=-1) for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def queries_already_scaled(inputs, W_query, W_key, W_value):
    """The queries are already divided by the square root of their width; that belongs to the scores, later."""
    return inputs @ W_query / W_query.shape[-1] ** 0.5, inputs @ W_key, inputs @ W_value


@misconception("project_qkv", kind="edge", caught_by="test_other_widths")
def projections_in_three_equal_parts(inputs, W_query, W_key, W_value):
    """One product is cut into three equal parts; values may have another width than keys: split at the widths."""
    return (inputs @ torch.cat([W_query, W_key, W_value], dim=-1)).chunk(3, dim=-1)


@misconception("project_qkv", kind="edge", caught_by="test_other_widths")
def projections_of_one_token_squeezed(inputs, W_query, W_key, W_value):
    """squeeze() takes away dimensions of size 1, a single token's or a width of 1; leave it out."""
    return tuple((inputs @ W).squeeze() for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def projections_side_by_side(inputs, W_query, W_key, W_value):
    """The three results are joined into one tensor (cat); return three, as a tuple."""
    return torch.cat([inputs @ W_query, inputs @ W_key, inputs @ W_value], dim=-1)


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def queries_alone(inputs, W_query, W_key, W_value):
    """Only the queries are returned; return queries, keys, values."""
    return inputs @ W_query


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def projections_as_a_dict(inputs, W_query, W_key, W_value):
    """The result is a dict; return a tuple of three: queries, keys, values."""
    return {"queries": inputs @ W_query, "keys": inputs @ W_key, "values": inputs @ W_value}


@misconception("project_qkv", kind="contract", caught_by="test_second_word")
def projections_not_returned(inputs, W_query, W_key, W_value):
    """Nothing is returned (None): end the function with `return`."""
    inputs @ W_query, inputs @ W_key, inputs @ W_value


@misconception("project_qkv", kind="contract", caught_by="test_other_widths")
def projections_of_the_six_words(inputs, W_query, W_key, W_value):
    """It projects the notebook's X, not the inputs that are passed in."""
    return X @ W_query, X @ W_key, X @ W_value


@misconception("project_qkv", kind="hard-coded output", caught_by="test_other_widths")
def second_word_typed_in(inputs, W_query, W_key, W_value):
    """The worked example's query, key and value are typed in; compute them from the inputs."""
    rows = [0.4306, 1.4551], [0.4433, 1.1419], [0.3951, 1.0037]
    return tuple(torch.tensor(row).repeat(6, 1) for row in rows)


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def projected_inputs_detached(inputs, W_query, W_key, W_value):
    """No gradient reaches the inputs: they are detached (`.detach()` or `.data`) first."""
    return inputs.detach() @ W_query, inputs.detach() @ W_key, inputs.detach() @ W_value


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def projection_weights_detached(inputs, W_query, W_key, W_value):
    """No gradient reaches the weights: they are detached, `.data`, or copied into a new nn.Parameter."""
    return inputs @ W_query.detach(), inputs @ W_key.detach(), inputs @ W_value.detach()


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def key_weights_detached(inputs, W_query, W_key, W_value):
    """No gradient reaches W_key: it is detached (`.detach()` or `.data`)."""
    return inputs @ W_query, inputs @ W_key.detach(), inputs @ W_value


@misconception("project_qkv", kind="dtype", caught_by="test_float64_stays_exact")
def projections_in_float32(inputs, W_query, W_key, W_value):
    """The results are float32 whatever the inputs are; keep their dtype."""
    return tuple(inputs.float() @ W.float() for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="dtype", caught_by="test_dtype_is_kept")
def projections_in_float64(inputs, W_query, W_key, W_value):
    """The results are float64 even for float32 inputs; convert them back."""
    return tuple(inputs.double() @ W.double() for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="gradient", caught_by="test_gradients")
def projections_rebuilt_from_lists(inputs, W_query, W_key, W_value):
    """The results pass through `.tolist()`, which loses gradients, device, and float64's digits."""
    return tuple(torch.tensor((inputs @ W).tolist()) for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="device", caught_by="test_follows_device")
def projections_filled_into_float32_zeros(inputs, W_query, W_key, W_value):
    """The results are filled into torch.zeros or torch.empty: float32 on the CPU. inputs @ W_query has the right
    dtype and device.
    """
    results = []
    for W in (W_query, W_key, W_value):
        result = torch.zeros(inputs.shape[0], W.shape[1])
        for i, token in enumerate(inputs):
            result[i] = token @ W
        results.append(result)
    return tuple(results)


@misconception("project_qkv", kind="device", caught_by="test_follows_device")
def projections_left_on_the_cpu(inputs, W_query, W_key, W_value):
    """The results end on the CPU, whatever device the inputs are on."""
    return tuple((inputs @ W).cpu() for W in (W_query, W_key, W_value))


@misconception("project_qkv", kind="side effect", caught_by="test_inputs_are_unchanged")
def inputs_centred_in_place(inputs, W_query, W_key, W_value):
    """The inputs themselves are changed first (`-=`, `/=`); they are projected as they are, and left so."""
    inputs -= inputs.mean(dim=0)
    return inputs @ W_query, inputs @ W_key, inputs @ W_value
