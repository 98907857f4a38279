"""Files that are there whole or not at all, and those of which a class needs one."""

import tempfile
from pathlib import Path

import pytest

from autograder.output_files import CommonFile, fill_folder

MODE = 0o444
CHECK, NOTEBOOK = "attention_check.py", "unit.ipynb"


@pytest.fixture
def check():
    return CommonFile(b"print('check')\n")


def test_a_file_of_every_student_takes_the_disk_once(check, tmp_path):
    folders = [tmp_path / student for student in ("alice", "bob", "cleo")]
    for folder in folders:
        fill_folder(folder, {CHECK: check, NOTEBOOK: folder.name.encode()}, MODE)
    assert len({(folder / CHECK).stat().st_ino for folder in folders}) == 1
    assert {(folder / CHECK).read_bytes() for folder in folders} == {b"print('check')\n"}
    assert [(folder / NOTEBOOK).read_text() for folder in folders] == ["alice", "bob", "cleo"]


def test_a_folder_that_is_filled_again_has_the_same_files(check, tmp_path):
    for student in ("alice", "bob", "alice", "bob"):
        fill_folder(tmp_path / student, {CHECK: check, NOTEBOOK: b"{}"}, MODE)
    names = {path.name for student in ("alice", "bob") for path in (tmp_path / student).iterdir()}
    assert names == {CHECK, NOTEBOOK}


def test_what_somebody_did_to_one_file_reaches_no_later_one(check, tmp_path):
    fill_folder(tmp_path / "alice", {CHECK: check}, MODE)
    (tmp_path / "alice" / CHECK).chmod(0o644)
    (tmp_path / "alice" / CHECK).write_text("print('changed')\n")
    fill_folder(tmp_path / "bob", {CHECK: check}, MODE)
    assert (tmp_path / "bob" / CHECK).read_bytes() == b"print('check')\n"
    assert (tmp_path / "bob" / CHECK).stat().st_mode & 0o777 == MODE
    (tmp_path / "bob" / CHECK).unlink()
    fill_folder(tmp_path / "cleo", {CHECK: check}, MODE)
    assert (tmp_path / "cleo" / CHECK).read_bytes() == b"print('check')\n"


def test_on_another_file_system_the_file_is_written(check, tmp_path):
    fill_folder(tmp_path / "alice", {CHECK: check}, MODE)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        assert Path(elsewhere).stat().st_dev != tmp_path.stat().st_dev
        fill_folder(Path(elsewhere, "bob"), {CHECK: check}, MODE)
        assert [path.name for path in Path(elsewhere, "bob").iterdir()] == [CHECK]
        assert Path(elsewhere, "bob", CHECK).read_bytes() == b"print('check')\n"
