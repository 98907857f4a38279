"""What goes wrong in `linear_projection`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def weight_not_transposed(inputs, weight):
    """The weight is used as it is, which only a square one survives; it is stored (d_out, d_in): transpose it."""
    return inputs @ weight


@misconception("linear_projection", kind="value", caught_by="test_square_weight")
def transposed_only_where_it_must_be(inputs, weight):
    """The weight is transposed only where shapes force it; it is stored (d_out, d_in), so transpose it always."""
    return inputs @ (weight if weight.shape[0] == inputs.shape[-1] else weight.T)


@misconception("linear_projection", kind="value", caught_by="test_any_leading_dimensions")
def weight_times_transposed_inputs(inputs, weight):
    """`(weight @ inputs.T).T` reverses all dimensions, right in 2-D only; `inputs @ weight.T` fits any shape."""
    return (weight @ inputs.permute(*range(inputs.dim() - 1, -1, -1))).permute(*range(inputs.dim() - 1, -1, -1))


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def projection_weight_detached(inputs, weight):
    """No gradient reaches the weight: it is copied or detached (nn.Parameter(weight), `.detach()`, `.data`)."""
    return inputs @ weight.detach().T


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def random_bias_added(inputs, weight):
    """A random bias is added, as a new nn.Linear does; the projection is the product with the given weight alone."""
    torch.manual_seed(0)
    return F.linear(inputs, weight) + torch.rand(weight.shape[0]).to(inputs)
