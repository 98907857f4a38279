"""Harmless rewrites of known misconceptions: `python -m benchmarks.rewrites FILE [--seed SEED] [--repairs]`.

Draws misconceptions of all units and rewrites the code of each once. No result and no hidden test's outcome changes.
Then grades each as a submission and counts those that keep their diagnosis. The default seed is the hash of the last
commit. FILE gets a record of each; those that it has already are not graded again. --repairs: search repairs, too.
"""

import argparse
import ast
import difflib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import torch

from autograder import catalogue, course
from autograder.catalogue.candidate import strip_annotations
from autograder.catalogue.mutation_report import table
from autograder.catalogue.transcript import LazyTranscript, Trace
from autograder.core.edit_trials import OverLimit, cpu_limit
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner, Finding, candidate_bench
from autograder.grading.repairs import raised_lines
from autograder.pool.grading_pool import GradingProcess
from tests import REPOSITORY

from .mutants import SECONDS, graded
from .rewrite_operators import KINDS

COUNT, TRIES = 200, 4  # misconceptions, and rewrites of one kind until one is harmless
COLUMNS = ("diagnosed", "located", "lost", "other diagnosis")


def examined(examiner: Examiner, unit: str, exercise: str, source: str) -> Finding | None:
    """Return what the hidden tests find in an answer; None if it cannot be defined, or does not end."""
    candidate = catalogue.Candidate(exercise, exercise, "", catalogue.Code(unit, exercise, source))
    torch.manual_seed(0)
    try:
        with cpu_limit(SECONDS):
            return examiner.examine(unit, exercise, candidate_bench(unit, candidate, watch=True))
    except (Exception, OverLimit):
        return None


def are_alike(one: Finding | None, other: Finding | None) -> bool:
    """Return whether two answers have the same results, errors and outcomes. Gradients and costs may differ."""
    if one is None or other is None or one.library_calls != other.library_calls:
        return False
    return LazyTranscript(iter(one.transcript)).equals(other.transcript, compared=_results)


def _results(trace: Trace) -> Trace:
    shown = [getattr(one.shown, "value", one.shown) for one in trace.events]  # of an observation the value only
    return replace(trace, events=tuple(replace(one, shown=new) for one, new in zip(trace.events, shown, strict=True)))


def edited_lines(wrong: catalogue.Candidate, unit: str) -> set[int]:
    """Return the lines of a misconception that its right code lacks, and those around a line that it lacks."""
    has_edits = isinstance(wrong.code, catalogue.Code) and wrong.code.edits
    base = wrong.code.base if has_edits else strip_annotations(catalogue.solutions(unit)[wrong.exercise].source())
    right, code = (ast.unparse(ast.parse(text)).splitlines() for text in (base, wrong.source()))
    changes = difflib.SequenceMatcher(None, right, code, autojunk=False).get_opcodes()
    places = [(first, end) for change, _, _, first, end in changes if change != "equal"]
    return {line for first, end in places for line in range(first + (end > first), max(end, first + 1) + 1)}


def rewritten(
    examiner: Examiner, unit: str, wrong: catalogue.Candidate, kinds: Sequence[str], draw: Random
) -> dict[str, Any]:
    """Return a record of a rewrite of the first of these kinds that has a harmless one.

    lines: those with code from edited lines. harmful: the kinds of rewrites that changed results, and came before it.
    """
    tree, harmful = ast.parse(wrong.source()), list[str]()
    edited, before = edited_lines(wrong, unit), examined(examiner, unit, wrong.exercise, wrong.source())
    for node in ast.walk(tree):
        node.is_edited = getattr(node, "lineno", 0) in edited  # type: ignore[attr-defined]
    for kind, changed in ((name, one) for name in kinds for one in islice(KINDS[name](tree, draw), TRIES)):
        source = ast.unparse(ast.fix_missing_locations(changed))
        if are_alike(before, examined(examiner, unit, wrong.exercise, source)):
            pairs = zip(ast.walk(changed), ast.walk(ast.parse(source)), strict=False)
            lines = {getattr(now, "lineno", 0) for node, now in pairs if getattr(node, "is_edited", False)}
            of = {"unit": unit, "exercise": wrong.exercise, "of": wrong.name, "mistake": wrong.mistake}
            return {**of, "kind": kind, "source": source, "lines": sorted(lines), "harmful": harmful}
        harmful.append(kind)
    raise ValueError(f"{unit}: no rewrite of {wrong.name} is harmless.")


def rewrites(examiner: Examiner, seed: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield records of rewrites of drawn misconceptions, each of the rarest kind that fits."""
    known = [(unit, one) for unit in course.unit_names() for one in catalogue.misconceptions(unit).values()]
    draw, made = Random(seed), Counter[str]()
    for unit, wrong in draw.sample(known, count):
        kinds = sorted(draw.sample(list(KINDS), len(KINDS)), key=made.__getitem__)
        found = rewritten(examiner, unit, wrong, kinds, draw)
        made[found["kind"]] += 1
        yield found


def reported(process: GradingProcess, one: dict[str, Any], *, repairs: bool) -> dict[str, Any]:
    """Grade a rewrite, and return what is reported."""
    report = graded(process, one["unit"], one["exercise"], one["source"], repairs=repairs)
    known, location = catalogue.misconceptions(one["unit"]), report.whereabouts
    return {
        "diagnosis": [known[mistake.name].mistake for mistake in report.mistakes],
        "reported": location.lines if location else sorted(raised_lines(report)),
        "messages": [*report.mistake_messages, *([location.told] if location else []), report.message],
    }


def outcome(record: dict[str, Any]) -> str:
    """Return the column of a record."""
    if record["diagnosis"]:
        return "diagnosed" if record["mistake"] in record["diagnosis"] else "other diagnosis"
    return "located" if {*record["reported"]} & {*record["lines"]} else "lost"


def main() -> None:
    """Grade the rewrites, and print the lost ones and the table."""
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, text=True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", default=commit.strip())
    parser.add_argument("--repairs", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = [json.loads(line) for line in (options.file.read_text() if options.file.exists() else "").splitlines()]
    drawn = rewrites(Examiner(collect()), options.seed, COUNT)
    with GradingProcess("cpu") as process, options.file.open("a") as out:
        for one in islice(drawn, len(records), None):
            records.append({**one, **reported(process, one, repairs=options.repairs)})
            print(json.dumps(records[-1]), file=out, flush=True)
    for one in records:
        if outcome(one) in COLUMNS[-2:]:
            print(f"{outcome(one)}: {one['unit']} {one['of']}, {one['kind']}", one["source"], sep="\n")
            print(f"edited {one['lines']}, reported {one['reported']}", *one["messages"], "", sep="\n")
    harmful = Counter(kind for one in records for kind in one["harmful"])
    counts = Counter((one["kind"], outcome(one)) for one in records)
    numbers = {kind: [*(counts[kind, column] for column in COLUMNS), harmful[kind]] for kind in KINDS}
    numbers["**all**"] = [sum(column) for column in zip(*numbers.values(), strict=True)]
    print(table(f"seed {options.seed}", [*numbers.items()], (*COLUMNS, "drawn again")))


if __name__ == "__main__":
    main()
