"""What lies beside a unit's notebook besides the check: how to start, what to install, how to hand in."""

import ast
import re
from collections.abc import Iterable
from importlib.metadata import metadata, requires
from typing import Any

from ..course.settings import Settings
from ..handout.names import data_file, zip_file

README, REQUIREMENTS = "README.md", "requirements.txt"
_ENGINE = "attention-autograder"
_ALWAYS = "jupyterlab"

_README = """# {title}

Keep the files of this folder together: `{notebook}` needs those beside it.

## How to start

On a computer of your own, with Python {python} or newer, in this folder:

    python -m pip install -r requirements.txt
    jupyter lab {notebook}

On a course's own JupyterHub everything is installed: open the notebook there. In Colab, upload the notebook, and put
the other files into *Files*, at the left.

| file | what it is |
|---|---|
| `{notebook}` | the text and your answers: the only file that you change |
| `{check}.py` | the check that the notebook imports |
| `{zip}` | the code of the check, to be read by who likes: it need not be unpacked |
| `{data}` | examples that the check tries, what common mistakes give on them, as numbers{lesson} |
| `requirements.txt` | what `pip` is to install |
"""


def readme(unit: str, notebook: Any, settings: Settings, *, with_lesson: bool) -> str:
    """The folder's README. with_lesson: whether the unit has guesses or hints."""
    found = re.search(r"^# +(.+)$", notebook.cells[0].source if notebook.cells else "", re.M)
    text = _README.format(
        title=found[1].strip() if found else unit,
        notebook=f"{unit}.ipynb",
        python=metadata(_ENGINE)["Requires-Python"].removeprefix(">="),
        check=settings.check,
        zip=zip_file(settings.check),
        data=data_file(unit),
        lesson=", guesses and hints" if with_lesson else "",
    )
    how = settings.handing_in.section(f"{unit}.ipynb")
    return f"{text}\n{how}\n" if how else text


def requirements(notebook: Any, check: Iterable[str]) -> str:
    """What pip is to install for the notebook and its check: of the engine's own requirements those that they import.

    check: the sources of the check's modules.
    """
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    imported = set[str]().union(*map(_imported, [*code, *check])) | {_ALWAYS}
    wanted = [line.partition(";")[0].strip() for line in requires(_ENGINE) or [] if "extra" not in line]
    return "".join(sorted(f"{line}\n" for line in wanted if _name(line) in imported))


def _imported(code: str) -> set[str]:
    try:
        nodes = ast.parse(code).body
    except SyntaxError:  # it has a line for IPython
        return set()
    whole = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    of = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0].lower() for name in whole + of}


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0].lower() if found else ""
