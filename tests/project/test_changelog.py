"""towncrier makes CHANGELOG.md of the files in changelog.d/."""

import re
import shutil
import subprocess
import sys
import tomllib

from tests import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["towncrier"]
READERS = {section["name"]: section["path"] for section in SETTINGS["section"]}
TYPES = {kind["name"]: kind["directory"] for kind in SETTINGS["type"]}
PREFACE, PUBLISHED = (REPOSITORY / "CHANGELOG.md").read_text().split("## Unreleased\n")
EARLIER = "## 0.0.1 - 2020-01-01\n\nAn earlier release.\n"


def test_each_change_has_a_reader_and_a_type_and_is_a_sentence():
    """`tests.prose` checks the words."""
    files = [file.relative_to(REPOSITORY / "changelog.d") for file in (REPOSITORY / "changelog.d").rglob("*.md")]
    changes = set(map(str, files)) - {"README.md"}
    name = rf"({'|'.join(READERS.values())})/[\w-]+\.({'|'.join(TYPES.values())})\.md"
    assert [change for change in changes if not re.fullmatch(name, change)] == []
    texts = [(REPOSITORY / "changelog.d" / change).read_text() for change in changes]
    assert [text for text in texts if not re.fullmatch(r"[A-Z`].*\.\n", text)] == []


def test_a_release_has_the_form_of_the_published_ones(tmp_path):
    """Make files of the latest release's changes, and the same release of the files."""
    release = re.split(r"(?m)^(?=## )", PUBLISHED)[1].rstrip() + "\n"
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    shutil.copytree(REPOSITORY / "changelog.d", tmp_path / "changelog.d", ignore=lambda *_: READERS.values())
    (tmp_path / "CHANGELOG.md").write_text(f"{PREFACE}## Unreleased\n\n{EARLIER}")
    kind = reader = ""
    for number, line in enumerate(release.splitlines()):
        if line.startswith("### "):
            kind = TYPES[line[4:]]
        elif line.startswith("#### "):
            reader = READERS[line[5:]]
            (tmp_path / "changelog.d" / reader).mkdir(exist_ok=True)
        elif line.startswith("- "):
            (tmp_path / "changelog.d" / reader / f"{number}.{kind}.md").write_text(line[2:] + "\n")
    version, date = re.match(r"## (\S+) - (\S+)", release).groups()
    build = ["-m", "towncrier", "build", "--yes", f"--version={version}", f"--date={date}"]
    subprocess.run([sys.executable, *build], cwd=tmp_path, check=True, capture_output=True)
    changes = release[release.index("### ") :]
    expected = f"{PREFACE}## Unreleased\n\n## {version} - {date}\n\n{changes}\n{EARLIER}"
    assert (tmp_path / "CHANGELOG.md").read_text() == expected
