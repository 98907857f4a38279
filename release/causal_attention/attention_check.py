"""`check("attention_scores")` tries your function on examples; `check()` shows how far you are.

`example("attention_scores", 2)` gives you the arguments of the second example and the right result, to play with.
`hint("attention_scores")` gives a hint, and one more each time. `guess` answers what the notebook asks you to guess.
`explain("attention_scores")` asks about your own lines once they pass. `buggy("attention_scores")` gives you a wrong
one, where an exercise asks you to hunt its mistake down.
The check needs nothing but torch. The hidden tests that decide the points ask the same with other numbers.

The code of the check is in the zip file next to this one: unpack it if you would like to read it.
"""

import zipfile
from pathlib import Path
from typing import Any

_HERE = Path(__file__).absolute()
_ZIP = _HERE.with_suffix(".zip")
_UNPACKED = (_HERE.with_name(f"{_HERE.stem}_modules"), _HERE.with_suffix(""), _HERE.parent)
_LOADER = "autograder/student_check/loader.py"


def _read() -> tuple[Path, dict[str, bytes]]:
    """Return the zip or folder of the modules, and all sources by path, with this file's; raises ImportError."""
    facade, problem = {_HERE.name: _HERE.read_bytes()}, "is missing"
    if _ZIP.exists():
        try:
            with zipfile.ZipFile(_ZIP) as archive:
                return _ZIP, facade | {name: archive.read(name) for name in [_LOADER, *archive.namelist()]}
        except Exception as error:
            problem = f"is damaged ({error})"
    for folder in _UNPACKED:
        if (folder / _LOADER).is_file():
            paths = (folder / "autograder").rglob("*.py")
            return folder, facade | {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    raise ImportError(
        f"{_ZIP.name} {problem}. Fetch the assignment's files again, put all of them into one folder, and restart the "
        f"kernel. {_HERE.name} looked for {_ZIP}, and for the unpacked zip in "
        f"{', '.join(str(folder / 'autograder') for folder in _UNPACKED)}. The working directory is {Path.cwd()}."
    )


_place, _sources = _read()
_loader: dict[str, Any] = {"__name__": f"{__name__}_loader"}
exec(compile(_sources[_LOADER], _place / _LOADER, "exec"), _loader)
_check = _loader["StudentCheckLoader"](_HERE, _read, _place, _sources).load()
buggy, check, example, explain = _check.buggy, _check.check, _check.example, _check.explain
draw, guess, hint, show = _check.draw, _check.guess, _check.hint, _check.show
__all__ = ["buggy", "check", "draw", "example", "explain", "guess", "hint", "show"]
