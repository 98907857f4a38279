"""Texts for students contain nothing that is hidden."""

import ast
import json
import re
import time

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import catalogue, course
from autograder.build import release_files
from autograder.build.source_notebook import written_answers
from autograder.core.operations import Call, LoadParameters
from autograder.course.cells import filled_in
from autograder.course.notebook import joined
from autograder.graders.collection import collect
from autograder.graders.proxy import StudentProxy
from autograder.grading.examiner import candidate_bench
from autograder.grading.messages import without_folders
from autograder.student_check.examples import decode_value
from autograder.student_check.unit_data import EXAMPLES, LESSON, MISTAKES, STEPS, data_file
from tests import RELEASE, REPOSITORY, released_data, sampling
from tests.typed import stored

UNIT = "self_attention"
LONG = 45
"""Lines shorter than this are too common to be anybody's secret."""
NO_SECRET = re.compile(r"""(def|class) |\) -> |(self, )?\w+: |from collections.abc import |(["']).*\3,?$""")
"""A line of a signature, an import, or a text such as a hidden test's statement, which students read."""


def secret_lines(unit):
    """The lines of a unit's hidden tests, solutions and right answers that say something of their own."""
    paths = [REPOSITORY / "solutions" / f"{unit}.py"]
    for kind in ("hidden", "right_answers"):
        paths += (REPOSITORY / "autograder" / kind / unit).glob("*.py")
    for path in paths:
        code = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text())
        lines = (line.strip() for line in code.splitlines())
        yield from (line for line in lines if len(line) >= LONG and not NO_SECRET.match(line))


@pytest.fixture(scope="module")
def wrong_report(grading_process):
    """The report on a notebook in which every exercise is wrong and says as much as it can."""
    mistakes = {entry.exercise: entry.source() for entry in catalogue.misconceptions(UNIT).values()}
    return msgspec.json.encode(grading_process.grade("wrong.ipynb", filled_in(UNIT, mistakes))).decode()


def test_a_report_holds_no_source_of_graders_or_answers(wrong_report):
    assert [line for line in secret_lines(UNIT) if line in wrong_report] == []


def test_a_report_holds_no_value_to_more_digits_than_help(wrong_report):
    """A report gives the distance from the right result to two digits, and values of a trace case to four."""
    said = re.sub(r'"(?:score|points|max_score)":[\d.]+', "", wrong_report)
    assert re.findall(r"[1-9]\d*\.\d{5,}|0\.0*[1-9]\d{4,}", said) == []


def test_what_is_printed_in_hidden_calls_is_never_shown(mark):
    code = """
def scaled_softmax(scores, d_k):
    import os, sys
    print("SAID", scores)
    print("SAID", file=sys.stderr)
    sys.__stdout__.write("SAID")
    os.write(1, b"SAID")
    return scores
"""
    report = mark(scaled_softmax=code)
    assert "SAID" not in msgspec.json.encode(report).decode()
    assert report.exercise("scaled_softmax").whereabouts.lines == [8]  # as they are counted in the notebook


def test_a_report_names_no_folder_of_the_machine(mark):
    code = """
import os, sys, torch
print(sys.path, torch.__file__, os.getcwd(), sys.executable)
def scaled_softmax(scores, d_k):
    raise OSError(f"{torch.__file__} in {os.path.abspath('data.csv')} for {sys.executable}")
"""
    report = mark(scaled_softmax=code)
    text = msgspec.json.encode(report).decode()
    assert "…/__init__.py in …/data.csv for …/python" in text
    assert not re.search(r"/(?:usr|root|home|tmp|work|opt)/", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *stored("shown_folders"),
        (f"\x1b[0m{REPOSITORY}/autograder/kit.py", "\x1b[0m…/kit.py"),
        (f"see{REPOSITORY}/x", "see…/x"),
    ],
)
def test_folders_alone_are_taken_out(text, shown):
    assert without_folders(text) == shown


@given(
    before=st.text(max_size=20).filter(lambda text: not re.search(r"[\w./:]$", text)),
    folders=st.lists(st.text("abcXYZ09_-.é", min_size=1, max_size=8), max_size=5),
    after=st.text(max_size=20),
)
def test_no_folder_of_a_path_is_left_whatever_stands_before_it(before, folders, after):
    path = "/".join(["/home", "SECRET", *folders])
    assert "SECRET" not in without_folders(f"{before}{path}/x.py{after}")


@given(st.text("ab1 ()[]+-*,'=\n", max_size=60))
def test_what_has_no_path_stays_as_it_is(text):
    divided = text.replace(" ", " / ").replace("+", "//")
    assert without_folders(divided) == divided


SLOW = ["/", "/a", "//", "/a/", "'/usr/", "/usr/a", ":/", "\\\\n/", "(/home", "file:/", "/usr'", "/.", "/usr//"]


@pytest.mark.parametrize("part", SLOW)
def test_it_takes_time_in_proportion(part):
    """A text has 200,000 characters: quadratic time would be many minutes."""
    started = time.process_time()
    for end in ("", " ", "/", "'", "/x"):
        without_folders(part * (200_000 // len(part)) + end)
    assert time.process_time() - started < 12


def statements_of(source):
    """The statements in an answer's functions that say something of their own."""
    for function in ast.walk(ast.parse(source)):
        for one in function.body if isinstance(function, ast.FunctionDef) else ():
            is_product = isinstance(one, ast.Expr) and isinstance(one.value, ast.BinOp)  # a text may say it
            statement = ast.unparse(one)
            if len(statement) > 15 and "super()" not in statement and not is_product:
                yield statement


@pytest.mark.parametrize("unit", course.unit_names())
def test_the_release_holds_no_hidden_test_no_answer_and_no_mistake(unit):
    data = released_data(unit)
    assert {EXAMPLES, MISTAKES, STEPS} <= data.keys()
    assert (LESSON in data) == (REPOSITORY / "exercises" / f"{unit}.yaml").is_file()
    files = [path for path in (RELEASE / unit).rglob("*") if path.is_file() and path.name != data_file(unit)]
    texts = "".join([*(path.read_bytes().decode("utf-8", "ignore") for path in files), str(data)])
    texts += msgspec.json.encode(texts).decode()
    public = (REPOSITORY / "exercises" / f"{unit}.py").read_text()
    public += "".join(path.read_text() for path in release_files.modules())  # a hidden test may judge as they do
    assert [line for line in secret_lines(unit) if line in texts and line not in public] == []

    cells = json.loads((RELEASE / unit / f"{unit}.ipynb").read_text())["cells"]
    readme = (RELEASE / unit / "README.md").read_text()
    held = json.dumps(data)
    of_unit = "\n".join([held, readme, *(joined(cell["source"]) for cell in cells)])
    entries = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
    assert [entry.name for entry in entries if entry.name in of_unit] == []
    solutions = {line for one in catalogue.solutions(unit).values() for line in statements_of(one.source())}
    assert [line for line in solutions if line in of_unit] == []
    statements = {line for one in entries for line in statements_of(one.source())}
    assert [line for line in statements if line in held] == []
    written = written_answers((REPOSITORY / "solutions" / f"{unit}.py").read_text()).values()
    assert [answer for answer in written if answer[:60] in of_unit] == []
    words = ("BEGIN SOLUTION", "misconception", "pytest", "student.", "reference.")
    assert [word for word in words if word in of_unit] == []


class Kept:
    """The solutions, and every number and word that a grader shows them or has of them."""

    def __init__(self, unit):
        self.bench = candidate_bench(unit, None)
        self.tensors, self.texts = [], set()

    def ask(self, operation):
        given = self.bench.ask(operation)
        if isinstance(operation, Call):
            cotangents = operation.cotangents or ()
            self.keep([*operation.arguments.positional, *cotangents, given.value, given.gradients])
        elif isinstance(operation, LoadParameters):
            self.keep(list(operation.values.values()))
        return given

    def keep(self, value):
        if isinstance(value, torch.Tensor):
            self.tensors.append(value.detach().double())
        elif isinstance(value, str):
            self.texts.add(value)
        elif isinstance(value, dict):
            self.keep(list(value))
        elif isinstance(value, list | tuple):
            for one in value:
                self.keep(one)


def released_values(plain):
    """Every value that the released examples hold."""
    if isinstance(plain, dict) and ("plain" in plain or ("shape" in plain and "sums" not in plain)):
        yield decode_value(plain)
    elif isinstance(plain, dict | list):
        for one in plain.values() if isinstance(plain, dict) else plain:
            yield from released_values(one)


def tells(tensor):
    """Return whether a tensor holds drawn numbers: not few, and not only zeros and ones."""
    return tensor.numel() > 3 and len(tensor.unique()) > 3


@pytest.fixture(scope="module")
def graders():
    return collect()


@pytest.mark.parametrize("unit", sampling.thinned(course.unit_names(), 3))
def test_no_released_example_has_a_hidden_case_s_numbers(graders, unit):
    hidden, public = Kept(unit), Kept(unit)
    for its_graders in graders[unit].values():
        for grader in its_graders:
            grader.run(StudentProxy(public if grader.is_public else hidden))
    released = Kept(unit)
    examples = released_data(unit)[EXAMPLES]
    released.keep(list(released_values(examples)))
    shapes = {}
    for one in filter(tells, released.tensors):
        shapes.setdefault(one.shape, []).append(one)
    assert len(shapes) > 10
    for one in filter(tells, hidden.tensors):
        if any(torch.equal(one, other) for other in public.tensors):
            continue
        assert not any(torch.allclose(one, other, rtol=1e-4) for other in shapes.get(one.shape, ()))
    words = {text for text in hidden.texts - public.texts if len(text) > 3}
    assert [text for text in words if json.dumps(text) in json.dumps(examples)] == []
