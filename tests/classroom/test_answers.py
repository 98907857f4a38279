"""A class's answers as files, and which are equal: code with other names is, code that does anything else is not."""

import ast
import csv
import random
import re
from collections import defaultdict
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder import catalogue, course
from autograder.classroom.answers import Answer, equal_answers, normal_form
from autograder.course.submitted_files import is_one_name
from autograder.course.units import NOT_IMPLEMENTED, released_cells
from autograder.output_files import file_name
from tests import sampling
from tests.commands import run
from tests.recorded_class import UNIT, notebook, put_submission, write_settings

SOFTMAX = catalogue.solutions(UNIT)["softmax"].source()
COPIED = "# Mine.\n" + SOFTMAX.replace("scores", "numbers").replace("    return", "\n    return")
OWN = (
    "def softmax(scores):\n    exps = torch.exp(scores - scores.max())\n    total = exps.sum()\n    return exps / total"
)
STUBS = {cell.grade_id: cell.text for cell in released_cells(UNIT)}


class Renamer(ast.NodeTransformer):
    """Gives another name to each argument, local variable, attribute that is assigned, method and definition."""

    def __init__(self, tree):
        annotations = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and not node.value]
        nodes = [node for node in ast.walk(tree) if node not in [one.target for one in annotations]]
        stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
        self.names = {node.id for node in stored if isinstance(node, ast.Name)} | {
            node.arg for node in nodes if isinstance(node, ast.arg)
        }
        self.attributes = {node.attr for node in stored if isinstance(node, ast.Attribute)}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
                (self.names if node in tree.body else self.attributes).add(node.name)

    def visit(self, node):
        for field, names in (("id", self.names), ("arg", self.names), ("attr", self.attributes)):
            if getattr(node, field, None) in names and not isinstance(node, ast.keyword):
                setattr(node, field, f"{getattr(node, field)}_{len(getattr(node, field))}")
        if getattr(node, "name", None) in self.names | self.attributes:
            node.name += f"_{len(node.name)}"
        return self.generic_visit(node)


def renamed(code):
    """Return code with other names, and with comments and blank lines."""
    tree = ast.parse(code)
    lines = ast.unparse(Renamer(tree).visit(tree)).split("\n")
    return "\n\n".join(line if '"' in line else f"{line}  # Line." for line in lines)


def reordered(code):
    """Return code with its adjacent definitions, and the methods of its classes, in another order."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef) and all(isinstance(one, ast.FunctionDef) for one in node.body):
            random.Random(1).shuffle(node.body)
    return ast.unparse(tree)


@pytest.mark.parametrize("unit", course.unit_names())
def test_renamed_solutions_are_equal_and_mistakes_are_not(unit):
    for name, solution in catalogue.solutions(unit).items():
        form = normal_form(solution.source())
        assert normal_form(renamed(solution.source())) == form, name
        assert normal_form(reordered(solution.source())) == form, name
    mistakes = list(catalogue.misconceptions(unit).values())
    for mistake in mistakes[:: 1 if sampling.every else 5]:
        right = catalogue.solutions(unit)[mistake.exercise].source()
        is_equal = normal_form(mistake.source()) == normal_form(right)
        assert not is_equal or re.search("Name|Layers", mistake.name), mistake.name  # these only rename attributes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(a, b): return a - b", "def f(a, b): return b - a"),
        ("def f(a): return g(a)", "def f(a): return h(a)"),
        ("def f(a): return a.sum()", "def f(a): return a.mean()"),
        ("def f(a): return softmax(a, dim=0)", "def f(a): return softmax(a, dim=1)"),
        ("def f(a):\n  b = a\n  return b", "def f(a):\n  b = a\n  return a"),
        ("class C:\n  def __init__(s): s.x, s.y = 1, 2", "class C:\n  def __init__(s): s.x, s.x = 1, 2"),
    ],
)
def test_code_that_does_something_else_is_not_equal(one, other):
    assert normal_form(one) != normal_form(other)


def test_helpers_may_stand_in_another_order_with_other_names():
    code = "def double(a): return 2 * a\ndef triple(a): return 3 * a\ndef f(a): return double(triple(a))"
    other = (
        "def f(x): return two(three(x))\ndef three(y):\n  'Doc.'\n  return 3 * y\ndef two(x: int) -> int: return 2 * x"
    )
    assert normal_form(code) == normal_form(other)
    assert normal_form(code) != normal_form(other.replace("two(three(x))", "three(two(x))"))


@pytest.mark.parametrize("code", ["def f(:", "x = 1\0", "-" * 19_999 + "1", "x = 1\n" * 4_000, "(" * 300])
def test_code_that_cannot_be_parsed_has_no_normal_form(code):
    assert normal_form(code) is None


def test_short_and_common_answers_are_not_to_be_compared():
    long = "def f(a):\n" + "".join(f"    a = a * {number}\n" for number in range(20))
    answers = [Answer("f", f"s{number}", "def f(a): return a", True) for number in range(3)]
    answers += [Answer("f", f"t{number}", long + "    return a", True) for number in range(2)]
    answers += [Answer("f", f"u{number}", long + "    return -a", True) for number in range(4)]
    answers += [Answer("f", f"v{number}", long + f"    return {number}", True) for number in range(21)]
    remarks = {its.students[0]: its.remark for its in equal_answers(answers, 60, 10)}
    assert remarks == {"s0": "short", "t0": "compare", "u0": "common"}
    assert {its.students[0]: its.remark for its in equal_answers(answers, 60, 14)}["u0"] == "compare"
    assert {its.students[0]: its.remark for its in equal_answers(answers, 60, 0)}["t0"] == "compare"


@given(st.text(st.characters(codec="utf-8"), min_size=1))
@example("..")
@example("-l")
@example("Ada/../O'Neil 50%")
def test_file_names_of_different_students_differ(student):
    name = file_name(student)
    assert is_one_name(name)
    assert name[0] not in ".-"
    assert unquote(name) == student


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A class that is not graded: bo is in ada's group, cy copied from ada, and `e'e` submitted the stubs."""
    root = tmp_path_factory.mktemp("class") / "course"
    root.mkdir()
    write_settings(root)
    (root / "roster.csv").write_text("id,group,section\nada,g,Mon\nbo,g,Mon\ncy,,Mon\ndi,,Tue\ne'e,,Tue\nflo,,Tue\n")
    put_submission(root, "ada", notebook(softmax=STUBS["softmax"].replace(f"    {NOT_IMPLEMENTED}", body(SOFTMAX))))
    put_submission(root, "cy", notebook(softmax=COPIED))
    put_submission(root, "di", notebook(softmax=OWN, context_vector="%%time\nuse my answer"))
    put_submission(root, "e'e", notebook(**{name: text for name, text in STUBS.items() if name in exercises()}))
    put_submission(root, "flo", b"no notebook")
    return root


def exercises():
    return [exercise.name for exercise in course.unit(UNIT).exercises]


def body(code):
    """Return the body of a function with a signature of one line."""
    return code.partition(":\n")[2]


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def answers(root, folder, *options, code=0):
    return run("answers", UNIT, "--course", root, "--to", folder, *options, code=code).output


def test_files_are_the_answers_without_released_text(root, tmp_path):
    answers(root, tmp_path / "files")
    files = files_in(tmp_path / "files")
    by_student = defaultdict(set)
    for path, text in files.items():
        exercise, name = path.split("/")
        by_student[name].add(exercise)
        assert f"def {exercise}" in text or "class" in text or "use my answer" in text
        assert "YOUR CODE HERE" not in text
        assert NOT_IMPLEMENTED not in text
    assert by_student == {name: set(exercises()) for name in ("ada+bo.py", "cy.py", "di.py")}
    assert "Turn scores into positive weights" not in files["softmax/ada+bo.py"]
    assert files["softmax/di.py"] == OWN + "\n"


def test_jplag_gets_a_folder_for_each_submission_and_the_stubs(root, tmp_path):
    answers(root, tmp_path / "jplag", "--format", "jplag", "--section", "Tue")
    files = files_in(tmp_path / "jplag")
    assert files["base_code/softmax.py"] == STUBS["softmax"].rstrip() + "\n"
    assert {path.split("/")[1] for path in files if path.startswith("submissions")} == {"di"}
    assert "submissions/di/context_vector.py" not in files  # is not Python
    for path, text in files.items():
        assert ast.parse(text), path


def test_the_table_has_a_row_for_each_group_of_equal_answers(root, tmp_path):
    printed = answers(root, tmp_path / "table", "--format", "csv", "--tokens", 20)
    with (tmp_path / "table" / "equal_answers.csv").open(newline="") as file:
        rows = {row["exercise"]: row for row in csv.DictReader(file)}
    assert rows["softmax"]["students"] == "cy; ada+bo" or rows["softmax"]["students"] == "ada+bo; cy"
    assert (rows["softmax"]["equal_answers"], rows["softmax"]["answers"]) == ("2", "3")
    others = set(exercises()) - {"softmax", "context_vector"}
    assert all(rows[name]["equal_answers"] == "3" for name in others)  # the solutions
    assert {rows[name]["remark"] for name in others} <= {"common", "short"}
    assert ("softmax: " in printed) == (rows["softmax"]["remark"] == "compare")


def test_a_folder_with_files_is_refused(root, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert "is not an empty folder" in answers(root, tmp_path / "full", code=2)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "is not an empty folder" in answers(root, tmp_path / "link", code=2)
    assert files_in(tmp_path) == {"full/file": "mine"}
    answers(root, tmp_path / "new" / "folder", "--format", "csv")
    (tmp_path / "empty").mkdir()
    answers(root, tmp_path / "empty", "--format", "csv")
    assert list(files_in(tmp_path / "empty")) == ["equal_answers.csv"]
