"""The guesses and hints of a unit, in `exercises/<unit>.yaml` next to its text; a unit without the file has none.

    guesses:
      most_alike:
        answer: 4            # a number, yes or no, a word, or a list of numbers
        because: "What the student reads below `Yes.` and `Not quite.`"
        instead:             # the text below `Not quite.` for one particular other answer
          6: "..."
    hints:
      dot_product_scores:    # three for each exercise
        - "A question ..."
        - "A plan of shapes ..."
        - "The operation to look up ..."

A student's number is right if it is within 1 % or 0.005 of the answer. An answer without a decimal point is a count,
for which no other whole number is right.
"""

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..catalogue.known_answers import NotYaml, read_yaml
from ..student_check.predictions import matches_answer, required_kind
from .source_notebook import BuildError, called_in, points_of

T = TypeVar("T")

HINTS = 3
LONGEST = 200
"""Most characters in a sentence."""


class _Guess(msgspec.Struct, forbid_unknown_fields=True):
    answer: bool | int | float | str | list[int | float]
    because: str
    instead: dict[Any, str] = {}


class _Lesson(msgspec.Struct, forbid_unknown_fields=True):
    guesses: dict[str, Any] = {}
    hints: dict[str, Any] = {}


def lesson(text: Path) -> dict[str, Any] | None:
    """Read a unit's guesses and hints, in the form of the release; None if the unit has no such file.

    text: path of the unit's text in exercises/. Raises BuildError.
    """
    file = text.with_suffix(".yaml")
    if not file.is_file():
        return None
    try:
        held = _as(_Lesson, read_yaml(file), file.name)
    except NotYaml as reason:
        raise BuildError(f"{file.name}: {reason}.") from None
    return {
        "guesses": {name: _guess(f"{file.name}: guess `{name}`", guess) for name, guess in held.guesses.items()},
        "hints": {name: _hints(f"{file.name}: `{name}`", its) for name, its in held.hints.items()},
    }


def reject_unmatched(text: Path, held: dict[str, Any] | None, notebook: Any) -> None:
    """Raise BuildError unless the notebook's guesses and exercises match the guesses and hints in the file.

    text: path of the unit's text. held: the result of `lesson`.
    """
    file = text.with_suffix(".yaml").name
    names = _guess_names(text, held, notebook)
    for name in names:
        if held is None or name not in held["guesses"]:
            raise BuildError(f"{text.name} asks for the guess `{name}`, but {file} has no answer to it.")
    if held is None:
        return
    for name in held["guesses"]:
        if name not in names:
            raise BuildError(f"{file} answers the guess `{name}`, but {text.name} has no `guess({name!r}, ...)`.")
    exercises, _ = points_of(notebook.cells)
    for name in exercises:
        if name not in held["hints"]:
            raise BuildError(f"{file} has no hints for `{name}`: write {HINTS}, each of which says more than the last.")
    for name in held["hints"]:
        if name not in exercises:
            raise BuildError(f"{file} has hints for `{name}`, but {text.name} has no exercise line for it.")


def _guess_names(text: Path, held: dict[str, Any] | None, notebook: Any) -> list[str]:
    """Return the names of the notebook's guesses; raises BuildError if a call of `guess` or `hint` is invalid."""
    found = list[str]()
    for cell in notebook.cells:
        for call in called_in(cell.source) if cell.cell_type == "code" else ():
            if call.function == "hint" and (held is None or (call.name and call.name not in held["hints"])):
                file = text.with_suffix(".yaml").name
                raise BuildError(f"{text.name} gives a hint for `{call.name}`, but {file} has none.")
            if call.function != "guess":
                continue
            if not call.name or not call.is_open:
                raise BuildError(f'{text.name}: ask for a guess with `guess("name", ...)`, including the three dots.')
            if "nbgrader" in cell.metadata or "jupyter" in cell.metadata:
                raise BuildError(
                    f"{text.name}: guess `{call.name}` is in a locked or collapsed cell: move it to a plain one."
                )
            found.append(call.name)
    return found


def _as(kind: type[T], written: Any, where: str) -> T:
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as reason:
        raise BuildError(f"{where}: {reason}. CONTRIBUTING.md says how guesses and hints are written.") from None


def _guess(where: str, written: Any) -> dict[str, Any]:
    guess = _as(_Guess, written, where)
    if isinstance(guess.answer, str) and matches_answer(True, guess.answer) is not None:
        raise BuildError(f"{where}: write yes or no without quotation marks.")
    if guess.answer in ("", []):
        raise BuildError(f"{where} has no answer.")
    instead = [
        (_as_list(other) if isinstance(guess.answer, list) else other, say) for other, say in guess.instead.items()
    ]
    for other, sentence in instead:
        is_right = matches_answer(guess.answer, other)
        if is_right is None:
            raise BuildError(
                f"{where}: `instead` has {other!r}, which is not such an answer. {required_kind(guess.answer)}"
            )
        if is_right:
            raise BuildError(f"{where}: `instead` has {other!r}, which is right.")
        _reject_long(where, sentence)
    _reject_long(where, guess.because)
    return {"answer": guess.answer, "because": guess.because, "instead": instead}


def _as_list(written: Any) -> Any:
    """Parse a list in a string such as "[3, 6]", because YAML allows no list as a key."""
    try:
        return json.loads(written)
    except (TypeError, ValueError):
        return written


def _hints(where: str, written: Any) -> list[str]:
    hints = _as(list[str], written, where)
    if len(hints) != HINTS:
        raise BuildError(f"{where} has {len(hints)} hints; write {HINTS}, each of which says more than the last.")
    for one in hints:
        _reject_long(where, one)
    return hints


def _reject_long(where: str, sentence: str) -> None:
    if not sentence.strip():
        raise BuildError(f"{where} has an empty sentence.")
    if len(sentence) > LONGEST:
        raise BuildError(f"{where} has a sentence of {len(sentence)} characters, more than {LONGEST}: {sentence}")
