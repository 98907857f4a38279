"""Notebooks are copied and written as nbformat does it, in less time."""

import nbformat
import pytest

from autograder.course.nodes import as_file, copied, new_cell, new_output


@pytest.fixture
def notebook():
    cells = [
        new_cell("markdown", "text", "Attention, so √d_k:\n\n\u2028 and no line end"),
        new_cell("code", "empty", ""),
        new_cell("code", "prints", "print('a')\r\nprint('b')\n"),
        new_cell("raw", "raw", "\n"),
    ]
    html = {"text/html": "<b>\n</b>", "text/plain": "b\n", "application/json": {"b": [1, 2.5], "a": None}}
    cells[2].outputs = [
        new_output("stream", name="stdout", text="a\nb\n"),
        new_output("execute_result", data=html),
        new_output("error", ename="E", evalue="e", traceback=["one\ntwo", "three"]),
    ]
    cells[1].metadata = nbformat.from_dict({"nbgrader": {"points": 1.0, "grade": True, "z": {}, "tags": []}})
    metadata = {"kernelspec": {"name": "python3"}, "signature": "of a file", "orig_nbformat": 3}
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def test_a_file_is_what_nbformat_writes(notebook):
    assert as_file(notebook).decode() == nbformat.v4.writes(notebook) + "\n"


def test_a_copy_is_equal_and_shares_nothing(notebook):
    before = nbformat.v4.writes(notebook)
    copy = copied(notebook)
    assert copy == notebook
    copy.cells[1].metadata.nbgrader.points = 2.0
    copy.cells[2].outputs[1].data["text/html"] = ""
    copy.metadata.kernelspec.name = "another"
    copy.cells.pop()
    assert nbformat.v4.writes(notebook) == before


def test_writing_changes_nothing(notebook):
    before = copied(notebook)
    as_file(notebook)
    assert notebook == before
