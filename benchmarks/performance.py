"""The figures in docs/performance.md: `python -m benchmarks.performance` writes them again, from docs/figures/.

Each benchmark has a section of figures in the page, and a record of them in docs/figures/, which says when, on which
machine and with which version they were measured. A benchmark NAME has a function `tables` in its module, which makes
the section's tables of the figures, and calls `record` when it has measured.
"""

import datetime
import json
import os
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from autograder import __version__
from tests import REPOSITORY

PAGE = REPOSITORY / "docs" / "performance.md"
FIGURES = REPOSITORY / "docs" / "figures"
_LOAD = os.getloadavg()[0]  # before the benchmark adds to it


def record(name: str, figures: Any) -> None:
    """Write a benchmark's figures into docs/figures/ and docs/performance.md, and print them."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    measured = {
        "date": f"{datetime.date.today()}",
        "version": __version__,
        "machine": f"{os.cpu_count()} cores, {model[1] if model else 'unknown processor'}",
        "load": f"{_LOAD:.1f}",
        "figures": figures,
    }
    (FIGURES / f"{name}.json").write_text(json.dumps(measured, indent=1) + "\n")
    print(write(name))


def write(name: str) -> str:
    """Write a benchmark's recorded figures into docs/performance.md, and return their section."""
    text = section(name)
    PAGE.write_text(with_section(PAGE.read_text(), text.partition("\n")[0], text))
    return text


def section(name: str) -> str:
    """Return the section of a benchmark's recorded figures."""
    measured = json.loads((FIGURES / f"{name}.json").read_text())
    tables: str = import_module(f"benchmarks.{name}").tables(measured["figures"])
    return (
        f"### Figures of `benchmarks.{name}`\n\n"
        f"Written by `python -m benchmarks.{name}`. Measured on {measured['date']} with version {measured['version']}; "
        f"machine: {measured['machine']}; load: {measured['load']}.\n\n{tables}\n"
    )


def with_section(page: str, heading: str, section: str) -> str:
    """Return a page with a section added, which replaces the one with this heading."""
    before, _, after = page.partition(heading)
    following = re.search(r"^##.*", after, re.MULTILINE | re.DOTALL)
    parts = [before, section, following[0] if following else ""]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown, without a line break at its end."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (columns, ["---"] * len(columns), *rows))


if __name__ == "__main__":
    for file in sorted(FIGURES.glob("*.json")):
        write(file.stem)
