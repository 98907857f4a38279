"""What the figures of the matrix are about: a digest of the course's graders and known answers, and their release.

The page carries it, so that a test can tell in a moment whether the page is about what is there now.
"""

import hashlib
import json
import re
from collections.abc import Iterator

from .. import course
from ..course import content
from ..course.folder import FILE, folder
from ..handout.names import EXAMPLES, MISTAKES, STEPS, data_file
from ..handout.unit_data import read_unit

_LINE = "About the content with the digest `{}`."


def digest() -> str:
    """SHA-256 of solutions, graders, known answers, settings, and what is released of them as data.

    The texts are not in it, nor is the engine: for a word in a sentence, or a line elsewhere, nobody marks 2,000
    answers again.
    """
    digested = hashlib.sha256()
    for name, its in sorted(_parts()):
        digested.update(f"{name} {len(its)}\n".encode() + its)
    return digested.hexdigest()


def line() -> str:
    """The line of the page."""
    return _LINE.format(digest())


def digest_in(page: str) -> str:
    """The digest that a page carries; empty where there is none."""
    found = re.search(_LINE.format("([0-9a-f]{64})"), page)
    return found[1] if found else ""


def _parts() -> Iterator[tuple[str, bytes]]:
    places = [*map(content.place, (content.SOLUTIONS, *content.OF_EACH_UNIT))]
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".py", ".yaml")]
    for path in (*files, folder() / FILE):
        yield str(path.relative_to(folder())), path.read_bytes()
    for unit in course.unit_names():
        released = read_unit(course.released(unit).with_name(data_file(unit)))
        for section in (EXAMPLES, MISTAKES, STEPS):
            yield f"{unit} {section}", json.dumps(released[section]).encode()
