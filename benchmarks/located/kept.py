"""Store the edits that fail a hidden test on values: `python -m benchmarks.located.kept`.

It runs every hidden test on every edit, which takes minutes, so the list is stored in a file. Its entries stay, and
exercises without an entry are added. `--again EXERCISE ...` tests the edits of these exercises again.
"""

import argparse
import contextlib
import io
import signal
from pathlib import Path
from typing import Any

import torch

from autograder.graders.collection import Verdict, collect
from autograder.grading.examiner import Examiner, candidate_bench

from .edits import EditedAnswer, all_edits

LIST = Path(__file__).with_name("kept.txt")
SECONDS = 5
"""An edit that runs for longer is not kept: a loop in it may never end."""


def kept() -> list[EditedAnswer]:
    """The edits that are in the list."""
    names = set(LIST.read_text().splitlines())
    return [edit for edit in all_edits() if edit.name in names]


def differs(verdicts: list[Verdict]) -> bool:
    """Return whether a hidden test on values, rather than only a conditional test, fails."""
    return any(verdict.outcome == "failed" and not verdict.test.is_property for verdict in verdicts)


def _too_long(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--again", nargs="+", default=[], metavar="EXERCISE")
    again = set(parser.parse_args().again)
    torch.set_num_threads(1)
    edits = all_edits()
    there = set(LIST.read_text().splitlines())
    done = {edit.exercise for edit in edits if edit.name in there} - again
    with contextlib.redirect_stdout(io.StringIO()):
        examiner = Examiner(collect())
    signal.signal(signal.SIGALRM, _too_long)
    counts = [edit for edit in edits if (edit.name in there if edit.exercise in done else _counts(examiner, edit))]
    LIST.write_text("".join(f"{edit.name}\n" for edit in counts))


def _counts(examiner: Examiner, edit: EditedAnswer) -> bool:
    signal.alarm(SECONDS)
    try:
        candidate = edit.candidate
        finding = examiner.examine(edit.unit, edit.exercise, candidate_bench(edit.unit, candidate), candidate)
        return differs(finding.verdicts)
    except (Exception, TimeoutError):  # it cannot even be defined
        return False
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    main()
