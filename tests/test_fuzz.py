"""Strangers' bytes break nothing on the trusted side: what was found before, and the same few hundred each time.

`python -m tests.fuzz SECONDS` looks further.
"""

import subprocess
import sys

import pytest

from tests import REPOSITORY

EXAMPLES = {"frames": 50, "answers": 20, "notebooks": 80, "handed_in": 80, "settings_file": 80}


@pytest.mark.parametrize("target", EXAMPLES)
def test_nothing_breaks(target):
    """In a process of its own, in which memory and time can be limited."""
    command = [sys.executable, "-m", "tests.fuzz", "0", target, "--examples", str(EXAMPLES[target])]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert f"{target}: " in run.stdout
