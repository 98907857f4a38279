"""Graders of bug hunts: the answer returns an input on which a known misconception's result differs from the right one.

    @contracts.exercise("hunt_merge_heads", forbids=())
    class TestHuntMergeHeads(contracts.Graders):
        test_they_differ = hunt(
            "On your input, the wrong merge_heads must give a different result from the right one.",
            Hunt(of="merge_heads", mistake="merged_without_swapping", takes=("x: b h T hd",)),
        )

The wrong function is the misconception in the catalogue. Many inputs are right, so the transcript of an answer contains
only the way in which it fails, not its numbers.
"""

import ast
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from .. import catalogue
from ..core.comparison import Mismatch, describe
from ..core.constructed_answers import CounterexampleTarget, PackedFunction, judge_input, packed_function
from ..course import content
from ..graders.collection import HiddenTest
from ..graders.contracts import Graders, Method, points
from ..graders.proxy import Cases, Reference, StudentProxy


class NoHunt(ValueError):
    """Raised if the misconception of a bug hunt does not exist or cannot be released; `str()` says why."""


@dataclass(frozen=True)
class Hunt(CounterexampleTarget):
    """The subject of a bug hunt: a function, the inputs it takes, and the misconception that makes it wrong."""

    mistake: str = ""

    def wrong(self, unit: str) -> catalogue.Candidate:
        """Return the misconception from the unit's catalogue; raises NoHunt."""
        found = catalogue.misconceptions(unit).get(self.mistake)
        if found is None or found.exercise != self.of:
            raise NoHunt(
                f"A bug hunt needs the mistake `{self.mistake}` of `{self.of}`, which is not in "
                f"autograder/misconceptions/{unit}/."
            )
        return found

    def packed(self, unit: str) -> PackedFunction:
        """Return the wrong function, packed for the release; raises NoHunt if it uses a name that students lack."""
        code = self.wrong(unit).source()
        imports: dict[str, str] = {}
        around = {**content.notebook(), **content.solutions(unit)}
        for name in sorted({node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}):
            known = around.get(name)
            if isinstance(known, ModuleType):
                imports[name] = known.__name__
            elif known is not None and name != self.of:
                raise NoHunt(
                    f"The code of `{self.mistake}` uses `{name}`; in a bug hunt it may use only imported modules."
                )
        return packed_function(code, imports)

    def released(self, unit: str) -> dict[str, Any]:
        """Return the data about this bug hunt that the student check needs, as JSON objects; raises NoHunt."""
        about = {name: value for name, value in asdict(self).items() if name != "mistake" and value not in ((), "")}
        return {**about, "wrong": dict(self.packed(unit))}


def hunt_of(test: HiddenTest) -> Hunt | None:
    """Return the bug hunt that a hidden test grades; None for other hidden tests."""
    return test.hunted if isinstance(test.hunted, Hunt) else None


def hunt(statement: str, hunted: Hunt, *, weight: float = 2) -> Method:
    """Return the hidden test of a bug hunt, for a grader's class. statement: the text that students read."""

    def grader(self: Graders, student: StudentProxy, reference: Reference, rng: Cases) -> None:
        unit = type(self).__module__.split(".")[1]
        wrong = hunted.wrong(unit)
        right: Callable[..., Any] = content.solutions(unit)[hunted.of]
        with student.by_chance() as note:  # the transcript gets only the note, not the numbers
            given = self.callee(student)()
            shown = judge_input(given, hunted, wrong.answer, right, describe, f"The right `{hunted.of}`")
            note(shown.why)
        if shown.problem:
            raise Mismatch(shown.problem)

    grader.__doc__ = statement
    grader.hunted = hunted  # type: ignore[attr-defined]
    return points(weight, public=True)(grader)
