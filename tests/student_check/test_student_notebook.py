"""The release as a student uses it: in a real kernel, in a folder of its own, with the check that comes with it."""

import html
import json
import os
import re
import shutil
from functools import cache
from itertools import islice

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbgrader.utils import determine_grade

from autograder import catalogue, course
from autograder.build.release_files import single_file
from autograder.course.cells import filled_in
from autograder.student_check.unit_data import LESSON
from tests import RELEASE, forked_kernel, released_data, sampling
from tests.typed import solution_sources, stored

# A student has torch, numpy, matplotlib and Jupyter; what else is installed here is hidden from the kernel.
OURS_ALONE = """
import sys
class Hidden:
    names = ("autograder", "solutions", "nbgrader", "pytest", "safetensors", "msgspec", "jupytext", "typer")
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A student's kernels, and the environment that they have."""
    hiding = tmp_path_factory.mktemp("hiding")
    (hiding / "sitecustomize.py").write_text(OURS_ALONE)
    environment = {**os.environ, "PYTHONPATH": str(hiding), "OMP_NUM_THREADS": "1"}
    with forked_kernel.kernels(tmp_path_factory.mktemp("kernels"), environment) as folder:
        yield KernelSpecManager(kernel_dirs=[str(folder)]), environment


@pytest.fixture(scope="module")
def run_all(kernels, tmp_path_factory):
    """Run All on a notebook in a copy of the released folder; the outputs by cell id.

    Of several notebooks, one after another in the same kernel, as a student types and runs all again. alone: in an
    empty folder, which must stay empty.
    """
    known, environment = kernels

    def run_all(unit, *contents, alone=False):
        folder = tmp_path_factory.mktemp("released") / unit
        folder.mkdir() if alone else shutil.copytree(RELEASE / unit, folder)
        notebooks = [nbformat.reads(content.decode(), as_version=4) for content in contents]
        cells = [cell for notebook in notebooks for cell in notebook.cells]
        ids = [cell.id for cell in cells]
        for number, cell in enumerate(cells):
            cell.id = str(number)
        together = nbformat.v4.new_notebook(cells=cells, metadata=notebooks[0].metadata)
        where = {"metadata": {"path": str(folder)}}
        kernel = AsyncKernelManager(kernel_name=forked_kernel.NAME, kernel_spec_manager=known)
        client = NotebookClient(together, km=kernel, resources=where, timeout=120, coalesce_streams=True)
        client.execute(env=environment, cleanup_kc=True)
        assert not alone or not list(folder.iterdir())
        outputs = iter(zip(ids, [cell.get("outputs", []) for cell in cells], strict=True))
        return [dict(islice(outputs, len(notebook.cells))) for notebook in notebooks]

    return run_all


UNIT = "self_attention"
WRONG = {
    "attention_scores": "def attention_scores(queries, keys):\n    return keys @ queries.transpose(-2, -1)",
    "scaled_softmax": "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k, dim=-1)",
    "SelfAttention_v1": "class SelfAttention_v1(nn.Module):\n    def forward(self, x): return x",
}
RAISES = stored("student_notebook")
OF_HEADS = "multi_head_attention"
NOISY = 'print("noise"); keys = self.W_key(x).view(b, self.num_heads, num_tokens, self.head_dim)'


def of_heads():
    """An answer whose keys are cut without swapping, in a line that prints too."""
    right = catalogue.solutions(OF_HEADS)["MultiHeadAttention"].source()
    cut = "keys = self.W_key(x).view(pieces).transpose(1, 2)"
    assert cut in right
    return {"MultiHeadAttention": right.replace(cut, NOISY)}


@pytest.fixture(scope="module")
def worked_through(run_all):
    """Output of a unit when all cells run: untouched, with the answers typed in, and with wrong ones.

    Wrong ones without what only shows something. A model that trains for seconds does so in fewer steps.
    """

    @cache
    def worked_through(unit):
        answers = solution_sources(unit)
        wrong = {UNIT: [WRONG, RAISES], OF_HEADS: [of_heads()]}.get(unit, [])
        untouched, right = (RELEASE / unit / f"{unit}.ipynb").read_bytes(), filled_in(unit, answers)
        if unit in STEPS:
            assert right.count(STEPS[unit]) == 1
            right = right.replace(STEPS[unit], b"steps: int = 5")
        return run_all(unit, untouched, right, *(without_plain_cells(filled_in(unit, typed)) for typed in wrong))

    return worked_through


STEPS = {
    OF_HEADS: b"steps: int = 300",
    "tiny_language_model": b"steps: int = 800",
    "attention_masks": b"steps: int = 150",
    "modern_attention": b"steps: int = 150",
}


def without_plain_cells(content):
    """The notebook with its set-up cell, the exercises and their checks."""
    notebook = json.loads(content)
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] == "setup" or "nbgrader" in cell["metadata"]]
    return json.dumps(notebook).encode()


def shown(outputs):
    """Return what a student sees of a check: the displayed page, and the score that is not shown."""
    (result,) = [o.data["text/html"] for o in outputs if o.output_type == "execute_result"]
    assert result == ""
    (page,) = [o.data["text/html"] for o in outputs if o.output_type == "display_data"]
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S))


def value(outputs):
    (result,) = [o.data["text/plain"] for o in outputs if o.output_type == "execute_result"]
    return float(result)


UNITS = sorted({UNIT, OF_HEADS, *sampling.thinned(course.unit_names(), 4)})


@pytest.mark.parametrize("unit", UNITS)
def test_run_all_reaches_the_end_of_the_untouched_notebook(worked_through, unit):
    outputs, *_ = worked_through(unit)
    for exercise in course.unit(unit).exercises:
        assert value(outputs[exercise.check]) == 0
        assert "is not written yet" in shown(outputs[exercise.check])
    assert not [o for cell in outputs.values() for o in cell if o.output_type == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("unit", UNITS)
def test_with_the_answers_typed_in_every_check_passes(worked_through, unit):
    _, outputs, *_ = worked_through(unit)
    for exercise in course.unit(unit).exercises:
        assert value(outputs[exercise.check]) == exercise.points, shown(outputs[exercise.check])
        assert f"{exercise.name} passes on the public examples: " in shown(outputs[exercise.check])


def test_a_notebook_that_stands_alone_says_what_to_do_and_one_that_carries_its_check_shows_the_same(
    run_all, worked_through
):
    unit = "dot_product_attention"
    lone = nbformat.read(RELEASE / unit / f"{unit}.ipynb", as_version=4)
    lone.cells = [cell for cell in lone.cells if cell.id == "setup"]
    lone.cells[0].metadata.tags = ["raises-exception"]
    carrying = single_file(RELEASE / unit / f"{unit}.ipynb", "attention_check")
    answers = solution_sources(unit)
    solved = nbformat.from_dict(carrying)
    for cell in solved.cells:
        cell.source = answers.get(cell.id, cell.source)
    alone, *outputs = run_all(unit, *(nbformat.writes(one).encode() for one in (lone, carrying, solved)), alone=True)
    (error,) = alone["setup"]
    assert error.ename == "FileNotFoundError"
    assert error.evalue.startswith("attention_check.py is missing, or older than this notebook: put all files of")
    for carried, beside in zip(outputs, worked_through(unit)[:2], strict=True):
        assert carried.pop("carried_check") == []
        for one in (carried, beside):
            for shown in (o for cell in one.values() for o in cell):
                shown.pop("execution_count", None)
        assert carried == beside


def test_guesses_and_hints_are_answered_with_a_page(run_all):
    """Their answers are those that `tests/build/test_lessons.py` reads."""
    unit = "dot_product_attention"
    notebook = nbformat.read(RELEASE / unit / f"{unit}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id == "setup"]
    for name, call in {"guess": 'guess("most_alike", 4)', "hint": 'hint("softmax")'}.items():
        notebook.cells.append(nbformat.v4.new_code_cell(call, id=name))
    (outputs,) = run_all(unit, nbformat.writes(notebook).encode())
    lesson = released_data(unit)[LESSON]
    texts = {"guess": lesson["guesses"]["most_alike"]["because"], "hint": lesson["hints"]["softmax"][0]}
    for name, text in texts.items():
        assert text.replace("`", "") in html.unescape(said_in(outputs[name]))


def said_in(outputs):
    """The page of an output that is no result; it says the same in plain text."""
    (display,) = outputs
    assert display.output_type == "display_data"
    assert "<" not in display.data["text/plain"]
    return re.sub(r"<style>.*?</style>|<[^>]+>", "", display.data["text/html"], flags=re.S)


def test_the_check_says_what_differs(worked_through):
    _, _, outputs, _ = worked_through(UNIT)
    assert "shape (7, 5); (5, 7) is expected" in shown(outputs["test_attention_scores"])
    assert "places; the first, [0, 0], is" in shown(outputs["test_scaled_softmax"])
    assert "It raised TypeError" in shown(outputs["test_SelfAttention_v1"])
    assert value(outputs["test_attention_scores"]) == 0
    page = shown(outputs["test_SelfAttention_v1"])
    assert "✗ failed" in page
    assert "0 of 5 points" in page
    assert re.search(r"yours.*[\d.]+ ≠.*expected", shown(outputs["test_scaled_softmax"]), re.S)


def test_an_error_is_told_with_the_lines_of_the_cell_and_what_was_printed(worked_through):
    *_, outputs = worked_through(UNIT)
    page = shown(outputs["test_scaled_softmax"])
    assert "scaled_softmax(scores of shape (6, 6), d_k=2)" in page
    assert "line 3 of the cell, in scaled_softmax: return _rest(scores)" in page
    assert "line 7 of the cell, in _rest: return scores @ scores.absent" in page
    assert "I see 2" in page
    assert "As above." in page  # the same error on every other example


def test_the_score_alone_is_what_nbgrader_reads(worked_through):
    """Validate gives partial credit by it."""
    outputs = worked_through(UNIT)[2]["test_scaled_softmax"]
    points = course.unit(UNIT).exercise("scaled_softmax").points
    graded = {"nbgrader": {"grade": True, "points": points, "solution": False, "locked": True, "schema_version": 3}}
    cell = nbformat.from_dict({"cell_type": "code", "outputs": outputs, "source": "", "metadata": graded})
    assert determine_grade(cell) == (value(outputs), points)
    assert 0 < value(outputs) < points


def test_what_a_student_does_not_have_is_hidden_from_these_kernels(run_all):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import msgspec")])
    with pytest.raises(CellExecutionError, match="No module named 'msgspec'"):
        run_all("self_attention", nbformat.writes(notebook).encode())


def test_the_page_tells_the_line_that_goes_wrong(worked_through):
    _, _, outputs = worked_through(OF_HEADS)
    wrong = of_heads()["MultiHeadAttention"]
    (line,) = (number for number, one in enumerate(wrong.splitlines(), start=1) if NOISY in one)
    page = shown(outputs["test_MultiHeadAttention"])
    assert f"Line {line} makes `keys` wrong." in page
    assert f"As it should be: `queries` (line {line - 1})" in page
    assert f"line {line}: {NOISY}" in page
    assert not [one for one in outputs["test_MultiHeadAttention"] if one.output_type == "stream"]
    others = [exercise.check for exercise in course.unit(OF_HEADS).exercises if exercise.name != "MultiHeadAttention"]
    assert not [one for one in others if one in outputs and "Tried on" in shown(outputs[one])]
