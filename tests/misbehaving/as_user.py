"""Runs a command as an ordinary user: what a test needs that root runs, to see what an ordinary user sees.

Python or the repository may lie where only root can go (/root). In a mount namespace of the command's own, folders that
bar the way are covered by empty ones, and what is needed is put back into them; the machine itself is not changed.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

UID = 54321


def as_ordinary_user(command: Sequence[str], needed: Sequence[Path]) -> list[str]:
    """The command line that runs `command` as user 54321, for whom these folders can be reached."""
    return ["unshare", "--mount", sys.executable, __file__, *map(str, needed), "--", *command]


def _open_the_way(needed: Sequence[Path]) -> None:
    barred: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(needed):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                barred.setdefault(folder, []).append(path)
                break
    for folder, paths in barred.items():
        held = [Path(tempfile.mkdtemp(dir="/mnt")) for _ in paths]
        for path, hold in zip(paths, held, strict=True):
            _mount("--bind", str(path), str(hold))
        _mount("-t", "tmpfs", "-o", "mode=755", "none", str(folder))
        for path, hold in zip(paths, held, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            _mount("--move", str(hold), str(path))
            hold.rmdir()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    end = sys.argv.index("--")
    _open_the_way([Path(argument) for argument in sys.argv[1:end]])
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    os.execv(sys.argv[end + 1], sys.argv[end + 1 :])
