"""Diagnoses of answers with two known mistakes: `python -m tests.double_mistakes PAIRS [SEED]` prints a JSON object.

The pairs are edits of the same code, drawn from every exercise in turn, as long as it has any. If PAIRS is less than
the number of exercises, they come from PAIRS exercises all over the course.
"""

import contextlib
import io
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import torch

from autograder import catalogue, course
from autograder.catalogue import Candidate, Code
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner, Finding, candidate_bench
from autograder.report import Diagnosis

Pair = tuple[Candidate, Candidate]


def combined(*mistakes: Candidate) -> Candidate | None:
    """Return an answer that makes all of these mistakes; None if they cannot be made in the same code."""
    first = mistakes[0]
    if len({one.code.base for one in mistakes}) > 1:
        return None
    edits = tuple(edit for one in mistakes for edit in one.code.edits)
    code = Code(first.code.unit, first.exercise, first.code.base, edits)
    try:
        _ = code.answer
    except Exception:  # the edits overlap, or are no code together
        return None
    name, sentence = " and ".join(one.name for one in mistakes), " ".join(one.sentence for one in mistakes)
    return Candidate(first.exercise, name, sentence, code, first.kind, first.caught_by)


def drawn(number: int, seed: int) -> Iterator[tuple[str, Pair]]:
    """Yield at most `number` pairs, each with its unit: one of each exercise, then another of each."""
    draw = random.Random(seed)
    known = [of_exercise for unit in course.unit_names() for of_exercise in _known(unit)]
    if number < len(known):
        known = [known[place * len(known) // number] for place in range(number)]
    of_each: list[list[tuple[str, Pair]]] = []
    for of_exercise in known:
        pairs = [(pair[0].code.unit, pair) for pair in itertools.combinations(of_exercise, 2)]
        of_each.append(draw.sample(pairs, len(pairs)))
    in_turn = (one for row in itertools.zip_longest(*of_each) for one in row)
    yield from itertools.islice((one for one in in_turn if one is not None and combined(*one[1])), number)


def _known(unit: str) -> list[list[Candidate]]:
    """The unit's mistakes that are edits, those of each exercise together."""
    edits = [one for one in catalogue.misconceptions(unit).values() if one.code.edits]
    known = [one for one in edits if one.caught_by != catalogue.FORBIDDEN]
    names = [exercise.name for exercise in course.unit(unit).exercises]
    return [[one for one in known if one.exercise == name] for name in names]


def told(diagnosis: Diagnosis | None, pair: Pair, same_as_one: bool) -> str:
    """Return which of the two mistakes are diagnosed, in a word.

    same_as_one: the two together behave like the single mistake that is diagnosed.
    """
    names = {one.name for one in pair}
    if diagnosis is None:
        return "none"
    if diagnosis.beside is None:
        return "one" if diagnosis.name in names else "the same as one" if same_as_one else "wrong"
    return "both" if {diagnosis.name, diagnosis.beside.name} == names else "wrong"


def outcomes(examiner: Examiner, pairs: Iterable[tuple[str, Pair]]) -> tuple[Counter[str], list[str], float]:
    """Return the number of pairs for each word of `told`, the wrong diagnoses, and the CPU seconds of diagnosing."""
    counts, wrong, seconds = Counter[str](), list[str](), 0.0
    for unit, pair in pairs:
        both = combined(*pair)
        assert both is not None
        finding = _finding(examiner, unit, both)
        if all(verdict.outcome == "passed" for verdict in finding.verdicts):
            counts["right"] += 1
            continue
        begun = time.process_time()
        diagnosis = examiner.diagnose(unit, pair[0].exercise, finding)
        seconds += time.process_time() - begun
        outcome = told(diagnosis, pair, diagnosis is not None and _shows(examiner, unit, diagnosis.name, finding))
        counts[outcome] += 1
        if outcome == "wrong" and diagnosis is not None:
            wrong.append(f"{pair[0].name}, {pair[1].name}: {diagnosis.names}")
    return counts, wrong, seconds


def _finding(examiner: Examiner, unit: str, entry: Candidate) -> Finding:
    return examiner.examine(unit, entry.exercise, candidate_bench(unit, entry), entry)


def _shows(examiner: Examiner, unit: str, name: str, finding: Finding) -> bool:
    """Return whether the mistake of this name has the same outcome at every hidden test."""
    other = _finding(examiner, unit, catalogue.misconceptions(unit)[name])
    return [one.outcome for one in other.verdicts] == [one.outcome for one in finding.verdicts]


if __name__ == "__main__":
    torch.set_num_threads(1)
    number, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with contextlib.redirect_stdout(io.StringIO()):
        found, mistaken, took = outcomes(Examiner(collect()), drawn(number, seed))
    print(json.dumps({"told": found, "wrong": mistaken, "seconds": round(took, 1)}))
