"""The base class of errors that are the user's to correct."""


class UserError(Exception):
    """Something that the user can correct. `str()` says what is wrong and what to do.

    Each command ends with this message on stderr and exit status 2.
    """
