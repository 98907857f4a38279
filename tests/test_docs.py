"""What the pages in docs/ say is so."""

import csv
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from autograder import course
from autograder.cli import app
from autograder.report import ExerciseStatus, SubmissionStatus
from tests import REPOSITORY

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


def in_a_shell(tmp_path, *commands):
    """Runs a page's commands one after another in one shell; what they printed."""
    kit = tmp_path / "kit"
    kit.mkdir()
    script = "\n".join(["set -ex", *commands])
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "AUTOGRADER_COURSE": str(REPOSITORY)}
    ran = subprocess.run(["bash"], input=script, cwd=kit, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


CLASS = "id,first_name\namara,Amara\nchiara,Chiara\ndmitri,Dmitri\nnoor,Noor\n"
OF_ONE_ACCOUNT = f"printf '{CLASS}' > roster.csv\necho 'c.ExchangeCollect.check_owner = False' >> nbgrader_config.py\n"


def handing_in(tmp_path, *students):
    """Commands after which these have handed in."""
    inbound = tmp_path / "autumn" / "exchange" / "attention" / "inbound"
    return "".join(
        f"mkdir -p {(place := f'{inbound}/{student}+{UNIT}+2026-11-20 10:00:00 UTC+x')!r}\n"
        f"cp {REPOSITORY}/demo/submitted/{student}/{UNIT}/{UNIT}.ipynb {place!r}\n"
        f"echo '2026-11-20 10:00:00 UTC' > {place + '/timestamp.txt'!r}\n"
        f"echo {student} > {place + '/submission_secret.txt'!r}\n"
        f"chmod 777 {place!r}\n"
        for student in students
    )


def test_an_instructor_gets_by_the_page_from_a_clone_to_marks(tmp_path):
    """Every command of docs/instructor.md, in its order and in one shell; what students do is put between them.

    The last, which never ends, runs until there is the page of one who hands in then.
    """
    make, release, due, collect, grade, report, back, serve = blocks("instructor.md")
    two, third = handing_in(tmp_path, "amara", "chiara"), handing_in(tmp_path, "dmitri")
    pages = "exchange/attention/feedback"
    until_done = f"until [ $(ls {pages} | wc -l) = 3 ]; do kill -0 $!; sleep 0.1; done\nsleep 1\nkill $!\nwait $!"
    till_back = [make, release, due, OF_ONE_ACCOUNT, two, collect, grade, report, back]
    said = in_a_shell(tmp_path, *till_back, "echo SERVED", third, f"{serve.strip()} &", until_done)
    with (tmp_path / "autumn" / "marks.csv").open() as marks:
        found = {row["student_id"]: row for row in csv.DictReader(marks)}
    assert set(found) == {"amara", "chiara", "dmitri", "noor"}
    assert "divided_by_d_k" in (tmp_path / "autumn" / "reports" / UNIT / "report.html").read_text()
    released = list((tmp_path / "autumn" / "exchange").rglob("feedback/*.html"))
    assert len(released) == 3
    lines = [line.split()[1:3] for line in said.partition("SERVED")[2].splitlines() if " graded " in line]
    assert lines == [["dmitri", "graded"]]


def test_every_command_that_the_pages_name_is_one():
    pages = [*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    named = {
        found for page in pages for found in re.findall(r"(?:    |`|/)autograder ([a-z][a-z-]+)", page.read_text())
    }
    known = {command.name or command.callback.__wrapped__.__name__ for command in app().registered_commands}
    assert "slides" in named
    assert named <= {name.replace("_", "-") for name in known}


def test_the_points_that_teachers_read_are_those_of_the_units():
    rows = re.findall(r"^\| `(\w+)` \| \d+[^|]*\| (\d+) \|$", (REPOSITORY / "docs" / "teaching.md").read_text(), re.M)
    assert {unit: float(points) for unit, points in rows} == {
        unit: sum(course.points(unit).values()) for unit in course.unit_names()
    }
