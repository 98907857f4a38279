"""What a request on the port has to say: in a file that only the account that serves can read."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..gradebook.course_directory import CourseProblem

FOLDER = ".serving"
"""In the course's folder, for as long as it is served: the token, and files of requests that are on their way."""
FILE = "token"


@contextmanager
def fresh(root: Path) -> Iterator[tuple[Path, str]]:
    """The folder, empty but for the file, and a token that nobody had before; raises CourseProblem."""
    folder, token = root / FOLDER, secrets.token_urlsafe(32)
    shutil.rmtree(folder, ignore_errors=True)  # of a killed run
    try:
        folder.mkdir(mode=0o700)
        (folder / FILE).touch(mode=0o600)
        (folder / FILE).write_text(f"{token}\n")
    except OSError as error:
        raise CourseProblem(
            f"{folder} cannot be made: {error.strerror}. Delete what is there, and begin again."
        ) from None
    try:
        yield folder, token
    finally:
        shutil.rmtree(folder, ignore_errors=True)
