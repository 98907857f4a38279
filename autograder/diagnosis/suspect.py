"""A known mistake, as diagnosis looks at it."""

from dataclasses import dataclass

from .behaviour import Behaviour


@dataclass(frozen=True)
class Suspect:
    """A known mistake, and what it shows."""

    name: str
    sentence: str
    caught_by: str | None
    is_of_device: bool
    """Whether a tensor in the wrong place is what is wrong with it."""
    is_of_gradients: bool
    """Whether it shows in gradients alone."""
    behaviour: Behaviour
    whatever_weights: bool = False
    """Its sentence holds of all that show this, but for what follows from the weights an instance begins with."""
