"""JSON with something wrong in it: valid text in which one or more places hold what nobody expects there."""

import json
from typing import Any

from hypothesis import strategies as st

STRANGE = [
    "null", "true", "false", "0", "-1", "1", "2", "1.0", "1e999", "-0.0", "NaN", "Infinity", "-Infinity",
    "9" * 20, "9" * 4300, "9" * 4301, "-" + "9" * 300, "1e-999",
    '""', '"a"', '"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"' + "x" * 100_000 + '"', '"' + "/-" * 1000 + '"',
    "[]", "{}", "[[]]", "[null]", '{"a": 1, "a": 2}', '{"": []}', "[" + "0," * 10_000 + "0]",
    *("[" * depth + "]" * depth for depth in (9, 100, 900, 960, 990, 1100, 100_000)),
    *('{"list":[' * depth + "]}" * depth for depth in (7, 8, 9, 300, 480, 2000)),
    '{"tensor":"0"}', '{"tensor":"1"}', '{"tensor":"none"}', '{"tensor":0}', '{"tensor":["0"]}',
    '{"float":"nan"}', '{"float":"inf"}', '{"float":1}', '{"float":{}}', '{"opaque":"x"}', '{"opaque":1}',
    '{"opaque":"a tensor of shape (1,)"}',
    '{"list":[]}', '{"tuple":[]}', '{"dict":[]}', '{"list":{}}', '{"dict":[[1]]}', '{"dict":[[{"list":[]},1]]}',
    '{"dict":[[{"float":"nan"},1],[{"float":"nan"},2]]}', '{"dict":[[null,1],[1,2],[true,3],["a",4]]}',
    '{"dict":[["Life",{"float":"nan"}],["is",{"tensor":"0"}]]}', '{"dict":[["W_query",{"tensor":"0"}]]}',
    '{"tuple":[{"tensor":"0"},{"tensor":"0"}]}', '{"tuple":[{"tensor":"0"},{"opaque":"x"}]}',
    '{"list":[{"tensor":"0"},{"tensor":"1"},{"tensor":"2"}]}',
    '{"list":[' + '{"tensor":"0"},' * 5000 + '{"tensor":"0"}]}', '{"list":[' + "null," * 10_000 + "null]}",
]  # fmt: skip


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a tree of lists and dicts."""
    found = [path]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += places(value, (*path, key))
    return found


def with_strange(tree: Any, where: list[tuple[Any, ...]], what: list[str]) -> str:
    """The tree as JSON, with these fragments of text in these places."""
    root = [json.loads(json.dumps(tree))]
    for number, path in enumerate(where):
        holder: Any = root
        *above, last = (0, *path)
        try:
            for key in above:
                holder = holder[key]
            holder[last] = f"@@{number}@@"
        except (TypeError, KeyError, IndexError):
            continue  # what stood here has been replaced already
    text = json.dumps(root[0])
    for number, fragment in enumerate(what):
        text = text.replace(f'"@@{number}@@"', fragment)
    return text


@st.composite
def mutated(draw: st.DrawFn, tree: Any, most: int = 3) -> str:
    """A tree as JSON, with up to `most` places in it changed, some keys twice."""
    where = draw(st.lists(st.sampled_from(places(tree)), min_size=0, max_size=most))
    what = [draw(st.sampled_from(STRANGE)) for _ in where]
    text = with_strange(tree, where, what)
    if draw(st.integers(0, 9)) == 0 and text.startswith("{") and len(text) > 2:
        text = text[:-1] + "," + text[1:]  # every key twice
    return text


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes cut short, with bytes changed, or with something behind them; mostly as they are."""
    how = draw(st.sampled_from(["whole"] * 6 + ["cut", "changed", "longer", "not UTF-8"]))
    if how == "cut":
        return content[: draw(st.integers(0, max(0, len(content) - 1)))]
    if how == "changed" and content:
        changed = bytearray(content)
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
        return bytes(changed)
    if how == "longer":
        return content + draw(st.binary(max_size=20))
    if how == "not UTF-8":
        place = draw(st.integers(0, len(content)))
        return content[:place] + draw(st.sampled_from([b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\0"])) + content[place:]
    return content
