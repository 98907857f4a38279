"""Formatting that misbehaves costs no page, no grade and no time.

What formats is really made to misbehave here: its process runs a copy of the code to which a few lines are added.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from nbconvert.exporters import HTMLExporter

from autograder import course
from autograder.formatting import client
from autograder.formatting.client import Formatter, PageFormatter
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import course_directory, nbgrader_api, nbgrader_settings
from autograder.reports import pages
from autograder.sandbox.confine import scratch
from autograder.sandbox.limits import PageLimits
from tests import REPOSITORY, sampling
from tests.processes import kill, runs, started_by
from tests.recorded_class import UNIT, RecordedClass, everything, feedback_page, notebook, put_submission
from tests.typed import stored

LONG = 60
"""Seconds that no page takes, on a machine however busy, where nothing holds it up."""

STORED = stored("formatting")
ACTS = STORED["acts"]
SENTENCE = re.compile(
    "This cell (took too long to format|could not be formatted), so it is shown as plain text."
    "|Formatted, this cell would be too long for the page, so it is shown as plain text."
)
LOOKING = STORED["looking"]


def _append_to_pages(monkeypatch, code):
    """Append code to the module `rendering` of each formatter that is started."""
    copy_packages = client.copy_packages

    def copy_and_append(names, folder):
        copy_packages(names, folder)
        with (folder / "formatting" / "rendering.py").open("a") as file:
            file.write(code)

    monkeypatch.setattr(client, "copy_packages", copy_and_append)


@pytest.fixture
def misbehaving(monkeypatch):
    """Make the formatter do what a word in a text says."""
    acts = {**ACTS, "looks_around": LOOKING % str(REPOSITORY)}
    lines = ["", "_rightly = markdown2html", "def markdown2html(source):"]
    for word, act in acts.items():
        lines += [f"    if {word!r} in source:", *(f"        {line}" for line in act.split("\n") if line)]
    _append_to_pages(monkeypatch, "\n".join([*lines, "    return _rightly(source)", ""]))
    pages.of_this_process.cache_clear()
    yield
    pages.of_this_process.cache_clear()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A course without submissions; nbgrader takes seconds to make its gradebook."""
    root = tmp_path_factory.mktemp("empty")
    ClassGradebook(course_directory(root), UNIT).close()
    return root


@pytest.fixture
def root(empty, tmp_path):
    """A course of its own for each test."""
    return Path(shutil.copytree(empty, tmp_path / "course"))


@pytest.fixture(scope="module")
def recorded(grading_process):
    return RecordedClass(grading_process, is_warm=False)


@pytest.fixture
def class_of(recorded, root):
    """Grades a class, between ada and zoe those of these names; the course's folder."""

    def grade(*others):
        for student in ("ada", *others, "zoe"):
            put_submission(root, student, notebook(why_softmax=f"*It is {student}.*"))
        result = recorded.grade(root)
        assert [row.problem for row in result.rows] == [""] * (2 + len(others))
        assert {row.report.score for row in result.rows} == {18.0}
        return root

    return grade


def with_cells(*cells):
    content = json.loads(notebook())
    for number, (kind, source) in enumerate(cells):
        outputs = {"outputs": [], "execution_count": None} if kind == "code" else {}
        content["cells"].append({"id": f"n{number}", "cell_type": kind, "metadata": {}, "source": source, **outputs})
    return json.dumps(content).encode()


def page_of(root, student):
    return feedback_page(root, student).read_text()


def others_are_unharmed(root):
    return all(f"<em>It is {student}.</em>" in page_of(root, student) for student in ("ada", "zoe"))


def in_formgrader(root, student):
    """The page that formgrader shows, made as formgrader makes it."""
    config = nbgrader_settings(root)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = pages.templates()
    about = dict.fromkeys(("base_url", "notebook_path", "filename", "last_name", "first_name"), "")
    about |= {"assignment_id": UNIT, "notebook_id": UNIT, "submission_id": "1", "index": 0, "total": 3}
    about["student"] = student
    file = root / "autograded" / student / UNIT / f"{UNIT}.ipynb"
    return HTMLExporter(config=config).from_filename(str(file), resources=about)[0]


def says_what_it_lacks(page, act):
    return SENTENCE.search(page) and f"<pre>*It is {act}.*</pre>" in page


IN_FORMGRADER_TOO = ("hangs", "exits")
OTHERS = [act for act in ACTS if act not in IN_FORMGRADER_TOO]


@pytest.mark.parametrize("acts", [OTHERS[::2], OTHERS[1::2], IN_FORMGRADER_TOO], ids=lambda acts: acts[0])
def test_a_grade_is_recorded_and_the_page_says_what_is_missing(class_of, misbehaving, acts):
    """From `grade`; and, of two, from nbgrader's own command and in formgrader."""
    begun = time.monotonic()
    root = class_of(*acts)
    assert time.monotonic() - begun < LONG
    assert [act for act in acts if not says_what_it_lacks(page_of(root, act), act)] == []
    assert others_are_unharmed(root)
    if acts != IN_FORMGRADER_TOO:
        return
    shutil.rmtree(root / "feedback")
    begun = time.monotonic()
    assert nbgrader_api(root).generate_feedback(UNIT)["success"]
    shown = {student: in_formgrader(root, student) for student in (*acts, "zoe")}
    assert time.monotonic() - begun < LONG
    assert [act for act in acts if not says_what_it_lacks(page_of(root, act), act)] == []
    assert [act for act in acts if not says_what_it_lacks(shown[act], act)] == []
    assert others_are_unharmed(root)
    assert "<em>It is zoe.</em>" in shown["zoe"]


def test_a_page_has_a_budget_and_the_next_has_its_own(misbehaving, recorded, root):
    """Forty cells of a second each would take forty seconds; what comes after them is plain and says why."""
    cells = [("markdown", f"Number {number} hangs.") for number in range(40)]
    put_submission(root, "mallory", with_cells(*cells, ("markdown", "The *last* one.")))
    put_submission(root, "zoe", notebook(why_softmax="*It is zoe.*"))
    recorded.grade(root)
    for page, other in (
        (page_of(root, "mallory"), page_of(root, "zoe")),
        (in_formgrader(root, "mallory"), in_formgrader(root, "zoe")),
    ):
        ended = page.count("This cell took too long to format")
        assert 1 <= ended <= PageLimits().page_cpu_seconds
        assert page.count("This page took too long to format, so this cell is shown as plain text.") >= 40 - ended
        assert "The *last* one." in page
        assert "<em>It is zoe.</em>" in other


@pytest.mark.parametrize("broken", ["raise ImportError", "import time; time.sleep(10_000)"])
def test_a_formatter_that_does_not_start_costs_no_mark(class_of, monkeypatch, broken):
    _append_to_pages(monkeypatch, broken)
    monkeypatch.setattr(client, "START_SECONDS", 1)
    root = class_of("mallory")
    for student in ("ada", "mallory", "zoe"):
        assert f"<pre>*It is {student}.*</pre>" in page_of(root, student)
        assert "Formatting does not work here at the moment" in page_of(root, student)


def test_nothing_is_formatted_without_the_required_isolation(monkeypatch):
    """No level can be had, and the submissions are not trusted."""
    monkeypatch.setattr(client.isolation, "missing", lambda level: "needs another machine.")
    begun = []
    monkeypatch.setattr(client, "launch", lambda *terms: begun.append(terms))
    with Formatter(PageLimits(), "best", trust_submissions=False) as formatter:
        assert "Formatting does not work here" in PageFormatter(formatter).markdown("*a*")
    assert not begun


@pytest.mark.parametrize("level", ["A", "B"])
def test_the_formatter_is_confined(misbehaving, level):
    with Formatter(PageLimits(), level, trust_submissions=False) as formatter:
        assert PageFormatter(formatter).markdown("looks_around") == " ".join(["refused"] * 6)


@pytest.mark.parametrize("level", ["A", "B", "none"])
def test_a_formatter_that_is_killed_is_replaced(level):
    with Formatter(PageLimits(), level, trust_submissions=level == "none") as formatter:
        page = PageFormatter(formatter)
        _, (process,) = started_by(formatter.start)
        assert "<em>a</em>" in page.markdown("*a*")
        kill(process)
        # Some are lost with it, and with its child, which ends a little later.
        assert any(f"<em>{number}</em>" in page.markdown(f"*{number}*") for number in range(10))


def test_nothing_is_left_of_a_formatter(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(scratch.tempfile, "tempdir", None)
    with Formatter(PageLimits(), "best", trust_submissions=False) as formatter:
        _, (process,) = started_by(formatter.start)
        assert "<em>a</em>" in PageFormatter(formatter).markdown("*a*")
        assert not list(tmp_path.iterdir())
    assert not runs(process)


ATTACKS = {
    "a fence that pygments never ends": [("markdown", "```mcschema\n<!--\n```")],
    "a fence of blanks": [("markdown", "```autohotkey\n" + " " * 9900 + "x\n```")],
    "code of line ends": [("code", "#" + "\n" * 9900 + "#")] * 3,
    "raw cells": [("raw", "<a " * 50_000)] * 10,
    "brackets that mistune follows": [("markdown", "[*" * 600)],
    "one large raw cell": [("raw", "<" * (15 << 20))],
    "links as IPython 1 made them": [("markdown", "[](files/" * 1100)] * 20,
    "text of line ends": [("markdown", "\n" * 900_000)],
    "a thousand cells of quotes": [("code", "'''" * 100)] * 1000,
    "magics of another language": [("code", "%%javascript\n" + "/" * 400)] * 20,
    "colours": [("code", "print('\x1b[31m' * 2000)")] * 30,
}


TRIED = {f"mallory-{number}": attack for number, attack in enumerate(sampling.thinned(ATTACKS, 3))}
"""The students who submit an attack."""


@pytest.fixture(scope="module")
def attacked(recorded, empty, tmp_path_factory):
    """The graded folder of a class in which everyone submits an attack, and the resulting rows by student."""
    root = shutil.copytree(empty, tmp_path_factory.mktemp("attacked") / "course")
    for student, attack in TRIED.items():
        put_submission(root, student, with_cells(*ATTACKS[attack]))
    return root, {row.student: row for row in recorded.grade(root).rows}


@pytest.mark.parametrize("student", TRIED, ids=TRIED.get)
def test_pages_of_attacks_are_made(attacked, student):
    """A page of a size that a browser shows, from `grade` and in formgrader."""
    root, rows = attacked
    assert (rows[student].problem, rows[student].report.score) == ("", 18.0)
    begun = os.times()
    shown = in_formgrader(root, student)
    used = os.times()
    assert used.user - begun.user < LONG / 2
    for page in (page_of(root, student), shown):
        assert re.search(r"softmax\D*(\d+) of \1\b", page)
        assert len(page) < 8_000_000
    assert (root / "autograded" / student / UNIT / f"{UNIT}.ipynb").stat().st_size < 32 << 20


def test_scores_comments_and_verdicts_stand_on_a_page_that_is_cut(recorded, root):
    put_submission(root, "ada", with_cells(*[("raw", "a" * 80_000)] * 50, ("markdown", "z" * 100)))
    recorded.grade(root)
    page = page_of(root, "ada")
    assert page.count("The rest of this cell is left out here") == 51
    assert "z" * 100 not in page
    assert page.count('<td class="n score">') > len(course.unit(UNIT).exercises)
    before = everything(root)
    recorded.grade(root)
    assert everything(root) == before
