"""Notebooks as programs and people leave them: strange outputs, encodings and formats take no work away."""

import codecs
import json
import shutil

import pytest

from autograder import course
from autograder.course import notebook
from autograder.course.notebook import MOST_PICTURES
from autograder.course.notebook_file import read_at
from tests import REPOSITORY
from tests.typed import solved

UNIT = "dot_product_attention"
NAN, INFINITY = float("nan"), float("inf")
HALF = "\ud83d"


def cells_and_parsed():
    """The cells of a solved notebook, and what is parsed of them."""
    content = solved(UNIT)
    return json.loads(content), cells_of(notebook.parse(content))


def cells_of(parsed):
    assert isinstance(parsed, notebook.RawNotebook), parsed
    return [(cell.cell_type, cell.text, cell.grade_id) for cell in parsed.cells]


def read(tmp_path, content):
    file = tmp_path / "odd.ipynb"
    file.write_bytes(content)
    return notebook.parse(read_at(file).content)


OUTPUTS = {
    "NaN": [{"output_type": "display_data", "data": {"application/json": {"y": [NAN, INFINITY, -INFINITY]}}}],
    "half an emoji": [{"output_type": "stream", "name": "stdout", "text": [HALF]}],
    "NaN in place of a list": NAN,
    "nothing": None,
    "a number as an output": [3],
}
FILES = {
    "widget state": {"metadata": {"widgets": {"state": {"a": {"value": INFINITY, "text": HALF}}}}},
    "a metadata of NaN": {"metadata": NAN},
    "a minor format of NaN": {"nbformat_minor": NAN},
}


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=list(OUTPUTS))
def test_outputs_never_matter(tmp_path, outputs, large):
    data, expected = cells_and_parsed()
    for cell in data["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=outputs, execution_count=NAN)
            cell["metadata"]["scrolled"] = NAN
    if large:
        data["cells"][-1]["outputs"] = ["\N{PILE OF POO}" * (notebook.MAX_BYTES // 10), outputs]
    assert cells_of(read(tmp_path, json.dumps(data).encode())) == expected


def test_bytes_that_are_no_text_in_an_output_do_not_matter(tmp_path):
    data, expected = cells_and_parsed()
    next(cell for cell in data["cells"] if cell["cell_type"] == "code")["outputs"] = ["PLACE"]
    content = json.dumps(data).encode().replace(b"PLACE", b"\xff\xed\xa0\xbd\x00")
    assert cells_of(read(tmp_path, content)) == expected


@pytest.mark.parametrize("changed", FILES.values(), ids=list(FILES))
def test_what_programs_note_of_a_notebook_does_not_matter(tmp_path, changed):
    data, expected = cells_and_parsed()
    assert cells_of(read(tmp_path, json.dumps({**data, **changed}).encode())) == expected


@pytest.mark.parametrize("written", [HALF, "a" + HALF, HALF + "A", "\udc00\ud83d", "\\" + HALF])
def test_half_an_emoji_in_a_cell_costs_that_letter(tmp_path, written):
    data, expected = cells_and_parsed()
    data["cells"].append({"cell_type": "markdown", "metadata": {}, "source": written + "\N{GRINNING FACE} why"})
    *cells, (_, text, _) = cells_of(read(tmp_path, json.dumps(data).encode()))
    assert cells == expected
    shown = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= letter <= "\udfff" else letter for letter in written)
    assert text == shown + "\N{GRINNING FACE} why"


def test_a_byte_that_is_not_utf_8_costs_that_letter(tmp_path):
    data, expected = cells_and_parsed()
    data["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "caf\xe9 NaN"})
    *cells, (_, text, _) = cells_of(read(tmp_path, json.dumps(data, ensure_ascii=False).encode("latin-1", "replace")))
    assert text == "caf\N{REPLACEMENT CHARACTER} NaN"
    assert len(cells) == len(expected)


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("utf-32-le", codecs.BOM_UTF32_LE),
    ],
)
def test_a_notebook_may_be_in_any_unicode(tmp_path, encoding, mark):
    data, expected = cells_and_parsed()
    data["cells"][0]["source"] = "\N{GRINNING FACE} 注意"
    expected[0] = (expected[0][0], data["cells"][0]["source"], expected[0][2])
    text = json.dumps(data, ensure_ascii=False, indent=1).replace("\n", "\r\n")
    assert cells_of(read(tmp_path, mark + text.encode(encoding))) == expected


def test_odd_metadata_in_a_source_notebook_are_an_error(tmp_path):
    folder = shutil.copytree(REPOSITORY / "source" / UNIT, tmp_path / "source" / UNIT)
    source = folder / f"{UNIT}.ipynb"
    data = json.loads(source.read_bytes())
    number = next(n for n, cell in enumerate(data["cells"], start=1) if "nbgrader" in cell["metadata"])
    data["cells"][number - 1]["metadata"]["nbgrader"]["points"] = "four"
    source.write_text(json.dumps(data))
    with pytest.raises(course.UnusableUnit, match=rf"nbgrader's metadata of cell {number} .*`\$.points`"):
        course.unit(UNIT, tmp_path)


def test_format_3_is_refused(tmp_path):
    assert "not a Jupyter notebook" in str(read(tmp_path, json.dumps({"nbformat": 3, "worksheets": []}).encode()))


def test_a_large_picture_in_a_cell_leaves_its_text(tmp_path):
    data, expected = cells_and_parsed()
    picture = "![p](data:image/png;base64," + "A" * (MOST_PICTURES + notebook.MAX_BYTES) + ")"
    attachments = {"a.png": {"image/png": "B" * 1000}}
    data["cells"] += [
        {"cell_type": "markdown", "metadata": {}, "source": [picture + "\n", "below"]},
        {"cell_type": "markdown", "metadata": {}, "source": "beside", "attachments": attachments},
    ]
    parsed = read(tmp_path, json.dumps(data).encode())
    *cells, (_, text, _), (_, beside, _) = cells_of(parsed)
    assert (cells, beside) == (expected, "beside")
    assert text.endswith("A!)\nbelow")
    assert len(text) < MOST_PICTURES + 100
    assert json.loads(bytes(parsed.cells[-1].attachments)) == {"a.png": {"image/png": "!"}}
