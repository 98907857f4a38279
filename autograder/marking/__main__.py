"""The trusted marking process: `python -m autograder.marking START`, START being `requests.Start` as JSON."""

import gc
import os
import signal
import sys
import warnings
from pathlib import Path

import msgspec

from ..client.requests import Refused, Start
from ..course.folder import folder
from ..sandbox import isolation
from ..sandbox.launch import Launched, launch
from .device import NoDevice, may_be_cuda


def main() -> int:
    """Serves one client on stdin and stdout until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client, which then hangs up
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but answers goes to the client
    warnings.simplefilter("ignore", UserWarning)  # what torch says of known mistakes, which run here too
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
    asked = start.settings.isolation
    level = isolation.choose(asked.require, trust_submissions=asked.trust_submissions)
    if level != "none":
        for private in (folder(), *map(Path, start.private)):
            isolation.keep_private(private)
    settings = start.settings
    return launch(level, settings.limits, cuda=may_be_cuda(start.device), check=settings.check, core=start.core)


if __name__ == "__main__":
    gc.disable()  # until torch and the graders are here, which stay: looking through them costs seconds
    code = main()
    sys.stderr.flush()
    os._exit(code)  # to take torch apart would take half a second, and nothing is left to do
