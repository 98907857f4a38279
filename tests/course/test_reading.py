"""Submissions are read as they were inspected: links, pipes, swaps in between, and files of any size."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import course
from autograder.classroom.student_folders import Submission, SubmissionFiles
from autograder.course import notebook
from autograder.course.notebook_file import read_at
from autograder.course.submitted_files import OpenedFolder
from tests import RELEASE, REPOSITORY, forked_command, sampling, swapping
from tests.typed import solved

UNIT = swapping.UNIT
FULL = course.unit(UNIT).max_score
MARKER = "The instructor's own words, which nobody reads."
BIN = Path(sys.executable).parent


def right_notebook() -> bytes:
    return solved(UNIT, why_softmax=MARKER)


def released() -> bytes:
    return (RELEASE / UNIT / f"{UNIT}.ipynb").read_bytes()


def with_outputs(outputs: bytes) -> bytes:
    """A solved notebook, with these bytes as the outputs of its first cell of code."""
    data = json.loads(right_notebook())
    next(cell for cell in data["cells"] if cell["cell_type"] == "code")["outputs"] = "PLACE"
    return json.dumps(data).encode().replace(b'"PLACE"', outputs)


def with_swapped(tmp_path, students):
    """A course folder with these of `swapping`, an honest student, and what no student may see."""
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    for student in [*students, "honest"]:
        folder = tmp_path / "submitted" / student / UNIT
        folder.mkdir(parents=True)
        (folder / f"{UNIT}.ipynb").write_bytes(released())
        (folder / "timestamp.txt").write_text("2026-01-02 03:04:05 UTC")
    secret = tmp_path / "instructor" / UNIT
    secret.mkdir(parents=True)
    (secret / f"{UNIT}.ipynb").write_bytes(right_notebook())
    (secret / "timestamp.txt").write_text("1999-12-31 00:00:00 UTC")
    return tmp_path


def run_swapping(root, command, *arguments, **environment):
    result = forked_command.run(
        str(REPOSITORY / "tests" / "swapping.py"),
        root,
        command,
        *arguments,
        env={**os.environ, "COLUMNS": "250", "PATH": f"{BIN}:{os.environ['PATH']}"} | environment,
        cwd=root,
    )
    assert "Traceback" not in result.stderr
    return result


def nothing_of_the_instructors(root, *entered):
    """No mark and no word of the instructor's notebook is anywhere; these have an entry."""
    database = sqlite3.connect(root / "gradebook.db")
    entries = dict(database.execute("select student_id, timestamp from submitted_assignment"))
    scores = database.execute("select max(auto_score) from grade").fetchone()[0]
    database.close()
    assert {"honest", "file-link", "stamp-pipe", "unit-link", *entered} <= set(entries)
    assert not scores
    assert not any(time and time.startswith("1999") for time in entries.values())
    assert entries["honest"].startswith("2026-01-02 03:04:05")
    for path in [*(root / "autograded").rglob("*"), *(root / "feedback").rglob("*"), root / "gradebook.db"]:
        assert not path.is_file() or MARKER.encode() not in path.read_bytes(), path


def test_links_swapped_in_while_a_class_is_graded_are_never_followed(tmp_path):
    swapped = with_swapped(tmp_path, swapping.STUDENTS)
    for again in ({}, {"AGAIN": "1"}):  # the second run decides who is left alone
        result = run_swapping(swapped, "autograder", "grade", UNIT, "--course", swapped, "--markers", "1", **again)
        assert result.returncode == 0, result.stderr
        assert all(student in result.stdout for student in swapping.STUDENTS)
        assert MARKER not in result.stdout
        nothing_of_the_instructors(swapped, "file-link-again")


ONCE = [student for student in swapping.STUDENTS if not student.endswith("-again")]


def test_links_swapped_in_while_nbgrader_autogrades_are_never_followed(tmp_path):
    swapped = with_swapped(tmp_path, ONCE)
    shutil.copytree(REPOSITORY / "source" / UNIT, swapped / "source" / UNIT)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    assert forked_command.nbgrader("generate_assignment", UNIT, cwd=swapped, env=environment).returncode == 0
    result = run_swapping(swapped, "nbgrader", "autograde", UNIT)
    assert result.returncode == 0, result.stderr[-3000:]
    nothing_of_the_instructors(swapped)


READS = 20_000 if sampling.every else 4_000


@pytest.mark.parametrize("what", [f"{UNIT}/{UNIT}.ipynb", UNIT])
def test_a_process_that_swaps_as_fast_as_it_can_gains_nothing(tmp_path, what):
    secret = tmp_path / "instructor" / UNIT
    secret.mkdir(parents=True)
    (secret / f"{UNIT}.ipynb").write_bytes(b"THE SECRET")
    (tmp_path / "submitted" / "ada" / UNIT).mkdir(parents=True)
    swapper = subprocess.Popen([sys.executable, "-m", "tests.swapper", tmp_path, what], cwd=REPOSITORY)
    try:
        submissions = SubmissionFiles(tmp_path / "submitted", UNIT)
        seen = set()
        reads = 0
        # It may wait for a processor: what was swapped counts, not how long was waited.
        while reads < READS or notebook.UnreadableNotebook not in seen:
            assert swapper.poll() is None
            content = submissions.read(Submission("ada", f"{UNIT}.ipynb")).file.content
            seen.add(content if isinstance(content, bytes) else type(content))
            submissions.submission("ada")
            reads += 1
    finally:
        swapper.kill()
        swapper.wait()
    assert b"THE SECRET" not in seen
    assert notebook.UnreadableNotebook in seen


def test_a_file_that_grows_while_it_is_read_is_read_no_further_than_the_limit(tmp_path):
    """The limit holds regardless of the size when the file was opened."""
    file = tmp_path / f"{UNIT}.ipynb"
    file.write_bytes(b'{"nbformat": 4, "cells": [{"outputs": ["')
    grow = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    while file.tell() < 3 << 30:
        file.write(b"x" * (1 << 22))
"""
    growing = subprocess.Popen([sys.executable, "-c", grow, file])
    try:
        while file.stat().st_size < 20 << 20:
            time.sleep(0.01)
        assert "more than 256 MB" in str(read_at(file).content)
    finally:
        growing.kill()
        growing.wait()


def test_sixty_megabytes_of_outputs_are_marked_in_twice_their_memory(grading_process, tmp_path):
    file = tmp_path / f"{UNIT}.ipynb"
    picture = (
        b'[{"output_type": "display_data", "metadata": {}, "data": {"image/png": "' + b"iVBO" * (15 << 20) + b'"}}]'
    )
    file.write_bytes(with_outputs(picture))
    del picture
    tracemalloc.start()
    read = read_at(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(read.content) < 100_000
    assert peak < 2 * file.stat().st_size
    assert read.digest == subprocess.check_output(["sha256sum", file], text=True).split()[0]
    report = grading_process.grade(file.name, read.content, UNIT, digest=read.digest)
    assert (report.status, report.score) == ("graded", FULL)
    assert report.submission == read.digest


LARGE = 17 << 20
assert LARGE > notebook.MAX_BYTES
SLOW = {
    "brackets": (b"", b"[],[],"),
    "nested": (b"", b"["),
    "closed and opened": (b"", b"]["),
    "short strings": (b"", b'"",'),
    "quotes": (b"", b'"'),
    "escapes": (b'"', b"\\"),
    "escaped quotes": (b'"', b'\\"'),
    "names": (b"", b'{"a":'),
    "nothing": (b"", b"\0"),
    "digits": (b"", b"9"),
}
"""Beginning of a text, and the part that is repeated."""


WITHIN = {"in outputs": b'{"nbformat": 4, "cells": [{"outputs": [', "alone": b""}


@pytest.mark.parametrize(
    ("within", "begins", "goes_on"),
    [
        pytest.param(WITHIN[place], *SLOW[what], id=f"{place}-{what}")
        for place, what in sampling.thinned(product(WITHIN, SLOW), 5)
    ],
)
def test_no_content_of_a_large_file_takes_long_to_look_through(tmp_path, within, begins, goes_on):
    file = tmp_path / "hostile.ipynb"
    file.write_bytes(within + begins + goes_on * (LARGE // len(goes_on)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    notebook.parse(read_at(file).content)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 20


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{}:,\n\u00e9', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\[]{}:', max_size=3), inner, max_size=3),
    max_leaves=6,
)
_cells = st.fixed_dictionaries(
    {"cell_type": st.sampled_from(["code", "markdown", "outputs"])},
    optional={
        "source": st.text('ab"\\[]{}:,', max_size=200) | st.lists(st.text('a"\\]', max_size=5), max_size=3),
        "metadata": st.fixed_dictionaries(
            {}, optional={"nbgrader": st.fixed_dictionaries({"grade_id": st.text(max_size=5)}), "outputs": _values}
        ),
        "outputs": _values,
        "attachments": _values,
        "execution_count": st.none() | st.integers(),
        "id": st.text('a"\\', max_size=120),
    },
)
_notebooks = st.fixed_dictionaries(
    {"cells": st.lists(_cells, min_size=1, max_size=4), "nbformat": st.just(4)}, optional={"metadata": _values}
)


@given(_notebooks, st.sampled_from([None, 1]))
def test_removing_outputs_leaves_the_rest_of_a_notebook(data, indent):
    content = json.dumps(data, indent=indent, ensure_ascii=False).encode()
    kept = notebook.without_outputs(content)
    assert notebook.parse(kept) == notebook.parse(content)
    assert "outputs" not in json.loads(kept)["cells"][0]


@given(st.binary() | st.text('{}[]":,\\a').map(str.encode))
def test_any_bytes_can_be_searched(content):
    assert isinstance(notebook.without_outputs(content), notebook.UnreadableNotebook)


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "/etc", "a/b", "a\0b"])
def test_a_file_name_that_is_a_path_is_not_followed(tmp_path, name):
    (tmp_path / "in" / "a" / "b").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    with OpenedFolder.at(tmp_path / "in") as folder, pytest.raises(FileNotFoundError):
        folder.folder(name)
    assert SubmissionFiles(tmp_path / "in", "b").submission(name).notebook is None


def test_many_large_notebooks_under_other_names_are_soon_looked_at(tmp_path):
    folder = tmp_path / "ada" / UNIT
    folder.mkdir(parents=True)
    for number in range(300):
        with (folder / f"{number}.ipynb").open("wb") as file:
            file.write(b'{"nbformat": 4, "cells": [{"outputs": ["')
            file.truncate(250 << 20)
    before = time.process_time()
    submission = SubmissionFiles(tmp_path, UNIT).submission("ada")
    assert time.process_time() - before < 20
    assert submission.note == f"There is no `{UNIT}.ipynb`; `0.ipynb` was graded."
