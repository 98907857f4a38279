"""`check("attention_scores")` tries your function on examples; `check()` shows how far you are.

`example("attention_scores", 2)` gives you the arguments of the second example and the right result, to play with.
`hint("attention_scores")` gives a hint, and one more each time. `guess` answers what the notebook asks you to guess.
`buggy("attention_scores")` gives you a wrong one, where an exercise asks you to hunt its mistake down.
It needs nothing but torch. The hidden tests that decide the points ask the same with other numbers.
The files beside it hold the examples and, as numbers, what common mistakes show on them and what is right on the way;
guesses and hints too.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..sandbox.inside.wrong_function import unpacked_function
from .called import calls_with_results
from .data_file import read_data
from .freshness import not_what_was_run
from .guesses import said_of_guess
from .hints import next_hint, said_of_hints
from .hunted import hunts
from .line_told import line_told
from .names import EXAMPLES, LESSON, MISTAKES, STEPS, WRITTEN
from .own_code import draw, show
from .showing import say, summed, tell
from .tried import as_in_a_new_notebook, outcome
from .written_values import as_value, in_full

__all__ = ["buggy", "check", "draw", "example", "guess", "hint", "show"]


def check(exercise: str | None = None) -> float | None:
    """Try one exercise on its examples; returns the share of its points that they would give.

    Without a name: how far you are in the whole notebook.
    """
    names = sys._getframe(1).f_globals
    exercises, mistakes = _read(EXAMPLES), _read(MISTAKES)
    if exercises is None or mistakes is None:
        return None
    written = json.loads(exercises.pop(WRITTEN, "{}"))
    if exercise is not None and (not isinstance(exercise, str) or exercise not in exercises):
        print(f"The name of an exercise is wanted, as in check({next(iter(exercises))!r}). They are:")
        print(", ".join(exercises))
        return None
    wanted = list(exercises) if exercise is None else [exercise]
    try:
        with as_in_a_new_notebook():
            outcomes = [
                outcome(names, name, _examples(exercises, name), json.loads(mistakes.get(name, "[]")))
                for name in wanted
            ]
            if exercise is not None and (said := outcomes[0].to_look_at):
                steps, is_wrong = Path(__file__).with_name(STEPS), outcomes[0].goes_wrong
                outcomes[0].whereabouts = line_told(names, exercise, steps, said, is_wrong=is_wrong)
    except KeyboardInterrupt:
        print("The check was interrupted, so it says nothing. Run its cell again when you like.")
        return None if exercise is None else 0.0
    if exercise is not None:
        return tell(outcomes[0], not_what_was_run(names, exercise))
    summed(outcomes, written)
    return None


def example(exercise: str, number: int = 1, call: int = 1) -> Any:
    """What an exercise's example calls it with, and the right result: `args, right = example("scaled_softmax", 2)`.

    Examples count from 1, as the check shows them, and so do the calls of one that makes several.
    """
    exercises = _read(EXAMPLES)
    if exercises is None:
        return None
    exercises.pop(WRITTEN, None)
    if exercise not in exercises:
        print(f"The name of an exercise is wanted; they are: {', '.join(exercises)}.")
        return None
    examples = _examples(exercises, exercise)["examples"]
    steps = examples[number - 1]["steps"] if number in range(1, len(examples) + 1) else []
    calls = calls_with_results(steps)
    if call not in range(1, len(calls) + 1):
        with_result = [str(at) for at, one in enumerate(examples, start=1) if calls_with_results(one["steps"])]
        print(f"There is no such call with a result. The examples of {exercise} with one: {', '.join(with_result)}.")
        return None
    step = calls[call - 1]
    return tuple(as_value(arg) for arg in step.get("args", ())), as_value(step["result"])


def guess(name: str = "", value: Any = ..., *more: Any) -> None:
    """Answers your guess with a sentence: `guess("most_alike", 4)`. It is not marked."""
    lesson = _lesson()
    if lesson is not None:
        first, why = said_of_guess(lesson["guesses"], name, (value, *more) if more else value)
        say(first, [why])


def hint(exercise: str | None = None) -> None:
    """Shows a hint to an exercise, and each time one more: `hint("scaled_softmax")`.

    Without a name: for which exercises there are hints, and how many of them you have seen.
    """
    lesson = _lesson()
    if lesson is not None:
        hints = lesson["hints"]
        say(*(said_of_hints(hints) if exercise is None else next_hint(hints, exercise)))


def _lesson() -> dict[str, Any] | None:
    """The notebook's guesses and hints."""
    try:
        return dict(read_data(Path(__file__).with_name(LESSON)))
    except (OSError, ValueError):
        beside = Path(__file__).name
        print(f"{LESSON} is not beside {beside}, or damaged: if this notebook has hints, fetch its files again.")
        return None


def buggy(name: str) -> Callable[..., Any] | None:
    """The wrong function of this name that an exercise hunts: `wrong = buggy("merge_heads")`, to be called."""
    exercises = _read(EXAMPLES)
    if exercises is None:
        return None
    exercises.pop(WRITTEN, None)
    hunted = {prey["of"]: prey for of in exercises.values() if '"hunt"' in of for prey in hunts(json.loads(of))}
    if not isinstance(name, str) or name not in hunted:
        known = f"this notebook has a wrong {', '.join(hunted)}" if hunted else "this notebook has none"
        print(f"The name of a function whose mistake is hunted is wanted: {known}.")
        return None
    return unpacked_function(name, hunted[name]["wrong"])


def _read(name: str) -> dict[str, str] | None:
    """What a file says of each exercise, as JSON."""
    try:
        path = Path(__file__).with_name(name)
        return dict(_by_exercise(path, path.stat().st_mtime_ns if path.exists() else 0))
    except (OSError, ValueError):
        print(f"{name} is missing beside {Path(__file__).name}, or damaged: fetch the assignment's files again.")
        return None


@lru_cache(maxsize=2)
def _by_exercise(path: Path, _changed: int) -> dict[str, str]:
    # To read a whole file takes longer than to try an exercise. As text, because the code that is tried may write into
    # what it is called with.
    return {exercise: json.dumps(of) for exercise, of in read_data(path).items()}


def _examples(exercises: Mapping[str, str], exercise: str) -> dict[str, Any]:
    """What an exercise is tried on; a hunt, with what the student's own function is tried on first."""
    of: dict[str, Any] = json.loads(exercises[exercise])
    for one in of["examples"]:
        one["steps"] = in_full(one["steps"])
    for prey in hunts(of):
        prey["examples"] = _examples(exercises, prey["of"])["examples"]
    return of
