"""How wide the code is that students get: narrow enough for JupyterLab at 1280 pixels, beside its file list."""

from ..course.units import BEGIN, END

COLUMNS = 88


def too_wide(code: str) -> str:
    """The first line of a cell that is too wide; empty if none is. What the stub takes the place of may be wider."""
    in_solution = False
    for line in code.splitlines():
        in_solution = line.strip() == BEGIN or (in_solution and line.strip() != END)
        if len(line) > COLUMNS and not in_solution:
            return line
    return ""
