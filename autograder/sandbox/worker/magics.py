"""The cell magics of IPython: which of them run their cell here."""

import re

RUNNING = ("time", "timeit", "capture", "prun", "debug", "pdb")
WRITING = "writefile"
"""Writes its cell into a file, as in Jupyter."""
DEBUGGERS = ("debug", "pdb")
"""Run their cell without a debugger: nobody is there to talk to it."""
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")


def magic_that_keeps_from_running(cell: str) -> str:
    """The name of the magic above a cell that does not run here; empty if the cell runs."""
    magic = _CELL_MAGIC.match(cell)
    return magic[1] if magic and magic[1] not in RUNNING else ""
