"""Show results of the student's own functions in the notebook: `show` prints them, `draw` draws matrices.

Both take functions without arguments, so that a notebook runs to its end before the answers are written.
"""

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import torch

_WIDEST = 8.2
"""Width in inches up to which JupyterLab does not shrink a picture in a window of 1280 pixels."""
_WHITE_FROM = 0.7
"""Share of the darkest colour from which white text is easier to read than black."""


def show(*makers: Callable[[], Any] | Mapping[str, Callable[[], Any]]) -> None:
    """Print the result of each function, or that something in it is not written yet.

    A dictionary gives each of its makers a label, which is printed above the result.
    """
    labelled = [pair for one in makers for pair in (one.items() if isinstance(one, Mapping) else [("", one)])]
    for label, make in labelled:
        result, problem = _call(make)
        if label:
            print(f"{label}:")
        if problem:
            print(problem)
        elif result is not None:  # functions that draw or print by themselves return None
            print(*_printable(result), sep="\n")


def draw(pictures: dict[str, Callable[[], Any]], names: list[str]) -> None:
    """Draw matrices next to each other, each below its title, in one scale of colours.

    White is 0. Larger elements are darker blue, negative ones red.

    pictures: for each title a function that returns a matrix, (T, T). names: those of the T rows and columns.
    """
    from matplotlib import pyplot  # the import is slow, and not every notebook draws

    side = min(4.1, _WIDEST / len(pictures))
    size = side * len(pictures), min(4.1, side + 0.7)  # room for the names of the columns
    _, axes = pyplot.subplots(1, len(pictures), figsize=size, layout="constrained", squeeze=False)
    matrices = [_matrix(make, len(names)) for make in pictures.values()]
    scale = max([1e-9, *(_finite(one).abs().max().item() for one in matrices if isinstance(one, torch.Tensor))])
    for ax, title, matrix in zip(axes[0], pictures, matrices, strict=True):
        ax.set_title(title, fontsize=10)
        _draw_one(ax, matrix, len(names), scale)
        ax.set_xticks(range(len(names)), names, rotation=45)
        ax.set_yticks(range(len(names)), names if ax is axes[0][0] else [""] * len(names))
        ax.set_xlabel("key")
    axes[0][0].set_ylabel("query")
    pyplot.show()


def _call(make: Callable[[], Any]) -> tuple[Any, str]:
    try:
        result = make()
    except NotImplementedError as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        name = frame.f_code.co_qualname.partition(".")[0]  # of a method: its class
        return None, f"{name} is not written yet" if name.isidentifier() else "not written yet"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return result, ""


def _printable(result: Any) -> list[Any]:
    """Return the parts of a result to print on separate lines: each of several tensors, without gradients."""
    several = isinstance(result, tuple | list) and bool(result) and all(isinstance(one, torch.Tensor) for one in result)
    return [one.detach() if isinstance(one, torch.Tensor) else one for one in (result if several else [result])]


def _matrix(make: Callable[[], Any], size: int) -> torch.Tensor | str:
    """Return the matrix that a function returns, or the reason why it returns none."""
    result, problem = _call(make)
    if problem:
        return problem
    try:
        return torch.as_tensor(result.detach().double().cpu().reshape(size, size))
    except Exception:
        return f"no matrix of {size} by {size}"


def _finite(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def _draw_one(ax: Any, matrix: torch.Tensor | str, size: int, scale: float) -> None:
    if isinstance(matrix, str):
        ax.text((size - 1) / 2, (size - 1) / 2, matrix.partition("\n")[0][:60], ha="center", va="center", wrap=True)
        ax.set_xlim(-0.5, size - 0.5)
        ax.set_ylim(size - 0.5, -0.5)
        ax.set_aspect("equal")
        return
    finite = _finite(matrix)
    ax.imshow(finite.numpy(), cmap="RdBu", vmin=-scale, vmax=scale)
    largest = finite.abs().max().item()
    digits = ".0f" if torch.equal(finite, finite.round()) else ".2f" if largest < 100 else ".4g"
    for query, row in enumerate(matrix.tolist()):
        for key, number in enumerate(row):
            colour = "white" if finite[query, key].abs() > _WHITE_FROM * scale else "black"
            # An element of exactly 0 was masked or dropped, and must look different from a small one.
            text = f"{number:{digits}}" if number else "0"
            ax.text(key, query, text, ha="center", va="center", fontsize=8, color=colour)
