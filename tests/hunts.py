"""Return the bug hunts: exercises that take nothing and return an input."""

import inspect

from autograder import catalogue, course


def hunts(unit: str) -> set[str]:
    """The unit's hunts, by name."""
    solutions = catalogue.solutions(unit)
    functions = [one.name for one in course.unit(unit).exercises if inspect.isfunction(solutions[one.name].answer)]
    return {name for name in functions if not inspect.signature(solutions[name].answer).parameters}
