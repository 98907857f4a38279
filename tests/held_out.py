"""The held-out answers of tests/answers/held_out, which four writers wrote from the exercises' texts alone.

Writers a and c write like students of a first course, writers b and d like experienced engineers. Each answer has a
sentence on what is wrong with it, or why it is right. All of a set were written before any of them was graded.
"""

from dataclasses import dataclass

from tests.typed import stored


@dataclass(frozen=True)
class HeldOut:
    """One held-out answer."""

    exercise: str
    name: str
    writer: str
    code: str
    wrong: str = ""
    """The writer's description of the mistake; empty if the answer is right."""
    right: str = ""


def held_out(unit: str) -> list[HeldOut]:
    """Return a unit's held-out answers."""
    return [HeldOut(**fields) for fields in stored(f"held_out/{unit}")]
