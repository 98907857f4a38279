"""LaTeX as MathML, which browsers show by themselves: no script, nothing to load."""

import re
from html import escape, unescape
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element

from .mathml_core import keep_only_core

LONGEST = 2000
# Of two lines of definitions an expansion can become as long as it likes.
_DEFINITIONS = re.compile(r"\\(\w*def|\w*command|let)(?![a-zA-Z])")


def mathml(latex: str, display: str) -> str:
    """The formula as MathML; where it is none that can be shown, its text in dollars.

    latex: what stands between the dollars; a student may have written it.
    display: "inline" or "block".
    """
    dollars = "$" if display == "inline" else "$$"
    as_typed = f"<code>{escape(dollars + latex + dollars)}</code>"
    if len(latex) > LONGEST or _DEFINITIONS.search(latex):
        return as_typed
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # many kinds, and which of them is of no use to the reader
        return as_typed
    keep_only_core(formula)
    for part in formula.iter():
        if part.text:
            # Entities that its own writer leaves as they are, and a student's `<` with them.
            part.text = unescape(part.text)
    return tostring(formula, encoding="unicode")
