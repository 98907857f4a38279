"""Stubs: what a cell with a solution is released as, and whether a student has written anything into one."""

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
_RAISE = "raise NotImplementedError()"


def frame(solution: str) -> tuple[str, ...]:
    """The lines of code of a solution cell that are no part of the solution: those that its stub has."""
    lines, is_outside = list[str](), True
    for line in map(str.strip, solution.split("\n")):
        if line in (BEGIN, END):
            is_outside = line == END
        elif is_outside:
            lines.append(line)
    return tuple(filter(_is_code, lines))


def is_stub(text: str, its_frame: tuple[str, ...]) -> bool:
    """True if a cell still raises the stub's error, and has no line of code but those of the frame."""
    return _RAISE in text and all(line in its_frame for line in map(str.strip, text.split("\n")) if _is_code(line))


def _is_code(line: str) -> bool:
    return bool(line) and not line.startswith("#") and line != _RAISE
