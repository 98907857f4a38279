"""A watched run as a worker sends it."""

import torch

from .nesting import tensors_in
from .tracing import MAX_RESULTS, Run

Packed = tuple[str, str, torch.Tensor, torch.Tensor, list[torch.Tensor], bool, list[int]]
"""A run as a worker sends it: see `packed`."""


def packed(run: Run) -> Packed:
    """A run as what can be sent: files and operators, a line each; places; numbers; what came of it; whether it failed.

    Places are whole numbers, for each tensor: its file, line, place, sizes and inputs, the last two with their number
    before them.
    """
    files = list(dict.fromkeys([*(one.file for one in run.made), *([run.returned[0]] if run.returned else [])]))
    places: list[int] = []
    for one in run.made:
        shape = one.values.shape
        places += [files.index(one.file), one.line, one.place, len(shape), *shape, len(one.inputs), *one.inputs]
    numbers = torch.cat([one.values.flatten() for one in run.made]) if run.made else torch.empty(0)
    returned = [files.index(run.returned[0]), run.returned[1]] if run.returned else []
    operators = "\n".join(one.operator for one in run.made)
    marks = torch.tensor(places, dtype=torch.int64)
    return "\n".join(files), operators, marks, numbers.float(), result_of(run), run.error is not None, returned


def result_of(run: Run) -> list[torch.Tensor]:
    """The tensors that came of a run."""
    return [one.detach() for one in tensors_in(run.result)][:MAX_RESULTS]
