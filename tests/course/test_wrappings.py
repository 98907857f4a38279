"""A submission is found in what students put around it, and no wrapping leads out of their folder or takes long."""

import io
import json
import os
import random
import resource
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from autograder import course
from autograder.classroom.student_folders import SubmissionFiles
from autograder.course import notebook
from autograder.course.cells import CARRIED
from autograder.course.notebook_file import read_at
from autograder.course.submitted_files import OpenedFolder
from autograder.serving.arrivals import FileFingerprint
from tests import RELEASE
from tests.recorded_class import NOT_GRADED_TOO
from tests.typed import solved

UNIT = "dot_product_attention"
NAME = f"{UNIT}.ipynb"
STUB = (RELEASE / UNIT / NAME).read_bytes()
SOLVED = solved(UNIT)
OLDER = SOLVED + b"\n"
CARRIES = {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": CARRIED}}, "source": "x = 1", "outputs": []}
SINGLE = json.dumps({"nbformat": 4, "cells": [CARRIES, *json.loads(STUB)["cells"]]}).encode()
ANOTHER = (RELEASE / "self_attention" / "self_attention.ipynb").read_bytes()


def packed_as(files, kind=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a name that is there twice
        for name, content in files.items():
            file.writestr(name, content)
    return stream.getvalue()


def submitted(tmp_path, files):
    """Return the content read from a student's submission and its note; the first file is the oldest."""
    folder = tmp_path / "ada" / UNIT
    folder.mkdir(parents=True)
    for number, (name, content) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1e9 + number, 1e9 + number))
    submissions = SubmissionFiles(tmp_path, UNIT)
    submission = submissions.submission("ada")
    return submissions, submission


def cells_of(content):
    parsed = notebook.parse(content)
    return parsed.cells if isinstance(parsed, notebook.RawNotebook) else str(parsed)


FOUND = {
    "JSON": {f"{NAME}.json": SOLVED},
    "text": {f"{NAME}.txt": SOLVED},
    "capitals": {f"{UNIT}.IPYNB": SOLVED},
    "without an ending": {UNIT: SOLVED},
    "ending in .json alone": {f"{UNIT}.json": SOLVED},
    "JSON with a name of its own": {"data.json": b"{}", "homework.json": SOLVED},
    "a zip with two endings": {f"{NAME}.zip": packed_as({f"{NAME}.zip": packed_as({f"{NAME}.txt": SOLVED})})},
    "a zip with an odd path": {"a.zip": packed_as({f"\u2764\ufe0f \u202e/caf\xe9/{NAME}": SOLVED})},
    "unfinished download": {f"{NAME}.download": SOLVED},
    "Colab's copy": {f"Copy of {NAME}": SOLVED},
    "a browser's copy": {f"{UNIT} (1).ipynb": SOLVED},
    "a folder": {f"work/{NAME}": SOLVED},
    "a folder in a folder": {f"a/b/{UNIT} (2).ipynb": SOLVED},
    "a folder with the notebook's name": {f"{NAME}/{NAME}": SOLVED},
    "a zip": {"work.zip": packed_as({NAME: SOLVED})},
    "a zip, stored": {"work.zip": packed_as({NAME: SOLVED}, zipfile.ZIP_STORED)},
    "a folder in a zip": {"work.zip": packed_as({f"a/b c/{NAME}.txt": SOLVED, f"__MACOSX/a/._{NAME}": b"x"})},
    "a zip in a zip": {"work.zip": packed_as({"a/inner.zip": packed_as({NAME: SOLVED}), "b.txt": b"x"})},
    "a zip in a zip in a zip": {"a.zip": packed_as({"b.zip": packed_as({"c.zip": packed_as({NAME: SOLVED})})})},
    "a zip in a folder": {"work/work.zip": packed_as({NAME: SOLVED})},
    "a zip with a notebook's name": {NAME: packed_as({"a.ipynb": SOLVED})},
    "a notebook with a zip's name": {"work.zip": SOLVED},
    "a stub beside it": {NAME: STUB, f"{UNIT} (1).ipynb": SOLVED},
    "a newer stub beside it": {f"{UNIT} (1).ipynb": SOLVED, NAME: STUB},
    "a stub that was run": {
        NAME: STUB.replace(b'"execution_count": null', b'"execution_count": 7'),
        "mine.ipynb": SOLVED,
    },
    "a stub that carries the check": {NAME: SINGLE, "mine.ipynb": SOLVED},
    "a stub beside a zip": {NAME: STUB, "work.zip": packed_as({NAME: SOLVED})},
    "a stub beside a folder": {NAME: STUB, f"work/{NAME}": SOLVED},
    "a stub in the zip": {"work.zip": packed_as({f"a/{NAME}": STUB, f"b/{NAME}": SOLVED})},
    "a damaged file beside it": {NAME: b"", "mine.ipynb": SOLVED},
    "another unit's beside it": {NAME: ANOTHER, "mine.ipynb": SOLVED},
    "a damaged zip beside it": {"a.zip": packed_as({NAME: SOLVED})[:-30], "mine.ipynb": SOLVED},
    "two, of which the newer counts": {"a.ipynb": OLDER, "b.ipynb": SOLVED},
    "two, of which the one with the name counts": {NAME: SOLVED, "b.ipynb": OLDER},
}


@pytest.mark.parametrize("files", FOUND.values(), ids=list(FOUND))
def test_a_submission_is_found_in_its_wrapping(tmp_path, files):
    submissions, submission = submitted(tmp_path, files)
    read = submissions.read(submission)
    assert cells_of(read.file.content) == cells_of(SOLVED)
    assert read.file.digest
    assert submissions.digest(submission) == (read.file.digest, None)
    if submission.notebook != NAME:
        shown = notebook.printable(submission.notebook)
        assert submission.note.startswith(f"`{shown}` was graded; the notebook should be called `{NAME}`.")
    seen = FileFingerprint.of(tmp_path / "ada" / UNIT, submission.notebook)
    assert None not in seen[:3]


def test_of_two_the_other_is_named(tmp_path):
    _, submission = submitted(
        tmp_path, {NAME: SOLVED, "old.ipynb": OLDER, "w.zip": packed_as({NAME: STUB}), "n.txt": b""}
    )
    assert (submission.notebook, submission.note) == (NAME, f"{NOT_GRADED_TOO}`old.ipynb`, `w.zip`.")


def test_the_released_files_next_to_the_notebook_are_not_listed(tmp_path):
    released = {file.name: file.read_bytes() for file in (RELEASE / UNIT).iterdir()}
    _, submission = submitted(tmp_path, {**released, NAME: SOLVED})
    assert (submission.notebook, submission.note) == (NAME, "")


def test_a_stub_counts_where_nothing_else_does(tmp_path):
    _, submission = submitted(tmp_path, {NAME: STUB, "b.ipynb": STUB})
    assert submission.notebook == NAME


NOTHING = {
    "a program's folder": ({f".ipynb_checkpoints/{NAME}": SOLVED}, "Nothing was submitted."),
    "another archive": ({"work.rar": b"Rar!"}, "only `work.rar`."),
    "data": ({"data.json": b"{}", f"{UNIT}.txt": b"notes"}, f"only `data.json`, `{UNIT}.txt`."),
    "a program": ({f"{UNIT}.py": b"x = 1"}, f"only `{UNIT}.py`."),
    "a folder": ({"work/a.pdf": b"%PDF", "b.pdf": b"%PDF"}, "only `b.pdf`, `work` (with `a.pdf`)."),
    "an empty zip": ({"work.zip": packed_as({})}, "only `work.zip`."),
    "a zip without a notebook": ({"work.zip": packed_as({"a.py": b""})}, "only `work.zip` (with `a.py`)."),
    "a zip of another unit": ({"work.zip": packed_as({"a.ipynb": ANOTHER})}, "only `work.zip` (with `a.ipynb`)."),
    "an encrypted zip": ({"work.zip": b"PK\x03\x04 and no more"}, "only `work.zip`."),
}


@pytest.mark.parametrize(("files", "said"), NOTHING.values(), ids=list(NOTHING))
def test_what_was_found_instead_is_said(tmp_path, files, said):
    _, submission = submitted(tmp_path, files)
    assert submission.notebook is None
    assert said in submission.note


def test_what_is_in_the_students_folder_is_said(tmp_path):
    (tmp_path / "ada" / "self_attention").mkdir(parents=True)
    (tmp_path / "ada" / NAME).write_bytes(SOLVED)
    note = SubmissionFiles(tmp_path, UNIT).submission("ada").note
    assert note == f"Nothing was submitted. Expected: `{UNIT}/{NAME}`. Found only: `{NAME}`."
    assert SubmissionFiles(tmp_path, UNIT).submission("bob").note == "Nothing was submitted."


@pytest.mark.parametrize("name", ["../b.ipynb", "/etc/b.ipynb", "a/../../b.ipynb", "./b.ipynb", "a/./b.ipynb"])
def test_no_path_in_a_zip_leads_anywhere(tmp_path, name):
    (tmp_path / "b.ipynb").write_bytes(SOLVED)
    _, submission = submitted(tmp_path, {"work.zip": packed_as({name: SOLVED})})
    assert submission.notebook is None


def test_no_link_is_followed(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / NAME).write_bytes(SOLVED)
    link = zipfile.ZipInfo("link.ipynb")
    link.external_attr = 0o120777 << 16
    folder = tmp_path / "ada" / UNIT
    folder.mkdir(parents=True)
    (folder / "work").symlink_to(tmp_path / "secret")
    (folder / "work.zip").write_bytes(packed_as({link: str(tmp_path / "secret" / NAME).encode()}))
    (folder / "linked.zip").symlink_to(tmp_path / "secret")
    assert SubmissionFiles(tmp_path, UNIT).submission("ada").notebook is None


def with_claimed_size(content, size):
    """A zip file whose list says that its only file has another size."""
    at = content.rindex(b"PK\x01\x02")
    return content[: at + 24] + struct.pack("<I", size) + content[at + 28 :]


def nested(depth):
    content = packed_as({NAME: SOLVED})
    for number in range(depth):
        content = packed_as({f"{number}.zip": content})
    return content


def bombs():
    zeros = packed_as({"bomb.zip": b"PK\x03\x04" + bytes(300 << 20), NAME: bytes(300 << 20)})
    return {f"{number}.zip": zeros for number in range(30)}


HOSTILE = {
    "bombs": bombs,
    "a zip with many bombs": lambda: {"a.zip": packed_as({f"{number}.zip": bytes(60 << 20) for number in range(30)})},
    "a zip within zips without end": lambda: {"a.zip": nested(30)},
    "a file that claims to be small": lambda: {"a.zip": with_claimed_size(packed_as({NAME: bytes(300 << 20)}), 10)},
    "very many files": lambda: {"a.zip": packed_as({f"{number}.ipynb": b"" for number in range(5_000)})},
    "a long list": lambda: {"a.zip": packed_as({f"{'n' * 60_000}{number}": b"" for number in range(100)})},
    "other ways to pack": lambda: {
        "a.zip": packed_as({NAME: SOLVED}, zipfile.ZIP_LZMA),
        "b.zip": packed_as({NAME: SOLVED}, 12),
    },
    "one name for two": lambda: {"a.zip": packed_as({"a.zip": b"", "a.zip/b.ipynb": b"", NAME: b"{}"})},
    "what is in a file": lambda: {"a.zip/b.ipynb": b"{}"},
}
"""Functions that return files by name. Packing takes seconds, and each test process imports this module."""


@pytest.mark.parametrize("name", HOSTILE)
def test_no_wrapping_takes_long(tmp_path, name):
    files = HOSTILE[name]()
    before = resource.getrusage(resource.RUSAGE_SELF)
    submissions, submission = submitted(tmp_path, files)
    if submission.notebook is not None:
        assert isinstance(submissions.read(submission).file.content, notebook.UnreadableNotebook | bytes)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before.ru_utime < 20


def test_no_damage_to_a_zip_raises_anything(tmp_path):
    rng = random.Random(0)
    folder = tmp_path / "ada" / UNIT
    folder.mkdir(parents=True)
    whole = packed_as({NAME: STUB[:3_000], "b.zip": packed_as({NAME: b"{}"})})
    for number in range(300):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            content[-rng.randint(1, rng.choice([250, len(content)]))] = rng.choice([0, 1, 80, 255, rng.randrange(256)])
        (folder / (NAME if number % 2 else "a.zip")).write_bytes(content)
        submissions = SubmissionFiles(tmp_path, UNIT)
        submission = submissions.submission("ada")
        if submission.notebook:
            submissions.read(submission)


def test_a_file_without_a_name_in_a_zip_is_passed_over(tmp_path):
    content = packed_as({"x": b"", NAME: SOLVED})
    at = content.index(b"PK\x01\x02")
    content = content[: at + 28] + b"\0\0\1\0" + content[at + 32 :]  # its name becomes a note
    _, submission = submitted(tmp_path, {"a.zip": content})
    assert submission.notebook == f"a.zip/{NAME}"


def test_a_zip_is_marked_as_a_file_of_its_own(tmp_path):
    file = tmp_path / "work.zip"
    file.write_bytes(packed_as({"a/b.ipynb": SOLVED, "a/c.txt": b""}))
    assert cells_of(read_at(file).content) == cells_of(SOLVED)
    for files, said in (({}, "no notebook"), ({"a.ipynb": SOLVED, "b.ipynb": STUB}, "2 notebooks")):
        file.write_bytes(packed_as(files) if files else packed_as({"a.py": b""}))
        assert f"This is a zip file with {said} in it." in cells_of(read_at(file).content)


def test_descriptors_are_given_back(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    submissions, submission = submitted(tmp_path, {"a.zip": nested(2), "b/c.zip": packed_as({"x.py": b""})})
    submissions.read(submission)
    submissions.passed_over([UNIT])
    del submissions
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_zip_is_graded(grading_process, tmp_path):
    submissions, submission = submitted(tmp_path, {"work.zip": nested(1)})
    report = grading_process.grade("ada", submissions.read(submission).file.content, UNIT, note=submission.note)
    assert (report.score, report.message) == (course.unit(UNIT).max_score, submission.note)
    with OpenedFolder.at(tmp_path) as folder:
        assert folder.names() == ["ada"]
    assert json.loads(SOLVED)["nbformat"] == 4
