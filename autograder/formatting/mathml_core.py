"""Which MathML is allowed on a page: the elements and attributes of MathML Core that say how a formula looks.

https://www.w3.org/TR/mathml-core/. Those that do something or link somewhere are left out (`class`, `id`,
`style`, `href`, `data-*`, `tabindex`, events, `maction`, `annotation-xml`). The lines and columns of tables come from
MathML 3, for browsers that still draw them.
"""

import re
from xml.etree.ElementTree import Element

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


def keep_only_core(formula: Element) -> None:
    """Removes everything else from a formula; the content of an unknown element is kept."""
    for part in formula.iter():
        if part.tag not in ELEMENTS:
            part.tag = "mrow"
        for name, value in list(part.attrib.items()):
            if name not in ATTRIBUTES or not ATTRIBUTES[name].fullmatch(value):
                del part.attrib[name]
