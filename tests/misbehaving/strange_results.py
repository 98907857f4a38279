"""Functions that give back what no grader asked for."""

from .case import FAILED, UNHARMED, must


@must(FAILED)
def everything_equal():
    """An object that is equal to everything."""

    class Everything:
        def __eq__(self, other):
            return True

        def __getattr__(self, name):
            return self

        def __call__(self, *args, **kwargs):
            return self

        __len__ = __index__ = __int__ = lambda self: 3

        def __iter__(self):
            return iter([self] * 3)

    def context_vector(weights, inputs):
        return Everything()


@must(FAILED)
def subclass_that_agrees():
    """A tensor of a subclass for which every comparison holds."""
    import torch

    class Agrees(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            name = getattr(function, "__name__", "")
            if name in ("eq", "allclose", "isclose", "equal", "__eq__"):
                return True
            return super().__torch_function__(function, types, args, kwargs or {})

    def context_vector(weights, inputs):
        return torch.zeros(inputs.shape[-1]).as_subclass(Agrees)


@must(FAILED)
def subclass_that_loops():
    """A tensor of a subclass that raises on everything that is done with it."""
    import torch

    class Refuses(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise RuntimeError("no")

    def context_vector(weights, inputs):
        return torch.zeros(inputs.shape[-1]).as_subclass(Refuses)


@must(FAILED)
def sparse():
    """A sparse tensor."""

    def context_vector(weights, inputs):
        return (weights @ inputs).to_sparse()


@must(UNHARMED)
def requires_grad():
    """A result that still asks for gradients."""

    def context_vector(weights, inputs):
        return (weights @ inputs).requires_grad_() if not weights.requires_grad else weights @ inputs


@must(FAILED)
def on_another_device():
    """A tensor without data."""

    def context_vector(weights, inputs):
        return (weights @ inputs).to("meta")


@must(FAILED)
def zero_dimensions():
    """A single number as a tensor."""

    def context_vector(weights, inputs):
        return (weights @ inputs).sum()


@must(FAILED)
def quantized():
    """A quantized tensor."""
    import torch

    def context_vector(weights, inputs):
        return torch.quantize_per_tensor(weights @ inputs, 0.1, 0, torch.quint8)


@must(FAILED)
def nested():
    """A nested tensor."""
    import torch

    def context_vector(weights, inputs):
        return torch.nested.nested_tensor([weights @ inputs])


@must(FAILED)
def complex_numbers():
    """A complex tensor."""
    import torch

    def context_vector(weights, inputs):
        return (weights @ inputs).to(torch.complex64)


@must(FAILED)
def huge():
    """A tensor larger than any message may be."""
    import torch

    def context_vector(weights, inputs):
        return torch.zeros(10**8)


@must(FAILED)
def huge_by_repetition():
    """A tensor of a few bytes that is a petabyte once it is written down."""
    import torch

    def context_vector(weights, inputs):
        return torch.zeros(1).expand(10**15)


@must(FAILED)
def many_tensors():
    """A list of a million tensors."""
    import torch

    def context_vector(weights, inputs):
        return [torch.zeros(1)] * 10**6


@must(FAILED)
def list_in_itself():
    """A list that contains itself."""

    def context_vector(weights, inputs):
        endless = []
        endless.append(endless)
        return endless


@must(FAILED)
def dictionary_of_surprises():
    """A dictionary whose keys are tensors and whose length is negative."""
    import torch

    class Odd(dict):
        def __len__(self):
            return -1

        def items(self):
            raise StopIteration

    def context_vector(weights, inputs):
        return Odd({torch.zeros(1): 1})


@must(FAILED)
def huge_number():
    """An integer of a million digits."""

    def context_vector(weights, inputs):
        return 1 << 3_400_000


@must(FAILED)
def text_of_half_characters():
    """Text that no encoding can hold."""

    def context_vector(weights, inputs):
        return "\ud800" * 100


@must(FAILED)
def generator():
    """A generator that never ends."""

    def context_vector(weights, inputs):
        while True:
            yield weights


@must(FAILED)
def coroutine():
    """A coroutine that nobody awaits."""

    async def context_vector(weights, inputs):
        return weights @ inputs


@must(FAILED)
def lazy_parameter():
    """A parameter that has no shape yet."""
    import torch

    def context_vector(weights, inputs):
        return torch.nn.parameter.UninitializedParameter()


@must(FAILED)
def not_a_number_everywhere():
    """NaN, in the hope that comparisons with it hold."""
    import torch

    def context_vector(weights, inputs):
        return torch.full((inputs.shape[-1],), float("nan"))


@must(FAILED)
def infinite_tolerance():
    """Infinity, in the hope that a relative tolerance becomes infinite too."""
    import torch

    def context_vector(weights, inputs):
        return torch.full((inputs.shape[-1],), float("inf"))


@must(FAILED)
def the_name_is_a_number():
    """Binds the exercise's name to something that is no function."""
    context_vector = 3


@must(FAILED)
def four_thousand_squared():
    """A tensor of 64 MB in every call."""
    import torch

    def context_vector(weights, inputs):
        return torch.zeros(4000, 4000)


@must(FAILED)
def a_dictionary_of_one_hash():
    """A dictionary of two thousand keys, each of which is compared with all before it."""

    def context_vector(weights, inputs):
        return {n * ((1 << 61) - 1): weights for n in range(2_000)}


@must(FAILED)
def numbers_of_eight_bits():
    """A tensor of a type in which no comparison is made."""
    import torch

    def context_vector(weights, inputs):
        return (weights @ inputs).to(torch.float8_e4m3fn)


@must(FAILED)
def without_memory():
    """A tensor that only pretends to hold numbers."""
    import torch
    from torch._subclasses import FakeTensorMode

    def context_vector(weights, inputs):
        with FakeTensorMode():
            return torch.empty(inputs.shape[-1])
