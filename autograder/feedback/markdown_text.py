"""One of the kit's sentences in a markdown cell, where names that a stranger chose must not become markup."""

import re

# Anything else between backticks could end the code, or be a formula, because formulas are found in code too.
_CODE = re.compile(r"(`[\w .,()+=@/-]+`)")
_PUNCTUATION = re.compile(r"[!#$%()*+/:<=>?@\[\\\]^_`{|}~]|\.(?=\S)")


def as_markdown(sentence: str) -> str:
    """The sentence as one line of markdown: a plain name between backticks is code, everything else is text."""
    parts = _CODE.split(" ".join(sentence.split()))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    # An ampersand after a backslash would be read together with what follows it.
    return _PUNCTUATION.sub(r"\\\g<0>", text).replace("&", "&amp;")
