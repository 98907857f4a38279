"""The student check's display: short, in every front end built on IPython, and with a score for Validate."""

import re
import shutil
import textwrap

import pytest
from jupyter_client.manager import start_new_kernel

from autograder import catalogue, course
from autograder.graders.collection import collect
from autograder.grading import public_examples
from autograder.student_check.account import Account, Line, account, account_page, as_text
from autograder.student_check.run_examples import ExampleResult, Outcome, run_examples
from tests import RELEASE, forked_python
from tests.student_check.test_student_check import Notebook

UNIT = "dot_product_attention"
WRONG = "def softmax(scores, dim=-1):\n    return scores.exp() / scores.exp().sum()\n"
IMPORT = "import torch\nfrom attention_check import check\n"
TWO_KINDS = {"text/html", "text/plain"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return shutil.copytree(RELEASE / UNIT, tmp_path_factory.mktemp("student") / "homework")


@pytest.fixture(scope="module")
def kernel(folder):
    """The client of a kernel that runs in a student's folder, with a wrong answer."""
    manager, client = start_new_kernel(cwd=str(folder))
    try:
        assert executed(client, IMPORT + WRONG) == []
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def executed(client, code):
    """The outputs of a cell, as any front end reads them: the kind of each message, and its data."""
    found = []

    def note(message):
        if message["msg_type"] in ("display_data", "execute_result"):
            found.append((message["msg_type"], message["content"]["data"]))
        assert message["msg_type"] != "error", message["content"]

    client.execute_interactive(code, output_hook=note, timeout=60)
    return found


@pytest.mark.parametrize(
    ("code", "times"),
    {
        "check('softmax')": 1,
        "check('softmax');": 1,
        "check('softmax'); check('context_vector')": 2,
        "score = check('softmax')": 1,
        "for name in ('softmax', 'context_vector'): check(name)": 2,
        "check()": 1,
    }.items(),
)
def test_it_is_displayed_wherever_it_is_called(kernel, code, times):
    displayed = [data for kind, data in executed(kernel, code) if kind == "display_data"]
    assert len(displayed) == times
    for data in displayed:
        assert set(data) == TWO_KINDS
        words = re.sub(r"<style>.*?</style>|<[^>]*>", "", data["text/html"], flags=re.DOTALL)
        for word in re.findall(r"[a-z_]{5,}", data["text/plain"].partition("more=True")[0]):
            assert word in words


SHELLS = {
    "a terminal": "from IPython.terminal.interactiveshell import TerminalInteractiveShell as Shell",
    "a subclass, as in Colab": """\
        from ipykernel.zmqshell import ZMQInteractiveShell
        class Shell(ZMQInteractiveShell): pass
        """,
}


@pytest.mark.parametrize("kind", SHELLS)
def test_it_is_displayed_in_other_shells_of_ipython(folder, kind):
    code = f"""
from IPython.utils.capture import capture_output
{textwrap.dedent(SHELLS[kind])}
shell = Shell.instance()
with capture_output() as seen:
    shell.run_cell({IMPORT + WRONG + "check('softmax');"!r})
    for output in seen.outputs:
        print(sorted(output.data), output.data["text/plain"].splitlines()[0])
print(seen.stdout)
"""
    done = forked_python.run(code, folder)
    assert done.returncode == 0, done.stderr
    assert "['text/html', 'text/plain'] softmax is not right yet: " in done.stdout


@pytest.mark.parametrize("unit", course.unit_names())
def test_at_first_there_are_a_verdict_and_one_finding(unit):
    """At most 15 lines, and not what to do."""
    for number, one in enumerate(catalogue.misconceptions(unit).values()):
        if number % 40:
            continue
        notebook = Notebook(unit, **{one.exercise: one.source()})
        printed, _ = notebook.run(f"module.check({one.exercise!r})")
        assert len(printed.splitlines()) <= 15, printed
        assert printed.count("FAILED  ") <= 1
        fix = one.sentence.partition("; ")[2]
        assert not fix or fix not in printed, printed
        if printed.count("FAILED") and f"{one.exercise} is" in printed:
            assert f'check("{one.exercise}", more=True)' in printed
            assert len(notebook.check(one.exercise)[0]) > len(printed)


def test_the_most_important_finding_comes_first():
    """A dtype or a device never hides a wrong value, and an error comes before both."""
    examples = [
        {"statement": "dtype", "steps": [], "property": True},
        {"statement": "value", "steps": []},
        {"statement": "error", "steps": []},
    ]
    found = Outcome("softmax", 3.0)
    kinds = [{"aspect": "dtype"}, {"aspect": "value"}, {"frames": [("softmax", 2, "return x")]}]
    found.tried = [
        ExampleResult(example, problem="wrong", **kind) for example, kind in zip(examples, kinds, strict=True)
    ]
    for expected in ("error", "value", "dtype"):
        assert finding_of(found).statement == expected
        found.tried.pop()


@pytest.mark.parametrize(("error", "order"), [(False, "cbae"), (True, "acbe")], ids=["a wrong value", "an error"])
def test_the_cause_comes_before_the_example_unless_that_is_an_error(error, order):
    line = Line("FAILED", "statement", "problem", frames=["line 2"] if error else [])
    shown = Account("title", "", [line], line, "mistake", ["sentence"], line_message="line is wrong", more="check()")
    places = {"a": "statement", "b": "line is wrong", "c": "mistake", "e": "All examples"}
    for text in (as_text(shown, more=False), account_page(shown, more=False)):
        assert "".join(sorted(places, key=lambda place: text.index(places[place]))) == order


def finding_of(found):
    return account(found, "", "attention_check").finding


def test_a_long_line_and_many_prints_are_cut():
    long = Account(
        "t", "", [Line("FAILED", "s", "p")], Line("FAILED", "s", "p"), line_message="line\n" * 30, more="more"
    )
    assert len(as_text(long, more=False).splitlines()) == 15
    prints = "def softmax(scores, dim=-1):\n    for i in range(50): print('row', i)\n    return scores\n"
    printed, _ = Notebook(UNIT, softmax=prints).check("softmax")
    assert "row 9…" in printed
    assert "row 10" not in printed


def test_points_are_those_of_what_is_tried():
    """Tests without an example are not counted as passed."""
    tests = collect()[UNIT]["softmax"]
    of = {"points": 4, **public_examples.examples_of(UNIT, tests)}
    not_tried = of["examples"].pop()
    weight = sum(test.points for test in tests)
    of["not_tried"] = [{key: not_tried[key] for key in ("statement", "weight", "public")}]
    found = run_examples(Notebook(UNIT).names, "softmax", of, [])
    assert found.earned == found.tried_points == pytest.approx(4 * (1 - not_tried["weight"] / weight), abs=0.005)
    assert found.score == 4
