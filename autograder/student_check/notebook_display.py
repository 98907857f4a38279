"""Shows what a student's own functions make: `show` prints it, `draw` makes pictures of matrices.

Both take functions without arguments, so that a notebook runs to its end before the answers are written.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch

_WIDEST = 8.2
"""Inches of a picture that JupyterLab shows as large as it is at 1280 pixels, with its file list open."""
_WHITE_FROM = 0.7
"""From which part of the darkest colour on white is read better than black."""


def show(*makers: Callable[[], Any] | Mapping[str, Callable[[], Any]]) -> None:
    """Print what each of `makers` returns, or that something in it is not written yet.

    A dictionary gives each of its makers a label, which is printed above the result.
    """
    labelled = [pair for one in makers for pair in (one.items() if isinstance(one, Mapping) else [("", one)])]
    for label, make in labelled:
        made, why_not = _made(make)
        if label:
            print(f"{label}:")
        if why_not:
            print(why_not)
        elif made is not None:  # what draws or prints by itself returns nothing
            print(*_apart(made), sep="\n")


def draw(pictures: dict[str, Callable[[], Any]], names: list[str]) -> None:
    """Draw matrices beside each other, each below its title, in one scale of colours.

    White is 0. The larger a number, the darker the blue; negative numbers are red.

    pictures: for each title what makes its matrix, (T, T). names: of the T rows and columns.
    """
    from matplotlib import pyplot  # takes its time, and not every notebook draws

    side = min(4.1, _WIDEST / len(pictures))
    size = side * len(pictures), min(4.1, side + 0.7)  # below each are the names of its columns
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


def _made(make: Callable[[], Any]) -> tuple[Any, str]:
    """What it makes, or why it makes nothing."""
    try:
        made = make()
    except NotImplementedError:
        return None, "not written yet"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return made, ""


def _apart(made: Any) -> list[Any]:
    """Several tensors one below the other, and of each its numbers alone."""
    several = isinstance(made, tuple | list) and bool(made) and all(isinstance(one, torch.Tensor) for one in made)
    return [one.detach() if isinstance(one, torch.Tensor) else one for one in (made if several else [made])]


def _matrix(make: Callable[[], Any], size: int) -> torch.Tensor | str:
    """Return the matrix that a maker returns, or the reason why it gives no matrix."""
    made, why_not = _made(make)
    if why_not:
        return why_not
    try:
        return torch.as_tensor(made.detach().double().cpu().reshape(size, size))
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
            # What is exactly 0 was hidden or dropped, which is something else than small.
            text = f"{number:{digits}}" if number else "0"
            ax.text(key, query, text, ha="center", va="center", fontsize=8, color=colour)
