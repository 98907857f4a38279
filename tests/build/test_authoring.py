"""Changing a course: what `build` refuses, one unit alone, what is dropped, and a new exercise's first pieces."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.catalogue.known_answers import read_yaml
from tests import REPOSITORY, files, forked_command
from tests.typed import stored

UNIT = "normalisation"

STORED = stored("wrong_graders")
WRONG_GRADERS = STORED["wrong_graders"]
RELEASED_INSTEAD = """
def _right(self, student, reference, rng):
    student.layer_norm(rng.randn(1, 3))

STEPS = {}
GRADERS = {("ResidualBlock", "test_zero_sum"): _right}
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A small course of its own."""
    folder = tmp_path_factory.mktemp("authored") / "course"
    shutil.copytree(REPOSITORY / "tests" / "own_course", folder)
    settings = (REPOSITORY / "autograder.toml").read_text()
    (folder / "autograder.toml").write_text(settings.replace('"attention_check"', '"layers_check"'))
    return folder


@pytest.fixture(scope="module")
def autograder(course):
    """The command in that course: what it said, where it ended with the code that is expected."""
    return forked_command.autograder_in(course)


@contextmanager
def changed(path: Path, text: str):
    """The file with another text, for a while."""
    before = path.read_text() if path.exists() else None
    path.write_text(text)
    yield
    path.unlink() if before is None else path.write_text(before)


def test_a_grader_that_its_own_solution_does_not_pass_is_refused(course, autograder):
    hidden = course / "autograder" / "hidden"
    graders = hidden / UNIT / "test_layers.py"
    text = f"import torch\n\n{graders.read_text()}{WRONG_GRADERS}"
    with changed(graders, text), changed(hidden / "instead.py", RELEASED_INSTEAD):
        said = autograder("build", code=2).splitlines()
    at = [number for number, line in enumerate(text.splitlines(), start=1) if "assert" in line][-3:]
    place = f"of ResidualBlock (autograder/hidden/{UNIT}/test_layers.py, line "
    assert [line.partition(place)[0] for line in said] == [
        "The grader `test_zero_sum` ",
        f"solutions/{UNIT}.py fails the grader `test_moved` ",
        "The grader `test_shape` ",
        "And 1 more.",
    ]
    plain, moved, shape = (line.partition(place)[2] for line in said[:3])
    itself = f") itself fails on solutions/{UNIT}.py: "
    assert plain.startswith(f"{at[0]}{itself}TypeError: assert_close has no tolerance for the expected value")
    assert moved.startswith(f"{at[1]}): The result differs in 2 of 2 places")
    assert "at [0, 0]. The result is [[" in moved
    assert moved.endswith("]], but [[-0.999995, 0.999995]] is expected.")
    assert shape == f"{at[2]}{itself}AssertionError: assert torch.Size([2, 3]) == (2, 4)"
    assert not (course / "source").exists()


def test_a_solution_that_calls_what_its_graders_forbid_is_refused(course, autograder):
    solutions = course / "solutions" / f"{UNIT}.py"
    text = solutions.read_text().replace(
        "self.linear(normalised)", "self.linear(normalised) + 0 * F.scaled_dot_product_attention(x, x, x)"
    )
    with changed(solutions, f"import torch.nn.functional as F\n{text}"):
        said = autograder("build", code=2)
    assert said.startswith(f"solutions/{UNIT}.py: `ResidualBlock` calls library attention, which its graders forbid: ")
    assert not (course / "source").exists()


COLLECTING = """
from autograder.graders.collection import NotCollected, collect
graders = collect()
print(sorted(graders["{unit}"]))
try:
    graders["broken"]
except NotCollected as reason:
    print(reason)
try:
    dict(graders)
except NotCollected as reason:
    print(reason)"""


def test_graders_that_cannot_be_collected_are_a_matter_of_their_unit_alone(course):
    hidden = course / "autograder" / "hidden"
    (hidden / "broken").mkdir()
    with changed(hidden / "broken" / "test_it.py", "def ("):
        command = [sys.executable, "-c", COLLECTING.format(unit=UNIT)]
        environment = {**os.environ, "AUTOGRADER_COURSE": str(course)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (hidden / "broken").rmdir()
    exercises, alone, all_of_them = done.stdout.splitlines()
    assert exercises == "['ResidualBlock', 'layer_norm']"
    assert alone == all_of_them
    assert alone.startswith("The hidden graders cannot be collected. broken/test_it.py: ")


KILLED = """
edge, caught by test_gradients:
  ended_from_outside:
    says: "The system ends the process, as it does if memory runs out."
    answer: |
      def layer_norm(x, eps=1e-5):
          import os, signal
          os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_build_ends_where_one_of_its_processes_is_killed(course, autograder):
    mistakes = course / "autograder" / "misconceptions" / UNIT / "layer_norm.yaml"
    with changed(mistakes, mistakes.read_text() + KILLED):
        said = autograder("build", code=2)
    assert said.startswith(f"{UNIT}: the system ended a process that worked on this unit, perhaps because memory ran")
    assert not (course / "source").exists()


@pytest.fixture(scope="module")
def begun(course, autograder):
    """A unit with a function and a class to write, both only begun; its files."""
    autograder("new-exercise", "begun", "halved")
    said = autograder("new-exercise", "begun", "HalvedTwice", "--class").splitlines()
    assert said[4] == "autograder/right_answers/begun/halved_twice.py"
    files = [course / name for name in said[:5]]
    assert all(path.is_file() for path in files)
    return [*files, *(path.with_name(path.name.replace("halved_twice", "halved")) for path in files[2:])]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["begun", "halved"], "solutions/begun.py has a `halved` already: give the exercise another name."),
        (["begun", "nn"], "solutions/begun.py has a `nn` already: give the exercise another name."),
        ([UNIT, "why_residual"], f"exercises/{UNIT}.py has a cell called `why_residual` already: take another name."),
        (
            ["begun", "Halved"],
            "autograder/hidden/begun/test_halved.py already exists: move it, or choose another name.",
        ),
        (["begun", "a/b"], "`a/b` cannot be the name of a unit or exercise: use letters, digits and `_`."),
    ],
)
def test_no_exercise_is_begun_over_another(course, autograder, begun, arguments, sentence):
    before = files(course)
    assert autograder("new-exercise", *arguments, code=2) == f"{sentence}\n"
    assert files(course) ^ before == set()


def test_what_cannot_be_written_whole_changes_nothing(course, autograder, begun):
    (course / "autograder" / "hidden" / "third").touch()  # where its folder would be
    said = autograder("new-exercise", "third", "doubled", code=2)
    file = course / "autograder" / "hidden" / "third" / "test_doubled.py"
    assert said == f"{file} cannot be written: Not a directory. Give another name.\n"
    assert [path.name for path in course.rglob("*third*")] == ["third"]
    (course / "autograder" / "hidden" / "third").unlink()


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ('hints:\n    older: ["a", "b", "c"]\n', 3),
        ('guesses: {}\nhints:  # of each\n  # three\n  older: ["a", "b", "c"]\n', 5),
        ("guesses: {}\n", 5),
    ],
)
def test_in_a_unit_with_hints_those_of_a_new_exercise_are_to_write(course, autograder, before, line):
    lesson = course / "exercises" / "hinted.yaml"
    lesson.write_text(before)
    try:
        assert f"exercises/{lesson.name}" in autograder("new-exercise", "hinted", "newer").splitlines()
        held = read_yaml(lesson)["hints"]
        assert set(held) == {"newer", *(["older"] if "older" in before else [])}
        assert len(held["newer"]) == 3
        left = autograder("build", "hinted", code=2)
        assert f"exercises/{lesson.name}, line {line}: a question that leads there\n" in left
    finally:
        for path in course.rglob("*hinted*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def test_build_says_what_is_left_to_write(course, autograder, begun):
    said = autograder("build", code=2).splitlines()
    assert said[0] == "The unit begun still has parts to write:"
    marked = [
        f"{path.relative_to(course)}, line {number}: "
        for path in begun
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if "TO WRITE" in line
    ]
    assert sorted(line.partition(": ")[0] + ": " for line in said[1:]) == sorted(marked)
    assert {line.split(",")[0] for line in said[1:]} == {str(path.relative_to(course)) for path in begun}


def test_one_unit_is_built_alone(course, autograder, begun):
    assert autograder("build", "third", code=2) == (
        f"There is no exercises/third.py. The units with a text are: begun, {UNIT}.\n"
    )
    assert "14 files written" in autograder("build", UNIT)  # though the other unit is only begun
    assert "There is no unit `third`" in autograder("matrix", "third", code=2)
    assert "no known answers with `Norm` in their own" in autograder("matrix", "-k", "Norm", code=2)
    assert "give --write without a unit" in autograder("matrix", UNIT, "--write", code=2)


def test_a_unit_is_written_to_its_end_and_a_dropped_one_leaves_nothing(course, autograder, begun):
    for path in begun:
        path.write_text(path.read_text().replace("TO WRITE: ", ""))
    mistakes = course / "autograder" / "misconceptions" / "begun" / "halved.yaml"
    written = mistakes.read_text().replace("\n# value", "\nvalue").replace("\n#   ", "\n  ")
    mistakes.write_text(
        written.replace("what the solution says -> what a student may write", "return x -> return 2 * x")
    )
    (course / "source" / UNIT / ".ipynb_checkpoints").mkdir()
    for kind in ("exercises", "solutions"):
        (course / kind / f"{UNIT}.py").unlink()
    said = autograder("build")
    assert "release/begun/begun.ipynb: missing" in said
    assert f"source/{UNIT}/{UNIT}.ipynb: not built from anything" in said
    for kind in ("source", "release"):
        assert [path.name for path in (course / kind).iterdir()] == ["begun"]
    figures = [
        line.strip("│ ").split("│")[1:]
        for line in autograder("matrix", "begun", "-k", "halved").splitlines()
        if "all" in line
    ]
    assert [int(number) for number in figures[-1]] == [1, 1, 0, 1, 0, 1, 0]  # not the class's right answer
    (course / "release" / "begun" / "stray.txt").touch()
    assert autograder("matrix", "--write", code=2) == (
        "release/begun/stray.txt is not built from anything: run `autograder build` first.\n"
    )
    checked = forked_command.autograder("build", "--check", cwd=course)
    assert (checked.returncode, checked.stdout) == (2, "release/begun/stray.txt: not built from anything\n")
