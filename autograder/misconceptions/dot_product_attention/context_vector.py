"""What goes wrong in `context_vector`."""

import torch

from ...catalogue import misconception
from ...six_words import SIX_WORDS as X


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def products_left_apart(weights, inputs):
    """The weighted tokens are not summed: add them up over the tokens (dim=0), which leaves (d,)."""
    return weights.unsqueeze(-1) * inputs


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weighted_tokens_averaged(weights, inputs):
    """The weighted tokens are averaged; the weights sum to 1 already, so add the tokens up."""
    return (weights.unsqueeze(-1) * inputs).mean(dim=0)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_ignored(weights, inputs):
    """The tokens are averaged without the weights; multiply each token by its weight and add them up."""
    return inputs.mean(dim=0)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def heaviest_token_only(weights, inputs):
    """Only the token with the largest weight is returned; every token contributes by its weight."""
    return inputs[weights.argmax()]


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_normalised_again(weights, inputs):
    """A softmax is applied to the weights; they are weights already and are used as they are."""
    return torch.softmax(weights, dim=-1) @ inputs


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def context_weights_detached(weights, inputs):
    """The weights are detached (`.detach()` or `.data`), so no gradient reaches them."""
    return weights.detach() @ inputs


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def summed_over_the_width(weights, inputs):
    """The weighted tokens are summed over their width, which leaves (T,); sum over the tokens, dim=0, which leaves
    (d,).
    """
    return (weights.unsqueeze(-1) * inputs).sum(dim=-1)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_along_the_width(weights, inputs):
    """The weights are multiplied along the width (they fit where T = d alone); each token needs its own:
    weights.unsqueeze(-1).
    """
    return (weights * inputs).sum(dim=0)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def inputs_times_weights(weights, inputs):
    """The order is inputs @ weights, which fits where T = d alone; the weights come first."""
    return inputs @ weights


@misconception("context_vector", kind="contract", caught_by="test_other_weights")
def context_as_a_row(weights, inputs):
    """The context vector comes as a row of shape (1, d); it should have shape (d,)."""
    return weights.unsqueeze(0) @ inputs


@misconception("context_vector", kind="edge", caught_by="test_other_weights")
def single_number_squeezed(weights, inputs):
    """squeeze() also takes away a width of 1: with d = 1 the shape should be (1,). Use squeeze(0)."""
    return (weights.unsqueeze(0) @ inputs).squeeze()


@misconception("context_vector", kind="value", caught_by="test_gradients")
def weights_made_to_sum_to_1(weights, inputs):
    """The weights are divided by their sum; they are used as they are."""
    return (weights / weights.sum()) @ inputs


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def context_without_gradients(weights, inputs):
    """The context vector carries no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (weights @ inputs).detach()


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def blended_inputs_detached(weights, inputs):
    """No gradient reaches the inputs: they are detached (`.detach()` or `.data`) before they are used."""
    return weights @ inputs.detach()


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def weights_as_numbers(weights, inputs):
    """Each weight becomes a Python number (`.item()`), so that no gradient reaches the weights."""
    context = torch.zeros_like(inputs[0])
    for i in range(len(weights)):
        context = context + weights[i].item() * inputs[i]
    return context


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def context_through_numpy(weights, inputs):
    """The result is rebuilt from numbers (NumPy or `.item()`), so that no gradient flows back."""
    return torch.from_numpy(weights.detach().numpy() @ inputs.detach().numpy())


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def context_refuses_gradients(weights, inputs):
    """It fails for tensors that need gradients, as `.numpy()` does; stay with torch's operations."""
    return torch.from_numpy(weights.numpy() @ inputs.numpy())


@misconception("context_vector", kind="device", caught_by="test_follows_device")
def context_filled_into_float32_zeros(weights, inputs):
    """The sum starts from torch.zeros, float32 on the CPU; torch.zeros_like(inputs[0]) has the inputs' dtype and
    device.
    """
    context = torch.zeros(inputs.shape[1])
    for weight, token in zip(weights, inputs, strict=True):
        context += weight * token
    return context


@misconception("context_vector", kind="device", caught_by="test_follows_device")
def context_grown_from_float32_zeros(weights, inputs):
    """torch.zeros is on the CPU, and added to the tokens it fails on another device; torch.zeros_like(inputs[0])
    follows.
    """
    context = torch.zeros(inputs.shape[1])
    for weight, token in zip(weights, inputs, strict=True):
        context = context + weight * token
    return context


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def context_of_the_weights_shape(weights, inputs):
    """The sum starts from zeros of the shape of the weights, (T,); a context vector has the shape of a token, (d,)."""
    context = torch.zeros(weights.shape)
    for weight, token in zip(weights, inputs, strict=True):
        context += weight * token
    return context


@misconception("context_vector", kind="edge", caught_by="test_other_weights")
def three_numbers_always(weights, inputs):
    """The context vector always starts with three numbers; its width is that of the inputs, inputs.shape[1]."""
    context = torch.zeros(3)
    for weight, token in zip(weights, inputs, strict=True):
        context += weight * token
    return context


@misconception("context_vector", kind="device", caught_by="test_follows_device")
def context_left_on_the_cpu(weights, inputs):
    """The context vector ends on the CPU, whatever device the inputs are on."""
    return (weights @ inputs).cpu()


@misconception("context_vector", kind="dtype", caught_by="test_float64_stays_exact")
def context_in_float32(weights, inputs):
    """The context vector is float32 whatever the inputs are; keep their dtype."""
    return weights.float() @ inputs.float()


@misconception("context_vector", kind="dtype", caught_by="test_dtype_is_kept")
def context_in_float64(weights, inputs):
    """The context vector is float64 even for float32 inputs; convert it back."""
    return weights.double() @ inputs.double()


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def last_token_alone(weights, inputs):
    """Only the last weighted token is left: each step overwrites the one before; add them up."""
    return weights[-1] * inputs[-1]


@misconception("context_vector", kind="edge", caught_by="test_other_weights")
def first_token_left_out(weights, inputs):
    """The first token is left out of the sum; every token counts."""
    return weights[1:] @ inputs[1:]


@misconception("context_vector", kind="edge", caught_by="test_other_weights")
def last_token_left_out(weights, inputs):
    """The last token is left out of the sum; every token counts."""
    return weights[:-1] @ inputs[:-1]


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def one_coordinate_only(weights, inputs):
    """Only the first coordinate is blended; the context vector has all d of them."""
    return torch.dot(weights, inputs[:, 0])


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_summed_on_their_own(weights, inputs):
    """Weights and tokens are summed apart and then multiplied; multiply each token by its weight, then sum."""
    return weights.sum() * inputs.sum(dim=0)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def inputs_summed_unweighted(weights, inputs):
    """The tokens are summed without the weights; multiply each by its weight first."""
    return inputs.sum(dim=0)


@misconception("context_vector", kind="value", caught_by="test_float64_stays_exact")
def weights_cut_to_0_and_1(weights, inputs):
    """Weights above 1 (or below 0) are cut off; they are used as they are."""
    return weights.clamp(0, 1) @ inputs


@misconception("context_vector", kind="contract", caught_by="test_other_weights")
def weights_of_journey_again(weights, inputs):
    """The weights are computed again inside; use those that are passed in."""
    return torch.softmax(inputs @ inputs[1], dim=0) @ inputs


@misconception("context_vector", kind="contract", caught_by="test_other_weights")
def six_words_blended(weights, inputs):
    """It blends the notebook's X, not the inputs that are passed in."""
    return weights @ X


@misconception("context_vector", kind="contract", caught_by="test_other_weights")
def context_as_a_list(weights, inputs):
    """The result is a Python list of numbers in tensors; torch.stack makes one tensor of it."""
    return [torch.dot(weights, column) for column in inputs.T]


@misconception("context_vector", kind="contract", caught_by="test_other_weights")
def context_not_returned(weights, inputs):
    """Nothing is returned (None): end the function with `return`."""
    weights @ inputs


@misconception("context_vector", kind="hard-coded output", caught_by="test_other_weights")
def context_typed_in(weights, inputs):
    """The worked example's context vector is typed in; compute it from the arguments."""
    return torch.tensor([0.4419, 0.6515, 0.5683])


@misconception("context_vector", kind="side effect", caught_by="test_inputs_are_unchanged")
def tokens_weighted_in_place(weights, inputs):
    """The inputs are overwritten on the way: `*=` works in place, also on a row such as inputs[0]. Make new tensors."""
    inputs *= weights.unsqueeze(-1)
    return inputs.sum(dim=0)
