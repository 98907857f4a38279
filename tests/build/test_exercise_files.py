"""`remove-exercise` undoes `new-exercise`, and names what it leaves of an exercise."""

import ast
import re
import shutil

import pytest

from tests import REPOSITORY, files, forked_command

CONTENT = ("exercises", "solutions", "autograder/hidden", "autograder/misconceptions", "autograder/right_answers")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """This course's texts, solutions and known answers."""
    folder = tmp_path_factory.mktemp("whole") / "course"
    for kind in CONTENT:
        shutil.copytree(REPOSITORY / kind, folder / kind, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "autograder.toml", folder)
    return folder


@pytest.fixture
def course(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "course")


@pytest.fixture
def autograder(course):
    return forked_command.autograder_in(course)


@pytest.mark.parametrize(
    ("unit", "exercises"),
    [
        ("self_attention", [["halves_of"]]),
        ("dot_product_attention", [["halves_of"], ["HalvesOfTwo", "--class"]]),
        ("inference", [["HalvesOf", "--class"]]),
        ("begun", [["halves_of"], ["HalvesOfTwo", "--class"]]),
        ("begun", [["HalvesOfTwo", "--class"]]),
    ],
)
def test_it_undoes_new_exercise(course, autograder, unit, exercises):
    before = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    for exercise in exercises:
        autograder("new-exercise", unit, *exercise)
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} != before
    for name, *_ in exercises:
        said = autograder("remove-exercise", unit, name)
        assert "still mentioned" not in said
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} == before
    assert not list(course.rglob("*begun*"))  # no folder either


@pytest.mark.parametrize(
    ("unit", "name"),
    [("dot_product_attention", "normalize_by_sum"), ("multi_head_attention", "merge_heads"), ("inference", "KVCache")],
)
def test_a_written_exercise_leaves_only_what_is_named(course, autograder, unit, name):
    said = autograder("remove-exercise", unit, name).splitlines()
    title = said.index(f"`{name}` is still mentioned, by file and line:")
    named = {line.partition(": ")[0]: expanded(line.partition(": ")[2]) for line in said[title + 1 : -1]}
    left = {}
    for path in course.rglob("*"):
        if path.suffix in (".py", ".yaml", ".md", ".txt"):
            lines = enumerate(path.read_text().splitlines(), start=1)
            numbers = [number for number, line in lines if re.search(rf"\b{name}\b", line)]
            left |= {str(path.relative_to(course)): numbers} if numbers else {}
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text())):
                assert not (isinstance(node, ast.Call) and node.args and ast.unparse(node.args[0]) == repr(name) and (
                    ast.unparse(node.func) in ("contracts.exercise", "right_answer")
                )), path  # fmt: skip
    assert named == left
    solutions = ast.parse((course / "solutions" / f"{unit}.py").read_text())
    assert name not in [getattr(node, "name", "") for node in solutions.body]
    assert f'exercise="{name}"' not in (course / "exercises" / f"{unit}.py").read_text()
    lesson = course / "exercises" / f"{unit}.yaml"
    assert not lesson.exists() or f"\n  {name}:" not in lesson.read_text()


def expanded(ranges):
    """The numbers in a text such as `3-5, 8`."""
    pairs = [(text.split("-") * 2)[:2] for text in ranges.split(", ")]
    return [number for first, last in pairs for number in range(int(first), int(last) + 1)]


@pytest.mark.parametrize(
    ("unit", "name", "sentence"),
    [
        ("self_attention", "softmaxx", "exercises/self_attention.py has no exercise `softmaxx`."),
        ("self_attention", "why_scale", "exercises/self_attention.py has no exercise `why_scale`."),
        ("nowhere", "halves_of", "exercises/nowhere.py has no exercise `halves_of`."),
    ],
)
def test_what_is_no_exercise_is_left_alone(course, autograder, unit, name, sentence):
    before = files(course)
    assert autograder("remove-exercise", unit, name, code=2) == f"{sentence}\n"
    assert files(course) == before
