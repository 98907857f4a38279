"""Shows what a student's own functions make: `show` prints it, `draw` makes pictures of matrices.

Both take functions without arguments, so that a notebook runs to its end before the answers are written.
"""

from collections.abc import Callable
from typing import Any


def show(*makers: Callable[[], Any]) -> None:
    """Print what each of `makers` returns, or that something in it is not written yet."""
    for make in makers:
        made, why_not = _made(make)
        if why_not or made is not None:  # what draws or prints by itself returns nothing
            print(why_not or made)


def draw(pictures: dict[str, Callable[[], Any]], names: list[str]) -> None:
    """Draw matrices beside each other, each below its title, the darker the larger.

    pictures: for each title what makes its matrix, (T, T). names: of the T rows and columns.
    """
    from matplotlib import pyplot  # takes its time, and not every notebook draws

    _, axes = pyplot.subplots(1, len(pictures), figsize=(4.1 * len(pictures), 4.1), layout="constrained", squeeze=False)
    for ax, (title, make) in zip(axes[0], pictures.items(), strict=True):
        ax.set_title(title, fontsize=10)
        _draw_one(ax, make, len(names))
        ax.set_xticks(range(len(names)), names, rotation=45)
        ax.set_yticks(range(len(names)), names)
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


def _draw_one(ax: Any, make: Callable[[], Any], size: int) -> None:
    made, why_not = _made(make)
    matrix = None
    if not why_not:
        try:
            matrix = made.detach().double().cpu().reshape(size, size)
        except Exception:
            why_not = f"no matrix of {size} by {size}"
    if matrix is None:
        ax.text((size - 1) / 2, (size - 1) / 2, why_not.partition("\n")[0][:60], ha="center", va="center", wrap=True)
        ax.set_xlim(-0.5, size - 0.5)
        ax.set_ylim(size - 0.5, -0.5)
        ax.set_aspect("equal")
        return
    finite = matrix.nan_to_num(posinf=0.0, neginf=0.0)
    top = max(finite.max().item(), 1e-9)
    ax.imshow(finite, cmap="Blues", vmin=min(0.0, finite.min().item()), vmax=top)
    for query, row in enumerate(matrix.tolist()):
        for key, number in enumerate(row):
            colour = "white" if number > 0.6 * top else "black"
            ax.text(key, query, f"{number:.2f}".removesuffix(".00"), ha="center", va="center", fontsize=7, color=colour)
