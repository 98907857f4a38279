"""Hints to an exercise, one step more each time: a question, a plan of shapes, the operation to look up."""

from typing import Any

_seen: dict[str, int] = {}
"""By exercise how many of its hints were shown since the kernel started."""


def said_of_hints(hints: dict[str, list[str]]) -> tuple[str, list[str]]:
    """For which exercises there are hints, and how many of them were seen."""
    if not hints:
        return "This notebook has no hints.", []
    first = next(iter(hints))
    return f'Hints you have seen; `hint("{first}")` shows one more:', [
        f"`{exercise}`: {_seen.get(exercise, 0)} of {len(its)}" for exercise, its in hints.items()
    ]


def next_hint(hints: dict[str, list[str]], exercise: Any) -> tuple[str, list[str]]:
    """The exercise's hints so far and the next one; when there is none left, what else to do."""
    its = hints.get(exercise) if isinstance(exercise, str) else None
    if its is None:
        known = ", ".join(f"`{one}`" for one in hints)
        return "", [f"There are hints for these exercises: {known}." if known else "This notebook has no hints."]
    before = _seen.get(exercise, 0)
    _seen[exercise] = seen = min(before + 1, len(its))
    lines = [f"{number}. {one}" for number, one in enumerate(its[:seen], start=1)]
    if before == len(its):
        lines.append(
            f'There are no more. Read the exercise\'s text again, see what `check("{exercise}")` says, '
            "or ask: show what you have tried."
        )
    return f"{'Hint' if seen == 1 else 'Hints'} for `{exercise}`, {seen} of {len(its)}", lines
