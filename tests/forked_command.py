"""Runs nbgrader's own command, in a process of its own: `run` is as `subprocess.run`.

The process is forked from one that has imported nbgrader, which takes two seconds, and more than most commands.
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
from functools import cache
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("nbgrader")


def run(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 400
) -> subprocess.CompletedProcess[str]:
    """What the command said, and its exit code."""
    server = _server()
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("out", "err")]
        order = {
            "arguments": list(map(str, arguments)),
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
        raise subprocess.TimeoutExpired(["nbgrader", *map(str, arguments)], timeout, out, err)
    return subprocess.CompletedProcess(["nbgrader", *map(str, arguments)], code, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    """Carries out one order a line."""
    for module in ("nbgraderapp", "autogradeapp", "generateassignmentapp", "generatefeedbackapp", "collectapp"):
        __import__(f"nbgrader.apps.{module}")
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
    sys.argv = [str(PROGRAM), *order["arguments"]]
    code = 1
    try:
        runpy.run_path(str(PROGRAM), run_name="__main__")
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
    sys.path[0] = str(PROGRAM.parent)  # as it is for the program itself
    _serve()
