"""Puts one thing after another in the place of a student's folder, unit or file: `python -m tests.swapper FOLDER WHAT`.

As fast as it goes, until it is ended. What is put there: an empty one of its own, a link to FOLDER/instructor, a pipe.
"""

import os
import random
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Swaps, and never ends."""
    root, what = Path(sys.argv[1]), sys.argv[2]
    path = root / "submitted" / "ada" / what
    behind = root / "instructor" / what
    draw = random.Random(1)
    for number in range(10**9):
        part = root / f"part-{number}"
        match draw.choice(["own", "link", "pipe"]):
            case "own" if path.suffix:
                part.write_bytes(b'{"own": 1}')
            case "own":
                part.mkdir()
            case "link":
                part.symlink_to(behind)
            case "pipe":
                os.mkfifo(part)
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.rename(root / f"gone-{number}")
            part.rename(path)


if __name__ == "__main__":
    main()
