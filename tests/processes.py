"""What the tests ask of other processes."""

from pathlib import Path

from autograder.sandbox.processes import children


def runs(pid):
    """Whether it runs: one that has ended and that nobody has waited for does not, though it is still listed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def below(pid):
    """The processes below this one."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found
