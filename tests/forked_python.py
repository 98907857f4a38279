"""Run code in a process of its own that has imported torch, and knows neither this repository nor its tests.

The process is forked from one that has imported torch, which takes two CPU seconds. Otherwise it is like
`python -I -c CODE`.
"""

import atexit
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_SERVER = """
import atexit, json, os, sys, traceback
import torch
for line in sys.stdin:
    order = json.loads(line)
    if not (pid := os.fork()):
        os.chdir(order["folder"])
        for number, path in enumerate([os.devnull, *order["outputs"]]):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        code = 0
        try:
            exec(compile(order["code"], "<string>", "exec"), vars(sys.modules["__main__"]))
        except BaseException:
            traceback.print_exc()
            code = 1
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a folder, which is first on its path; return its output and exit code, 1 after any exception."""
    server = _server()
    assert server.stdin
    assert server.stdout
    code = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{code}"
    with tempfile.TemporaryDirectory() as outputs:
        paths = [Path(outputs, name) for name in ("out", "err")]
        order = {"folder": str(folder), "outputs": [str(path) for path in paths], "code": code}
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        ended = int(server.stdout.readline())
        out, err = (path.read_text() for path in paths)
    return subprocess.CompletedProcess(code, ended, out, err)


@cache
def _server() -> "subprocess.Popen[str]":
    command = [sys.executable, "-I", "-c", _SERVER]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server
