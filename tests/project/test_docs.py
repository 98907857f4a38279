"""The pages in docs/ are true."""

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import typing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import __version__, course
from autograder.cli import app
from autograder.course.settings import load
from autograder.report import ExerciseStatus, SubmissionStatus
from tests import REPOSITORY, forked_command

UNIT = "self_attention"
BIN = Path(sys.executable).parent
TROUBLE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()


@pytest.mark.parametrize("status", sorted({*typing.get_args(SubmissionStatus), *typing.get_args(ExerciseStatus)}))
def test_each_status_is_explained(status):
    first_cells = [line.split("|")[1] for line in TROUBLE.splitlines() if line.startswith("|")]
    assert any(f"`{status}`" in cell for cell in first_cells)


def blocks(page):
    """The shell commands of a page, block by block."""
    return re.findall(r"^```sh\n(.*?)^```", (REPOSITORY / "docs" / page).read_text(), re.M | re.S)


ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "AUTOGRADER_COURSE": str(REPOSITORY)}


class Typing:
    """Somebody who types a page's commands one after another, and stands in the folder to which they went.

    Each has one processor: `grade` and `serve` start as many markers as they may use, and there are few notebooks.
    """

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder

    def types(self, block):
        """Each of these commands ends well."""
        for line in block.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            if program == "cd":
                (where,) = arguments
                self.folder = (self.folder / where).resolve(strict=True)
            else:
                running = self._started(program, *arguments)
                said = running.communicate()
                assert running.returncode == 0, said

    def leaves_running(self, line, until):
        """Return the output of a command that never ends, ended a second after a condition holds."""
        running = self._started(*shlex.split(line))
        while not until():
            assert running.poll() is None, "it has ended by itself"
            time.sleep(0.1)
        time.sleep(1)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate()
        assert running.returncode == 0
        return said

    def _started(self, *command):
        running = forked_command.Started(*command, cwd=self.folder, env=ENVIRONMENT)
        os.sched_setaffinity(running.pid, {max(os.sched_getaffinity(0))})
        return running


def put_submission(course, *students):
    """Submit these students' notebooks through the exchange."""
    for student in students:
        place = course / "exchange" / "attention" / "inbound" / f"{student}+{UNIT}+2026-11-20 10:00:00 UTC+x"
        place.mkdir(parents=True)
        shutil.copy(REPOSITORY / "demo" / "submitted" / student / UNIT / f"{UNIT}.ipynb", place)
        (place / "timestamp.txt").write_text("2026-11-20 10:00:00 UTC\n")
        (place / "submission_secret.txt").write_text(f"{student}\n")
        place.chmod(0o777)


def test_an_instructor_gets_by_the_page_from_a_clone_to_marks(tmp_path):
    """Every command of docs/instructor.md, in its order; what students do is done between them.

    The last command never ends: it runs until a student who submits meanwhile has a page.
    """
    make, release, due, extend, collect, *graded, serve = blocks("instructor.md")
    instructor, course = Typing(tmp_path / "kit"), tmp_path / "autumn"
    for block in (make, release, due):
        instructor.types(block)
    assert instructor.folder == course
    (course / "roster.csv").write_text("id,first_name\namara,Amara\nchiara,Chiara\ndmitri,Dmitri\nnoor,Noor\n")
    (course / "extensions.csv").write_text("student,by\ndmitri,1d\n")
    instructor.types(extend)
    with (course / "nbgrader_config.py").open("a") as settings:  # one account hands in for all
        settings.write("c.ExchangeCollect.check_owner = False\n")
    put_submission(course, "amara", "chiara")
    for block in (collect, *graded):
        instructor.types(block)
    pages = course / "exchange" / "attention" / "feedback"
    assert len(list(pages.glob("*.html"))) == 2
    put_submission(course, "dmitri")
    said = instructor.leaves_running(serve, until=lambda: len(list(pages.glob("*.html"))) == 3)
    with (course / "marks.csv").open() as marks:
        found = {row["student_id"]: row for row in csv.DictReader(marks)}
    assert set(found) == {"amara", "chiara", "dmitri", "noor"}
    assert "divided_by_d_k" in (course / "reports" / UNIT / "report.html").read_text()
    released = list((course / "exchange").rglob("feedback/*.html"))
    assert len(released) == 3
    lines = [line.split()[1:3] for line in said.splitlines() if " graded " in line]
    assert lines == [["dmitri", "graded"]]


PAGES = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs" / "design").glob("*.md")), ids=lambda page: page.stem)
def test_each_class_that_a_design_page_names_is_in_the_code(page):
    code = "\n".join(path.read_text() for path in (REPOSITORY / "autograder").rglob("*.py"))
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", page.read_text()))
    assert sorted(name for name in named if not re.search(rf"\b{name}\b", code)) == []


def anchors(page):
    """The anchors of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_each_link_leads_to_a_file_and_a_heading(page):
    lost = []
    for path, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append((path, anchor))
    assert lost == []


def test_each_page_is_reached_by_links_from_the_readme():
    reached, new = set(), {REPOSITORY / "README.md"}
    while new:
        reached |= new
        links = {page.parent / link for page in new for link in re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text())}
        new = {link.resolve() for link in links if link.suffix == ".md"} - reached
    assert set(PAGES) - reached == set()


def test_the_command_without_arguments_shows_three_paths():
    shown = [re.sub(r"\s+", " ", line) for line in CliRunner().invoke(app(), []).output.split("\n") if line.strip()]
    paths = " ".join(shown[-6:])
    for path in (
        "Learn: open a notebook in `release/`",
        "Teach: `autograder new-course ",
        "Write tests: `autograder new-exercise ",
    ):
        assert path in paths
    assert all((REPOSITORY / page).is_file() for page in re.findall(r"`(\S+\.md)`", paths))


def test_every_command_that_the_pages_name_is_one():
    named = {
        found for page in PAGES for found in re.findall(r"(?:    |`|/)autograder ([a-z][a-z-]+)", page.read_text())
    }
    known = {command.name or command.callback.__wrapped__.__name__ for command in app().registered_commands}
    assert "slides" in named
    assert named <= {name.replace("_", "-") for name in known}


def test_the_points_that_teachers_read_are_those_of_the_units():
    rows = re.findall(r"^\| `(\w+)` \| \d+[^|]*\| (\d+) \|$", (REPOSITORY / "docs" / "teaching.md").read_text(), re.M)
    assert {unit: float(points) for unit, points in rows} == {
        unit: sum(course.unit(unit).points.values()) for unit in course.unit_names()
    }


README = (REPOSITORY / "README.md").read_text()


def test_the_readme_lists_the_units_with_their_minutes_and_points():
    rows = re.findall(r"^\| \d\. \[(\w+)\]\((\S+)\) \|.*\| (\d+) \| (\d+) \|$", README, re.M)
    teaching = (REPOSITORY / "docs" / "teaching.md").read_text()
    for_teachers = re.findall(r"^\| `(\w+)` \| (\d+)[^|]*\| (\d+) \|$", teaching, re.M)
    assert [(unit, minutes, points) for unit, _, minutes, points in rows] == for_teachers
    assert all((REPOSITORY / notebook).is_file() for _, notebook, _, _ in rows)


def test_the_readme_has_the_figures_of_the_reports():
    report = (REPOSITORY / "docs" / "matrix.md").read_text()
    known, detected, advisory, diagnosed, wrong, right, refused = map(
        int, re.search(r"^\| \*\*all\*\* \|(.*)\|$", report, re.M)[1].split("|")
    )
    times_less = re.search(r"one worker \|.*\| ([\d.]+) times", (REPOSITORY / "docs/performance.md").read_text())
    assert (detected + advisory, diagnosed, wrong, refused) == (known, known, 0, 0)
    assert f"all {known:,} known mistakes" in " ".join(README.split())
    assert f"none of {right} alternative solutions" in README
    assert f"takes {float(times_less[1]):.0f} times less CPU time" in README


COLAB = r"\[colab\]: https://colab\.research\.google\.com/github/([\w-]+/[\w.-]+)/blob/main/(release)/(\S+)\n"


def test_the_link_to_colab_opens_a_released_notebook_that_finds_its_files():
    repository, folder, notebook = re.search(COLAB, README).groups()
    assert (REPOSITORY / folder / notebook).is_file()
    if repository != "OWNER/NAME":  # the placeholder
        assert load().files_at == f"https://raw.githubusercontent.com/{repository}/main/{folder}"


def test_make_address_writes_the_address_wherever_it_is_used(tmp_path):
    for file in ("Makefile", "README.md", "autograder.toml"):
        shutil.copy(REPOSITORY / file, tmp_path)
    for repository in ("another/one", "a-school/attention.kit"):
        subprocess.run(["make", "address", f"REPOSITORY={repository}"], cwd=tmp_path, check=True)
    assert re.search(COLAB, (tmp_path / "README.md").read_text())[1] == repository
    assert load(tmp_path / "autograder.toml").files_at == f"https://raw.githubusercontent.com/{repository}/main/release"
    refused = subprocess.run(["make", "address", "REPOSITORY=a|b"], cwd=tmp_path, capture_output=True)
    assert refused.returncode != 0


def test_every_benchmark_that_the_pages_name_is_a_module():
    text = " ".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"python\s+-m\s+benchmarks\.(\w+)", text))
    assert len(named) > 10
    assert named <= {file.stem for file in (REPOSITORY / "benchmarks").glob("*.py")}


def test_changelog_and_citation_name_this_version():
    version, date = re.search(r"^## (\d\S*) - (\S+)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.M).groups()
    assert version == __version__
    assert f"\nversion: {version}\ndate-released: {date}\n" in (REPOSITORY / "CITATION.cff").read_text()


def test_every_file_exists_that_the_design_page_sends_an_engineer_to():
    page = (REPOSITORY / "docs" / "design.md").read_text()
    table = page.partition("## Where to change what\n")[2].partition("\n## ")[0]
    missing = []
    for row in table.splitlines():
        folder = REPOSITORY
        for name in re.findall(r"`([\w./-]+(?:\.(?:py|yaml|toml|j2)|/))`", row):
            found = [base / name for base in (REPOSITORY, REPOSITORY / "autograder", folder) if (base / name).exists()]
            missing += [] if found else [name]
            folder = found[0].parent if found else folder
    assert table.count("`autograder/") > 30
    assert missing == []
