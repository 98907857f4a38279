"""LaTeX as MathML, which browsers show by themselves: no script, nothing to load."""

import re
from html import escape, unescape
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element

from .mathml_core import keep_only_core

LONGEST = 2000
# Two lines of definitions can expand to any length.
_DEFINITIONS = re.compile(r"\\(\w*def|\w*command|let)(?![a-zA-Z])")


def mathml(latex: str, display: str) -> str:
    """The formula as MathML; its text in dollars if it cannot be shown.

    latex: what is between the dollars; a student may have written it.
    display: "inline" or "block".
    """
    dollars = "$" if display == "inline" else "$$"
    as_typed = f"<code>{escape(dollars + latex + dollars)}</code>"
    if len(latex) > LONGEST or _DEFINITIONS.search(latex):
        return as_typed
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # of many kinds; which one is of no use to the reader
        return as_typed
    keep_only_core(formula)
    for part in formula.iter():
        if part.text:
            # latex2mathml leaves entities as they are, and so a student's `<` too.
            part.text = unescape(part.text)
    return tostring(formula, encoding="unicode")
