"""Jinja's environment for whole pages, with the head and the stylesheet that all pages share."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .graded_notebook import message_html

FOLDER = Path(__file__).parent / "templates"
"""The templates; those in `base` are shared by all pages, also by nbconvert's."""


@cache
def environment(folder: Path) -> Environment:
    """Return an environment with the templates in a folder and the shared ones. All text in a page is escaped.

    Filter `prose`: one of the autograder's messages as HTML.
    """
    pages = Environment(
        loader=FileSystemLoader([folder, FOLDER / "base"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["prose"] = lambda text: Markup(message_html(text))
    return pages
