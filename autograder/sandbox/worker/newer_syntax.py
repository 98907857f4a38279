"""The version of Python that a cell is written for, if it is newer than the one that runs here.

What newer versions have is rewritten as what all have. If the cell then compiles, nothing else was wrong with it.
Example: `f"{row["x"]}"` compiles from Python 3.12 on; rewritten as `""` it does everywhere.
"""

import ast
import re
import sys
import warnings

Version = tuple[int, int]

_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_F_STRINGS, _TYPES, _DEFAULTS, _TEMPLATES = (3, 12), (3, 12), (3, 13), (3, 14)
_STRING = re.compile(r"(?<!\w)([A-Za-z]{0,2})('''|\"{3}|'|\")")
_GENERIC = re.compile(r"^[ \t]*(?:(?:async[ \t]+)?def|class|type)[ \t]+\w+(?=\[)", re.M)
_TYPE = re.compile(r"^([ \t]*)type[ \t]+(\w+[ \t]*=)", re.M)
_EXCEPT = re.compile(r"^([ \t]*except\*?)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*:", re.M)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def version_needed(source: str) -> Version | None:
    """The version that a cell needs, which does not compile here; None if it is not known to be newer."""
    try:
        rewriting = _Rewriting(source)
        text = rewriting.generics(rewriting.strings())
        needed = max(rewriting.versions, default=(0, 0))
        return needed if needed > sys.version_info[:2] and _compiles(text) else None
    except (ValueError, IndexError, RecursionError):
        return None


def _compiles(text: str, mode: str = "exec") -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "", mode, _FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class _Rewriting:
    """A cell on its way into what every version of Python understands. Raises ValueError where it is not Python."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self.versions: set[Version] = set()
        """Python versions that introduced the rewritten syntax."""

    def strings(self, closing: str = "") -> str:
        """The code from here on with its f-strings and t-strings empty; up to one of these brackets, if any is given.

        closing: characters that end the code where no bracket is open.
        """
        parts, brackets = list[str](), list[str]()
        while self._at < len(self._source):
            character = self._source[self._at]
            if not brackets and character in closing and not self._is_comparison(character):
                return "".join(parts)
            if character == "#":
                end = self._source.find("\n", self._at)
                self._at = len(self._source) if end < 0 else end
                continue
            if string := _STRING.match(self._source, self._at):
                parts.append(self._string(string))
                continue
            if character in _CLOSING:
                brackets.append(_CLOSING[character])
            elif brackets and character == brackets[-1]:
                brackets.pop()
            parts.append(character)
            self._at += 1
        if closing:
            raise ValueError
        return "".join(parts)

    def _is_comparison(self, character: str) -> bool:
        return character == "!" and self._source[self._at + 1 : self._at + 2] == "="

    def _string(self, string: re.Match[str]) -> str:
        prefix, quotes = string[1].lower(), string[2]
        begins, self._at = self._at, string.end()
        is_formatted = not {"f", "t"}.isdisjoint(prefix)
        while not self._source.startswith(quotes, self._at):
            character = self._source[self._at]
            if is_formatted and character in "{}":
                if self._source[self._at + 1] == character:
                    self._at += 2
                elif character == "{":
                    self._field()
                else:
                    raise ValueError
            else:
                self._at += 2 if character == "\\" else 1
        self._at += len(quotes)
        if not is_formatted:
            return self._source[begins : self._at]
        self.versions.add(_TEMPLATES if "t" in prefix else _F_STRINGS)
        return '""'

    def _field(self) -> None:
        """Pass by `{value!r:>{width}}`, in which the values have to be Python."""
        self._at += 1
        value = self.strings("!:}=").strip()
        while self._source[self._at] == "=":  # of `==`, of `<=` or for debugging
            following = self._source[self._at + 1]
            if following in "}!: " and self._source[self._at - 1] not in "<>!=":
                self._at += 1
                value += self.strings("!:}").strip()
                break
            value += "="
            self._at += 1
            value += self.strings("!:}=")
        if not value or not _compiles(f"({value})", "eval"):
            raise ValueError
        if self._source[self._at] == "!":
            self._at += 2
        if self._source[self._at] == ":":
            self._at += 1
            while self._source[self._at] != "}":
                if self._source[self._at] == "{":
                    self._field()
                else:
                    self._at += 1
        if self._source[self._at] != "}":
            raise ValueError
        self._at += 1

    def generics(self, text: str) -> str:
        """The code without type parameters and `type` statements, and with brackets around what `except` names."""
        while generic := _GENERIC.search(text):
            parameters = _Rewriting(text[generic.end() + 1 :])
            inside = parameters.strings("]")
            self.versions.add(_DEFAULTS if "=" in inside else _TYPES)
            text = text[: generic.end()] + text[generic.end() + len(text[generic.end() + 1 :][: parameters._at]) + 2 :]
        text, types = _TYPE.subn(r"\1\2", text)
        text, excepts = _EXCEPT.subn(r"\1 (\2):", text)
        self.versions |= ({_TYPES} if types else set()) | ({_TEMPLATES} if excepts else set())
        return text
