"""The import of the check, in a cell that says what to do, or fetches the files, where a notebook stands alone."""

import re

from ..handout.names import EXAMPLES, MISTAKES, STEPS

_STOPS = """try:
    {imported}
except ModuleNotFoundError:
    raise FileNotFoundError(
        "{module}.py is missing: put all files of this assignment into the "
        "folder of this notebook (in Colab into Files, at the left), then run "
        "this cell again."
    ) from None"""

_FETCHES = """try:
    {imported}
except ModuleNotFoundError:  # the notebook stands alone
    import importlib
    from pathlib import Path
    from urllib.request import urlopen

    place = (
        "{address}"
    )
    try:
        for name in (
            "{examples}",
            "{mistakes}",
            "{steps}",
            "{module}.py",
        ):
            with urlopen(f"{{place}}/{{name}}", timeout=60) as file:
                Path(name).write_bytes(file.read())
    except Exception as error:
        raise FileNotFoundError(
            "{module}.py is missing, and could not be fetched from "
            f"{{place}} ({{error}}): put all files of this assignment into the "
            "folder of this notebook, then run this cell again."
        ) from None
    importlib.invalidate_caches()
    {imported}"""


def guarded(code: str, module: str, address: str) -> str:
    """A cell's code, its import of the check guarded. In marking a module of this name is there already.

    address: of the folder with the unit's files; empty if there is none to fetch from.
    """
    template = _FETCHES if address else _STOPS
    names = {"examples": EXAMPLES, "mistakes": MISTAKES, "steps": STEPS}

    def written(found: re.Match[str]) -> str:
        return template.format(imported=found[0], module=module, address=address, **names)

    return re.sub(rf"^from {module} import .+$", written, code, flags=re.M)
