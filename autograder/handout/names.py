"""The names of the files that students get with a notebook, and the keys of a unit's data."""

FORMAT = 1
"""The version of the data format that the build writes, and the newest that the check reads."""
EXAMPLES, MISTAKES, STEPS = "public_examples", "known_mistakes", "right_steps"
LESSON = "guesses_and_hints"
"""Only if a unit has guesses or hints."""
WRITTEN = "written questions"
"""Among the exercises: the points of the questions that a person marks."""


def data_file(unit: str) -> str:
    """Return the name of a unit's data file."""
    return f"{unit}.json.gz"


def zip_file(check: str) -> str:
    """Return the name of the zip with the modules of the student check. check: the module that notebooks import."""
    return f"{check}.zip"
