"""The proof of the graders: every known mistake is caught where it should be and named, no right answer is refused.

Each run tries the part in `sampling`; `pytest --every` tries all, and the committed page has what came of that.
"""

from collections import Counter
from functools import cache

import pytest

from autograder import catalogue, course
from autograder.catalogue import mutation_report
from autograder.catalogue.mutation_report import (
    Outcome,
    check_verdict,
    entries,
    is_whole,
    name_of,
    outcome,
    outcome_line,
    whole,
)
from autograder.pool.grading_pool import GradingProcess
from autograder.student_check.unit_data import EXAMPLES
from tests import REPOSITORY, golden_record, released_data, sampling
from tests.hidden_tests import listed

PAGE = REPOSITORY / "docs" / "matrix.md"

ENTRIES = {
    f"{entry.exercise}-{'right-' * (entry.caught_by is None)}{entry.name}": (unit, entry)
    for unit, entry in sampling.part(entries())
}
MISCONCEPTIONS = [key for key, (_, entry) in ENTRIES.items() if entry.caught_by is not None]
RIGHT_ANSWERS = [key for key, (_, entry) in ENTRIES.items() if entry.caught_by is None]


WEIGHTS = {(*one.exercise.split("."), one.name): float(one.weight) for one in listed()}


@pytest.fixture(scope="module")
def examined(grading_process: GradingProcess):
    """Reports on known answers; each is graded once."""
    return cache(lambda key: outcome(grading_process, *ENTRIES[key]))


@pytest.mark.parametrize("key", MISCONCEPTIONS)
def test_misconception_fails_at_its_grader_and_is_named(examined, key):
    found: Outcome = examined(key)
    if found.entry.caught_by == catalogue.FORBIDDEN:
        assert (found.report.status, found.report.score, found.report.diagnosis) == ("forbidden", 0.0, None)
        return
    graders = [test.name for test in found.report.tests]
    assert found.entry.caught_by in graders, f"{found.entry.exercise} has no such grader"
    assert found.entry.caught_by in failed(found), "it passes the grader that should catch it"
    only_tells = WEIGHTS[found.unit, found.entry.exercise, found.entry.caught_by] == 0
    assert (found.is_detected, found.is_advised) == (not only_tells, only_tells)
    assert found.report.diagnosis is not None, "it is caught, and nothing names it"
    assert found.report.diagnosis.name == found.entry.name
    assert found.report.diagnosis.sentence == found.entry.sentence


@pytest.mark.parametrize("key", RIGHT_ANSWERS)
def test_right_answer_gets_full_marks(examined, key):
    found: Outcome = examined(key)
    assert failed(found) == []
    assert (found.report.status, found.report.score) == ("passed", found.report.max_score)
    assert found.report.diagnosis is None


def failed(found: Outcome) -> list[str]:
    return [test.name for test in found.report.tests if test.outcome == "failed"]


@pytest.mark.parametrize("key", ENTRIES)
def test_grading_says_what_the_golden_record_says(examined, key):
    unit, entry = ENTRIES[key]
    assert outcome_line(examined(key)) == golden_record.graded(unit, entry)


def test_reports_and_texts_of_a_few_are_those_of_the_golden_record(examined):
    """Their wording may be changed, and then the record is written again."""
    few = {key: (unit, entry) for key, (unit, entry) in ENTRIES.items() if is_whole(unit, entry)}
    assert few
    for key, (unit, entry) in few.items():
        assert whole(examined(key), check_verdict(unit, entry)) == golden_record.whole(unit, entry)


def test_every_known_answer_is_in_the_golden_record():
    for unit in course.unit_names():
        assert golden_record.answers(unit) == [name_of(entry) for _, entry in entries([unit])]


@pytest.mark.parametrize("unit", course.unit_names())
def test_the_check_and_the_grade_agree_on_the_tests_that_both_try(unit):
    """The examples have other numbers than the hidden tests, which is why single outcomes differ."""
    pairs = [pair for answer in golden_record.letters(unit) for pair in zip(*answer, strict=True) if pair[1] != "?"]
    differ = [pair for pair in pairs if pair in ((".", "F"), ("F", "."))]
    assert len(differ) <= 0.01 * len(pairs)


def test_the_page_is_about_what_is_there_now():
    assert mutation_report.digest_in(PAGE.read_text()) == mutation_report.digest(), (
        "Graders, known answers or what is released have changed since all were tried: run `make search`."
    )


def test_on_the_page_every_mistake_is_caught_and_named():
    rows = {**table("exercise"), **table("kind")}
    wrong = [entry for _, entry in entries() if entry.caught_by is not None]
    assert rows["**all**"][:1] + rows["**all**"][5:6] == [len(wrong), len(entries()) - len(wrong)]
    for kind in catalogue.KINDS:
        assert rows[kind][0] == sum(entry.kind == kind for entry in wrong)
    for name, (mistakes, caught, told, named, wrongly_named, *right) in rows.items():
        assert (caught + told, named, wrongly_named, right[1:]) == (mistakes, mistakes, 0, [0] * len(right[1:])), name


def table(of: str) -> dict[str, list[int]]:
    """The first table of the page with this heading, by the first word of its rows."""
    rows = PAGE.read_text().partition(f"\n| {of} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {name.strip(): list(map(int, numbers)) for _, name, *numbers, _ in (row.split("|") for row in rows)}


def test_the_part_that_is_tried_has_every_exercise_every_grader_every_kind_and_right_answers():
    tried = list(ENTRIES.values())
    assert {one.caught_by for _, one in tried} == {one.caught_by for _, one in entries()}
    wrong = [[(unit, one) for unit, one in of if one.caught_by is not None] for of in (tried, entries())]
    for aspect in ("exercise", "kind"):
        shown = [{(unit, getattr(one, aspect)) for unit, one in of} for of in wrong]
        assert shown[0] == shown[1]
    assert {unit for unit, _ in SAMPLE} == set(UNITS)
    assert {kind for _, kind in SAMPLE} == set(KINDS)
    right = [Counter((unit, one.exercise) for unit, one in of if one.caught_by is None) for of in (tried, entries())]
    most = max(right[1].values()) if sampling.every else sampling.RIGHT_ANSWERS
    assert right[0] == {exercise: min(number, most) for exercise, number in right[1].items()}


# One of every kind of mistake in every unit, the first that is not caught by the rule against library calls; a part of
# them has each kind and each unit.
OF_EACH_KIND = {
    (unit, entry.kind): key
    for key, (unit, entry) in reversed(ENTRIES.items())
    if entry.caught_by not in (None, catalogue.FORBIDDEN)
}
UNITS, KINDS = (sorted({one[place] for one in OF_EACH_KIND}) for place in (0, 1))
_ONE_IN = 8
"""So few that each unit and each kind is in the sample."""
SAMPLE = {
    (unit, kind): key
    for (unit, kind), key in OF_EACH_KIND.items()
    if sampling.every or (UNITS.index(unit) + KINDS.index(kind)) % _ONE_IN == 0
}


@pytest.mark.parametrize("key", SAMPLE.values())
def test_the_same_comes_of_it_through_both_processes(examined, grading_process: GradingProcess, key):
    beside: Outcome = examined(key)
    apart = outcome(grading_process, *ENTRIES[key], "sandboxed")
    assert grading_process.ready.isolation == "A"
    assert (apart.report.status, apart.report.score) == (beside.report.status, beside.report.score)
    assert apart.report.diagnosis == beside.report.diagnosis
    assert apart.is_diagnosed


# What comes back is no tensor but something of a class of the notebook; a parameter is too large to be sent.
SENT_OTHERWISE = {"CacheReturnedToo": "inference", "BlockMaskIsAParameter": "tiny_language_model"}


@pytest.mark.parametrize("name", SENT_OTHERWISE)
def test_what_cannot_be_sent_shows_the_same_in_this_process(grading_process: GradingProcess, name):
    unit = SENT_OTHERWISE[name]
    assert outcome(grading_process, unit, catalogue.misconceptions(unit)[name], "sandboxed").is_diagnosed


def test_a_mistake_is_named_where_a_call_in_little_memory_fails_too(grading_process: GradingProcess):
    """Without a sandbox there is no such call, so the known mistake passes that hidden test in this process."""
    entry = catalogue.misconceptions("efficient_attention")["causal_in_every_tile"]
    here, apart = (outcome(grading_process, "efficient_attention", entry, way) for way in ("in process", "sandboxed"))
    assert failed(apart) != failed(here)
    assert apart.is_diagnosed


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_exercise_has_mistakes_right_answers_and_a_public_example(unit):
    examples = released_data(unit)[EXAMPLES]  # what the build makes
    for exercise in course.unit(unit).exercises:
        assert sum(e.exercise == exercise.name for e in catalogue.misconceptions(unit).values()) >= 3
        assert sum(e.exercise == exercise.name for e in catalogue.right_answers(unit).values()) >= 2
        assert examples[exercise.name]["examples"]
