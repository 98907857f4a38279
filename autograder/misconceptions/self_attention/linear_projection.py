"""What goes wrong in `linear_projection`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def weight_not_transposed(inputs, weight):
    """The weight is used as it is, which only a square one survives; it is stored (d_out, d_in): transpose it."""
    return inputs @ weight


@misconception("linear_projection", kind="edge", caught_by="test_square_weight")
def transposed_only_where_it_must_be(inputs, weight):
    """The weight is transposed only where shapes force it; it is stored (d_out, d_in), so transpose it always."""
    return inputs @ (weight if weight.shape[0] == inputs.shape[-1] else weight.T)


@misconception("linear_projection", kind="edge", caught_by="test_any_leading_dimensions")
def weight_times_transposed_inputs(inputs, weight):
    """`(weight @ inputs.T).T` reverses all dimensions, right in 2-D only; transpose the weight alone."""
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


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def weight_first(inputs, weight):
    """The weight comes first in the product; the inputs should."""
    return weight @ inputs


@misconception("linear_projection", kind="contract", caught_by="test_shapes_of_the_worked_example")
def weight_times_turned_inputs(inputs, weight):
    """The result stays transposed, (d_out, T); it should have one row for each token."""
    return weight @ inputs.transpose(-2, -1)


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def weight_reshaped(inputs, weight):
    """The weight is reshaped to (d_in, d_out), which mixes its numbers; `.T` swaps rows and columns."""
    return inputs @ weight.reshape(weight.shape[1], weight.shape[0])


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def projection_scaled(inputs, weight):
    """The result is divided by a square root; the projection is the plain product."""
    return inputs @ weight.T / weight.shape[-1] ** 0.5


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def projection_activated(inputs, weight):
    """Negative results become 0 (relu); the projection is the plain product."""
    return torch.relu(inputs @ weight.T)


@misconception("linear_projection", kind="edge", caught_by="test_any_leading_dimensions")
def projected_as_a_matrix_only(inputs, weight):
    """It works for a matrix only (mm, or an einsum with fixed letters); inputs may have any leading dimensions."""
    return inputs.mm(weight.T)


@misconception("linear_projection", kind="edge", caught_by="test_any_leading_dimensions")
def leading_dimensions_flattened(inputs, weight):
    """The leading dimensions are flattened into one and stay so; give the result its shape back."""
    return inputs.reshape(-1, inputs.shape[-1]) @ weight.T


@misconception("linear_projection", kind="contract", caught_by="test_shapes_of_the_worked_example")
def batch_dimension_added(inputs, weight):
    """A sequence gets a batch dimension that was not there; only the last dimension changes."""
    return (inputs.unsqueeze(0) if inputs.dim() == 2 else inputs) @ weight.T


@misconception("linear_projection", kind="edge", caught_by="test_any_leading_dimensions")
def projection_squeezed(inputs, weight):
    """squeeze() takes away dimensions of size 1; only the last dimension changes."""
    return (inputs @ weight.T).squeeze()


@misconception("linear_projection", kind="value", caught_by="test_shapes_of_the_worked_example")
def layer_without_its_weight_copied(inputs, weight):
    """A new layer with random weights projects the inputs; use the weight that is passed in."""
    generator = torch.Generator().manual_seed(0)
    return inputs @ torch.randn(weight.shape, generator=generator).to(inputs).T


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def layer_of_its_own(inputs, weight):
    """The weight is copied into a new nn.Linear, which keeps float32 and stays on the CPU; use the weight itself."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer(inputs)


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def layer_given_the_data(inputs, weight):
    """The weight's data is put into a new nn.Linear, so that no gradient reaches the weight; use the weight itself."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight
    return layer(inputs)


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def projection_inputs_detached(inputs, weight):
    """No gradient reaches the inputs: they are detached (`.detach()` or `.data`) first."""
    return inputs.detach() @ weight.T


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def projection_without_gradients(inputs, weight):
    """The result carries no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (inputs @ weight.T).detach()


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def projection_through_numpy(inputs, weight):
    """The result is rebuilt from numbers (NumPy), so that no gradient flows back."""
    return torch.from_numpy(inputs.detach().numpy() @ weight.detach().numpy().T)


@misconception("linear_projection", kind="gradient", caught_by="test_gradients")
def projection_rebuilt_from_a_list(inputs, weight):
    """The result passes through `.tolist()`, which loses gradients, device, and float64's digits."""
    return torch.tensor((inputs @ weight.T).tolist())


@misconception("linear_projection", kind="dtype", caught_by="test_float64_stays_exact")
def projection_in_float32(inputs, weight):
    """The result is float32 whatever the inputs are; keep their dtype."""
    return inputs.float() @ weight.float().T


@misconception("linear_projection", kind="dtype", caught_by="test_dtype_is_kept")
def projection_in_float64(inputs, weight):
    """The result is float64 even for float32 inputs; convert it back."""
    return inputs.double() @ weight.double().T


@misconception("linear_projection", kind="device", caught_by="test_follows_device")
def projection_filled_into_float32_zeros(inputs, weight):
    """The result is filled into torch.zeros or torch.empty: float32 on the CPU. A matrix product has the right dtype
    and device.
    """
    result = torch.zeros(*inputs.shape[:-1], weight.shape[0])
    for number, row in enumerate(weight):
        result[..., number] = (inputs * row).sum(dim=-1)
    return result


@misconception("linear_projection", kind="device", caught_by="test_follows_device")
def zero_bias_on_the_cpu(inputs, weight):
    """A tensor that it makes (a bias of zeros) stays on the CPU; the projection needs none."""
    return inputs @ weight.T + torch.zeros(weight.shape[0])


@misconception("linear_projection", kind="device", caught_by="test_follows_device")
def projection_left_on_the_cpu(inputs, weight):
    """The result ends on the CPU, whatever device the inputs are on."""
    return (inputs @ weight.T).cpu()


@misconception("linear_projection", kind="side effect", caught_by="test_inputs_are_unchanged")
def weight_transposed_in_place(inputs, weight):
    """`t_()` transposes the caller's weight itself; `.T` gives a transposed view and leaves it alone."""
    return inputs @ weight.t_()


@misconception("linear_projection", kind="contract", caught_by="test_shapes_of_the_worked_example")
def projection_not_returned(inputs, weight):
    """Nothing is returned (None): end the function with `return`."""
    inputs @ weight.T
