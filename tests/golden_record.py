"""The golden record in tests/golden, as the tests read it."""

import re
from functools import cache

from autograder.catalogue import Candidate, mutation_report
from tests import REPOSITORY


@cache
def _lines(unit: str) -> dict[tuple[str, str], tuple[str, str]]:
    """The two parts of each line, by exercise and answer."""
    lines = (REPOSITORY / mutation_report.FOLDER / f"{unit}.txt").read_text().splitlines()
    parts = [line.partition(mutation_report.CHECK) for line in lines]
    return {
        (words[0], words[1]): (graded, f"{check}{said}") for graded, check, said in parts if (words := graded.split())
    }


def answers(unit: str) -> list[tuple[str, str]]:
    """Exercise and answer of each line."""
    return list(_lines(unit))


def graded(unit: str, answer: Candidate) -> str:
    """Report on a known answer when the record was written."""
    return _lines(unit)[mutation_report.name_of(answer)][0]


def checked(unit: str, answer: Candidate) -> str:
    """Output of the student check on the answer."""
    return _lines(unit)[mutation_report.name_of(answer)][1]


def letters(unit: str) -> list[tuple[str, str]]:
    """The outcomes of each answer's hidden tests, as grading and as the student check have them."""
    lines = [(graded.split(), check.split()) for graded, check in _lines(unit).values()]
    return [(graded[3], check[2]) for graded, check in lines]


def whole(unit: str, answer: Candidate) -> str:
    """The report on a known answer, and what the student check printed, when the record was written."""
    text = (REPOSITORY / mutation_report.FOLDER / "whole" / f"{unit}.txt").read_text()
    heading = f"# {' '.join(mutation_report.name_of(answer))}\n"
    (found,) = [part for part in re.split(r"(?m)^(?=# )", text) if part.startswith(heading)]
    return found.removesuffix("\n")
