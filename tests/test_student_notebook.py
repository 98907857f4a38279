"""The release as a student uses it: in a real kernel, in a folder of its own, with the check that comes with it."""

import os
import shutil

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from autograder import catalogue, course
from autograder.course.cells import filled_in
from tests import RELEASE

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


@pytest.fixture
def run_all(tmp_path):
    """Run All on a notebook in a copy of the released folder; the outputs by cell id."""
    (tmp_path / "sitecustomize.py").write_text(OURS_ALONE)

    def run_all(unit, content):
        folder = tmp_path / unit
        shutil.copytree(RELEASE / unit, folder)
        notebook = nbformat.reads(content.decode(), as_version=4)
        client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, timeout=120)
        client.execute(env={**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"})
        return {cell.id: cell.get("outputs", []) for cell in notebook.cells}

    return run_all


def shown(outputs):
    return "".join(o.get("text", "") for o in outputs if o.output_type == "stream" and o.name == "stdout")


def value(outputs):
    (result,) = [o.data["text/plain"] for o in outputs if o.output_type == "execute_result"]
    return float(result)


@pytest.mark.parametrize("unit", course.unit_names())
def test_run_all_reaches_the_end_of_the_untouched_notebook(run_all, unit):
    outputs = run_all(unit, (RELEASE / unit / f"{unit}.ipynb").read_bytes())
    for exercise in course.unit(unit).exercises:
        assert value(outputs[exercise.check]) == 0
        assert "is not written yet" in shown(outputs[exercise.check])
    assert not [o for cell in outputs.values() for o in cell if o.output_type == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("unit", course.unit_names())
def test_with_the_answers_typed_in_every_check_passes(run_all, unit):
    answers = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
    outputs = run_all(unit, filled_in(unit, answers))
    for exercise in course.unit(unit).exercises:
        assert value(outputs[exercise.check]) == exercise.points
        assert "passes on the public examples" in shown(outputs[exercise.check])


def test_the_check_says_what_differs(run_all):
    unit = "self_attention"
    wrong = {
        "attention_scores": "def attention_scores(queries, keys):\n    return keys @ queries.transpose(-2, -1)",
        "scaled_softmax": "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k, dim=-1)",
        "SelfAttention_v1": "class SelfAttention_v1(nn.Module):\n    def forward(self, x): return x",
    }
    outputs = run_all(unit, filled_in(unit, wrong))
    assert "shape (7, 5); (5, 7) is expected" in shown(outputs["test_attention_scores"])
    assert "places; the first, [0, 0], is" in shown(outputs["test_scaled_softmax"])
    assert "It raised TypeError" in shown(outputs["test_SelfAttention_v1"])
    assert value(outputs["test_attention_scores"]) == 0
    assert value(outputs["test_scaled_softmax"]) < course.unit(unit).exercise("scaled_softmax").points


def test_what_a_student_does_not_have_is_hidden_from_these_kernels(run_all):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import msgspec")])
    with pytest.raises(CellExecutionError, match="No module named 'msgspec'"):
        run_all("self_attention", nbformat.writes(notebook).encode())
