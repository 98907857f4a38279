"""The end of a command that is interrupted or killed: a message, its exit code, no process left, rows for files."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from autograder import catalogue, course
from tests import REPOSITORY, sampling
from tests.forked_command import Started
from tests.processes import below, runs, wait_until
from tests.typed import solved

UNIT = "dot_product_attention"
AUTOGRADER = Path(sys.executable).with_name("autograder")
SECONDS = 120


def solved_files(folder, names, **answers):
    """Solved notebooks of these names, with these answers in them."""
    paths = [folder / f"{name}.ipynb" for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(solved(UNIT, **answers))
    return paths


WAITS = "import time\ntime.sleep(8)\n"


def slow(folder, name):
    """A notebook that takes a while, and is right."""
    source = catalogue.solutions(UNIT)["softmax"].source()
    return solved_files(folder, [name], softmax=WAITS + source)[0]


@pytest.fixture
def course_folder(tmp_path):
    """A course with one student, whose notebook takes a while."""
    slow(tmp_path / "submitted" / "ann" / UNIT, UNIT)
    shutil.copyfile(REPOSITORY / "nbgrader_config.py", tmp_path / "nbgrader_config.py")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (command, number)
        for command, numbers in {
            "mark": (signal.SIGHUP, signal.SIGINT, signal.SIGTERM),
            "grade": (signal.SIGTERM, signal.SIGHUP, signal.SIGINT),
        }.items()
        for number in numbers[: None if sampling.every else 2 if command == "mark" else 1]
    ],
)
def test_a_command_that_is_ended_says_so_and_leaves_no_process(command, number, course_folder):
    """Each signal ends one of the two; `pytest --every` ends each command by each."""
    arguments = {
        "mark": [str(course_folder / "submitted" / "ann" / UNIT / f"{UNIT}.ipynb")],
        "grade": [UNIT, "--course", str(course_folder), "--markers", "1"],
    }
    process = Started("autograder", command, *arguments[command], cwd=REPOSITORY)
    # The command, its grader, the fork server (or what it is in), a worker.
    wait_until(lambda: len(below(process.pid)) >= 3, SECONDS)
    running = below(process.pid)
    process.send_signal(number)
    out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1].startswith("Interrupted.")
    wait_until(lambda: not [pid for pid in running if runs(pid)], SECONDS)
    assert out == ""


@pytest.mark.parametrize(("command", "into"), [("mark", "/dev/full"), ("mark", "a pipe"), ("grade", "a pipe")])
def test_output_that_cannot_be_written_is_a_sentence(command, into, tmp_path):
    (path,) = solved_files(tmp_path / "submitted" / "ann" / UNIT, [UNIT])
    shutil.copyfile(REPOSITORY / "nbgrader_config.py", tmp_path / "nbgrader_config.py")
    arguments = {"mark": [path], "grade": [UNIT, "--course", tmp_path]}
    if into == "a pipe":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(into, os.O_WRONLY)
    run = partial(Started, "autograder", command, *arguments[command], cwd=REPOSITORY)
    if command == "mark":  # not forked: it is Python's own end that may complain
        its = [AUTOGRADER, command, *arguments[command]]
        done = subprocess.Popen(its, cwd=REPOSITORY, stdout=writing, stderr=subprocess.PIPE, text=True)
    else:
        done = run(stdout=writing)
    os.close(writing)
    _, said = done.communicate(timeout=SECONDS)
    assert done.returncode == 2
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert said.startswith("The results could not be written to the end: ")
    if command == "grade":  # what was graded is recorded: the next runs have nothing to do
        again = run()
        assert "their last grading: 1" in again.communicate(timeout=SECONDS)[0]
        assert again.returncode == 0
        with Path("/dev/full").open("w") as full:  # a sentence that cannot be written is no traceback
            last = run("--json", stdout=full.fileno(), stderr=full.fileno())
        last.communicate(timeout=SECONDS)
        assert last.returncode == 2


@pytest.mark.parametrize("kills", [1, 2])
def test_every_file_has_its_row_though_the_grader_is_killed(kills, tmp_path):
    """Killed once, the file is tried again; twice, the file is blamed, and the others are marked all the same."""
    first, last = solved_files(tmp_path, ["first", "last"])
    middle = slow(tmp_path, "middle")
    process = Started("autograder", "mark", first, middle, last, cwd=REPOSITORY)
    lines = [process.stdout.readline()]
    for _ in range(kills):
        wait_until(lambda: len(below(process.pid)) >= 3, SECONDS)
        time.sleep(1)
        grader = below(process.pid)[0]
        os.kill(grader, signal.SIGKILL)
        wait_until(lambda killed=grader: killed not in below(process.pid), SECONDS)
    rest, said = process.communicate(timeout=SECONDS)
    reports = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [Path(report["notebook"]).stem for report in reports] == ["first", "middle", "last"]
    full = course.unit(UNIT).max_score
    middle_score = full if kills == 1 else 0
    assert [report["score"] for report in reports] == [full, middle_score, full]
    assert reports[1]["status"] == ("graded" if kills == 1 else "grader_error")
    assert process.returncode == kills - 1
    assert "Traceback" not in said


def test_a_signal_that_arrives_in_a_destructor_ends_the_command():
    code = """
import os, signal, time
from autograder.cli import console
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
with console.command_errors():
    Dropped()
    print("goes on", flush=True)
    time.sleep(60)
    print("was never interrupted", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert ended.stdout == "goes on\n"
    assert ended.stderr.startswith("Interrupted.\n")  # and no word about the dropped exception
