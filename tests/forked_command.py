"""Runs a command of this environment's in a process of its own: `autograder` and `nbgrader` are as `subprocess.run`.

The process is forked from one that has imported nbgrader, which takes two seconds, and more than most commands. The
program itself is run from its beginning, our commands' modules are imported anew.
"""

import atexit
import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


def run(
    program: str, *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 400
) -> subprocess.CompletedProcess[str]:
    """What the command said, and its exit code."""
    server = _server()
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("out", "err")]
        order = {
            "command": [str(PROGRAMS / program), *map(str, arguments)],
            "cwd": str(cwd),
            "env": dict(os.environ if env is None else env),
            "said": list(map(str, said)),
            "timeout": timeout,
        }
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (path.read_text() for path in said)
    if code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(order["command"], timeout, out, err)
    return subprocess.CompletedProcess(order["command"], code, out, err)


autograder, nbgrader = partial(run, "autograder"), partial(run, "nbgrader")


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    """Carries out one order a line."""
    sys.modules.setdefault("rfc3987_syntax", None)  # as our command does: see `cli`
    for module in ("nbgraderapp", "autogradeapp", "generateassignmentapp", "generatefeedbackapp", "collectapp"):
        __import__(f"nbgrader.apps.{module}")
    for module in ("classroom.grade", "classroom.preview", "client.marker"):
        __import__(f"autograder.{module}")  # not `cli`, which looks at the environment
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(order)
        end = time.monotonic() + order["timeout"]
        while not (done := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.01)
        print(os.waitstatus_to_exitcode(done[1]), flush=True)


def _become(order: dict) -> None:
    """Is from here on the command."""
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, path in enumerate([os.devnull, *order["said"]]):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = order["command"]
    tempfile.tempdir = None
    code = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    sys.path[0] = str(PROGRAMS)  # as it is for the programs themselves
    _serve()
