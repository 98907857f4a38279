"""`python -m tests.fuzz.slow SECONDS [TARGET ...]`: searches for texts that take long, led by the CPU time they take.

The slowest that is found for each target is kept in tests/fuzz/corpus/slow/. tests/course/test_slow_input.py replays
it. Formatting is ended at its limit, so there a slow text is no fault; on the trusted side it is one.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat

from autograder.course import notebook
from autograder.course.nodes import truncate_for_page
from autograder.formatting.client import Formatter, Kind, PageFormatter
from autograder.formatting.rendering import LONGEST_CELL
from autograder.gradebook.clean_notebook import clean
from autograder.grading.messages import without_folders
from autograder.reports.pages import printed
from autograder.sandbox.limits import PageLimits

CORPUS = Path(__file__).parent / "corpus" / "slow"
UNIT = "dot_product_attention"

_PIECES = {
    "markdown": (
        "* ** _ ` ``` ~~~ [ ] ( ) ![ ](  < > &amp; \\ | - + # 1. > \n \n\n $ $$ \\( \\begin{a} \\end{a} "
        "http://a.b <!-- a@b.c [a]: ]: a ."
    ),
    "formulas": (
        "{ } ^ _ \\frac \\sqrt[ \\left( \\right) & \\\\ \\begin{matrix} \\end{matrix} \\text{ a 1 ' \\overset \\hline"
    ),
    "code": "' \" ''' \"\"\" f' rb' { } ( \\ \n # % %% ! ? @ def class 0x 1_ 1e a . : \t  \x00 lambda",
    "printed": "\x1b[ \x1b[31m \x1b[38;2; 1; ; m \x1b ] a \n \r",
    "paths": "/ a . ~ : \\ ' \" ( ) /usr/ \n  <",
    "notebooks": '\n a \x1b < " \\ # \u2028 é 😀',
}
_PIECES["names"] = _PIECES["code"] + " \\' \\\""
TARGETS = tuple(_PIECES)
_LONGEST = {"names": notebook.MAX_CHARACTERS, "paths": 100_000, "notebooks": 2_000_000}
_SEARCH_LIMITS = PageLimits(cell_cpu_seconds=5, page_cpu_seconds=5, page_wall_seconds=30)


class Cost:
    """Cost of a text for a target, in CPU seconds."""

    def __init__(self, formatter: Formatter) -> None:
        self._formatter = formatter

    def of(self, target: str, text: str) -> float:
        kinds: dict[str, Kind] = {"markdown": "markdown", "formulas": "markdown", "code": "code"}
        if target in kinds:
            limits = self._formatter.limits
            asked = f"${text[:1990]}$" if target == "formulas" else text
            answer = self._formatter.format(
                kinds[target], asked, cpu_seconds=limits.cell_cpu_seconds, wall_seconds=limits.page_wall_seconds
            )
            return answer.cpu_seconds
        begun = time.process_time()
        TRUSTED[target](text)
        return time.process_time() - begun


def _paths(text: str) -> None:
    without_folders(text)


def _names(text: str) -> None:
    cell = notebook.CodeCell("a", text, None)
    cell.defines(" ".join(cell.names))


def _printed(text: str) -> None:
    printed(text)


def _notebooks(text: str) -> None:
    """From the file to what is kept and shown of it."""
    cells = [{"cell_type": kind, "metadata": {}, "source": text} for kind in ("raw", "markdown", "code")]
    node = clean(notebook.parse(json.dumps({"nbformat": 4, "cells": cells}).encode()), UNIT)
    nbformat.v4.reads(nbformat.v4.writes(node))
    truncate_for_page(node)
    with Formatter(PageLimits(), "none", trust_submissions=False) as nobody:  # as where nothing can be formatted
        page = PageFormatter(nobody)
        for cell in node.cells:
            page.raw(cell.source)
            page.markdown(cell.source)
            page.code(cell.source)
            printed(cell.source)


TRUSTED: dict[str, Callable[[str], None]] = {
    "names": _names,
    "printed": _printed,
    "paths": _paths,
    "notebooks": _notebooks,
}


def kept(target: str) -> list[str]:
    """The slow texts that were found before."""
    return [path.read_bytes().decode() for path in sorted(CORPUS.glob(f"{target}-*"))]


def search(cost: Cost, target: str, seconds: float, chance: random.Random) -> tuple[float, str]:
    """The slowest text that is found, and its cost. Pieces are repeated, nested and put together."""
    pieces = [piece for piece in _PIECES[target].split(" ") if piece] + [" "]
    longest = _LONGEST.get(target, LONGEST_CELL)
    best = [(cost.of(target, text), text) for text in kept(target)] or [(0.0, "a")]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = _another(chance, chance.choice(best)[1], pieces)[:longest]
        best.append((cost.of(target, text), text))
        best.sort(key=lambda found: found[0] / (1000 + len(found[1])), reverse=True)
        del best[8:]
    return max(best)


def _another(chance: random.Random, text: str, pieces: list[str]) -> str:
    few = "".join(chance.choices(pieces, k=chance.randint(1, 4)))
    place = chance.randint(0, len(text))
    match chance.randrange(5):
        case 0:
            return few * chance.choice([10, 100, 1000, 5000])
        case 1:
            return few * (n := chance.choice([10, 100, 1000])) + "".join(chance.choices(pieces, k=2)) * n
        case 2:
            return text[:place] + few + text[place:]
        case 3:
            end = chance.randint(place, len(text))
            return text[:place] + text[place:end] * chance.choice([2, 10, 100]) + text[end:]
        case _:
            return few + text * chance.choice([1, 2, 3])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.slow", description=__doc__)
    parser.add_argument("seconds", type=float, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    arguments = parser.parse_args()
    CORPUS.mkdir(exist_ok=True)
    with Formatter(_SEARCH_LIMITS, "best", trust_submissions=False) as formatter:
        cost = Cost(formatter)
        for target in arguments.targets or TARGETS:
            slowest, text = search(cost, target, arguments.seconds, random.Random(time.time_ns()))
            if len(text) <= 1 << 17:
                for path in CORPUS.glob(f"{target}-*"):
                    path.unlink()
                (CORPUS / f"{target}-slowest").write_bytes(text.encode())
            print(f"{target}: {slowest:.2f} CPU s for {len(text)} characters, {text[:60]!r}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
