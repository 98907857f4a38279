"""The functions that notebooks call besides those about their exercises: `show`, `draw`, `guess` and `hint`.

`show` prints the results of the student's own functions, and `draw` draws matrices. Both take functions without
arguments, so that a notebook runs to its end before the answers are written.

A guess is the student's prediction, made before the notebook shows the answer: a number, a bool for yes or no, a string
for a word, or a list of numbers. None is graded. Hints come one step at a time.
"""

import math
import traceback
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import torch

_WIDEST = 8.2
"""Width in inches up to which JupyterLab does not shrink a picture in a window of 1280 pixels."""
_WHITE_FROM = 0.7
"""Share of the darkest colour from which white text is easier to read than black."""
NOT_GUESSED = "Put your guess in place of `...`, and run this cell."
_YES, _NO = {"yes", "y", "true"}, {"no", "n", "false"}
_NEAR, _NEAR_0 = 0.01, 0.005
"""Tolerance of a number, relative and absolute."""
_MOST = 1000
"""Maximum number of elements of a list."""


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


def answer_guess(guesses: dict[str, Any], name: Any, value: Any) -> tuple[str, str]:
    """Return the verdict on a guess, and the explanation; never raises, regardless of the value."""
    guess = guesses.get(name) if isinstance(name, str) else None
    if guess is None:
        known = ", ".join(f"`{one}`" for one in guesses)
        return "", f"This notebook has these guesses: {known}." if known else "This notebook has no guesses."
    if is_open(value):
        return "", NOT_GUESSED
    right = matches_answer(guess["answer"], value)
    if right is None:
        return "", required_kind(guess["answer"])
    if right:
        return "Yes.", guess["because"]
    instead = [sentence for other, sentence in guess["instead"] if matches_answer(other, value)]
    if isinstance(guess["answer"], str) and guess["instead"] and not instead:
        choices = sorted([guess["answer"], *(other for other, _ in guess["instead"])])
        listed = ", ".join(f'`"{one}"`' for one in choices)
        return "", f"The answers to choose from are {listed}."
    return "Not quite.", (instead or [guess["because"]])[0]


def matches_answer(answer: Any, value: Any) -> bool | None:
    """Return whether a value equals an answer within the tolerance; None if it is of another kind."""
    try:
        return _compare(answer, _plain(value))
    except Exception:  # a value may define its own behaviour
        return None


def required_kind(answer: Any) -> str:
    """Return the message on the kind of value that is required, without the answer."""
    if isinstance(answer, bool):
        return 'Yes or no is wanted here: write "yes" or "no".'
    if isinstance(answer, str):
        return "A word is wanted here, between quotation marks."
    if isinstance(answer, list):
        return "A list of numbers is wanted here, between square brackets and with commas between them."
    return "A number is wanted here."


def is_open(value: Any) -> bool:
    """Return whether a value is still the released placeholder."""
    return value is ... or (type(value) is list and bool(value) and all(one is ... for one in value))


def _compare(answer: Any, value: Any) -> bool | None:
    if isinstance(answer, list):
        if not isinstance(value, list) or not all(map(_is_number, value)):
            return None
        return len(value) == len(answer) and all(map(_near, answer, value))
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(answer, bool):
        said = _yes_or_no(value)
        return None if said is None else said == answer
    if isinstance(answer, str):
        return _word(value) == _word(answer) if isinstance(value, str) else None
    if isinstance(value, str):
        value = float(value)
    return _near(answer, value) if _is_number(value) else None


def _plain(value: Any) -> Any:
    """Return a value as plain Python: lists for tensors, arrays and tuples, a number for those without dimensions."""
    if isinstance(value, list | tuple | range):
        items: list[Any] = list(value[: _MOST + 1])
        return [one.item() if hasattr(one, "tolist") else one for one in items] if len(items) <= _MOST else None
    if hasattr(value, "tolist"):  # tensors and arrays
        return value.tolist() if math.prod(value.shape) <= _MOST else None
    return value


def _yes_or_no(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = _word(value) if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _near(answer: float, value: Any) -> bool:
    """Return whether a number is within the tolerance; an integer answer is a count, and needs an equal integer."""
    try:
        number = float(value)
    except OverflowError:
        return False
    if isinstance(answer, int) and number.is_integer():
        return number == answer
    if math.isnan(answer):
        return math.isnan(number)
    return math.isclose(number, answer, rel_tol=0, abs_tol=max(_NEAR * abs(answer), _NEAR_0))


def _word(text: str) -> str:
    """Return the letters and digits of a text without an article: `mean` for `The mean.`"""
    words = text.casefold().split()
    return "".join(one for one in "".join(words[words[:1] == ["the"] :]) if one.isalnum())


_seen: dict[str, int] = {}
"""By exercise, the number of its hints that were shown since the kernel started."""


def hint_overview(hints: dict[str, list[str]]) -> tuple[str, list[str]]:
    """Return a title, and for each exercise with hints how many of them were shown."""
    if not hints:
        return "This notebook has no hints.", []
    first = next(iter(hints))
    return f'Hints you have seen; `hint("{first}")` shows one more:', [
        f"`{exercise}`: {_seen.get(exercise, 0)} of {len(its)}" for exercise, its in hints.items()
    ]


def next_hint(hints: dict[str, list[str]], exercise: Any) -> tuple[str, list[str]]:
    """Return a title, and the exercise's hints so far with the next one; after the last, advice."""
    its = hints.get(exercise) if isinstance(exercise, str) else None
    if its is None:
        known = ", ".join(f"`{one}`" for one in hints)
        return "", [f"There are hints for these exercises: {known}." if known else "This notebook has no hints."]
    before = _seen.get(exercise, 0)
    _seen[exercise] = seen = min(before + 1, len(its))
    lines = [f"{number}. {one}" for number, one in enumerate(its[:seen], start=1)]
    if before == len(its):
        lines.append(
            f'There are no more hints. Read the exercise\'s text again, see what `check("{exercise}")` says, '
            "or ask: show what you have tried."
        )
    return f"{'Hint' if seen == 1 else 'Hints'} for `{exercise}`, {seen} of {len(its)}", lines
