"""Code that takes the worker's place and sends answers that keep to the form and lie, or that cost the grader dear.

Before each stand `forge`, whose `lie` makes of every true answer another header and payload, and `answered_with`, whose
`lie` is told of a function's own calls alone.
"""

from .case import CRASH, FAILED, UNHARMED, must


@must(CRASH)
def shape_beyond_all_numbers():
    """A tensor whose shape is larger than any integer of the machine."""

    def lie(header, tensors):
        return header, safetensors_of({"0": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}})

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(CRASH)
def five_million_dimensions():
    """A tensor of one element and five million dimensions."""

    def lie(header, tensors):
        return header, safetensors_of(
            {"0": {"dtype": "F32", "shape": [1] * 5_000_000, "data_offsets": [0, 4]}}, b"0000"
        )

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(CRASH)
def a_million_empty_tensors():
    """A payload of a million tensors without elements."""
    about = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    payload = safetensors_of(("{" + ",".join(about % number for number in range(10**6)) + "}").encode())

    def lie(header, tensors):
        return header, payload

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(CRASH)
def changed_a_hundred_thousand_times():
    """Says of the first argument a hundred thousand times that it was changed."""

    def lie(header, tensors):
        return {**header, "value": None, "changed": [0] * 100_000}, b""

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def fault_at_a_place_without_end():
    """An exception in a cell whose name is a megabyte."""

    def lie(header, tensors):
        fault = {"kind": "raised", "type_name": "E", "message": "m", "place": ["x" * 900_000, 1], "kinds": []}
        return {"fault": fault, "number": header["number"]}, b""

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def a_type_without_end():
    """A value whose type has a name of half a megabyte."""

    def lie(header, tensors):
        return {**header, "value": {"opaque": "a tensor" + "x" * 500_000}}, b""

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(CRASH)
def nested_without_end():
    """A header of four hundred thousand brackets."""

    def lie(header, tensors):
        return b'{"number":%d,"value":' % header["number"] + b"[" * 400_000 + b"]" * 400_000 + b"}", b""

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(UNHARMED)
def megabytes_of_output():
    """Says of every cell that it printed a megabyte."""

    def lie(header, tensors):
        if "printed" in header:
            return {**header, "printed": "x" * 1_000_000}, b""

    forge(lie)


@must(CRASH)
def sixty_megabytes_of_gradients():
    """Sends sixty megabytes of gradients that nobody asked for."""
    import torch

    def lie(header, tensors):
        return {**header, "value": {"tensor": "0"}}, safetensors_of(
            {"0": {"dtype": "F32", "shape": [15_000_000], "data_offsets": [0, 60_000_000]}}, bytes(60_000_000)
        )

    @answered_with(lie)
    def context_vector(weights, inputs):
        return torch.zeros(1)


@must(CRASH)
def keys_of_one_hash():
    """Sends a dictionary of twenty thousand keys, each of which is compared with all before it."""
    keys = {"dict": [[n * ((1 << 61) - 1), None] for n in range(20_000)]}

    def lie(header, tensors):
        return {**header, "value": keys}, b""

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights


@must(FAILED)
def a_type_that_cannot_be_compared():
    """Sends numbers of a type in which no comparison is made."""

    def lie(header, tensors):
        listed = {"0": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 3]}}
        return {**header, "value": {"tensor": "0"}}, safetensors_of(listed, bytes(3))

    @answered_with(lie)
    def context_vector(weights, inputs):
        return weights
