"""`python -m tests.fuzz SECONDS [TARGET[=N] ...]`: other inputs each time, after N that are the same each time.

An input that breaks a target is kept in tests/fuzz/corpus/TARGET/, whose files are tried first.
"""

import argparse
import hashlib
import importlib
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from .bounds import bounded

TARGETS = ("frames", "answers", "notebooks", "handed_in", "settings_file")
CORPUS = Path(__file__).parent / "corpus"
_ROUND = 200


class _Broken(Exception):
    pass


class Search:
    """One target, and how many inputs it has had."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tried = 0
        self.target: Any = importlib.import_module(f"{__package__}.{name}")

    def run(self, work: Callable[["Search"], None]) -> bool:
        """Does the work where the target needs it to be done; whether nothing broke."""
        results: list[bool] = []

        def do() -> None:
            try:
                work(self)
                results.append(True)
            except _Broken:
                results.append(False)

        getattr(self.target, "around", lambda do: do())(do)
        return results == [True]

    def replay(self) -> None:
        """Inputs that broke a target once, or are worth keeping."""
        for path in sorted((CORPUS / self.name).glob("*")):
            self.try_one(path.read_bytes(), path.name)

    def large(self) -> None:
        """Inputs that are built, not drawn: as large as inputs may be."""
        for number, data in enumerate(self.target.large()):
            self.try_one(data, f"large input {number}")

    def draw(self, examples: int, number: int | None) -> None:
        """Inputs by chance: the same in each run, or those of a seed."""
        failing: list[bytes] = []

        @settings(
            max_examples=examples,
            derandomize=number is None,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(self.target.inputs)
        def one(data: bytes) -> None:
            self.tried += 1
            failing[:] = [data]
            with bounded():
                self.target.check(data)
            failing.clear()

        try:
            (seed(number)(one) if number is not None else one)()
        except BaseException:
            if not failing:
                raise
            self._keep(failing[0])

    def try_one(self, data: bytes, label: str) -> None:
        self.tried += 1
        try:
            with bounded():
                self.target.check(data)
        except BaseException:
            print(f"{self.name}: {label} ({data[:100]!r})", file=sys.stderr)
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        traceback.print_exc()
        path = CORPUS / self.name / hashlib.sha256(data).hexdigest()[:12]
        if len(data) < 1 << 16:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            print(f"{self.name}: kept as {path.name}", file=sys.stderr)
        raise _Broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=0.0, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET[=N]", help=", ".join(TARGETS))
    parser.add_argument("--large", action="store_true", help="what is made and not drawn too")
    arguments = parser.parse_args()

    def work(search: Search, examples: int) -> None:
        search.replay()
        if arguments.large or arguments.seconds:
            search.large()
        if examples:
            search.draw(examples, None)
        end, number = time.monotonic() + arguments.seconds, time.time_ns()
        while time.monotonic() < end:
            search.draw(_ROUND, number)
            number += 1

    whole = True
    for asked in arguments.targets or TARGETS:
        name, _, examples = asked.partition("=")
        search = Search(name)
        whole = search.run(partial(work, examples=int(examples or 0))) and whole
        print(f"{name}: {search.tried} inputs", flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
