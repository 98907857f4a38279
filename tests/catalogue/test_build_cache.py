"""The build cache of a unit: an entry is used again only if all its origins are unchanged."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from autograder.catalogue.build_cache import FOLDER
from autograder.student_check.unit_data import MISTAKES, data_file, read_unit
from tests import REPOSITORY, forked_command

UNIT = "normalisation"
BOTH, NEITHER = {"layer_norm", "ResidualBlock"}, set()
CHANGES = {
    "nothing": NEITHER,
    "exercises/normalisation.py": NEITHER,
    "autograder/misconceptions/normalisation/layer_norm.yaml": {"layer_norm"},
    "autograder/misconceptions/normalisation/residual_block.yaml": {"ResidualBlock"},
    "autograder/right_answers/normalisation/layer_norm.py": BOTH,
    "autograder/right_answers/__init__.py": BOTH,
    "solutions/normalisation.py": BOTH,
    "solutions/notebook.py": BOTH,
    "solutions/another.py": BOTH,
    "autograder/hidden/normalisation/test_layers.py": BOTH,
    "autograder/hidden/normalisation/sizes.py": BOTH,
    "autograder/hidden/shared.py": BOTH,
    "autograder.toml": BOTH,
    "case_secret.txt": BOTH,
    "the engine": BOTH,
    "another torch": BOTH,
}
"""Changes, and the exercises whose entries each invalidates."""
SHOWN_ANEW = CHANGES | {change: NEITHER for change in CHANGES if change.endswith(".yaml")}
"""Changes, and the exercises whose mistakes are tried again; a new sentence changes no mistake's behaviour."""

ORIGINS = """
import json, os, sys
from pathlib import Path
import torch
from autograder.catalogue import build_cache
from autograder.course import content

for change in json.loads(sys.argv[1]):
    if os.fork():
        os.wait()
        continue
    path = Path(change)
    before = path.read_bytes() if path.is_file() else None
    if change == "the engine":
        content.engine_digest = lambda: "another"
    elif change == "another torch":
        torch.__version__ = "0"
    elif change != "nothing":
        text = (before or b"").decode().replace("says: \\"", "says: \\"Now: ")
        path.write_text(f"{text}\\n# changed\\n")
    print(json.dumps({kind: {name: build_cache.BuildCache(kind, "normalisation", name)._origin.decode() for name in
                             ("layer_norm", "ResidualBlock")} for kind in ("handout", "shown")}), flush=True)
    if before is not None:
        path.write_bytes(before)
    elif path.is_file():
        path.unlink()
    os._exit(0)
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A small course of its own."""
    folder = tmp_path_factory.mktemp("kept") / "course"
    shutil.copytree(REPOSITORY / "tests" / "own_course", folder)
    shutil.copy(REPOSITORY / "autograder.toml", folder)
    return folder


def test_another_origin_for_whatever_it_comes_from(course):
    command = [sys.executable, "-P", "-c", ORIGINS, json.dumps(list(CHANGES))]
    done = subprocess.run(
        command, cwd=course, env={**os.environ, "AUTOGRADER_COURSE": str(course)}, capture_output=True, text=True
    )
    before, *others = map(json.loads, done.stdout.splitlines())
    assert len(others) == len(CHANGES) - 1, done.stderr
    for kind, changes in (("handout", CHANGES), ("shown", SHOWN_ANEW)):
        its, was = [one[kind] for one in (before, *others)], before[kind]
        anew = [{name for name, origin in one.items() if origin != was[name]} for one in its]
        assert dict(zip(CHANGES, anew, strict=True)) == changes


def test_only_what_changed_is_made_again_and_a_check_takes_nothing(course):
    def autograder(*arguments, code=0):
        done = forked_command.autograder(*arguments, cwd=course, env={**os.environ, "AUTOGRADER_COURSE": str(course)})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def sentences():
        return [
            sentence
            for mistakes in read_unit(course / "release" / UNIT / data_file(UNIT))[MISTAKES].values()
            for one in mistakes
            for sentence in one["sentences"]
        ]

    assert "14 files written" in autograder("build", UNIT)
    kept = {path.name.partition(".")[2]: path for path in (course / FOLDER / "handout").iterdir()}
    when = {name: path.stat().st_mtime_ns for name, path in kept.items()}
    assert when.keys() == BOTH
    mistakes = course / "autograder" / "misconceptions" / UNIT / "layer_norm.yaml"
    told = sentences()[0]
    assert told in mistakes.read_text()
    mistakes.write_text(mistakes.read_text().replace(told, f"No: {told}"))
    shown = course / FOLDER / "shown" / f"{UNIT}.layer_norm"
    origin, _, made = shown.read_bytes().split(b"\n", 2)
    *_, last = (code for code, signatures in json.loads(made).items() if signatures)
    forged = json.dumps(json.loads(made) | {last: {}}).encode()
    shown.write_bytes(b"\n".join([origin, hashlib.sha256(forged).hexdigest().encode(), forged]))
    before = len(sentences())
    autograder("build", UNIT)
    assert f"No: {told}" in sentences()
    assert len(sentences()) == before - 1  # no mistake was run again
    assert {name for name, path in kept.items() if path.stat().st_mtime_ns != when[name]} == {"layer_norm"}

    origin, digest, made = kept["layer_norm"].read_bytes().split(b"\n", 2)
    forged = made.replace(b"No: ", b"So: ")
    kept["layer_norm"].write_bytes(b"\n".join([origin, digest, forged]))  # damaged: made again
    assert "up to date" in autograder("build", UNIT)
    kept["layer_norm"].write_bytes(b"\n".join([origin, hashlib.sha256(forged).hexdigest().encode(), forged]))
    autograder("build", UNIT)
    assert f"So: {told}" in sentences()  # taken, because it says that it comes from the same
    autograder("build", "--check", code=2)  # which takes nothing
