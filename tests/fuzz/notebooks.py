"""Notebook files of strangers, read, recognised, cut into cells and made into what nbgrader sees."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import nbformat
from hypothesis import strategies as st

from autograder import course
from autograder.course import cells, notebook
from autograder.gradebook.clean_notebook import clean

from .json_text import damaged, mutated

CELL: dict[str, Any] = {
    "cell_type": "code",
    "id": "a",
    "source": ["def softmax(scores, dim=-1):\n", "    return scores"],
    "metadata": {"nbgrader": {"grade_id": "softmax", "points": 3, "schema_version": 3, "locked": False}},
    "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a"]}],
    "execution_count": 1,
}
NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "cells": [CELL, {"cell_type": "markdown", "id": "b", "source": "text", "metadata": {}}],
}


def check(data: bytes) -> None:
    parsed = notebook.parse(data)
    if isinstance(parsed, notebook.UnreadableNotebook):
        _said(str(parsed))
        return
    of = cells.unit_of(parsed)
    names = set() if isinstance(of, notebook.UnreadableNotebook) else {of.name}
    for unit in map(course.unit, sorted(names | {"dot_product_attention"})):
        found = cells.code_cells(parsed, unit)
        for exercise in unit.exercises:
            for cell in found:
                cell.defines(exercise.name)
        assert all(cell.name.isprintable() and len(cell.name) <= 100 for cell in found)
        msgspec.json.encode([(cell.name, cell.source) for cell in found])
        cleaned = clean(parsed, unit.name)
        nbformat.validate(cleaned)
        nbformat.writes(cleaned).encode()


def _said(sentence: str) -> None:
    assert len(sentence) < 1000
    msgspec.json.encode(sentence)


@st.composite
def _notebooks(draw: st.DrawFn) -> bytes:
    text = draw(mutated(NOTEBOOK))
    indent = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\0"]))
    return indent + draw(damaged(text.encode("utf-8", "surrogatepass")))


inputs = _notebooks()


def large() -> Iterator[bytes]:
    """Files as large as one may be."""

    def of(cells: bytes, rest: bytes = b"") -> bytes:
        return b'{"nbformat":4,"cells":[' + cells + b"]" + rest + b"}"

    def filled(unit: bytes, size: int = notebook.MAX_BYTES - 500) -> bytes:
        return unit * (size // len(unit))

    yield of(filled(b'{"cell_type":"code"},') + b'{"cell_type":"code"}')
    yield of((b'{"cell_type":"code"},') * (notebook.MAX_CELLS - 1) + b'{"cell_type":"code"}')
    yield of(b",".join([b'{"cell_type":"code","source":"' + b"def a\\n" * 1000 + b'"}'] * 1900))
    for text in (b"\\n", b"a\\n", b" ", b"def ", b"def\\t", b"class \\n", b"\\u0000", b"\\ud83d\\ude00"):
        yield of(b'{"cell_type":"code","source":"' + filled(text) + b'"}')
        cell = b'{"cell_type":"code","source":"' + filled(text, 200_000) + b'"}'
        yield of(b",".join([cell] * 79))
    for filling in (b"[],", b"{},", b"0,", b'"",', b"1e9,", b'"a":0,'):
        opening, closing = (b"{", b"}") if b":" in filling else (b"[", b"]")
        nest = opening + filled(filling)[:-1] + closing
        yield of(b'{"cell_type":"code","metadata":{"nbgrader":{"grade_id":' + nest + b"}}}")
        yield of(b'{"cell_type":"code","source":' + nest + b"}")
        yield of(b'{"cell_type":"code"}', b',"metadata":' + nest)
        yield nest
    yield b"[" * (notebook.MAX_BYTES // 2)
    yield b'{"a":' * (notebook.MAX_BYTES // 8)
    yield json.dumps({**NOTEBOOK, "cells": [{**CELL, "source": "x" * (15 << 20)}]}).encode()
