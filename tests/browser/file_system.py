"""A file system of their own for programs that the browser tests start."""

import sys
from collections.abc import Mapping
from pathlib import Path

ETC = ("hosts", "nsswitch.conf", "ld.so.cache", "localtime", "alternatives", "fonts")
"""Entries of /etc that programs need, besides accounts."""
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def confined(read_only: Mapping[str, Path], writable: Mapping[str, Path]) -> list[str]:
    """Return the beginning of a command line: bubblewrap with this environment's programs and these files only.

    read_only, writable: the path inside, with the file or folder that the tests have for it.
    """
    there = {**{folder: Path(folder) for folder in dict.fromkeys(("/usr", sys.prefix, sys.base_prefix))}, **read_only}
    parents = {parent for place in (*there, *writable) for parent in Path(place).parents}
    line = ["bwrap", "--unshare-pid", "--die-with-parent", "--clearenv"]
    for parent in sorted(parents, key=lambda one: len(one.parts)):
        line += ["--perms", "0755", "--dir", str(parent)]
    line += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    for place, origin in there.items():
        line += ["--ro-bind-try", str(origin), place]
    for link, target in _LINKS.items():
        line += ["--symlink", target, f"/{link}"]
    for place, origin in writable.items():
        line += ["--bind", str(origin), place]
    return [*line, "--setenv", "LANG", "C.UTF-8"]
