"""Result files of commands are written whole or not at all, and replace only regular files."""

import contextlib
import os
import pty
import resource
import signal
import socket
import stat
from pathlib import Path

import pytest
from rich.table import Table

from autograder.build import release_files
from autograder.classroom.grade import Change
from autograder.cli import console
from autograder.cli.class_results import changes_in_lines
from autograder.course.settings import folder
from autograder.output_files import NotWritable, opened, write
from tests import forked_command
from tests.commands import refusal
from tests.interrupting import in_a_fork

UNIT = "dot_product_attention"
COMMANDS = {
    "export": ["export", UNIT, "--output"],
    "feedback-zip": ["feedback-zip", UNIT, "--output"],
    "slides": ["slides", UNIT, "--output"],
    "report": ["report", UNIT, "--output"],
    "mark --junit": ["mark", "homework.ipynb", "--junit"],
    "mark --gradescope": ["mark", "homework.ipynb", "--gradescope"],
}


def _device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # another /dev/full
    except PermissionError:
        pytest.skip("only root makes a device")


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


KINDS = {
    "a link to a file": lambda path: path.symlink_to("precious"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a folder": lambda path: path.symlink_to("."),
    "a link to a device": lambda path: path.symlink_to("/dev/full"),
    "a device": _device,
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": os.mkdir,
}


@pytest.fixture
def precious(tmp_path):
    (tmp_path / "precious").write_text("precious")
    return tmp_path


def state(path):
    about = path.lstat()
    return about.st_ino, about.st_mode, about.st_rdev, sorted(one.name for one in path.parent.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_only_a_regular_file_is_replaced(precious, monkeypatch, command, kind):
    path = precious / ("out.html" if command == "report" else "out")
    KINDS[kind](path)
    before = state(path)
    said = refusal(*COMMANDS[command], path)
    assert str(path) in said or "out" in said
    assert any(why in said for why in ("is a link", "is not a regular file", "is a folder")), said
    assert state(path) == before
    assert (precious / "precious").read_text() == "precious"
    with pytest.raises(NotWritable):
        write({path: b"result"})
    with pytest.raises(NotWritable), opened(path):
        pass
    assert state(path) == before


def test_the_report_checks_all_of_its_files_before_it_writes_one(precious):
    (precious / "out.json").symlink_to("precious")
    assert "out.json is a link" in refusal("report", UNIT, "--output", precious / "out.html")
    assert "cannot be written" in refusal("report", UNIT, "--output", precious / "precious" / "more")
    (precious / "folder").symlink_to(".")
    assert "is a link" in refusal("report", UNIT, "--output", precious / "folder")
    assert sorted(path.name for path in precious.iterdir()) == ["folder", "out.json", "precious"]


def test_single_files_replace_no_link(precious, monkeypatch):
    monkeypatch.setattr(release_files, "folder", lambda: precious)
    (precious / "unit.ipynb").symlink_to("precious")
    with pytest.raises(NotWritable, match="is a link"):
        release_files.write_single_files({Path("unit.ipynb"): "precious"})  # which it would lead to already
    assert (precious / "precious").read_text() == "precious"


def test_nbgraders_own_export_writes_by_the_same_rules(precious):
    (precious / "nbgrader_config.py").write_text((folder() / "nbgrader_config.py").read_text())
    (precious / "grades.csv").symlink_to("precious")
    done = forked_command.nbgrader("export", cwd=precious)
    assert (done.returncode, "is a link" in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr
    assert (precious / "precious").read_text() == "precious"


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS.values(), ["grade", UNIT, "--submitted"], ["export", UNIT, "--course"], ["export", UNIT, "--roster"],
        ["import", UNIT], ["mark"], ["new-course"], ["upgrade-course"],
    ],
)  # fmt: skip
def test_an_empty_name_is_an_error_message(tmp_path, command, empty):
    assert "The name is empty." in refusal(*command, empty, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_standard_output_takes_what_a_command_can_print(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    for arguments, message in {
        (*COMMANDS["feedback-zip"], "-"): "cannot be printed to standard output. Name a",
        (*COMMANDS["report"], "-"): "cannot be printed to standard output. Name a",
        (*COMMANDS["mark --junit"], "-"): "Give --quiet too, or name a file.",
        (*COMMANDS["mark --junit"], "-", "--gradescope", "-", "--quiet"): "cannot hold both results",
    }.items():
        assert message in refusal(*arguments, cwd=tmp_path)
    console.write_result(console.named("-"), "a\x1b[2J\u202e\n".encode())
    assert capfdbinary.readouterr().out == "a\x1b[2J\u202e\n".encode()  # a pipe, not a terminal, gets what there is
    assert list(tmp_path.iterdir()) == []
    console.write_result(console.named("./-"), b"result")
    assert Path("-").read_bytes() == b"result"


def test_a_full_disk_leaves_the_old_files_and_nothing_half_written(tmp_path):
    one, other = tmp_path / "report.html", tmp_path / "report.csv"
    one.write_text("old")
    other.write_text("old")

    def write_much():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        try:
            write({one: b"new", other: b"new" * 10_000})
        except NotWritable as reason:
            return reason
        return "written"

    assert in_a_fork(write_much) == (0, f"{other} could not be written to the end: File too large.")
    assert [path.read_text() for path in (one, other)] == ["old", "old"]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_end_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "marks.zip"
    path.write_text("old")

    def interrupted():
        with opened(path) as file:
            file.write(b"half")
            file.flush()
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (path.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)


def test_names_as_long_as_a_folder_takes_are_written_and_permissions_stay(tmp_path):
    for name in ("x" * 255, "é" * 127, "-", " ", "a\nb", "*[a]?", "\x1b[2J"):
        path = tmp_path / name
        write({path: b"first"})
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        path.chmod(0o640)
        write({path: b"second"})
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"second", 0o640)
        write({path: b"third"}, 0o600)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(NotWritable, match="File name too long"):
        write({tmp_path / ("x" * 256): b""})
    with pytest.raises(NotWritable, match="there is no folder"):
        write({tmp_path / "no" / "marks.csv": b""})


HOSTILE = "\x1b[2J\x1b]0;title\x07a\u009b31m\u202eb\u2066\u200f\r\x08"


def read_all(terminal):
    """Return what was written to a terminal whose other end is closed; a read may return a part of it."""
    read = bytearray()
    with contextlib.suppress(OSError):  # at the end, on Linux
        while part := os.read(terminal, 1 << 16):
            read += part
    os.close(terminal)
    return read.decode()


def test_a_terminal_obeys_nothing_in_a_table():
    near, far = pty.openpty()
    with os.fdopen(far, "w") as terminal:
        screen = type(console.console)(file=terminal, force_terminal=True, width=200)
        table = Table(HOSTILE, title=HOSTILE)
        table.add_row(HOSTILE)
        screen.print(table)
        for line in changes_in_lines(HOSTILE, [Change(HOSTILE, HOSTILE, 1.0, 2.0, HOSTILE)]):
            screen.print(line)
        screen.print(HOSTILE, markup=False, highlight=False)
    printed = read_all(near)
    assert not {"\u202e", "\u2066", "\u200f", "\u009b", "\x07", "\x08"} & set(printed)
    for obeyed in ("\x1b[2J", "\x1b]0;"):
        assert obeyed not in printed
    assert printed.count("\ufffd[2J") > 5  # it is shown
    assert console.for_terminal(f"id\n{HOSTILE}\n".encode()).decode().replace("\n", "").isprintable()
