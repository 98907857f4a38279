"""Library calls that an exercise forbids are seen whatever way leads to them, and naming them is no call."""

import pytest

from tests.typed import alone, solved

ATTENTION = ("self_attention", "scaled_dot_product_attention")
SOFTMAX = ("dot_product_attention", "softmax")

IMPORTS = "import threading\nimport torch\nfrom torch.nn import functional as F\n"

OWN_ATTENTION = "torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1) @ values"
LIBRARY = "F.scaled_dot_product_attention(queries, keys, values)"
DEFINITION = "def scaled_dot_product_attention(queries, keys, values):\n"

ATTENTION_ROUTES = {
    "by name": f"{DEFINITION}    return {LIBRARY}",
    "another name": f"attend = F.scaled_dot_product_attention\n{DEFINITION}    return attend(queries, keys, values)",
    "an operator": f"{DEFINITION}    return torch.ops.aten.scaled_dot_product_attention(queries, keys, values)",
    "the math kernel": f"{DEFINITION}    return torch.ops.aten._scaled_dot_product_attention_math("
    "queries, keys, values)[0]",
    "an overload taken apart": f"{DEFINITION}    return torch.ops.aten.scaled_dot_product_attention.default"
    ".decompose(queries, keys, values)",
    "private bindings": f"{DEFINITION}    return torch._C._nn.scaled_dot_product_attention(queries, keys, values)",
    "a kernel asked for": f"""{DEFINITION}
    kernel = torch.library.get_kernel("aten::scaled_dot_product_attention", "CPU")
    return kernel.call_boxed(torch._C._dispatch_keys(queries), queries, keys, values)""",
    "TorchScript": f"""
@torch.jit.script
def attend(queries, keys, values):
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values)
{DEFINITION}    return attend(queries, keys, values)""",
    "a trace": f"""
attend = torch.jit.trace(F.scaled_dot_product_attention, (torch.ones(2, 2),) * 3, check_trace=False)
{DEFINITION}    return attend(queries, keys, values)""",
    "compiled": f"""
@torch.compile(backend="eager")
{DEFINITION}    return {LIBRARY}""",
    "exported": f"""
class Attend(torch.nn.Module):
    def forward(self, queries, keys, values):
        return {LIBRARY}
{DEFINITION}
    return torch.export.export(Attend(), (queries, keys, values)).module()(queries, keys, values)""",
    "symbolically traced": f"""
class Attend(torch.nn.Module):
    def forward(self, queries, keys, values):
        return {LIBRARY}
attend = torch.fx.symbolic_trace(Attend())
{DEFINITION}    return attend(queries, keys, values)""",
    "vmap": f"""{DEFINITION}
    attend = F.scaled_dot_product_attention
    return torch.vmap(attend)(queries[None], keys[None], values[None])[0]""",
    "torch.func": f"""{DEFINITION}
    attend = lambda one: F.scaled_dot_product_attention(one, keys, values)
    return torch.func.vjp(attend, queries)[0]""",
    "forward mode": f"""{DEFINITION}
    attend = lambda one: torch.ops.aten._scaled_dot_product_attention_math(one, keys, values)[0]
    return torch.func.jvp(attend, (queries,), (queries,))[0]""",
    "a checkpoint": f"""
from torch.utils.checkpoint import checkpoint
{DEFINITION}    return checkpoint(F.scaled_dot_product_attention, queries, keys, values, use_reentrant=False)""",
    "inference mode": f"""{DEFINITION}
    with torch.inference_mode():
        result = {LIBRARY}
    return result.clone()""",
    "modes off": f"""
from torch.utils._python_dispatch import _disable_current_modes
{DEFINITION}
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return {LIBRARY}""",
    "below autograd": f"""{DEFINITION}
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.aten._scaled_dot_product_attention_math(queries, keys, values)[0]""",
    "another thread": f"""{DEFINITION}
    found = []
    thread = threading.Thread(target=lambda: found.append({LIBRARY}))
    thread.start()
    thread.join()
    return found[0]""",
    "a thread that waits since its cell": f"""
import queue
asked, answers = queue.Queue(), queue.Queue()
def serve():
    while True:
        answers.put(F.scaled_dot_product_attention(*asked.get()))
threading.Thread(target=serve, daemon=True).start()
{DEFINITION}
    asked.put((queries, keys, values))
    return answers.get(timeout=3)""",
    "a chosen kernel": f"""
from torch.nn.attention import SDPBackend, sdpa_kernel
{DEFINITION}
    with sdpa_kernel(SDPBackend.MATH):
        return {LIBRARY}""",
    "autocast": f"""{DEFINITION}
    with torch.autocast("cpu", enabled=True):
        {LIBRARY}
    return {OWN_ATTENTION}""",
    "a custom backward": f"""
class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, queries, keys, values):
        ctx.save_for_backward(queries, keys, values)
        return {OWN_ATTENTION}
    @staticmethod
    def backward(ctx, cotangent):
        inputs = [one.detach().requires_grad_() for one in ctx.saved_tensors]
        with torch.enable_grad():
            result = F.scaled_dot_product_attention(*inputs)
        return torch.autograd.grad(result, inputs, cotangent)
{DEFINITION}    return Attend.apply(queries, keys, values)""",
    "a tensor's hook": f"""{DEFINITION}
    result = {OWN_ATTENTION}
    if result.requires_grad:
        result.register_hook(lambda gradient: {LIBRARY} * 0 + gradient)
    return result""",
    "a hook before a node": f"""{DEFINITION}
    result = {OWN_ATTENTION}
    if result.requires_grad:
        result.grad_fn.register_prehook(lambda gradients: ({LIBRARY} * 0 + gradients[0],))
    return result""",
    "a module's hooks": f"""
class Attend(torch.nn.Module):
    def forward(self, queries, keys, values):
        return queries.new_zeros(())
attend = Attend()
attend.register_forward_hook(lambda module, inputs, result: F.scaled_dot_product_attention(*inputs))
{DEFINITION}    return attend(queries, keys, values)""",
    "a hook before a module": f"""
attend = torch.nn.Identity()
attend.register_forward_pre_hook(lambda module, inputs: F.scaled_dot_product_attention(*inputs[0]))
{DEFINITION}    return attend((queries, keys, values))""",
    "a saved tensor's hook": f"""{DEFINITION}
    inputs = queries, keys, values
    with torch.autograd.graph.saved_tensors_hooks(
        lambda one: one, lambda one: (F.scaled_dot_product_attention(*inputs), one)[1]
    ):
        return {OWN_ATTENTION}""",
    "a subclass's detach": f"""
class Later(torch.Tensor):
    def detach(self):
        return F.scaled_dot_product_attention(*self.inputs)
{DEFINITION}
    later = torch.zeros(1).as_subclass(Later)
    later.inputs = queries, keys, values
    return later""",
    "a subclass's functions": f"""
class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction():
            F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2))
        return super().__torch_function__(function, types, args, kwargs)
{DEFINITION}    return ({OWN_ATTENTION}).as_subclass(Later)""",
    "a subclass's dispatch": f"""
class Later(torch.Tensor):
    @staticmethod
    def __new__(cls, inputs):
        made = F.linear(inputs[0], inputs[2].mT[..., :1].mT) if False else inputs[0]
        shape = (*inputs[0].shape[:-1], inputs[2].shape[-1])
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=made.dtype)
    def __init__(self, inputs):
        self.inputs = inputs
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return F.scaled_dot_product_attention(*args[0].inputs)
{DEFINITION}    return Later((queries, keys, values))""",
    "a tuple's iteration": f"""
class Later(tuple):
    def __iter__(self):
        yield F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2))
{DEFINITION}    return Later(({OWN_ATTENTION},))""",
    "a list's length": f"""
class Later(list):
    def __len__(self):
        F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2))
        return 1
{DEFINITION}    return Later([{OWN_ATTENTION}])""",
    "a mapping's items": f"""
class Later(dict):
    def items(self):
        return [(0, F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2)))]
{DEFINITION}    return Later()""",
    "a call that fails": f"""
known = {{}}
{DEFINITION}
    key = (queries.shape, float(queries.sum()))
    if key not in known:
        known[key] = {LIBRARY}
        raise ValueError("the next time")
    return known[key]
once = scaled_dot_product_attention
{DEFINITION}
    try:
        return once(queries, keys, values)
    except ValueError:
        return once(queries, keys, values)""",
    "multi-head attention": f"""{DEFINITION}
    attend = torch.nn.MultiheadAttention(queries.shape[-1], 1, batch_first=True)
    attend(queries, queries, queries)
    return {OWN_ATTENTION}""",
    "multi-head attention, a function": f"""{DEFINITION}
    width = queries.shape[-1]
    identity = torch.eye(width, dtype=queries.dtype)
    inputs = [one.unsqueeze(1) for one in (queries, queries, queries)] if queries.dim() == 2 else [queries] * 3
    if inputs[0].dim() == 3:
        F.multi_head_attention_forward(
            *inputs, width, 1, identity.repeat(3, 1), None, None, None, False, 0.0, identity, None
        )
    return {OWN_ATTENTION}""",
    "scripted multi-head attention": f"""
attend = torch.jit.script(torch.nn.MultiheadAttention(4, 2))
{DEFINITION}
    attend(torch.ones(2, 1, 4), torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    return {OWN_ATTENTION}""",
    "an encoder's fast path": f"""
layer = torch.nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
{DEFINITION}
    with torch.no_grad():
        layer(torch.ones(1, 3, 4))
    return {OWN_ATTENTION}""",
    "a quantizable module's method": f"""
import torch.ao.nn.quantizable as quantizable
attend = quantizable.MultiheadAttention(4, 1)
{DEFINITION}
    attend(torch.ones(2, 1, 4), torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    return {OWN_ATTENTION}""",
    "a compiler's pattern": f"""
from torch._inductor.fx_passes.fuse_attention import _sfdp_pattern_1
{DEFINITION}
    return _sfdp_pattern_1(queries, keys, values, keys.shape[-1] ** 0.5)""",
    "an operator of ONNX": f"""
import torch.onnx.ops
{DEFINITION}
    queries, keys, values = (one.detach()[None, None] for one in (queries, keys, values))
    return torch.ops.onnx.Attention.opset23(queries, keys, values)[0][0, 0]""",
    "what an operator of ONNX consists of": f"""
import torch.onnx.ops
attend = torch.onnx.ops._impl.ONNX_ATEN_DECOMP_TABLE[torch.ops.onnx.Attention.opset23]
{DEFINITION}
    precision = {{torch.float32: 1, torch.float64: 11}}[queries.dtype]
    return attend(*(one[None, None] for one in (queries, keys, values)), softmax_precision=precision)[0][0, 0]""",
    "a nested tensor": f"""{DEFINITION}
    inputs = [torch.nested.nested_tensor([one.detach()[None]]) for one in (queries, keys, values)]
    F.scaled_dot_product_attention(*inputs)
    return {OWN_ATTENTION}""",
}

SOFTMAX_DEFINITION = "def softmax(scores, dim=-1):\n"
OWN_SOFTMAX = "(scores - scores.amax(dim, True)).exp() / (scores - scores.amax(dim, True)).exp().sum(dim, True)"

SOFTMAX_EXPRESSIONS = {
    "torch.softmax": "torch.softmax(scores, dim)",
    "a method": "scores.softmax(dim)",
    "a module": "torch.nn.Softmax(dim=dim)(scores)",
    "softmin": "F.softmin(-scores, dim=dim)",
    "the logarithm": "F.log_softmax(scores, dim).exp()",
    "the normaliser": "(scores - torch.logsumexp(scores, dim, keepdim=True)).exp()",
    "the normaliser, special": "(scores - torch.special.logsumexp(scores, dim, keepdim=True)).exp()",
    "special": "torch.special.softmax(scores, dim)",
    "masked": "torch.masked.softmax(scores, dim)",
    "cumulated": "(scores - scores.logcumsumexp(dim).select(dim, -1).unsqueeze(dim)).exp()",
    "an operator": "torch.ops.aten.softmax.int(scores, dim)",
    "a lower operator": "torch.ops.aten._softmax(scores, dim, False)",
    "a safe operator": "torch.ops.aten._safe_softmax(scores, dim)",
    "a masked operator": "torch.ops.aten._masked_softmax(scores, torch.zeros(scores.shape, dtype=torch.bool), dim)",
    "into a tensor": "torch.softmax(scores.detach(), dim, out=torch.empty_like(scores))",
    "written in Python": "torch._refs.softmax(scores, dim)",
    "written in Python, decomposed": "torch._decomp.decompositions._softmax(scores, dim, False)",
    "a table of decompositions": "torch._decomp.decomposition_table[torch.ops.aten._softmax.default]"
    "(scores, dim, False)",
    "functional in Python": "torch._refs.nn.functional.softmax(scores, dim)",
    "quantized": "torch.ops.quantized.softmax(torch.quantize_per_tensor(scores.detach().float(), 0.1, 0, "
    "torch.quint8), dim, 0.1, 0).dequantize().to(scores.dtype)",
    "sparse": "torch.sparse.softmax(scores.detach().to_sparse(), dim % scores.dim()).to_dense()",
    "another layout": "scores.detach().float().to_mkldnn().softmax(dim).to_dense().to(scores.dtype)",
    "nested": "torch.softmax(torch.nested.nested_tensor([scores.detach()]), -1)[0]",
    "with noise": "F.gumbel_softmax(scores, dim=dim)",
    "two dimensions": "(torch.nn.Softmax2d()(torch.ones(1, 2, 2, 2)), {own})[1]",
    "adaptive": "(torch.nn.AdaptiveLogSoftmaxWithLoss(4, 4, [2]).log_prob(torch.ones(1, 4)), {own})[1]",
    "a distribution": "torch.distributions.Categorical(logits=scores.movedim(dim, -1)).probs.movedim(-1, dim)",
    "a transform": "torch.distributions.transforms.SoftmaxTransform()(scores.movedim(dim, -1)).movedim(-1, dim)",
    "a transform to a constraint": "torch.distributions.transform_to(torch.distributions.constraints.simplex)("
    "scores.movedim(dim, -1)).movedim(-1, dim)",
    "a relaxed distribution": "(torch.distributions.RelaxedOneHotCategorical(torch.tensor(1.0), logits=scores)"
    ".rsample(), {own})[1]",
    "a loss": "torch.stack([(-F.cross_entropy(scores.reshape(1, -1), torch.tensor([i]))).exp() "
    "for i in range(scores.numel())]).reshape(scores.shape)",
    "a gradient": "torch.func.grad(lambda one: one.logsumexp(dim).sum())(scores)",
    "the gradient of a loss": "(torch.func.grad(lambda one: F.cross_entropy(one.reshape(1, -1), "
    "torch.tensor([0])))(scores), {own})[1]",
    "vmap": "torch.vmap(lambda one: one.softmax(dim))(scores[None])[0]",
    "attention": "(F.scaled_dot_product_attention(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2)), {own})[1]",
    "multi-head attention": "(torch.nn.MultiheadAttention(2, 1)(*[torch.ones(2, 2)] * 3), {own})[1]",
    "torch.cond": "(torch.cond(torch.tensor(True), lambda a: a.softmax(-1), lambda a: a, (torch.ones(2),)), {own})[1]",
}

SOFTMAX_ROUTES = {
    **{
        name: f"{SOFTMAX_DEFINITION}    return {expression.replace('{own}', OWN_SOFTMAX)}"
        for name, expression in SOFTMAX_EXPRESSIONS.items()
    },
    "TorchScript": f"""
@torch.jit.script
def soft(scores, dim: int):
    return scores.softmax(dim)
{SOFTMAX_DEFINITION}    return soft(scores, dim)""",
    "a module in TorchScript": f"""
soft = torch.jit.script(torch.nn.Softmax(-1))
{SOFTMAX_DEFINITION}    return soft(scores.movedim(dim, -1)).movedim(-1, dim)""",
    "an imported name": f"""
from torch import softmax as weigh
{SOFTMAX_DEFINITION}    return weigh(scores, dim)""",
    "got by its name": f"{SOFTMAX_DEFINITION}    return getattr(torch, 'soft' + 'max')(scores, dim)",
    "an import on the way, behind what was there": f"""
import sys
import torch._inductor.utils
{SOFTMAX_DEFINITION}
    import torch._inductor.inductor_prims as prims
    sys.modules["sys"] = sys.modules.pop("sys")
    most, total = prims.eager_prepare_softmax(scores, dim)
    return (scores - most).exp() / total""",
    "a pattern to be replaced": f"""
from torch._inductor.fx_passes.post_grad import prepare_softmax_pattern
{SOFTMAX_DEFINITION}
    _, total, _, exponentials = prepare_softmax_pattern(scores, dim)
    return exponentials / total""",
    "a library in a library's place": f"""
import os, sys
os.makedirs("site-packages/soft")
open("site-packages/soft/__init__.py", "w").write("def softmax(x, dim):\\n"
    "    e = (x - x.amax(dim, True)).exp()\\n    return e / e.sum(dim, True)")
sys.path.insert(0, os.path.abspath("site-packages"))
import soft
{SOFTMAX_DEFINITION}    return soft.softmax(scores, dim)""",
}

RIGHT = {
    "in a comment": (ATTENTION, f"{DEFINITION}    # not F.scaled_dot_product_attention\n    return {OWN_ATTENTION}"),
    "in a docstring": (
        ATTENTION,
        f'{DEFINITION}    """As F.scaled_dot_product_attention and nn.MultiheadAttention do."""\n'
        f"    return {OWN_ATTENTION}",
    ),
    "in a branch": (
        ATTENTION,
        f"debug = False\n{DEFINITION}    if debug:\n        return {LIBRARY}\n    return {OWN_ATTENTION}",
    ),
    "a name for it": (
        ATTENTION,
        f"library = F.scaled_dot_product_attention\n{DEFINITION}    library\n    return {OWN_ATTENTION}",
    ),
    "a helper of its name": (
        ATTENTION,
        f"""
def multi_head_attention_forward(queries, keys, values):
    return {OWN_ATTENTION}
{DEFINITION}    return multi_head_attention_forward(queries, keys, values)""",
    ),
    "tried in the cell": (
        ATTENTION,
        f"""{DEFINITION}    return {OWN_ATTENTION}
x = torch.ones(2, 2)
assert torch.allclose(scaled_dot_product_attention(x, x, x), F.scaled_dot_product_attention(x, x, x))""",
    ),
    "classes in a comment": (
        SOFTMAX,
        f"{SOFTMAX_DEFINITION}    # transforms.SoftmaxTransform()(scores)\n    return {OWN_SOFTMAX}",
    ),
    "a class of its own called softmax": (
        SOFTMAX,
        f"""
class SoftmaxTransform(torch.distributions.transforms.Transform):
    def __call__(self, scores, dim):
        return {OWN_SOFTMAX}
{SOFTMAX_DEFINITION}    return SoftmaxTransform()(scores, dim)""",
    ),
    "softmax in a comment": (
        SOFTMAX,
        f"{SOFTMAX_DEFINITION}    # torch.softmax(scores, dim)\n    return {OWN_SOFTMAX}",
    ),
    "softmax in a string": (SOFTMAX, f'{SOFTMAX_DEFINITION}    "torch.softmax"\n    return {OWN_SOFTMAX}'),
    "a helper called softmax": (
        SOFTMAX,
        f"""
def log_softmax(scores, dim):
    shifted = scores - scores.amax(dim, True)
    return shifted - shifted.exp().sum(dim, True).log()
{SOFTMAX_DEFINITION}    return log_softmax(scores, dim).exp()""",
    ),
    "a module of its own called softmax": (
        SOFTMAX,
        f"""
open("softmax_of_mine.py", "w").write("def softmax(x, dim):\\n"
    "    e = (x - x.amax(dim, True)).exp()\\n    return e / e.sum(dim, True)")
import softmax_of_mine
{SOFTMAX_DEFINITION}    return softmax_of_mine.softmax(scores, dim)""",
    ),
    "a module object that is not called": (
        SOFTMAX,
        f"layer = torch.nn.Softmax(-1)\n{SOFTMAX_DEFINITION}    layer\n    return {OWN_SOFTMAX}",
    ),
    "compared in the cell": (
        SOFTMAX,
        f"""{SOFTMAX_DEFINITION}    return {OWN_SOFTMAX}
torch.testing.assert_close(softmax(torch.ones(3)), torch.softmax(torch.ones(3), -1))""",
    ),
    "an unused import": (
        SOFTMAX,
        f"from torch.nn.functional import softmax as library_softmax\n{SOFTMAX_DEFINITION}    return {OWN_SOFTMAX}",
    ),
    "NumPy's exp": (
        SOFTMAX,
        f"""
import numpy
{SOFTMAX_DEFINITION}
    numpy.exp(numpy.ones(2))
    return {OWN_SOFTMAX}""",
    ),
}


BACKWARD = ("efficient_attention", "attention_backward")
BACKWARD_DEFINITION = """
def own_attention(q, k, v):
    exponentials = torch.exp(q @ k.mT / q.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(-1, keepdim=True) @ v
def leaves(*inputs):
    return [one.detach().clone().requires_grad_() for one in inputs]
def attention_backward(queries, keys, values, grad_output):
    inputs = leaves(queries, keys, values)
"""
AUTOGRAD_ROUTES = {
    "backward": """
    own_attention(*inputs).backward(grad_output)
    return tuple(one.grad for one in inputs)""",
    "grad": """
    return torch.autograd.grad(own_attention(*inputs), inputs, grad_output)""",
    "under no_grad": """
    with torch.no_grad(), torch.enable_grad():
        return torch.autograd.grad(own_attention(*inputs), inputs, grad_output)""",
    "the engine": """
    output = own_attention(*inputs)
    engine = torch.autograd.Variable._execution_engine
    return engine.run_backward(
        (output,), (grad_output,), False, False, tuple(inputs), allow_unreachable=True, accumulate_grad=False
    )""",
    "vjp": """
    return torch.func.vjp(own_attention, queries, keys, values)[1](grad_output)""",
    "func.grad": """
    loss = lambda q, k, v: (own_attention(q, k, v) * grad_output).sum()
    return torch.func.grad(loss, argnums=(0, 1, 2))(queries, keys, values)""",
    "jacrev": """
    loss = lambda q, k, v: (own_attention(q, k, v) * grad_output).sum()
    return torch.func.jacrev(loss, argnums=(0, 1, 2))(queries, keys, values)""",
    "forward mode": """
    loss = lambda q, k, v: (own_attention(q, k, v) * grad_output).sum()
    return torch.func.jacfwd(loss, argnums=(0, 1, 2))(queries, keys, values)""",
    "functional": """
    return torch.autograd.functional.vjp(own_attention, (queries, keys, values), grad_output)[1]""",
    "a checkpoint": """
    from torch.utils.checkpoint import checkpoint
    output = checkpoint(own_attention, *inputs, use_reentrant=False)
    return torch.autograd.grad(output, inputs, grad_output)""",
    "another thread": """
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(torch.autograd.grad(own_attention(*inputs), inputs, grad_output))
    )
    thread.start()
    thread.join()
    return tuple(found)""",
    "a node of softmax": """
    scores = leaves(queries @ keys.mT / queries.shape[-1] ** 0.5)[0]
    weights = torch.softmax(scores, dim=-1)
    d_scores = weights.grad_fn(grad_output @ values.mT) / queries.shape[-1] ** 0.5
    weights = weights.detach()
    return d_scores @ keys, d_scores.mT @ queries, weights.mT @ grad_output""",
    "the derivative of softmax": """
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    d_weights = grad_output @ values.mT
    d_scores = torch.ops.aten._softmax_backward_data(d_weights, weights, -1, weights.dtype) / queries.shape[-1] ** 0.5
    return d_scores @ keys, d_scores.mT @ queries, weights.mT @ grad_output""",
}
OWN_BACKWARD = """
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    row_sums = (grad_output * (weights @ values)).sum(dim=-1, keepdim=True)
    d_scores = weights * (grad_output @ values.mT - row_sums) / queries.shape[-1] ** 0.5
    return d_scores @ keys, d_scores.mT @ queries, weights.mT @ grad_output"""
RIGHT_BACKWARDS = {
    "inputs that require gradients": f"""
    queries, keys, values = inputs{OWN_BACKWARD}""",
    "under no_grad": OWN_BACKWARD.replace("\n", "\n    ").replace(
        "\n        weights =",
        """
    with torch.no_grad():
        weights =""",
        1,
    ),
    "compared with autograd in the cell": f"""{OWN_BACKWARD}
q, k, v = leaves(torch.ones(2, 3), torch.eye(2, 3), torch.eye(2))
for one, other in zip(
    attention_backward(q, k, v, torch.ones(2, 2)), torch.autograd.grad(own_attention(q, k, v).sum(), (q, k, v))
):
    torch.testing.assert_close(one, other)""",
}


def marked(grading_process, where, code):
    unit, exercise = where
    return grading_process.grade("typed.ipynb", alone(unit, **{exercise: IMPORTS + code}), unit).exercise(exercise)


@pytest.mark.parametrize("code", ATTENTION_ROUTES.values(), ids=ATTENTION_ROUTES)
def test_calls_of_the_librarys_attention_are_detected(grading_process, code):
    exercise = marked(grading_process, ATTENTION, code)
    assert (exercise.status, exercise.score) == ("forbidden", 0), exercise
    assert exercise.message == "The code calls a library's attention; in this exercise, write that step yourself."


@pytest.mark.parametrize("code", SOFTMAX_ROUTES.values(), ids=SOFTMAX_ROUTES)
def test_calls_of_the_librarys_softmax_are_detected(grading_process, code):
    exercise = marked(grading_process, SOFTMAX, code)
    assert (exercise.status, exercise.score) == ("forbidden", 0), exercise
    assert "a library's softmax" in exercise.message


@pytest.mark.parametrize("code", AUTOGRAD_ROUTES.values(), ids=AUTOGRAD_ROUTES)
def test_autograd_is_detected(grading_process, code):
    exercise = marked(grading_process, BACKWARD, BACKWARD_DEFINITION + code.removeprefix("\n"))
    assert (exercise.status, exercise.score) == ("forbidden", 0), exercise
    assert "The code calls autograd" in exercise.message


@pytest.mark.parametrize("code", RIGHT_BACKWARDS.values(), ids=RIGHT_BACKWARDS)
def test_a_backward_pass_without_autograd_is_right(grading_process, code):
    exercise = marked(grading_process, BACKWARD, BACKWARD_DEFINITION + code.removeprefix("\n"))
    assert (exercise.status, exercise.score) == ("passed", exercise.max_score), exercise


@pytest.mark.parametrize(("where", "code"), RIGHT.values(), ids=RIGHT)
def test_a_right_answer_that_only_names_it_is_right(grading_process, where, code):
    exercise = marked(grading_process, where, code)
    assert (exercise.status, exercise.score) == ("passed", exercise.max_score), exercise


def test_calls_for_one_exercise_do_not_count_for_the_next(grading_process):
    code = "class SelfAttention_v2(torch.nn.Linear):\n    def forward(self, x):\n        return " + LIBRARY
    unit = "self_attention"
    report = grading_process.grade("typed.ipynb", solved(unit, SelfAttention_v1=IMPORTS + code))
    assert "forbidden" not in {exercise.status for exercise in report.exercises}


@pytest.mark.parametrize(
    "compiled", ["torch._inductor.inductor_prims.eager_prepare_softmax", "F.multi_head_attention_forward"]
)
def test_torchscript_finds_no_source_of_what_is_forbidden(grading_process, compiled):
    code = f"{IMPORTS}import torch._inductor.inductor_prims\n{SOFTMAX_DEFINITION}    torch.jit.script({compiled})\n"
    exercise = marked(grading_process, SOFTMAX, f"{code}    return {OWN_SOFTMAX}")
    assert (exercise.status, exercise.score) == ("failed", 0)
