"""Predictions that students make before the notebook shows the answer, and hints that come one step at a time.

A prediction is a number, a bool for yes or no, a string for a word, or a list of numbers. None is graded.
"""

import math
from numbers import Real
from typing import Any

NOT_GUESSED = "Put your guess in place of `...`, and run this cell."
_YES, _NO = {"yes", "y", "true"}, {"no", "n", "false"}
_NEAR, _NEAR_0 = 0.01, 0.005
"""Tolerance of a number, relative and absolute."""
_MOST = 1000
"""Maximum number of elements of a list."""


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
