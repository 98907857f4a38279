"""Marks exercises: students' code in one process, hidden graders in another."""

__version__ = "0.2.0"


class UserError(Exception):
    """Something that the user can correct. `str()` says what is wrong and what to do.

    Each command ends with this message on stderr and exit status 2.
    """
