"""A student's folder is replaced whole: there is the old one or the new one, whenever the process ends."""

import os
import shutil
from pathlib import Path


def beside(there: Path, what: str) -> Path:
    """A name beside the folder that is no submission's."""
    return there.with_name(f".{there.name}.{what}")


def replace(part: Path, there: Path) -> None:
    """Puts a finished folder in its place, and deletes what was there; raises OSError."""
    put_back(there)
    old = beside(there, "old")
    if old.is_dir():
        shutil.rmtree(old)
    if os.path.lexists(there):
        there.rename(old)
    part.rename(there)
    if old.is_dir():
        shutil.rmtree(old)


def put_back(there: Path) -> None:
    """Puts back what a run that was killed in the middle of `replace` took away; raises OSError."""
    old = beside(there, "old")
    if old.is_dir() and not os.path.lexists(there):
        old.rename(there)
