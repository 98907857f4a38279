"""`autograder serve` takes students in turns in the exchange's inbound folder, with bounded work for each student."""

import os
import time
from pathlib import Path

import pytest

from autograder.serving import exchange
from autograder.serving.exchange import Exchange
from autograder.serving.released_pages import SHOWN
from tests.recorded_class import UNIT
from tests.served_unit import FIRST, SECOND, submit

NOBODY = 65534


@pytest.fixture
def collecting(course):
    return Collecting(course)


class Collecting:
    """Rounds of `serve`, as far as they collect."""

    def __init__(self, root):
        self.root, self.remarks = root, []
        self.inbound = root / "exchange" / "attention" / "inbound"
        self._exchange = Exchange(root, SHOWN, self.remarks.append)

    def round(self, *, busy=()):
        return self._exchange.collect([UNIT], lambda unit, student: student in busy)

    def collected(self):
        """Return the submission time of each folder collected into the course, by student."""
        return {path.parts[-3]: path.read_text() for path in sorted(self.root.glob("submitted/*/*/timestamp.txt"))}

    def empty(self, student, moments, account=None):
        for moment in moments:
            folder = self.inbound / f"{student}+{UNIT}+{moment}+r"
            folder.mkdir()
            if account is not None:
                os.chown(folder, account, -1)


@pytest.fixture
def opened(monkeypatch):
    """Every folder that is opened, each time."""
    names = []
    for function in ("scandir", "listdir"):
        real = getattr(os, function)

        def noting(path=".", real=real):
            names.append(path)
            return real(path)

        monkeypatch.setattr(os, function, noting)
    return names


def made(count):
    """Times of submissions, later than any other."""
    return [f"2027-01-01 00:00:00.{number:06} UTC" for number in range(count)]


def test_a_students_folders_are_parsed_once_and_only_the_newest_few_opened(collecting, opened, monkeypatch):
    collecting.empty("eve", made(300))
    submit(collecting.root, "ada", b"{}", FIRST)
    parsed, parse = [], exchange.time_near
    monkeypatch.setattr(exchange, "time_near", lambda text, *more: parsed.append(text) or parse(text, *more))

    def of_eve():
        found = [name for path in opened if (name := Path(str(path)).name).startswith("eve+")]
        opened.clear()
        return found

    opened.clear()
    assert 0 < collecting.round() < 1  # one of the folders may still be filled
    assert collecting.collected() == {"ada": FIRST}
    assert len(parsed) == 301
    assert len(of_eve()) == exchange.NEWEST
    submit(collecting.root, "bo", b"{}", FIRST)
    collecting.round()
    assert collecting.collected() == {"ada": FIRST, "bo": FIRST}
    assert (len(parsed), len(of_eve())) == (302, exchange.NEWEST)


def test_an_empty_folder_is_no_submission_and_costs_no_further_round(collecting):
    submit(collecting.root, "ada", b"{}", FIRST)
    collecting.round()
    collecting.empty("ada", [SECOND])
    folder = collecting.inbound / f"ada+{UNIT}+{SECOND}+r"
    os.utime(folder, (time.time() - 60,) * 2)
    assert collecting.round() == float("inf")
    assert collecting.collected() == {"ada": FIRST}
    (folder / "timestamp.txt").write_text(SECOND)  # it was not empty for ever
    for path in (folder / "timestamp.txt", folder):
        os.utime(path, (time.time() - 60,) * 2)
    collecting.round()
    assert collecting.collected() == {"ada": SECOND}


def test_an_unfinished_folder_does_not_delay_the_students_others(collecting):
    submit(collecting.root, "ada", b"{}", SECOND).chmod(0o755)
    submit(collecting.root, "ada", b"{}", FIRST, "y")
    assert collecting.round() < 1
    assert collecting.collected() == {"ada": FIRST}
    (collecting.inbound / f"ada+{UNIT}+{SECOND}+x").chmod(0o777)
    collecting.round()
    assert collecting.collected() == {"ada": SECOND}
    submit(collecting.root, "ada", b"{}", "2026-01-01 00:00:00 UTC", "z")  # older: it is of no interest
    collecting.round()
    assert collecting.collected() == {"ada": SECOND}


def test_students_are_collected_in_turns(collecting, monkeypatch):
    monkeypatch.setattr(exchange, "AT_ONCE", 1)
    for student in ("eve", "ada", "bo"):
        submit(collecting.root, student, b"{}", FIRST)
    order = []
    for moment in made(3):
        assert collecting.round() == 0
        order += collecting.collected().keys() - order
        submit(collecting.root, order[0], b"{}", moment)  # one student submits again and again
    assert sorted(order) == ["ada", "bo", "eve"]
    assert collecting.collected()[order[0]] == FIRST
    collecting.round()
    assert collecting.collected()[order[0]] == made(3)[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_folders_in_another_students_name_are_not_opened_and_delay_nobody(collecting, opened):
    settings = collecting.root / "nbgrader_config.py"
    settings.write_text(settings.read_text().replace("check_owner = False", "check_owner = True"))
    collecting.empty("root", made(100), NOBODY)
    submit(collecting.root, "root", b"{}", FIRST)
    opened.clear()
    collecting.round()
    assert collecting.collected() == {"root": FIRST}
    assert not [path for path in opened if "root+" in str(path) and "2027" in str(path)]
    said = [remark for remark in collecting.remarks if "belongs to nobody" in remark]
    assert len(said) == exchange.MOST_NAMED
    assert collecting.remarks[-1].startswith("Not collected: more folders of nobody")
    remarks = len(collecting.remarks)
    collecting.round()
    assert len(collecting.remarks) == remarks


def test_a_time_in_another_form_is_parsed_too(collecting):
    for day in (2, 8, 1):
        submit(collecting.root, "eve", b"{}", f"2026-01-{day:02} 03:04 -0100")
    collecting.round()
    assert collecting.collected() == {"eve": "2026-01-08 03:04 -0100"}


def test_a_name_without_a_time_is_reported_and_the_newest_with_one_is_collected(collecting):
    submit(collecting.root, "ada", b"{}", FIRST)
    for moment in ("9999-99-99 99:99:99.999999 UTC", "9999-01-01 00:00:00.000000 UTC", "soon"):
        submit(collecting.root, "ada", b"{}", moment)
    (collecting.inbound / f"bo+{UNIT}+{FIRST}+x").symlink_to(collecting.inbound / f"ada+{UNIT}+{FIRST}+x")
    collecting.round()
    assert collecting.collected() == {"ada": FIRST}
    assert sorted(remark.partition(" (")[2] for remark in collecting.remarks) == [
        "it is not a folder).", *["its name contains no valid time)."] * 3,
    ]  # fmt: skip


def test_while_a_students_submission_is_graded_the_next_one_waits(collecting):
    submit(collecting.root, "ada", b"{}", FIRST)
    collecting.round(busy={"ada"})
    assert collecting.collected() == {}
    collecting.round()
    assert collecting.collected() == {"ada": FIRST}
