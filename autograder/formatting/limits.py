"""How much the formatting of students' texts may use. The numbers are set in autograder.toml."""

import msgspec


class PageLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Text past a limit is shown as plain text, with a sentence that says so."""

    cell_cpu_seconds: int = 1
    """For one cell; a comment counts as one."""
    page_cpu_seconds: int = 3
    """For all cells of a page."""
    page_wall_seconds: int = 6
    """For all cells of a page, waiting included."""
    memory_megabytes: int = 512
    """Of address space, above what the formatter has mapped when it starts."""
