"""Slides as one HTML file, which needs no network; without its script they stand below each other."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .. import __version__
from ..reports.graded_notebook import message_html
from .composing import Deck, Slide, are_a_pair
from .text import Piece, inline

_TEMPLATE = "slides.html"


def page(deck: Deck) -> str:
    """The page."""
    return _environment().get_template(_TEMPLATE).render(deck=deck, version=__version__)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"inline": _inline, "formatted": _formatted, "prose": _prose, "layout": _layout}
    return made


def _inline(heading: str) -> Markup:
    return Markup(inline(heading))


def _formatted(piece: Piece) -> Markup:
    return Markup(piece.html)


def _prose(sentence: str) -> Markup:
    return Markup(message_html(sentence))


def _layout(slide: Slide) -> str:
    """Its classes: a table and one table of what was computed stand beside each other."""
    return f"{slide.kind} pair" if are_a_pair(slide.text, slide.figures) else slide.kind
