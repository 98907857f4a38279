"""A diagnosis by explained tests names the mistakes that explain the tests an answer fails, and never a wrong one."""

from dataclasses import replace

from autograder.catalogue import Candidate
from autograder.catalogue.diagnosis import diagnose_by_tests
from autograder.catalogue.transcript import Behaviour, Misconception, Trace
from autograder.core.arguments import Arguments
from autograder.core.operations import Call
from autograder.graders.backend import Event
from autograder.report import Diagnosis

TESTS = tuple(f"test_{number}" for number in range(12))


def transcript(shown):
    """The traces of an answer that shows these numbers in the tests named; elsewhere it is right and shows 0."""
    for name in TESTS:
        number = shown.get(name, 0)
        event = Event(Call("f", Arguments((), {})), number)
        yield Trace(name, "failed" if number else "passed", (event,), [1, float(number)] if number else [])


def shows(number, *places):
    return dict.fromkeys((TESTS[place] for place in places), number)


def mistake(name, shown, sentence=""):
    entry = Candidate("f", name, sentence or f"{name}.", None, "value", caught_by=min(shown, key=TESTS.index))
    return Misconception(
        entry, Behaviour(lambda: transcript(shown), lambda question: question.answered(tuple(transcript(shown))))
    )


def found(shown, *mistakes):
    diagnosis = diagnose_by_tests(tuple(transcript(shown)), mistakes, ())
    return diagnosis and (diagnosis.names, diagnosis.is_partial)


HALF, TAIL = shows(3, 0, 1, 2), shows(5, 9, 10)


def test_a_mistake_explains_the_tests_that_it_fails_and_more_is_wrong():
    assert found({**HALF, "test_7": 1}, mistake("half", HALF), mistake("tail", TAIL)) == ("half", True)


def test_two_mistakes_in_different_tests_are_named_together():
    assert found({**HALF, **TAIL}, mistake("tail", TAIL), mistake("half", HALF)) == ("half + tail", False)


def test_other_numbers_have_no_diagnosis():
    assert found(shows(4, 0, 1, 2), mistake("half", HALF)) is None
    assert found({**HALF, "test_1": 4}, mistake("half", HALF)) is None


def test_a_second_mistake_may_change_what_some_of_many_tests_show():
    many = shows(3, *range(8))
    assert found({**many, "test_7": 4}, mistake("many", many)) == ("many", True)
    assert found({**many, **shows(4, 4, 5, 6, 7)}, mistake("many", many)) is None


def test_of_mistakes_that_explain_the_same_test_none_is_named():
    other = shows(3, 0, 1)
    assert found({**HALF, "test_7": 1}, mistake("half", HALF), mistake("less", other)) == ("half", True)
    both = {**HALF, **shows(3, 3)}
    across = shows(3, 2, 3)
    assert found({**both, "test_7": 1}, mistake("half", HALF), mistake("across", across)) is None
    same = [mistake(name, shown, "The same.") for name, shown in (("half", HALF), ("across", across))]
    assert found({**both, "test_7": 1}, *same) == ("half", True)


def test_a_single_test_explains_only_what_is_explained_whole():
    one = mistake("one", shows(2, 11))
    assert found({**HALF, **shows(2, 11)}, mistake("half", HALF), one) == ("half + one", False)
    assert found({**HALF, **shows(2, 11), "test_7": 1}, mistake("half", HALF), one) == ("half", True)
    assert found({**shows(2, 11), "test_7": 1}, one) is None


def test_a_mistake_is_not_named_if_the_answer_may_be_another():
    """The answer may be `wide`, whose fourth test shows the numbers of a second mistake."""
    wide = mistake("wide", shows(3, 0, 1, 2, 3))
    assert found({**HALF, "test_3": 4}, mistake("half", HALF), wide) is None
    assert found({**HALF, "test_7": 4}, mistake("half", HALF), wide) == ("half", True), "it passes the fourth test"


def with_mistake(shown, signature, events=()):
    """The traces of an answer in which the tests of HALF find something wrong that has this signature."""
    return tuple(
        replace(trace, events=events, mistake=signature) if trace.test in HALF else trace for trace in transcript(shown)
    )


def test_a_mistake_is_named_if_the_tests_find_the_same_wrong():
    """The answer shows other events than the mistake, such as a gradient more."""
    half = mistake("half", HALF)
    assert diagnose_by_tests(with_mistake(HALF, [1, 3.0]), [half], ()) == Diagnosis("half", "half.")
    assert diagnose_by_tests(with_mistake(HALF, [1, 4.0]), [half], ()) is None


def test_results_without_a_number_explain_all_failed_tests_or_none():
    half, (event,) = mistake("half", HALF), next(transcript(HALF)).events
    assert diagnose_by_tests(with_mistake(HALF, [1, 0.0], (event,)), [half], ()) == Diagnosis("half", "half.")
    assert diagnose_by_tests(with_mistake({**HALF, "test_7": 1}, [1, 0.0], (event,)), [half], ()) is None
