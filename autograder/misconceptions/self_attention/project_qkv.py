"""What goes wrong in `project_qkv`."""

from ...catalogue import misconception


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def values_come_first(inputs, W_query, W_key, W_value):
    """The results are in another order; return queries, keys, values."""
    return inputs @ W_value, inputs @ W_key, inputs @ W_query


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def queries_and_keys_exchanged(inputs, W_query, W_key, W_value):
    """Queries and keys are exchanged; return queries, keys, values."""
    return inputs @ W_key, inputs @ W_query, inputs @ W_value


@misconception("project_qkv", kind="value", caught_by="test_second_word")
def key_weights_used_for_values(inputs, W_query, W_key, W_value):
    """The values are made with W_key; they have a weight of their own, W_value."""
    return inputs @ W_query, inputs @ W_key, inputs @ W_key


@misconception("project_qkv", kind="value", caught_by="test_square_weights")
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
