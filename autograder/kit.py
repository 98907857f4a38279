"""The version of the kit behind a mark: a digest of everything here that can change one."""

import hashlib
from functools import cache

from . import course

_OF_UNITS = ("hidden", "misconceptions", "right_answers")


@cache
def digest(unit: str) -> str:
    """SHA-256 of the code, the unit's graders, misconceptions and solutions, and its source and release notebooks.

    Other units' folders are left out, so that fixing a grader of one unit does not mean marking another again.
    """
    package = course.REPOSITORY / "autograder"
    code = [*package.rglob("*.py"), *package.rglob("*.yaml")]
    files = [path for path in code if not _of_another_unit(path.relative_to(package).parts, unit)]
    files += [*course.REPOSITORY.glob(f"solutions/{unit}.py"), *course.REPOSITORY.glob(f"solutions/{unit}/**/*.py")]
    files += [
        course.REPOSITORY / "autograder.toml",
        course.SOURCE / unit / f"{unit}.ipynb",
        course.RELEASE / unit / f"{unit}.ipynb",
    ]
    digested = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digested.update(f"{path.relative_to(course.REPOSITORY)} {len(content)}\n".encode() + content)
    return digested.hexdigest()


def _of_another_unit(parts: tuple[str, ...], unit: str) -> bool:
    """Whether a module is in the folder of a unit other than this one."""
    return parts[0] in _OF_UNITS and len(parts) > 2 and parts[1] != unit
