"""Points without the work: those of the public examples, and nothing else.

The answers are those of `adversaries`: every exercise's examples by heart, and what looks right from outside. Each run
tries a fifteenth of them on each exercise, `pytest --every` all.
"""

import json
import re
import subprocess
import sys

import pytest

from autograder import course
from tests import REPOSITORY, sampling

ROUNDING = 0.01


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, "-m", "tests.adversaries", "every" if sampling.every else "part"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def test_every_exercise_was_tried(found):
    tried = {(one["unit"], one["exercise"]) for one in found}
    assert tried == {(name, e.name) for name in course.unit_names() for e in course.unit(name).exercises}
    assert any(one["public"] > 0 for one in found), "no example is known by heart"


def test_knowing_the_examples_earns_what_they_are_worth(found):
    earned_more = [one for one in found if one["score"] > one["public"] + ROUNDING]
    assert earned_more == []


def test_the_security_page_has_the_points_of_the_examples(found):
    """The units are in the order of the README's table."""
    units = re.findall(r"^\| \d\. \[(\w+)\]", (REPOSITORY / "README.md").read_text(), re.M)
    assert sorted(units) == sorted(course.unit_names())
    public, all_points = [], []
    for unit in units:
        exercises = [exercise.name for exercise in course.unit(unit).exercises]
        by_heart = {name: 0.0 for name in exercises if not name.startswith("hunt_")}  # chance may pass a bug hunt
        for one in found:
            if one["unit"] == unit and one["exercise"] in by_heart:
                by_heart[one["exercise"]] = max(by_heart[one["exercise"]], one["public"])
        public.append(f"{sum(by_heart.values()):.4g}")
        all_points.append(f"{course.unit(unit).max_score:g}")
    page = (REPOSITORY / "docs" / "security.md").read_text()
    assert f"| points of the public examples, without bug hunts | {' | '.join(public)} |" in page
    assert f"| points of all hidden tests | {' | '.join(all_points)} |" in page


def test_no_grader_of_hidden_results_is_passed_by_chance(found):
    passed = [
        (one["exercise"], one["adversary"], name) for one in found for name, kind in one["passed"] if kind == "hidden"
    ]
    assert passed == []


def test_raising_or_being_empty_passes_no_grader_of_devices_or_the_future(found):
    empty_handed = ("nothing, nothing", "raises, nothing", "empty, nothing", "empty of three dimensions, nothing")
    passed = [
        (one["exercise"], one["adversary"], name)
        for one in found
        for name, kind in one["passed"]
        if (kind == "device" and one["adversary"].endswith("another device: raises"))
        or (name == "test_blind_to_the_future" and one["adversary"].startswith(empty_handed))
    ]
    assert passed == []
