"""The student check: the functions that notebooks import, for the units whose data files are in one folder.

`loader` imports this module from the zip, and `facade` gives a notebook the methods of a `StudentCheck`.
"""

import json
import linecache
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.constructed_answers import unpacked_function
from ..core.judgement import CommonMistakes
from .account import IMPORTANCE, show_account, show_lines, show_summary
from .call_description import calls_with_results
from .examples import decode_value, expand_steps, hunts
from .fault_location import located_fault
from .notebook_functions import answer_guess, draw, hint_overview, next_hint, show
from .run_examples import Outcome, code_file, new_notebook_state, run_examples
from .unit_data import EXAMPLES, LESSON, MISTAKES, STEPS, UnitData, units_in


class StudentCheck:
    """The functions that notebooks import."""

    def __init__(self, facade: Path, is_current: Callable[[], bool]) -> None:
        """facade: the module's file, in the folder with the data. is_current: false if the files have been replaced."""
        self._facade = facade
        self._is_current = is_current

    draw, show = staticmethod(draw), staticmethod(show)

    def check(self, exercise: str | None = None, *, more: bool = False, repair: bool = False) -> float | None:
        """Try one exercise on its examples, and show the verdict and the most important finding.

        more: shows all examples, and what to do. repair: searches the line at which one change makes all examples pass,
        for a few seconds. Returns the exercise's points if the hidden tests went like the examples.
        Without a name: shows how far you are in the whole notebook.
        """
        names = sys._getframe(1).f_globals
        units, problems = self._units(names)
        if units and exercise is None:
            _check_all(names, _of_notebook(units, names, problems))
        elif unit := _unit_of(exercise, units, problems, names):
            return _check_one(names, unit, str(exercise), self._facade, more=more, repair=repair)
        return None

    def example(self, exercise: str, number: int = 1, call: int = 1) -> Any:
        """Return the arguments of an example's call and the right result: `args, right = example("scaled_softmax", 2)`.

        Examples are numbered from 1, as the check shows them, and so are the calls of an example that makes several.
        """
        names = sys._getframe(1).f_globals
        unit = _unit_of(exercise, *self._units(names), names)
        if unit is None:
            return None
        examples = examples_of(unit, exercise)["examples"]
        steps = examples[number - 1]["steps"] if number in range(1, len(examples) + 1) else []
        calls = calls_with_results(steps)
        if call not in range(1, len(calls) + 1):
            with_result = [str(at) for at, one in enumerate(examples, start=1) if calls_with_results(one["steps"])]
            print(
                f"There is no such call with a result. The examples of {exercise} with one: {', '.join(with_result)}."
            )
            return None
        step = calls[call - 1]
        return tuple(decode_value(arg) for arg in step.get("args", ())), decode_value(step["result"])

    def guess(self, name: str = "", value: Any = ..., *more: Any) -> None:
        """Answers your guess with a sentence: `guess("most_alike", 4)`. It is not graded."""
        guesses = self._lessons(sys._getframe(1).f_globals, "guesses", name)
        if guesses is not None:
            first, why = answer_guess(guesses, name, (value, *more) if more else value)
            show_lines(first, [why])

    def explain(self, exercise: str, number: int | None = None, value: Any = ...) -> None:
        """Asks about your own lines once an answer passes its check: `explain("scaled_softmax")`. It is not graded.

        Answer a question by its number: `explain("scaled_softmax", 1, (2, 5, 7))`.
        """
        names = sys._getframe(1).f_globals
        unit = _unit_of(exercise, *self._units(names), names)
        if unit is None:
            return
        with new_notebook_state():
            if not _outcome(names, unit, exercise).whole:
                print(f'These questions are about code that passes its check: `check("{exercise}")` comes first.')
                return
            from .own_code_questions import explain_own_code  # few notebooks call it

            title, lines = explain_own_code(names, exercise, unit.path, number, value)
        show_lines(title, lines)

    def hint(self, exercise: str | None = None) -> None:
        """Shows a hint to an exercise, and each time one more: `hint("scaled_softmax")`.

        Without a name: for which exercises there are hints, and how many of them you have seen.
        """
        hints = self._lessons(sys._getframe(1).f_globals, "hints", exercise)
        if hints is not None:
            show_lines(*(hint_overview(hints) if exercise is None else next_hint(hints, exercise)))

    def buggy(self, name: str) -> Callable[..., Any] | None:
        """Return the wrong function of this name, whose mistake an exercise hunts: `wrong = buggy("merge_heads")`."""
        names = sys._getframe(1).f_globals
        units, problems = self._units(names)
        if not units:
            return None
        hunted = _hunted(units)
        if not isinstance(name, str) or name not in hunted:
            its = _hunted(_of_notebook(units, names, problems))
            known = f"this notebook has a wrong {', '.join(its)}" if its else "this notebook has none"
            print(f"The name of a function whose mistake is hunted is wanted: {known}.")
            return None
        return unpacked_function(name, hunted[name]["wrong"])

    def _units(self, names: Mapping[str, Any]) -> tuple[list[UnitData], list[str]]:
        """Return the units in the folder, those of the notebook first, and a sentence for each file not read.

        Prints the reason if there is no unit. names: the notebook's.
        """
        if not self._is_current():
            print(f"The files of {self._facade.name} have changed since this notebook imported it: restart the kernel.")
            return [], []
        units, problems = units_in(self._facade.parent)
        if not units:
            missing = (
                f"No data file of a unit (a name that ends in .json.gz) is in {self._facade.parent}, the folder of "
                f"{self._facade.name}: fetch the assignment's files again."
            )
            print("\n".join(problems or [missing]))
        first = _of_notebook(units, names)
        return first + [unit for unit in units if unit not in first], problems

    def _lessons(self, names: Mapping[str, Any], kind: str, name: Any) -> dict[str, Any] | None:
        """Return the guesses or hints of the unit that has one of this name, else of the notebook's units."""
        units, problems = self._units(names)
        if not units:
            return None
        for unit in units:
            known: dict[str, Any] = unit.section(LESSON).get(kind, {})
            if isinstance(name, str) and name in known:
                return known
        its = _of_notebook(units, names, problems)
        return {key: one for unit in its for key, one in unit.section(LESSON).get(kind, {}).items()}


def _unit_of(
    exercise: str | None, units: list[UnitData], problems: list[str], names: Mapping[str, Any]
) -> UnitData | None:
    """Return the unit that has an exercise; if none has, print which exercises there are."""
    for unit in units:
        if exercise in unit.exercises:
            return unit
    if units:
        its = [name for unit in _of_notebook(units, names, problems) for name in unit.exercises]
        print(f"Give the name of an exercise. The exercises are: {', '.join(its)}.")
    return None


def _of_notebook(units: list[UnitData], names: Mapping[str, Any], problems: Sequence[str] = ()) -> list[UnitData]:
    """Return the units of which the notebook defines the most exercises; all units if it defines none.

    A notebook may define a few functions of an earlier unit besides its own. Prints the problems.
    """
    for line in problems:
        print(line)
    defined = [sum(callable(names.get(exercise)) for exercise in unit.exercises) for unit in units]
    return [unit for unit, many in zip(units, defined, strict=True) if many == max(defined)]


def _check_one(
    names: dict[str, Any], unit: UnitData, exercise: str, facade: Path, *, more: bool, repair: bool
) -> float:
    try:
        with new_notebook_state():
            found = _outcome(names, unit, exercise)
            found.has_questions = exercise in unit.section(STEPS)
            if wrong := _wrong_answers_used(names, unit, found):
                found.uses_wrong, found.mistakes = wrong, CommonMistakes()
            elif found.can_be_located:
                aspects = [(one.aspect, one.details) for one in found.tried if one.details]
                aspects.sort(key=lambda one: IMPORTANCE.index(one[0]))
                found.line_message, found.line_aspect = located_fault(
                    names, exercise, unit.path, aspects, is_wrong=found.goes_wrong
                )
            if repair:
                from .repair import repair_message  # few checks need it

                found.repair_message = repair_message(names, unit, found, facade, more=more)
    except KeyboardInterrupt:
        print(_INTERRUPTED)
        return 0.0
    return show_account(found, stale_warning(names, exercise), facade.stem, more=more)


def _outcome(names: dict[str, Any], unit: UnitData, exercise: str) -> Outcome:
    return run_examples(names, exercise, examples_of(unit, exercise), unit.of(MISTAKES, exercise, []))


def _wrong_answers_used(names: dict[str, Any], unit: UnitData, found: Outcome) -> list[str]:
    """Return the other exercises whose answers a wrong answer uses, if they are wrong, too, as grading does."""
    if found.whole or found.missing or found.calls:
        return []
    from ..tracing.definitions import used_answers  # only wrong answers need it

    used = used_answers(found.exercise, [("", _cell_of(names.get(found.exercise)))], unit.exercises)
    earlier = unit.exercises[: unit.exercises.index(found.exercise)]
    return sorted(name for name in used.intersection(earlier) if not _outcome(names, unit, name).whole)


def _check_all(names: dict[str, Any], units: list[UnitData]) -> None:
    try:
        with new_notebook_state():
            outcomes = [_outcome(names, unit, exercise) for unit in units for exercise in unit.exercises]
    except KeyboardInterrupt:
        print(_INTERRUPTED)
        return
    show_summary(outcomes, {name: points for unit in units for name, points in unit.written.items()})


_INTERRUPTED = "The check was interrupted, so it says nothing. Run its cell again when you like."


def _hunted(units: list[UnitData]) -> dict[str, Any]:
    """Return the bug hunts of the units' exercises, by the name of the function."""
    return {
        hunt["of"]: hunt for unit in units for name in unit.exercises for hunt in hunts(unit.section(EXAMPLES)[name])
    }


def examples_of(unit: UnitData, exercise: str) -> dict[str, Any]:
    """Return an exercise's examples; those of a bug hunt include the examples of the student's own function."""
    of: dict[str, Any] = unit.of(EXAMPLES, exercise)
    for one in of["examples"]:
        for variant in one.keys() & {"steps", "unbiased"}:
            one[variant] = expand_steps(one[variant])
    for hunt in hunts(of):
        hunt["examples"] = examples_of(unit, hunt["of"])["examples"]
    return of


_first_checked: dict[str, tuple[str, float]] = {}
"""By exercise, the text of the cell that was checked last, and the time of its first check."""


def stale_warning(names: dict[str, Any], exercise: str) -> str:
    """Return a warning if the answer's cell was changed since it was run; empty if it was not, or if that is unknown.

    names: the notebook's global names.
    """
    checked = _cell_of(names.get(exercise))
    if not checked:
        return ""
    definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(exercise)}\b", re.M)
    run = [text for text in names.get("In", ()) if isinstance(text, str) and definition.search(text)]
    if run and run[-1].strip() != checked and checked in [text.strip() for text in run]:
        return (
            f"When its cell was run last, it ended in an error before `{exercise}` was defined. "
            "The earlier version is tried here."
        )
    text, since = _first_checked.get(exercise, ("", 0.0))
    if text != checked:
        _first_checked[exercise] = checked, time.time()
        return ""
    saved = _saved(names, exercise, since)
    if saved and saved != checked:
        return "Its cell has changed since it was run: run it again, then this check."
    return ""


def _cell_of(thing: Any) -> str:
    """Return the text of the cell that defined a function or class."""
    file = code_file(thing)
    return "".join(linecache.getlines(file)).strip() if file else ""


def _saved(names: dict[str, Any], exercise: str, since: float) -> str:
    """Return the cell's text in the notebook's file, if the file was saved after `since`."""
    path = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    try:
        file = Path(str(path))
        if not path or file.stat().st_mtime <= since:
            return ""
        cells = json.loads(file.read_text())["cells"]
        found = [one for one in cells if one["metadata"].get("nbgrader", {}).get("grade_id") == exercise]
        return "".join(found[0]["source"]).strip() if found else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
