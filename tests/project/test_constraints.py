"""constraints.txt pins everything that `make`, `make test` and `make site` install."""

import importlib.metadata
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests import REPOSITORY

HEADER, *LINES = (REPOSITORY / "constraints.txt").read_text().splitlines()
PINS = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in LINES)}
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
INSTALLED = {canonicalize_name(package.name): package for package in importlib.metadata.distributions()}
OF_CUDA = re.compile(r"nvidia-|cuda-|triton$")
"""Packages that only the CUDA build of torch needs."""


def requirements(name, extras, seen):
    """Yield the requirements of a package with extras, and those of the installed packages that it needs."""
    if name == PROJECT["name"]:
        optional = PROJECT["optional-dependencies"]
        needed = [*PROJECT["dependencies"], *(requirement for extra in extras for requirement in optional[extra])]
    else:
        needed = (INSTALLED[name].requires if name in INSTALLED else None) or []
    for requirement in map(Requirement, needed):
        required, marker = canonicalize_name(requirement.name), requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        if OF_CUDA.match(required):
            continue
        if required != PROJECT["name"]:
            yield requirement
        if (key := (required, frozenset(requirement.extras))) not in seen:
            seen.add(key)
            yield from requirements(required, requirement.extras, seen)


def test_each_line_is_a_name_and_a_version_without_an_address():
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    assert len(PINS) == len(LINES)


def test_each_requirement_is_pinned_and_satisfied():
    """Those of pyproject.toml with the extra `test`, and those of the packages that they bring."""
    required = list(requirements(PROJECT["name"], ["test"], set()))
    names = {canonicalize_name(requirement.name) for requirement in required}
    assert len(names) > 100
    assert names - set(PINS) == set()
    versions = [(requirement, PINS[canonicalize_name(requirement.name)]) for requirement in required]
    assert [(str(need), version) for need, version in versions if version not in need.specifier] == []


def test_it_was_written_with_the_oldest_python():
    """The newest release of a package often needs a newer Python."""
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert HEADER.removeprefix("# Written by make constraints with Python ") == oldest


def test_each_pinned_release_installs_on_the_first_patch_release_of_the_oldest_python():
    """Debian 12 has Python 3.11.2, which a release for 3.11.5 refuses."""
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    needs = {name: package.metadata.get("Requires-Python") or "" for name, package in INSTALLED.items() if name in PINS}
    assert len(needs) > 100
    assert {name: need for name, need in needs.items() if not SpecifierSet(need).contains(oldest)} == {}


@pytest.mark.parametrize("torch", ["cpu", "cuda"])
@pytest.mark.parametrize("target", ["test", "site"])
def test_make_installs_nothing_without_the_constraints(torch, target):
    make = ["make", "--dry-run", "--always-make", f"TORCH={torch}", f".venv/ready-{target}-{torch}"]
    commands = subprocess.run(make, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    installs = re.findall(r"pip install\b.*", commands)
    assert len(installs) >= 3
    assert [command for command in installs if "--constraint constraints.txt" not in command] == []
