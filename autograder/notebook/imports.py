"""The modules that a cell imports, found without parsing it: a stranger's text may take a parser hours."""

import re
from collections.abc import Iterator

from . import MAX_CHARACTERS

MAX_MODULES = 50
"""In one cell."""
_MAX_NAME = 100
_STATEMENT = re.compile(r"^[ \t]*+(?:from[ \t]++([\w.]++)[ \t]++import\b|import[ \t]++([\w., \t]++))", re.M)


def imported_modules(source: str) -> list[str]:
    """List the names in the cell's `import` and `from` statements that stand at the beginning of a line."""
    return list(dict.fromkeys(_names(source)))[:MAX_MODULES]


def _names(source: str) -> Iterator[str]:
    for module, modules in _STATEMENT.findall(source[:MAX_CHARACTERS]):
        for named in [module, *modules.split(",")]:
            yield from (name for name in named.split()[:1] if len(name) <= _MAX_NAME)
