"""How the commands speak: results on stdout, everything else on stderr, and a sentence where something is wrong."""

from typing import NoReturn

import typer
from rich.console import Console

console = Console()
aside = Console(stderr=True)

REFUSED = 2


def refuse(sentence: object) -> NoReturn:
    """Says why nothing was done, and ends with exit code 2."""
    aside.print(str(sentence), style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(REFUSED)
