"""What is right where nothing is dropped: so that in the released check dropout is not blamed for the rest."""

from typing import Any

from ..course import content
from ..handout.known import sums
from ..handout.trial import Call, Trial
from ..handout.tried import as_in_a_new_notebook

_DIGITS = 4


def with_the_right_sums(unit: str, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps; those that ask for a module's result in evaluation with the shape and the sums of the solution's."""
    trial, found = Trial(content.solutions(unit)), list[dict[str, Any]]()
    with as_in_a_new_notebook():
        for step in steps:
            call = trial.take(step)
            if isinstance(call, Call) and step.get("whole") == "evaluation":
                right = {
                    "shape": list(call.whole.shape),
                    "sums": [round(number, _DIGITS) for number in sums(call.whole)],
                }
                step = {**step, "dropped": {**step["dropped"], "evaluation": right}}
            found.append(step)
    return found
