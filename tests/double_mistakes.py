"""Diagnoses of answers with two known mistakes: `python -m tests.double_mistakes PAIRS [SEED]` prints a JSON object.

The pairs are drawn from every exercise in turn, as long as it has any. If PAIRS is less than the number of exercises,
they come from PAIRS exercises all over the course. A further half as many are pairs of edits of different codes.
There an edit is often not possible, or makes another mistake, and nothing is diagnosed.
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
from autograder.catalogue import Candidate, can_be_combined, combined, moved
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner, Finding, candidate_bench
from autograder.report import Diagnosis

Pair = tuple[Candidate, Candidate]


def drawn(number: int, seed: int, *, of_one_code: bool) -> Iterator[tuple[str, Pair]]:
    """Yield at most `number` pairs that run together, each with its unit: one of each exercise, then another of each.

    of_one_code: whether the two are edits of the same code.
    """
    draw = random.Random(seed)
    known = [of_exercise for unit in course.unit_names() for of_exercise in _known(unit)]
    if not of_one_code:
        known = [of_exercise for of_exercise in known if len({one.code.base for one in of_exercise}) > 1]
    if number < len(known):
        known = [known[place * len(known) // number] for place in range(number)]
    of_each: list[list[tuple[str, Pair]]] = []
    for of_exercise in known:
        pairs = [
            (pair[0].code.unit, pair)
            for pair in itertools.combinations(of_exercise, 2)
            if can_be_combined(*pair) and of_one_code == (not moved(*pair))
        ]
        of_each.append(draw.sample(pairs, len(pairs)))
    in_turn = (one for row in itertools.zip_longest(*of_each) for one in row)
    yield from itertools.islice((one for one in in_turn if one is not None and _is_code(one[1])), number)


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
        finding = _finding(examiner, unit, combined(*pair))
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


def _is_code(pair: Pair) -> bool:
    try:
        _ = combined(*pair).answer
    except Exception:
        return False
    return True


if __name__ == "__main__":
    torch.set_num_threads(1)
    number, seed, told_of = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, dict[str, object]()
    with contextlib.redirect_stdout(io.StringIO()):
        examiner = Examiner(collect())
        for name, pairs in {
            "of one code": drawn(number, seed, of_one_code=True),
            "of two": drawn(number // 2, seed, of_one_code=False),
        }.items():
            found, mistaken, took = outcomes(examiner, pairs)
            told_of[name] = {"told": found, "wrong": mistaken, "seconds": round(took, 1)}
    print(json.dumps(told_of))
