"""Strangers' bytes break nothing on the trusted side: what was found before, and the same few hundred each time.

`python -m tests.fuzz SECONDS` looks further.
"""

import subprocess
import sys

from tests import REPOSITORY

EXAMPLES = {"frames": 50, "answers": 20, "notebooks": 80, "handed_in": 80, "settings_file": 80}


def test_nothing_breaks():
    """In a process of their own, in which memory and time can be limited."""
    command = [sys.executable, "-m", "tests.fuzz", "0", *(f"{target}={many}" for target, many in EXAMPLES.items())]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    tried = dict(line.split(": ") for line in run.stdout.splitlines())
    assert tried.keys() == EXAMPLES.keys()
    assert all(int(tried[target].removesuffix(" inputs")) > many for target, many in EXAMPLES.items())
