"""The same class by every route: marks, gradebook, pages, report and tables are the same.

A route is where the gradebook is and how the class is marked; a new one is one more entry of ROUTES. That by a cluster
is in `test_cluster`, which has one.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import text

from autograder import catalogue
from autograder.classroom.assignment import assignment
from autograder.classroom.grade import grade
from autograder.course import settings
from autograder.course.cells import filled_in
from autograder.gradebook import nbgrader_course
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import course_directory, nbgrader_api
from tests.commands import run
from tests.postgresql_server import Server
from tests.recorded_class import UNIT, RecordedClass, everything, put_submission
from tests.served_unit import serve
from tests.typed import solution_sources

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

IN_TIME, LATE, DUE = "2026-01-01 16:00:00 UTC", "2026-01-01 19:30:00 UTC", datetime(2026, 1, 1, 17)
HALVED = "def context_vector(weights, inputs):\n    return 0.5 * (weights @ inputs) + 1"
"""No known mistake does this."""


@dataclass(frozen=True)
class Route:
    """A way for a class to its marks."""

    mark: Callable[[Path, RecordedClass], object]
    """Grade the submissions. The recorded class has a marking process, and its reports if they were made before."""
    address: Callable[[Server], str] | None = None
    """URL of the gradebook, if it is not in the course's folder."""


def by_two_markers(root: Path, recorded: RecordedClass) -> None:
    """Grade with two real grading processes, as `autograder grade --markers 2 --no-repair` does."""
    grade(assignment(UNIT, root, None, None), device="cpu", settings=settings.load(), process_count=2, repair=False)


def on_a_server(server: Server) -> str:
    """A database of its own."""
    return server.url(server.new_database())


USUAL = Route(lambda root, recorded: recorded.grade(root))
ROUTES = {"two markers": Route(by_two_markers), "PostgreSQL": Route(USUAL.mark, on_a_server), "serve": Route(serve)}


def hand_in_the_class(root: Path) -> None:
    """Right and wrong answers, a damaged notebook, one under another name, and one that is missing."""
    right = solution_sources(UNIT)
    wrong = {name: one.source() for name, one in catalogue.misconceptions(UNIT).items()}
    answers = {
        "ada": {},
        "bo": {"softmax": wrong["naive_exponentials"], "why_softmax": "So that they sum to 1."},
        "Zoe": {"softmax": wrong["naive_exponentials"], "context_vector": wrong["weights_ignored"]},
        "çelik": {"context_vector": HALVED},
        "dua": {"softmax": "def softmax(scores, dim=-1)\n    return scores"},
        "eino": {"pairwise_scores": 'def pairwise_scores(inputs):\n    raise ValueError("<b>no</b>")'},
        "late": {"context_vector": wrong["weights_ignored"]},
    }
    for student, own in answers.items():
        put_submission(root, student, filled_in(UNIT, {**right, **own}), LATE if student == "late" else IN_TIME)
    put_submission(root, "damaged", b"<html>Sign in</html>", IN_TIME)
    put_submission(root, "other", filled_in(UNIT, right), IN_TIME)
    folder = root / "submitted" / "other" / UNIT
    (folder / f"{UNIT}.ipynb").rename(folder / "mine.ipynb")
    names = [*answers, "damaged", "other", "missing"]
    lines = [f"{name},{name.title()},{'x' * 140 if name == 'ada' else 'Å'},{name}@example.org" for name in names]
    (root / "roster.csv").write_text("\n".join(["id,first_name,last_name,email", *lines]))


@dataclass
class Outcome:
    """Contents of a graded class, except for the gradebook's own ids and times."""

    rows: dict[str, list]
    attempts: list
    files: dict[str, tuple[int, bytes]]
    report: dict[str, object]
    page: str
    table: str
    export: str
    read_by_nbgrader: list


def outcome(root: Path) -> Outcome:
    rows, files = everything(root)
    with nbgrader_course.database_of(root).reading() as session:
        attempts = sorted(
            map(tuple, session.execute(text("select student, unit, submission, handed_in from autograder_attempt")))
        )
    files = {name: file for name, file in files.items() if name.startswith(("autograded/", "feedback/"))}
    told(root, "report", UNIT)
    made = root / "reports" / UNIT
    report = json.loads((made / "report.json").read_text())
    page = (made / "report.html").read_text()
    del report["made"]
    page = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", "", page)
    return Outcome(
        rows, attempts, files, report, page, (made / "report.csv").read_text(), told(root, "export", UNIT), seen(root)
    )


def told(root: Path, *command: str) -> str:
    return run(*command, "--course", root).stdout


def seen(root: Path) -> list:
    """Data of formgrader's pages."""
    api = nbgrader_api(root)
    held = [
        api.get_submissions(UNIT),
        api.get_notebook_submissions(UNIT, UNIT),
        api.get_students(),
        api.get_student_submissions("bo"),
        api.get_student_notebook_submissions("bo", UNIT),
    ]
    return [sorted(json.loads(json.dumps(of_one, default=str), object_hook=_without_ids), key=repr) for of_one in held]


def _without_ids(held: dict) -> dict:
    """Nor their place in the order of these."""
    is_persons = "last_name" in held and "student" not in held
    return {key: value for key, value in held.items() if key not in ("id", "index") or (key == "id" and is_persons)}


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    root = tmp_path_factory.mktemp("handed_in") / "course"
    hand_in_the_class(root)
    return root


def by(route: Route, handed_in: Path, root: Path, recorded: RecordedClass, server: Server | None) -> Outcome:
    """Grade a class by a route; return its contents, which a second run does not change."""
    shutil.copytree(handed_in, root, symlinks=True)
    address = f"c.CourseDirectory.db_url = {route.address(server)!r}\n" if route.address else ""
    penalty = "c.LateSubmissionPlugin.penalty_method = 'zero'\n"
    (root / "nbgrader_config.py").write_text(f"c = get_config()\n{penalty}{address}")
    directory = course_directory(root)
    with ClassGradebook(directory, UNIT), Gradebook(directory.db_url, directory.course_id) as opened:
        opened.find_assignment(UNIT).duedate = DUE
        opened.db.commit()
    route.mark(root, recorded)
    found, before = outcome(root), everything(root)
    route.mark(root, recorded)
    assert everything(root) == before
    return found


@pytest.fixture(scope="module")
def usual(handed_in, recorded, tmp_path_factory):
    """One grading_process, and a gradebook in the course's folder."""
    return by(USUAL, handed_in, tmp_path_factory.mktemp("usual") / "course", recorded, None)


def test_the_class_is_what_it_is_meant_to_be(usual):
    """So that what is compared is there."""
    statuses = {student: status for student, _, status, *_ in usual.rows["marks"]}
    assert statuses["damaged"] == "damaged"
    assert statuses["dua"] == "cells_failed"
    assert "missing" not in statuses
    assert len(statuses) == 9
    scores = dict(re.findall(r"^(\w+),.*?,\w+,([\d.]+),21,", usual.export, re.M))
    assert scores["ada"] == "18"
    assert scores["late"] == "0"
    assert {one["name"] for one in usual.report["mistakes"]} >= {"naive_exponentials", "weights_ignored"}
    assert len(usual.report["clusters"]) == 2
    assert len(usual.files) > 9
    assert len(usual.attempts) == 8


@pytest.mark.parametrize("name", ROUTES)
def test_all_is_the_same_by(name, usual, handed_in, recorded, request, tmp_path):
    route = ROUTES[name]
    server = request.getfixturevalue("postgresql") if route.address else None
    is_the_same(by(route, handed_in, tmp_path / "course", recorded, server), usual)


def is_the_same(found: Outcome, usual: Outcome) -> None:
    for part, wanted in vars(usual).items():
        assert getattr(found, part) == wanted, part
