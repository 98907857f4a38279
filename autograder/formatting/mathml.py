"""LaTeX as MathML, which browsers show without a script.

Only MathML Core's elements and attributes that say how a formula looks are kept: https://www.w3.org/TR/mathml-core/.
Those that act or link are left out (`class`, `id`, `style`, `href`, `data-*`, `tabindex`, events, `maction`,
`annotation-xml`). The lines and columns of tables come from MathML 3, for browsers that still draw them.
"""

import re
from html import escape, unescape
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element

LONGEST = 2000
_DEFINITIONS = re.compile(r"\\(\w*def|\w*command|let)(?![a-zA-Z])")
"""Commands that define commands: two lines of them can expand to any length."""
NAMESPACE = "http://www.w3.org/1998/Math/MathML"

ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mfrac", "msqrt", "mroot", "mstyle", "merror"),
    *("mpadded", "mphantom", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts"),
    *("mprescripts", "mtable", "mtr", "mtd"),
}

_NUMBER = r"[+-]?(?:\d{1,3}(?:\.\d{0,6})?|\.\d{1,6})"
_LENGTH = rf"{_NUMBER}(?:em|ex|px|pt|pc|mu|mm|cm|in|%|width|height|depth)?"
_SPACE = rf"{_LENGTH}|(?:negative)?(?:very){{0,2}}(?:thin|medium|thick)mathspace"
_COLOUR = r"[a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8}"
_YES_OR_NO = "true|false"
_VALUES = {
    "xmlns": re.escape(NAMESPACE),
    "display": "block|inline",
    "mathvariant": "[a-z]{1,12}(?:-[a-z]{1,12}){0,3}",
    "form": "prefix|infix|postfix",
    "scriptlevel": r"[+-]?\d",
    "columnspan": r"\d{1,2}",
    "rowspan": r"\d{1,2}",
    "columnalign": "left|center|right",
    "columnspacing": rf"{_LENGTH}(?: {_LENGTH})*",
    "rowspacing": rf"{_LENGTH}(?: {_LENGTH})*",
    "columnlines": "(?:none|solid|dashed)(?: (?:none|solid|dashed))*",
    "rowlines": "(?:none|solid|dashed)(?: (?:none|solid|dashed))*",
    **dict.fromkeys(["mathcolor", "mathbackground"], _COLOUR),
    **dict.fromkeys(["width", "height", "depth", "voffset", "lspace", "rspace"], _SPACE),
    **dict.fromkeys(["minsize", "maxsize", "linethickness"], _LENGTH),
    **dict.fromkeys(["stretchy", "symmetric", "fence", "separator", "largeop", "movablelimits"], _YES_OR_NO),
    **dict.fromkeys(["accent", "accentunder", "displaystyle"], _YES_OR_NO),
}
ATTRIBUTES = {name: re.compile(values) for name, values in _VALUES.items()}
"""The allowed attributes, each with its allowed values."""


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML, or its text in dollars if it cannot be converted.

    latex: what is between the dollars; a student may have written it.
    display: "inline" or "block".
    """
    dollars = "$" if display == "inline" else "$$"
    as_typed = f"<code>{escape(dollars + latex + dollars)}</code>"
    if len(latex) > LONGEST or _DEFINITIONS.search(latex):
        return as_typed
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # the converter raises many kinds
        return as_typed
    for element in formula.iter():
        if element.tag not in ELEMENTS:
            element.tag = "mrow"
        for name, value in list(element.attrib.items()):
            if name not in ATTRIBUTES or not ATTRIBUTES[name].fullmatch(value):
                del element.attrib[name]
        # latex2mathml leaves entities as they are, and so a student's `<` too.
        element.text = element.text and unescape(element.text)
    return tostring(formula, encoding="unicode")
