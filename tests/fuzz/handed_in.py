"""A class as it lies on the disk: a roster, and folders with anything in them under any name.

An input is JSON: the roster's text, and for each entry in a student's folder its name, its kind and what it holds,
bytes as Latin-1.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from autograder.classroom.assignment import NothingToGrade, assignment
from autograder.course import notebook
from autograder.gradebook import roster
from autograder.gradebook.time_stamp import time_in
from autograder.nbgrader_plugin.defaults import read_submission

from .json_text import damaged
from .notebooks import NOTEBOOK

UNIT = "dot_product_attention"


def check(data: bytes) -> None:
    spec = json.loads(data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "roster.csv").write_bytes(spec["roster"].encode("latin-1"))
        _lay_out(root / "submitted" / "ada" / UNIT, spec["entries"])
        try:
            work = assignment(UNIT, root, None, None)
        except (roster.BadRoster, NothingToGrade) as reason:
            str(reason).encode()
            return
        msgspec.json.encode(work.passed_over)
        for one in work.submissions:
            msgspec.json.encode((one.student, one.note))
            assert one.note.isprintable()
            if one.notebook is not None:
                time_in(work.files.read(one).stamp)
                read_submission(root / "submitted" / one.student / UNIT / one.notebook, UNIT, root)


def _lay_out(folder: Path, entries: list[list[Any]]) -> None:
    folder.mkdir(parents=True)
    for name, kind, content in entries:
        path = os.path.join(os.fsencode(folder), name.encode("latin-1"))  # noqa: PTH118  bytes, which are no Path
        if os.path.lexists(path):
            continue
        match kind:
            case "file":
                Path(os.fsdecode(path)).write_bytes(content.encode("latin-1"))
            case "folder":
                os.mkdir(path)  # noqa: PTH102
            case "link":
                Path(os.fsdecode(path)).symlink_to(os.fsdecode(content.encode("latin-1") or b"nowhere"))
            case "pipe":
                os.mkfifo(path)
            case "closed":
                Path(os.fsdecode(path)).write_bytes(b"{}")
                os.chmod(path, 0)  # noqa: PTH101


_STAMPS = [
    "2026-01-02 03:04:05 UTC", "2026-01-02 03:04:05 " + "A" * 70, "2026-01-02 " + "A" * 300, "1." * 45, "9" * 90,
    "2026-01-02 03:04 ../../etc", "99999-01-01", "0000-00-00", "1e999", "T", "-" * 90,
]  # fmt: skip
_names = st.sampled_from([
    f"{UNIT}.ipynb", "other.ipynb", "a b (1).ipynb", "\xff\xfe.ipynb", "\x1b[2J.ipynb", "a\nb.ipynb", "`.ipynb",
    "timestamp.txt", "x" * 249 + ".ipynb", ".ipynb", "-.ipynb", "[a].ipynb",
])  # fmt: skip
_kinds = st.sampled_from(["file", "file", "file", "folder", "link", "pipe", "closed"])
_contents = st.sampled_from(
    [json.dumps(NOTEBOOK), json.dumps(NOTEBOOK), "", "{}", "\xff", "..", ".", "/dev/zero", "other.ipynb", *_STAMPS]
)
_ids = st.sampled_from([
    "ada", "ada", "bob", "", " ", ".", "..", ".a", "a/b", "a\\b", "a\0b", "\x1b[2J", "a\nb", "x" * 255, "x" * 256,
    "\xc3\xa9" * 128, "\xc3\xa9", "[ada]", "*", "-x", "\xed\xa0\x80", "\xff", "\xe2\x80\xae", "id",
])  # fmt: skip


@st.composite
def _rosters(draw: st.DrawFn) -> str:
    header = draw(st.sampled_from(["id", "id,first_name,last_name,email", "name,id", "id,id", "", "ID", '"id', "\0id"]))
    rows = draw(st.lists(st.lists(_ids, min_size=1, max_size=4), max_size=4))
    quoted = ['"' + '","'.join(row) + '"' if draw(st.booleans()) else ",".join(row) for row in rows]
    return draw(damaged("\r\n".join([header, *quoted]).encode("latin-1"))).decode("latin-1")


@st.composite
def _classes(draw: st.DrawFn) -> bytes:
    entries = draw(st.lists(st.tuples(_names, _kinds, _contents), max_size=4))
    return json.dumps({"roster": draw(_rosters()), "entries": entries}).encode()


inputs = _classes()


def large() -> Iterator[bytes]:
    """Many students, and a folder with many large files."""
    yield json.dumps({"roster": "id\n" + "\n".join(f"s{n}" for n in range(5000)), "entries": []}).encode()
    yield json.dumps({"roster": "id\n" + "x" * 500_000, "entries": []}).encode()
    several = [[f"{n}.ipynb", "file", "x" * (1 << 20)] for n in range(20)]
    yield json.dumps({"roster": "id\nada", "entries": several}).encode()
    full = "\n" * (notebook.MAX_BYTES + 1)
    yield json.dumps({"roster": "id\nada", "entries": [[f"{UNIT}.ipynb", "file", full]]}).encode()
    yield json.dumps(
        {"roster": "id\nada", "entries": [["timestamp.txt", "file", full], [f"{UNIT}.ipynb", "file", "{}"]]}
    ).encode()
