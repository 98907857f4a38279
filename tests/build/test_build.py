"""exercises/ + solutions/ -> source/ -> release/: the same bytes each time, and nothing that students may not see."""

import copy
import itertools
import json
import math
import re
import shutil
import tomllib
from functools import cache
from pathlib import Path

import msgspec
import nbformat
import psutil
import pytest
import torch
from packaging.requirements import Requirement

from autograder import course
from autograder.build import course_files
from autograder.build.course_files import differs_only_in_rounding
from autograder.build.source_notebook import COLUMNS, BuildError, solution_cell, source_notebook, written_answers
from autograder.course import units
from autograder.course.content import notebook_digest
from autograder.course.notebook import joined
from autograder.course.settings import HandingIn, load
from autograder.gradebook.nbgrader_course import nbgrader_api
from autograder.graders.collection import collect
from autograder.grading import public_examples, release_data
from autograder.grading.release_data import packed_numbers, released_misconceptions, signatures
from autograder.pool.grading_pool import GradingProcess, GradingRefused
from autograder.student_check.examples import pack_numbers, shorten_steps
from autograder.student_check.unit_data import EXAMPLES, LESSON, MISTAKES, STEPS, WRITTEN, packed_unit
from tests import RELEASE, REPOSITORY, SOURCE, released_data, sampling
from tests.hidden_tests import listed
from tests.typed import solved, stored

STORED = stored("built_solution")
SOLUTION = STORED["solution"]


def test_stub_keeps_signature_and_docstring_and_nothing_of_the_answer():
    assert solution_cell(SOLUTION, "Scale") == (
        'class Scale(nn.Module):\n    """Scales."""\n\n    def __init__(self, by):\n        super().__init__()\n'
        "        ### BEGIN SOLUTION\n        self.by = by\n        ### END SOLUTION\n\n"
        '    def forward(self, x):\n        """Return x times by."""\n        ### BEGIN SOLUTION\n'
        "        # a comment that helps\n        return x * self.by\n        ### END SOLUTION"
    )


@pytest.fixture
def text(tmp_path):
    """A unit of its own: write(exercise line) gives the paths of its text and its solutions."""
    (tmp_path / "solutions").mkdir()
    solutions = tmp_path / "solutions" / "unit.py"
    solutions.write_text(SOLUTION)

    def write(*lines):
        path = tmp_path / "unit.py"
        path.write_text("# %% [markdown]\n# # Text\n\n" + "\n\n".join(lines) + "\n")
        return path, solutions

    return write


def test_points_are_those_on_the_exercise_line_and_stand_before_its_text(text):
    notebook = source_notebook(*text('# %% exercise="double" points=2.5', '# %% exercise="Scale" points=1'), load())
    cells = {cell.id: cell for cell in notebook.cells}
    assert cells["test_double"].metadata.nbgrader.points == 2.5
    double, scale = ["double", "test_double"], ["points-Scale", "Scale", "test_Scale"]
    assert list(cells) == ["unit-1", *double, *scale, "how-to-hand-in"]
    assert cells["unit-1"].source == "# Text\n\n**3.5 points**.\n\n**Exercise `double`: 2.5 points**"
    assert cells["points-Scale"].source == "**Exercise `Scale`: 1 point**"


def test_how_to_hand_in_is_the_course_s_own_text(text):
    theirs = msgspec.structs.replace(load(), handing_in=HandingIn("Upload `{notebook}`, {please}."))
    *_, last = source_notebook(*text(), theirs).cells
    assert last.source == "## How to submit\n\nUpload `unit.ipynb`, {please}."
    assert [
        cell.id for cell in source_notebook(*text(), msgspec.structs.replace(theirs, handing_in=HandingIn(""))).cells
    ] == ["unit-1"]
    default = HandingIn().section("unit.ipynb")
    assert "the file `unit.ipynb`" in default
    assert default.endswith("your last submission before the deadline counts.")


def test_what_only_draws_is_collapsed_and_its_first_line_says_so(text):
    notebook = source_notebook(*text('# %% locked="map" drawing=true\nplt.show()'), load())
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cell.source.splitlines()[1:] == ["plt.show()"]
    assert cell.metadata.jupyter == {"source_hidden": True}
    assert cell.metadata.nbgrader.locked


@pytest.mark.parametrize(("lines", "sentence"), STORED["bad_exercise_line_is_one_sentence"])
def test_bad_exercise_line_is_one_sentence(text, lines, sentence):
    with pytest.raises(BuildError, match=re.escape(sentence)):
        source_notebook(*text(*lines), load())


def test_running_a_source_notebook_is_no_edit():
    notebook = json.loads((SOURCE / "self_attention" / "self_attention.ipynb").read_text())
    before = notebook_digest(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = 1, [{"output_type": "stream", "name": "stdout", "text": "1"}]
    assert notebook_digest(notebook) == before


@pytest.mark.parametrize("unit", course.unit_names())
def test_a_released_notebook_tells_its_points_and_how_to_hand_in_and_fits_the_window(unit):
    cells = json.loads((RELEASE / unit / f"{unit}.ipynb").read_text())["cells"]
    texts = [joined(cell["source"]) for cell in cells]
    worth = course.unit(unit).points
    assert f"**{sum(worth.values()):g} points**" in texts[0]
    for name, points in worth.items():
        at = [cell["id"] for cell in cells].index(name.removeprefix(course.CHECK_PREFIX))
        told = (
            f"**Exercise `{cells[at]['id']}`: {points:g} point"
            if name.startswith("test_")
            else f": {points:g} points**"
        )
        assert told in texts[at - 1]
    code = [text for cell, text in zip(cells, texts, strict=True) if cell["cell_type"] == "code"]
    assert max(len(line) for text in code for line in text.splitlines()) <= COLUMNS
    assert texts[-1] in (RELEASE / unit / "README.md").read_text()
    assert "press **Submit**" in texts[-1]
    wanted = {
        line.partition(";")[0]
        for line in tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    }
    needed = (RELEASE / unit / "requirements.txt").read_text().splitlines()
    names = [Requirement(line).name for line in needed]
    assert names == ["jupyterlab", "matplotlib", "torch"]
    assert {(one.name, one.specifier) for one in map(Requirement, needed)} <= {
        (one.name, one.specifier) for one in map(Requirement, wanted)
    }


@pytest.mark.parametrize("unit", course.unit_names())
def test_release_asks_what_every_grader_asks_or_says_that_it_does_not(unit):
    exercises = {name: of for name, of in released_data(unit)[EXAMPLES].items() if name != WRITTEN}
    tried = [example for exercise in exercises.values() for example in exercise["examples"]]
    said = [example["statement"] for example in tried]
    said += [test["statement"] for exercise in exercises.values() for test in exercise["not_tried"]]
    graders = [grader for grader in listed() if grader.exercise.startswith(f"{unit}.")]
    assert sorted(said) == sorted(grader.statement for grader in graders)
    public = sorted(grader.statement for grader in graders if "public" in grader.markers.split(","))
    assert sorted(example["statement"] for example in tried if example["public"]) == public


@pytest.mark.parametrize("unit", course.unit_names())
def test_the_points_of_written_questions_are_released(unit):
    released = released_data(unit)[EXAMPLES][WRITTEN]
    solutions = (REPOSITORY / "solutions" / f"{unit}.py").read_text()
    assert released.keys() == written_answers(solutions).keys()
    assert all(points > 0 for points in released.values())


@pytest.fixture(scope="module")
def examples():
    """By unit, what its graders ask, as it is written for the release."""
    graders = collect()
    return cache(
        lambda unit: {name: public_examples.examples_of(unit, list(its)) for name, its in graders[unit].items()}
    )


@pytest.mark.parametrize("unit", sampling.thinned(course.unit_names(), 3))
def test_the_notebooks_and_the_examples_are_what_is_built_now(tmp_path, examples, unit):
    """The other built files take longer: a test below builds some, and `make search` builds all."""
    text, solutions = (REPOSITORY / kind / f"{unit}.py" for kind in ("exercises", "solutions"))
    made, name = tmp_path / "source" / unit, f"{unit}.ipynb"
    made.mkdir(parents=True)
    nbformat.write(source_notebook(text, solutions, load(), with_hints=True), made / name)
    assert (made / name).read_bytes() == (SOURCE / unit / name).read_bytes(), "run `autograder build`"
    assert nbgrader_api(tmp_path).generate_assignment(unit, force=True, create=True)["success"]
    assert (tmp_path / "release" / unit / name).read_bytes() == (RELEASE / unit / name).read_bytes()
    built = {
        exercise: {**of, "examples": [{**one, "steps": shorten_steps(one["steps"])} for one in of["examples"]]}
        for exercise, of in examples(unit).items()
    }
    released = copy.deepcopy(released_data(unit)[EXAMPLES])
    del released[WRITTEN]
    for exercise in course.unit(unit).exercises:
        assert released[exercise.name].pop("points") == exercise.points
    files = tmp_path / "built.json.gz", tmp_path / "present.json.gz"
    for file, held in zip(files, (built, released), strict=True):
        file.write_bytes(packed_unit(unit, {EXAMPLES: held}))
    assert differs_only_in_rounding(*files), "run `autograder build`"


SOON_BUILT = {
    "causal_attention": ["attention_dropout", "causal_softmax"],
    "self_attention": ["SelfAttention_v1"],
}
"""Exercises whose mistakes show their numbers in a second or two: with and without dropout, functions and a class."""


@pytest.mark.parametrize("unit", SOON_BUILT)
def test_the_numbers_of_mistakes_are_what_is_built_now(tmp_path, examples, unit):
    released = released_data(unit)[MISTAKES]
    for exercise in SOON_BUILT[unit]:
        shown = signatures(unit, {exercise: examples(unit)[exercise]}, {})[exercise]
        built = {exercise: released_misconceptions(unit, exercise, shown)}
        files = tmp_path / f"built_{exercise}.json.gz", tmp_path / f"present_{exercise}.json.gz"
        for file, held in zip(files, (built, {exercise: released[exercise]}), strict=True):
            file.write_bytes(packed_unit(unit, {MISTAKES: held}))
        assert differs_only_in_rounding(*files), exercise


@pytest.fixture
def judged(tmp_path):
    """Return whether a present file has the content that is built now."""

    numbers = itertools.count()

    def judge(name, built, present):
        number = next(numbers)  # what a file holds is read once
        paths = tmp_path / f"built_{number}.json.gz", tmp_path / f"present_{number}.json.gz"
        for path, held in zip(paths, (built, present), strict=True):
            path.write_bytes(packed_unit("unit", {name: held}))
        return differs_only_in_rounding(*paths)

    return judge


def test_sums_that_another_processor_rounds_differently_are_no_change(judged):
    def shown(sentence, *sums):
        return {"f": [{"sentences": [sentence], "shows": [sums]}]}

    built = shown("s", 17, 6.3648, -0.0)
    assert judged(MISTAKES, built, shown("s", 17, 6.3649, 0.0))
    assert not judged(MISTAKES, built, shown("s", 17, 6.3652, 0.0))
    assert not judged(MISTAKES, built, shown("s", 18, 6.3649, 0.0))
    assert not judged(MISTAKES, built, shown("t", 17, 6.3649, 0.0))
    assert not judged(MISTAKES, built, shown("s", 17, 6.3649))


@pytest.mark.parametrize(("kind", "last", "more"), [("float32", 2e-7, 1e-5), ("float64", 3e-16, 1e-10)])
def test_results_that_another_processor_rounds_differently_are_no_change(judged, kind, last, more):
    def result(*numbers, shape=2):
        return {"result": {"shape": [shape], "dtype": kind, "packed": pack_numbers(numbers, kind)}}

    def short(number):
        return {"args": [{"shape": [1], "dtype": kind, "values": [number]}]}

    built = result(1.25, -math.inf)
    assert judged(EXAMPLES, built, result(1.25 * (1 + last), -math.inf))
    assert not judged(EXAMPLES, built, result(1.25 * (1 + more), -math.inf))
    assert not judged(EXAMPLES, built, result(1.25, math.inf))
    assert not judged(EXAMPLES, built, result(1.25, -math.inf, shape=1))
    assert judged(EXAMPLES, short(1.25), short(1.25 * (1 + last)))
    assert not judged(EXAMPLES, short(1.25), short(1.25 * (1 + more)))
    assert not judged(EXAMPLES, {"points": 1.0}, {"points": 1.0001})


def test_a_prediction_may_have_any_name(judged):
    def lesson(answer):
        return {"guesses": {"packed": {"answer": answer}, "shape": {"answer": [6, 3]}}}

    assert judged(LESSON, lesson(30), lesson(30))
    assert not judged(LESSON, lesson(30), lesson(48))


def test_right_steps_that_another_processor_rounds_differently_are_no_change(judged):
    def rights(values):
        return {"rights": [{**packed_numbers(values), "shape": list(values.shape)}]}

    numbers = torch.tensor([[0.1, -2.5, torch.nan]], dtype=torch.float64)
    assert judged(STEPS, rights(numbers), rights(numbers + 1e-7))
    assert not judged(STEPS, rights(numbers), rights(numbers + 1e-3))
    assert not judged(STEPS, rights(numbers), rights(numbers[:, :2]))


def test_numbers_that_fill_a_right_step_may_be_rounded_differently(judged):
    """Finite values are written as numbers, and compared as numbers."""

    def filled(number):
        other = torch.tensor([[0.1, -2.5, 0.7]], dtype=torch.float64)
        [written, *_] = release_data.ways_to_fill(other, other.masked_fill(other < 0, number))
        return {"rights": [{"of": 0, **written}]}

    assert judged(STEPS, filled(0.1 + 0.2), filled(0.3))
    assert not judged(STEPS, filled(0.3), filled(0.31))
    assert judged(STEPS, filled(-math.inf), filled(-math.inf))
    assert not judged(STEPS, filled(-math.inf), filled(math.inf))


def test_the_kits_own_code_needs_no_sandbox():
    """So none is started, and no notebook is marked."""
    with GradingProcess("cpu", load(), own_code_alone=True) as grading_process:
        assert grading_process.ready.isolation == "none"
        assert psutil.Process(grading_process.pid).children() == []
        with pytest.raises(GradingRefused, match="only for the autograder's own code"):
            grading_process.grade("a.ipynb", solved("dot_product_attention"), "dot_product_attention")
        assert grading_process.grade_candidate("dot_product_attention", "solution").status == "graded"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A new clone of a course with one unit, and the folder with what is built: the same, in source/ and release/."""
    unit, (clone, stage) = "dot_product_attention", (tmp_path / "clone", tmp_path / "stage")
    for folder in (clone, stage):
        shutil.copytree(RELEASE / unit, folder / "release" / unit)
    shutil.copytree(RELEASE / unit, stage / "source" / unit)
    for folder in (clone, stage):
        (folder / "source" / unit).mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / unit / f"{unit}.ipynb", folder / "source" / unit)
    monkeypatch.setattr(course_files, "folder", lambda: clone)
    monkeypatch.setattr(units, "folder", lambda: clone)
    return unit, clone, stage


def test_in_a_new_clone_copies_in_source_are_not_missing_but_built(clone):
    unit, folder, stage = clone
    assert list(course_files.compared(stage, (), needs_copies=False)) == []
    changes = list(course_files.compared(stage, (), needs_copies=True))
    assert {change.what for change in changes} == {"missing"}
    assert {change.path for change in changes} == {
        path.relative_to(stage) for path in (stage / "source" / unit).iterdir() if path.suffix != ".ipynb"
    }
    (folder / "source" / unit / "attention_check.py").write_text("old")
    (change,) = course_files.compared(stage, (), needs_copies=False)
    assert (change.path.name, change.what) == ("attention_check.py", "out of date")


@pytest.mark.parametrize(("is_up_to_date", "written"), [(True, b"released"), (False, b"built")])
def test_a_copy_in_source_is_what_release_has_if_that_is_up_to_date(clone, monkeypatch, is_up_to_date, written):
    unit, folder, stage = clone
    monkeypatch.setattr(course_files, "has_same_meaning", lambda built, present: is_up_to_date)
    path = Path("source", unit, f"{unit}.json.gz")
    (stage / path).write_bytes(b"built")
    (folder / "release" / unit / path.name).write_bytes(b"released")
    assert course_files.content_to_write(stage / path, path) == written


def test_a_class_gets_the_copies_in_source_from_release(clone):
    unit, folder, _ = clone
    files = course.unit_files("source", unit)
    assert files[0] == folder / "source" / unit / f"{unit}.ipynb"
    assert {path.name for path in files} == {path.name for path in course.unit_files("release", unit)}
    assert all(path.is_file() for path in files)


def test_the_record_of_what_each_unit_was_built_from_is_up_to_date():
    assert course_files.changed_units() == [], "run autograder build"


def test_a_clone_gets_copies_from_release_without_building(clone):
    unit, folder, stage = clone
    (folder / "source" / unit / "attention_check.py").write_text("old")
    names = {path.name for path in (stage / "source" / unit).iterdir()}
    assert course_files.copy_released([unit]) == len(names) - 1
    for name in names:
        assert (folder / "source" / unit / name).read_bytes() == (stage / "source" / unit / name).read_bytes()
    assert course_files.copy_released([unit]) == 0
