"""The CPU time of a process and everything below it, as the kernel counts it."""

import os
import resource
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def of_tree(root: int) -> float:
    """Seconds used by a process, its descendants, and those of them that have ended and been waited for."""
    stats = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        stats[int(name.split()[0])] = rest.split()
    used, waiting = 0.0, [root]
    while waiting:
        pid = waiting.pop()
        used += sum(map(int, stats[pid][11:15])) * _TICK  # utime, stime, and both of the children waited for
        waiting += [child for child, fields in stats.items() if int(fields[1]) == pid]
    return used


def of_children() -> float:
    """Seconds used by the children that have ended and been waited for, and by theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
