"""The secret from which a course's hidden cases are drawn, in a file that git ignores and that is never released.

Without the file, only the names of hidden tests seed their cases. Then everybody with a copy of the repository can
compute the cases.
"""

import os
import secrets
import subprocess
from contextlib import suppress
from pathlib import Path

from .. import UserError, output_files
from .settings import folder

FILE = "case_secret.txt"
_NOT_IGNORED = 1
"""Exit status of `git check-ignore` for a file that git does not ignore. Outside a repository the status is another."""


class BadSecret(UserError):
    """Raised if the file cannot be used or must not be written; `str()` says why and what to do."""


def read_secret() -> str:
    """Return the course's secret; empty if the course has none.

    Raises BadSecret if the file is unreadable or empty, because grading with the published cases would go unnoticed.
    """
    path = folder() / FILE
    try:
        secret = path.read_text().strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSecret(f"{path} cannot be read ({error}). Without it, the hidden cases cannot be drawn.") from None
    if not secret:
        raise BadSecret(f"{path} is empty. Delete it; then `autograder reseed` writes a new secret.")
    return secret


def write_secret() -> Path:
    """Write a new secret into the course's folder and return the file's path.

    Raises BadSecret if the course has a secret, or is a git repository that does not ignore the file. Raises
    NotWritable.
    """
    path = folder() / FILE
    if os.path.lexists(path):
        raise BadSecret(
            f"{path} exists already, and submissions may have been graded with it. For a new secret, delete it first; "
            "then `autograder grade` grades every submission again."
        )
    with suppress(FileNotFoundError):  # git is not installed
        command = ["git", "check-ignore", "--quiet", FILE]
        if subprocess.run(command, cwd=folder(), capture_output=True, check=False).returncode == _NOT_IGNORED:
            raise BadSecret(
                f"git does not ignore {FILE}, so the next commit could publish the secret. First add the line "
                f"`/{FILE}` to {folder() / '.gitignore'}."
            )
    output_files.write({path: f"{secrets.token_hex(16)}\n".encode()}, 0o600)
    return path
