"""What is allowed in the HTML made from a student's text: its structure, and nothing that acts or links.

A class or an id is enough to do harm: formgrader's script treats anything with those of a button as that button.
"""

import nh3
from pygments.token import STANDARD_TYPES

_PROSE = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "i", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td"),
}
_prose = nh3.Cleaner(tags=_PROSE, attributes={"ol": {"start"}}, url_schemes=set())
_code = nh3.Cleaner(
    tags={"div", "pre", "code", "span"},
    attributes={},
    allowed_classes={"div": {"highlight"}, "span": {name for name in STANDARD_TYPES.values() if name}},
    url_schemes=set(),
)


def prose(html: str) -> str:
    """The text with its headings, lists and tables; no class, id, style, link, picture or form."""
    return _prose.clean(html)


def highlighted_code(html: str) -> str:
    """Code as pygments highlights it, with the classes of its style and no others."""
    return _code.clean(html)
