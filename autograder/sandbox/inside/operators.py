"""What the modes that look at each operator have in common."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """A dispatch mode that takes every operator and costs little."""

    supports_higher_order_operators = True  # torch.cond and its kin

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and PyTorch's wrapper imports its compiler and doubles what a call costs."""
        return False


def name_of(operator: Any) -> str:
    """The operator's name without its overload; those of higher order have none."""
    name: str = getattr(operator, "overloadpacket", operator).__name__
    return name
