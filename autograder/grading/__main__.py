"""The trusted grader process: `python -m autograder.grading DEVICE`."""

import os
import signal
import sys

from ..sandbox.launch import launch


def main() -> int:
    """Serves one client on stdin and stdout until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the client, which then hangs up
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but answers goes to the client
    launched = launch()  # imports torch while this process does
    from .service import serve

    return serve(sys.stdin.buffer, answers, launched, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
