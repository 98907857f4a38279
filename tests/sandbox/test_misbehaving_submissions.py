"""Every misbehaving submission: its mark, and no harm to others.

Each run tries them where the least keeps them from anything: at level B, as an ordinary user. Of those that never meet
the operating system it tries all that attack a grader or Python, and one in five that hang, give back something
strange, or are strange files. What reaches out to the operating system is tried at level A too, as root.
`pytest --every` tries all, those that reach out at every level as either user, and at level A also what ends its
process or passes a limit.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder import course
from tests import REPOSITORY, sampling
from tests.misbehaving.as_user import UID, as_ordinary_user
from tests.misbehaving.case import UNIT, Case, cases

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
AT_THE_ENDS = (("A", USERS[0]), ("B", "user"))
SETTINGS = [(level, user) for level in "AB" for user in USERS] if sampling.every else AT_THE_ENDS
CASES = {case.name: case for case in cases()}
MANY_ALIKE = ("hangs", "strange_results", "files")
PART = {
    case.name
    for family in MANY_ALIKE
    for case in sampling.thinned(
        (one for one in CASES.values() if one.family == family and one.speaks_alone), 5, by=lambda one: one.name
    )
}
TRIED = {
    setting: [
        case
        for case in CASES.values()
        if (setting == SETTINGS[-1] and (case.name in PART or not (case.speaks_alone and case.family in MANY_ALIKE)))
        or not (case.speaks_alone or (case.uses_up and not (sampling.every and setting in AT_THE_ENDS)))
    ]
    for setting in SETTINGS
}
SECONDS = 1200
MOST_BYTES = 500_000
"""Maximum size of a report: a submission may not make the gradebook grow without bound."""


def _marked(setting):
    """The results of one run of the whole corpus, by case."""
    level, user = setting
    folder = Path(tempfile.mkdtemp(prefix="misbehaving-"))
    names = [case.name for case in TRIED[setting]]
    command = [sys.executable, "-m", "tests.misbehaving.run", level, str(folder), *names]
    if user == "user" and os.geteuid() == 0:
        shutil.chown(folder, UID, UID)
        command = as_ordinary_user(command, [Path(sys.base_prefix), Path(sys.prefix), REPOSITORY, folder])
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS)
    lines = (folder / "results.jsonl").read_text().splitlines() if (folder / "results.jsonl").exists() else []
    shutil.rmtree(folder, ignore_errors=True)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
    return {result["name"]: result for result in map(json.loads, lines)}


@pytest.fixture(scope="module")
def runs():
    """All runs, two at a time, the longest first."""
    settings = sorted(SETTINGS, key=lambda setting: -len(TRIED[setting]))
    with ThreadPoolExecutor(2) as threads:
        return dict(zip(settings, threads.map(_marked, settings), strict=True))


def test_there_are_enough():
    assert len(CASES) >= 80
    assert all(case.tries for case in CASES.values())


@pytest.mark.parametrize(
    ("setting", "case"),
    [(setting, case) for setting in SETTINGS for case in TRIED[setting]],
    ids=lambda one: one.name if isinstance(one, Case) else "-".join(one),
)
def test_it_gets_its_mark_and_touches_nothing(runs, setting, case):
    result = runs[setting][case.name]
    report = result["report"]
    others = {e["name"]: e["status"] for e in report["exercises"] if e["status"] != "passed"}
    assert (report["status"], others) == (case.must.status, case.must.exercises)
    full = 0 if case.must.status in ("damaged", "unreadable") else course.unit(UNIT).max_score
    lost = sum(course.unit(UNIT).exercise(name).points for name in case.must.exercises)
    assert report["score"] == full - lost
    assert report["isolation"] == setting[0]
    assert (result["escaped"], result["leaked"], result["harm"]) == ([], False, [])
    assert result["size"] < MOST_BYTES
    # Elsewhere another case comes next, of which all but one exercise must be right.
    is_last = case == [other for other in TRIED[setting] if other.hangs is case.hangs][-1]
    assert result["neighbour"] == (["graded", *[course.unit(UNIT).max_score] * 2] if is_last else [])
