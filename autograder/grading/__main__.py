"""Run a grading process: `python -m autograder.grading START`, where START is a `pool.requests.Start` as JSON."""

import gc
import os
import signal
import sys
import warnings
from pathlib import Path

import msgspec

from ..course.settings import folder
from ..pool.requests import Refused, Start
from ..sandbox import isolation
from ..sandbox.isolation import Launched, launch
from .machine import NoDevice, may_be_cuda


def main() -> int:
    """Answer one client's requests on stdin and stdout until it closes them; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client, which then hangs up
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # only answers go to the client
    warnings.simplefilter("ignore", UserWarning)  # torch's, about misconceptions, which run in this process too
    start = msgspec.json.decode(sys.argv[1], type=Start)
    try:
        launched = None if start.own_code_alone else _launched(start)  # imports torch while this process does
    except (NoDevice, isolation.NotIsolated) as reason:
        answers.write(msgspec.json.encode(Refused(str(reason))) + b"\n")
        answers.flush()
        return 0
    from .service import serve

    return serve(sys.stdin.buffer, answers, launched, start)


def _launched(start: Start) -> Launched:
    settings = start.settings
    level = isolation.choose(settings.isolation.require, trust_submissions=settings.isolation.trust_submissions)
    if level != "none":
        for private in (folder(), *map(Path, start.private)):
            isolation.keep_private(private)
    return launch(level, settings.limits, cuda=may_be_cuda(start.device), check=settings.check, core=start.core)


if __name__ == "__main__":
    gc.disable()  # until torch and the hidden tests are loaded, whose objects collections would inspect in vain
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a normal exit would spend half a second on torch's clean-up
