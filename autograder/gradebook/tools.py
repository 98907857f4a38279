"""The commands that nbgrader calls by their bare names: where it finds them, and one that it can do without."""

import os
import sys
from pathlib import Path

from nbgrader import api, dbutil


def put_on_path() -> None:
    """Puts the folder of this Python's commands on the PATH, for shells in which the environment is not active."""
    folder = str(Path(sys.executable).parent)
    there = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if folder not in there:
        os.environ["PATH"] = os.pathsep.join([folder, *there])


def make_gradebooks_without_a_command() -> None:
    """Makes a new gradebook get its version from alembic's library, because starting the command takes seconds.

    For this process; called from the course's settings.
    """
    api.get_alembic_version = newest_version


def newest_version() -> str:
    """The version of the gradebooks that this nbgrader makes."""
    from alembic.script import ScriptDirectory  # only a new gradebook needs it

    head = ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head()
    assert head is not None  # nbgrader ships its versions
    return head
