"""`python -m tests.fuzz.guided SECONDS TARGET`: a target's bytes, changed so as to reach new lines of the kit.

Needs atheris (`pip install atheris`), which has no part in `make test`. What breaks a target is kept in its corpus.
"""

import importlib
import sys
import tempfile

import atheris

from .__main__ import CORPUS, TARGETS
from .bounds import bounded


def main() -> None:
    """End the process: with 0 after a number of seconds, or with another code at the first finding."""
    seconds, name = int(sys.argv[1]), sys.argv[2]
    if name not in TARGETS:
        sys.exit(f"{name} is none of {', '.join(TARGETS)}.")
    with atheris.instrument_imports(include=["autograder"]):
        target = importlib.import_module(f"{__package__}.{name}")

    def once(data: bytes) -> None:
        with bounded():
            target.check(data)

    known = CORPUS / name
    with tempfile.TemporaryDirectory() as reached:
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={known}/", "-max_len=100000", "-rss_limit_mb=0"]
        atheris.Setup([sys.argv[0], *options, reached, str(known)], once)
        getattr(target, "around", lambda do: do())(atheris.Fuzz)


if __name__ == "__main__":
    main()
