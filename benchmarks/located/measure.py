"""Prints, by exercise, how often the line of a mistake is found: `python -m benchmarks.located.measure [--held-out]`.

The right answer that was edited is left out of what is known, so that a student's own way is as unknown as it will be.
"""

import argparse
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from autograder.core.run_trace import Run, RunTracer, TracedCall, trace_run
from autograder.course import content
from autograder.grading.reference_trace import reference_trace, trace_cases
from autograder.tracing.fault import LocatedFault
from autograder.tracing.fault_search import locate_fault
from autograder.tracing.reference import Reference, TraceCase, has_same_values

from .edits import EditedAnswer, is_held_out
from .kept import kept

FILE = "cell:edited"


@dataclass(frozen=True)
class Measured:
    """Result of the fault location for one edit."""

    edit: EditedAnswer
    outcome: str
    """located, wrong, silent; `raises` if an error has its own line; `unshown` if no trace case differs."""
    located: LocatedFault | None
    truth: frozenset[int]
    seconds: float
    runs: int = 0


@cache
def cases(unit: str, exercise: str, without: str) -> list[tuple[TraceCase, Reference]]:
    """Return the trace cases with their reference traces; `without`: an answer that no reference trace comes from."""
    cases = trace_cases(unit, exercise)
    found = [(case, reference_trace(unit, case, without=without)) for case in cases]
    return [(case, right) for case, right in found if right is not None]


def defined(unit: str, exercise: str, source: str) -> Any:
    """The answer, as a cell would define it."""
    scope = {**content.notebook(), **content.solutions(unit), "__name__": exercise}
    exec(compile(source, FILE, "exec"), scope)
    return scope[exercise]


def run_of(answer: Any, case: TraceCase, replaced: Mapping[int, torch.Tensor]) -> Run:
    """One run of an answer on a case, as the worker makes it."""
    torch.default_generator.manual_seed(0)
    call = TracedCall(answer, case.arguments, case.built, case.parameters, case.through).run
    return trace_run(call, RunTracer(FILE.__eq__, replaced))


def truth(edit: EditedAnswer, case: TraceCase, run: Run) -> frozenset[int]:
    """The lines that are right to name: the edited one, and the first whose tensor differs from the unedited run's."""
    unedited = run_of(defined(edit.unit, edit.exercise, edit.right), case, {})
    lines = set(edit.lines)
    for one, other in zip(run.made, unedited.made, strict=False):
        if (
            one.line != other.line
            or one.values.shape != other.values.shape
            or not has_same_values(one.values, other.values)
        ):
            return frozenset(lines | {one.line})
    return frozenset(
        lines | {run.made[len(unedited.made)].line}
        if len(run.made) > len(unedited.made)
        else lines | ({run.returned[1]} if run.returned else set())
    )


def _named(found: LocatedFault) -> set[int]:
    """The lines that a student is sent to: of a step that may be missing, also what stands between the two."""
    first, last = found.lines[0], found.lines[-1]
    return {*found.lines, *(range(first, last) if found.kind == "missing" else ())}


def measure(edit: EditedAnswer, *, with_its_own: bool = False) -> Measured:
    """Locate the fault of one edit. with_its_own: reference traces may come from the answer that was edited."""
    began, count = time.process_time(), Counter[str]()
    answer = defined(edit.unit, edit.exercise, edit.source)
    for case, known in cases(edit.unit, edit.exercise, "" if with_its_own else edit.of):
        began = time.process_time()

        def again(replaced: Mapping[int, torch.Tensor], case: TraceCase = case) -> Run:
            count["runs"] += 1
            return run_of(answer, case, replaced)

        run = again({})
        if known.is_right(run):
            continue
        found = locate_fault(known, again)
        took = time.process_time() - began
        lines = truth(edit, case, run)
        kind = "value" if run.error is None else "error"
        what = "silent" if found is None else "located" if lines & _named(found) else "wrong"
        return Measured(edit, f"{kind} {what}", found, lines, took, count["runs"])
    return Measured(edit, "unshown", None, frozenset(), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--with-its-own", action="store_true", help="leave no right answer out of what is known")
    parser.add_argument("--show", default="", help="also the edits of this outcome")
    parser.add_argument("--only", default="", help="one exercise")
    parser.add_argument("--every", type=int, default=1, help="only one edit in this number")
    options = parser.parse_args()
    torch.set_num_threads(1)
    by_exercise: dict[str, Counter[str]] = {}
    seconds, runs, pairs = list[float](), list[int](), 0
    edits = [edit for edit in kept() if is_held_out(edit.exercise) == options.held_out]
    for edit in edits[:: options.every]:
        if options.only not in ("", edit.exercise):
            continue
        found = measure(edit, with_its_own=options.with_its_own)
        by_exercise.setdefault(edit.exercise, Counter())[found.outcome] += 1
        pairs += len(found.located.lines) > 1 if found.located else 0
        seconds.append(found.seconds)
        runs.append(found.runs)
        if found.outcome == options.show:
            print(
                edit.name,
                "truth",
                sorted(found.truth),
                "said",
                found.located
                and (
                    found.located.lines,
                    found.located.kind,
                    found.located.step,
                ),
            )
            for number, line in enumerate(edit.source.splitlines(), 1):
                mark = ">" if number in edit.lines else "*" if found.located and number in found.located.lines else " "
                print("   ", mark, number, line)
    total = Counter[str]()
    for exercise, counts in by_exercise.items():
        print(_row(exercise, counts))
        total += counts
    print(
        _row("all", total),
        f"{pairs} pairs, {sum(seconds) / len(seconds):.3f} s each, {max(seconds):.2f} s at most,"
        f" {sum(runs) / len(runs):.1f} runs",
    )


def _row(name: str, counts: Counter[str]) -> str:
    told = []
    for kind in ("value", "error"):
        three = [counts[f"{kind} {one}"] for one in ("located", "wrong", "silent")]
        shares = [f"{one:4} {one / max(sum(three), 1):6.1%}" for one in three]
        told.append(f"{kind}: located {shares[0]} wrong {shares[1]} silent {shares[2]}")
    return f"{name:30} {'   '.join(told)}   unshown {counts['unshown']:4}"


if __name__ == "__main__":
    main()
