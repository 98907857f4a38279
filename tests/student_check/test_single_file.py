"""A notebook without other files next to it contains them, or fetches them. Grades are the same."""

import http.server
import json
import shutil
import threading

import nbformat
import pytest

from autograder import course
from autograder.build.release_files import single_file, single_files, write_single_files
from autograder.build.source_notebook import BuildError, guarded
from autograder.course.cells import CARRIED
from autograder.course.notebook import parse
from autograder.course.settings import BadSettings, load
from autograder.gradebook.clean_notebook import CHECK_LEFT_OUT, clean
from autograder.student_check.unit_data import data_file
from tests import RELEASE, REPOSITORY
from tests.typed import solved

UNIT = "dot_product_attention"
WRONG = {"softmax": "def softmax(scores, dim=-1):\n    return scores.exp() / scores.exp().sum()"}


def carrying(content, source=None):
    """The notebook with the cell that carries the check, whatever stands in it now."""
    notebook = nbformat.reads(content.decode(), as_version=4)
    cells = single_file(RELEASE / UNIT / f"{UNIT}.ipynb", "attention_check").cells
    (at,) = (number for number, cell in enumerate(cells) if cell.id == CARRIED)
    notebook.cells.insert(at, cells[at])
    notebook.cells[at].source = source or cells[at].source
    return nbformat.writes(notebook).encode()


def test_both_forms_get_the_same_mark_whatever_stands_in_the_carried_cell(grading_process):
    beside = solved(UNIT, **WRONG)
    forms = {
        "beside": beside,
        "carried": carrying(beside),
        "changed": carrying(beside, "import os\nos._exit(1)"),
        "cleaned": nbformat.writes(clean(parse(carrying(beside)), UNIT)).encode(),
    }
    marks = {form: grading_process.grade(f"{form}.ipynb", content, UNIT) for form, content in forms.items()}
    right = marks["beside"]
    assert 0 < right.score < right.max_score
    for mark in marks.values():
        assert mark.exercises == right.exercises
        assert (mark.status, mark.message, len(mark.cells)) == (right.status, right.message, len(right.cells))


def test_what_is_kept_of_it_is_a_sentence():
    kept = clean(parse(carrying(solved(UNIT))), UNIT)
    assert [cell.cell_type for cell in kept.cells if cell.source == CHECK_LEFT_OUT] == ["raw"]
    assert len(nbformat.writes(kept)) < len(nbformat.writes(single_file(course.released(UNIT), "attention_check"))) / 3


def test_single_files_are_written_again_only_where_they_changed(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.build.release_files.folder", lambda: tmp_path)
    shutil.copytree(RELEASE / UNIT, tmp_path / "release" / UNIT)
    texts = single_files(tmp_path, "attention_check")
    (path,) = write_single_files(texts)
    assert path.as_posix() == f"single_file/{UNIT}.ipynb"
    assert write_single_files(single_files(tmp_path, "attention_check")) == []
    (tmp_path / path).write_text("{}")
    assert write_single_files(texts) == [path]
    with pytest.raises(
        BuildError, match="no cell imports the check; begin a line of a cell with `from layers_check import"
    ):
        single_files(tmp_path, "layers_check")


def test_check_and_single_file_are_not_given_together(autograder):
    done = autograder("build", "--check", "--single-file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--check changes nothing")


@pytest.fixture
def served(tmp_path):
    """A unit's files at an address, with a check of one line; gives the address and the folder."""
    folder = tmp_path / "served" / "unit"
    folder.mkdir(parents=True)
    for name in (data_file("unit"), "lone_check.zip"):
        (folder / name).write_text(name)
    (folder / "lone_check.py").write_text("def check(name):\n    return f'checks {name}'\n\n\nhint = check\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder.parent)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/unit", folder
        server.shutdown()


def test_a_lone_notebook_fetches_its_files_or_says_that_it_could_not(served, tmp_path, monkeypatch):
    address, folder = served
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    cell = guarded("from lone_check import check", "lone_check", address, ["hint"])
    (folder / data_file("unit")).rename(folder / "away")
    with pytest.raises(FileNotFoundError, match=r"lone_check\.py is missing, and could not be fetched from http.*404"):
        exec(cell, {})
    (folder / "away").rename(folder / data_file("unit"))
    names = {}
    exec(cell, names)
    assert names["check"]("softmax") == names["hint"]("softmax") == "checks softmax"
    assert {path.name for path in here.iterdir()} == {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("address", ["ftp://somewhere/files", "http://somewhere/files", 'https://a"b', "release"])
def test_an_address_to_fetch_from_that_cannot_be_trusted_is_refused(address, tmp_path):
    settings = (REPOSITORY / "autograder.toml").read_text()
    file = tmp_path / "autograder.toml"
    file.write_text(settings.replace('files_at = ""', f"files_at = {json.dumps(address)}"))
    with pytest.raises(BadSettings, match="files_at must be empty, or an address that begins with https://"):
        load(file)
