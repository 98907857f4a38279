"""`check("name", repair=True)`: the line at which one change of the student's code makes all examples pass."""

import io
import linecache
import os
import re
import shutil
import signal
import sys
import threading
import time
import zipfile
from contextlib import redirect_stdout

import psutil
import pytest
import torch

from autograder import catalogue
from autograder.build.release_files import zipped_modules
from autograder.student_check.check import StudentCheck
from autograder.student_check.repair import COMPLETE, describe_repairs
from autograder.student_check.unit_data import SHOW_REPAIR, data_file, data_of, read_unit
from tests import RELEASE
from tests.grading.test_repair import REPAIRED
from tests.student_check.test_student_check import HEADER
from tests.typed import stored

UNIT, EXERCISE = "self_attention", "scaled_softmax"
ANSWERS = {file.stem.rpartition("__")[2]: file for file in REPAIRED}
FOUND = "makes all examples pass"


def cell(text, name):
    """Code with a text, as a kernel keeps it."""
    file = f"/tmp/ipykernel_1/{name}_{len(linecache.cache)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


def notebook(unit=UNIT, folder=None, **typed):
    """The names of a notebook with these answers and the solutions of all other exercises, each in its cell."""
    names = {
        "__name__": "__main__",
        "check": StudentCheck((folder or RELEASE / unit) / "attention_check.py", lambda: True).check,
    }
    exec(HEADER, names)
    for name, solution in catalogue.solutions(unit).items():
        exec(cell(typed.get(name) or f"{solution.source()}\n", name), names)
    return names


def check(names, exercise=EXERCISE, **options):
    """Return the check's text and the score."""
    with redirect_stdout(io.StringIO()) as printed:
        score = eval("check(exercise, **options)", names, {"exercise": exercise, "options": options})
    return printed.getvalue(), score


def answer(name, folder=None):
    """The notebook with an answer of tests/answers/repaired, its exercise and its code."""
    unit, exercise, _ = ANSWERS[name].stem.split("__")
    code = ANSWERS[name].read_text()
    return notebook(unit, folder, **{exercise: code}), exercise, code


@pytest.mark.parametrize("name", ["ca_w3", "kv_swapped_first", "sd_w1"])
def test_the_line_is_a_wrong_one(name):
    names, exercise, code = answer(name)
    before = check(names, exercise)
    printed, score = check(names, exercise, repair=True)
    wrong = code.splitlines()[0].removeprefix("# line: ").split(" ;; ")
    (line,) = re.findall(rf"One change in line (\d+) {FOUND}", printed)
    assert code.splitlines()[int(line) - 1].strip() in wrong
    assert score == before[1]
    assert len(printed.splitlines()) <= 15


def test_the_kind_is_said_on_request_and_the_change_only_if_the_course_shows_it(tmp_path):
    folder = shutil.copytree(RELEASE / UNIT, tmp_path / "homework")
    data = folder / data_file(UNIT)
    names, exercise, _ = answer("as_w2", folder)
    short, _ = check(names, exercise, repair=True)
    long, _ = check(names, exercise, repair=True, more=True)
    assert f"One change in line 3 {FOUND}" in short
    assert f"One change in line 3 (an equation) {FOUND}" in long
    assert f'check("{exercise}", repair=True, more=True)' in short
    assert "->..." not in short + long  # of the right equation
    data.write_bytes(data_of({**read_unit(data), SHOW_REPAIR: True}))
    shown, _ = check(names, exercise, repair=True)
    assert 'Line 3: `return torch.einsum("bqd,bkd->bqk", queries, keys)` -> `return torch.einsum(' in shown
    assert "->..." in shown


def test_the_search_is_offered_only_if_nothing_explains_what_fails():
    offer = 'Which line? check("{}", repair=True)'
    names, exercise, _ = answer("kv_swapped_first")
    assert check(names, exercise)[0].splitlines()[-1] == offer.format(exercise)
    assert check(names, exercise, more=True)[0].splitlines()[-1] != offer.format(exercise)
    known = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k, dim=-1)\n"
    for code in (known, None):
        assert "Which line?" not in check(notebook(scaled_softmax=code))[0]


def test_what_is_known_already_stays():
    code = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k, dim=-1)\n"
    printed, _ = check(notebook(scaled_softmax=code), repair=True)
    assert "A common mistake looks just like this" in printed
    assert f"One change in line 2 {FOUND}" in printed


NOT_TRIED = stored("not_repaired")


@pytest.mark.parametrize("what", NOT_TRIED)
def test_only_code_of_known_names_is_tried(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    body, reason = NOT_TRIED[what]
    names = notebook(scaled_softmax=f"def scaled_softmax(scores, d_k):\n    {body}\n")
    exec(cell("from math import exp as power\nsum = again = lambda scores: scores\n", "other"), names)
    printed, _ = check(names, repair=True)
    assert f"No change was tried: {reason}" in printed


def test_helpers_of_the_same_cell_and_other_answers_are_tried():
    helper = "def power(d_k):\n    return d_k ** 2\n\n\ndef scaled_softmax(scores, d_k):\n"
    helper += "    return torch.softmax(scores / power(d_k), dim=-1)\n"
    printed, _ = check(notebook(scaled_softmax=helper), repair=True)
    assert f"One change in line 2 {FOUND}" in printed
    uses = "def scaled_dot_product_attention(queries, keys, values):\n"
    uses += "    weights = scaled_softmax(attention_scores(queries, keys), queries.shape[-1])\n"
    uses += "    return values @ weights\n"
    printed, _ = check(notebook(scaled_dot_product_attention=uses), "scaled_dot_product_attention", repair=True)
    assert f"One change in line 3 {FOUND}" in printed


def test_what_an_answer_keeps_from_the_check_is_no_part_of_it():
    names, exercise, _ = answer("kv_class_list")
    check(names, exercise)
    assert f"One change in lines 3, 4 and 7 {FOUND}" in check(names, exercise, repair=True)[0]


def test_the_notebook_stays_as_it_is():
    code = "def scaled_softmax(scores, d_k, seen=[]):\n    seen.append(d_k)\n    torch.seen = seen\n"
    code += "    torch.manual_seed(len(seen))\n    return torch.softmax(scores / d_k, dim=-1)\n"
    names = notebook(scaled_softmax=code)
    check(names)
    tried = len(names["scaled_softmax"].__defaults__[0])
    before = dict(names), dict(vars(torch)), torch.get_rng_state(), set(sys.modules)
    printed, _ = check(names, repair=True)
    assert f"One change in line 5 {FOUND}" in printed
    assert len(names["scaled_softmax"].__defaults__[0]) == 2 * tried
    assert (names, vars(torch)) == before[:2]
    assert torch.get_rng_state().equal(before[2])
    new = {name for name in set(sys.modules) - before[3] if "autograder" not in name}
    del torch.seen
    assert not new


def test_changes_that_never_end_or_take_all_memory_are_only_left_out():
    loop = "    n = 0\n    while n < 3:\n        n += 1\n    room = torch.empty(n, 10**7)\n"
    code = f"def scaled_softmax(scores, d_k):\n{loop}    return torch.softmax(scores / d_k ** 2, dim=-1)\n"
    assert f"One change in line 6 {FOUND}" in check(notebook(scaled_softmax=code), repair=True)[0]


def test_an_interrupt_ends_the_search():
    code = "def scaled_softmax(scores, d_k):\n    return scores.new_ones(3)  # no other test searches this\n"
    names = notebook(scaled_softmax=code)
    before = set(psutil.Process().children())

    def interrupt_once_it_searches():
        while not any(one.cpu_times().user > 0.1 for one in set(psutil.Process().children()) - before):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_once_it_searches, daemon=True).start()
    printed, score = check(names, repair=True)
    assert (printed, score) == (
        "The check was interrupted, so it says nothing. Run its cell again when you like.\n",
        0.0,
    )
    assert set(psutil.Process().children()) <= before


def test_what_is_not_repaired_by_one_change_gets_no_line():
    code = "def scaled_softmax(scores, d_k):\n    return scores.new_zeros(3)\n"
    printed, _ = check(notebook(scaled_softmax=code), repair=True)
    assert "o single change was found that makes all examples pass" in printed


def test_a_change_that_calls_what_may_not_be_called_is_left_out():
    code = "def softmax(scores, dim=-1):\n    return torch.sigmoid(scores, dim)\n"
    printed, _ = check(notebook("dot_product_attention", softmax=code), "softmax", repair=True)
    assert "o single change was found that makes all examples pass" in printed


def test_in_a_hunt_no_change_is_tried():
    hunt = "hunt_merge_heads"
    printed, _ = check(
        notebook("multi_head_attention", **{hunt: f"def {hunt}():\n    return torch.zeros(1, 1, 1, 1)\n"}),
        hunt,
        repair=True,
    )
    assert "No change was tried: the answer to a hunt is an input" in printed


def repair(*lines, subject="a number"):
    return {"lines": list(lines), "subject": subject, "changes": [[line, "old", "new"] for line in lines]}


@pytest.mark.parametrize(
    ("repairs", "message"),
    [
        ([repair(12), repair(12, 15)], f"One change in line 12 (a number) {FOUND}."),
        ([repair(3, 4, 5)], f"One change in lines 3, 4 and 5 (a number) {FOUND}."),
        (
            [repair(9, subject="a name"), repair(4), repair(9)],
            f"A change in line 4 (a number), or one in line 9 (a name or a number), {FOUND}, so no line is "
            "certain to be the wrong one.",
        ),
        ([repair(line) for line in range(4)], "Changes in many lines each make all examples pass"),
    ],
)
def test_several_repairs_in_words(repairs, message):
    assert describe_repairs([*repairs, COMPLETE], more=True, shows_repair=False).startswith(message)


def test_a_search_that_ends_with_its_time_says_so():
    words = [describe_repairs(repairs, more=False, shows_repair=False) for repairs in ([], [repair(12)])]
    assert words == [
        "No single change that makes all examples pass was found within the time limit.",
        "One change in line 12 makes all examples pass; changes of other lines were not all tried.",
    ]


def test_what_is_released_holds_no_inverse_of_a_known_mistake():
    with zipfile.ZipFile(io.BytesIO(zipped_modules())) as archive:
        names = archive.namelist()
    assert "autograder/tracing/repair_operators.py" in names
    assert [name for name in names if "inverse" in name or "catalogue" in name] == []
