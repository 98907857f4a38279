"""Pictures in written answers: files next to the notebook, and none of them takes the text's place or runs anything."""

import base64
import json
import re
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from autograder.course import notebook
from autograder.formatting.client import Formatter, PageFormatter
from autograder.formatting.rendering import embedded, markdown2html
from autograder.gradebook.clean_notebook import take_out
from autograder.sandbox.limits import PageLimits
from tests import REPOSITORY, forked_command
from tests.recorded_class import UNIT, everything, feedback_page, give_points, put_submission, write_settings
from tests.typed import solved

QUESTION = "why_softmax"
BELOW = "Because scores may be negative."


def png(width=2, height=2, filling=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\xc0\x40\x40" * 2) * 2)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"tEXt", filling), chunk(b"IDAT", rows), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


PNG = png()
GIF = b"GIF89a" + struct.pack("<HH", 3, 4) + b"\0" * 20
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08" + struct.pack(">HH", 5, 6) + b"\0" * 9
WEBP = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0" + b"\0\0\0\0\x09\0\0\x09\0\0" + b"\0" * 9
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


def in_base64(content):
    return base64.b64encode(content).decode()


def data(content, media="image/png"):
    return f"data:{media};base64,{in_base64(content)}"


def cell(source, kind="markdown", **attachments):
    attached = {name: {"image/png": in_base64(content)} for name, content in attachments.items()}
    return {"cell_type": kind, "metadata": {}, "source": source, **({"attachments": attached} if attached else {})}


def taken_from(*cells):
    parsed = notebook.parse(json.dumps({"nbformat": 4, "cells": cells}).encode())
    files = take_out(parsed)
    return [one.text for one in parsed.cells], files


FORMS = {
    "inline": (cell(f"![a]({data(PNG)})\n\nso"), "![a](picture-1.png)\n\nso"),
    "inline, with a title": (cell(f'![a]({data(PNG)} "b")'), '![a](picture-1.png "b")'),
    "in lines": (cell(["![a](", data(PNG), ")\n", "so"]), "![a](picture-1.png)\nso"),
    "defined below": (cell(f"![a][b]\n\n[b]: {data(PNG)}"), "![a][b]\n\n[b]: picture-1.png"),
    "an element": (cell(f'<img src="{data(PNG)}" alt="a" width=9>so'), "![a](picture-1.png)so"),
    "an element without quotes": (cell(f"<IMG alt='a' src={data(PNG)}>"), "![a](picture-1.png)"),
    "named as another type": (cell(f"![a]({data(PNG, 'image/svg+xml')})"), "![a](picture-1.png)"),
    "with parameters": (cell(f"![a]({data(PNG).replace(';', ';name=a.png;')})"), "![a](picture-1.png)"),
    "an attachment": (cell("![a](attachment:x.png)", **{"x.png": PNG}), "![a](picture-1.png)"),
    "an attachment in an element": (cell('<img src="attachment:x.png">', **{"x.png": PNG}), "![](picture-1.png)"),
    "a name in other letters": (cell("![a](attachment:b%20%C3%A9.png)", **{"b \xe9.png": PNG}), "![a](picture-1.png)"),
    "an attachment that is not shown": (cell("so", **{"x](y).png": PNG}), "so\n\n![x  y .png](picture-1.png)"),
    "twice": (cell(f"![a]({data(PNG)})![b]({data(PNG)})"), "![a](picture-1.png)![b](picture-1.png)"),
    "a raw cell": (cell(f"![a]({data(PNG)})", "raw"), "![a](picture-1.png)"),
    "a GIF": (cell(f"![a]({data(GIF)})"), "![a](picture-1.gif)"),
    "a JPEG": (cell(f"![a]({data(JPEG)})"), "![a](picture-1.jpg)"),
    "a WebP": (cell(f"![a]({data(WEBP)})"), "![a](picture-1.webp)"),
}


@pytest.mark.parametrize(("written", "text"), FORMS.values(), ids=list(FORMS))
def test_a_picture_becomes_a_file(written, text):
    texts, files = taken_from(written)
    assert texts == [text]
    assert [content in (PNG, GIF, JPEG, WEBP) for content in files.values()] == [True]


@pytest.mark.parametrize("written", ["the data:, of x", "data:text/plain,short", "`data:image/png` and ;base64,AAAA"])
def test_words_about_data_stay(written):
    assert taken_from(cell(written)) == ([written], {})


def test_code_keeps_its_data():
    assert taken_from(cell(f"x = '{data(PNG)}'", "code")) == ([f"x = '{data(PNG)}'"], {})


DISGUISED = {
    "an SVG": SVG,
    "a page": b"<!DOCTYPE html><script>alert(1)</script>",
    "a PDF": b"%PDF-1.7 alert(1)",
    "half of a name": b"\x89PNG\r\n",
    "another RIFF": b"RIFF\0\0\0\0WAVE",
}


@pytest.mark.parametrize("content", DISGUISED.values(), ids=list(DISGUISED))
def test_what_is_no_raster_picture_is_for_download_only(content):
    texts, files = taken_from(cell(f"![a]({data(content)})"), cell("", **{"x.png": content}))
    assert texts == ["![a](attachment-1.bin)", "\n\n![x.png](attachment-1.bin)"]
    assert list(files.values()) == [content]
    page = BeautifulSoup(markdown2html(texts[0]), "html.parser")
    assert not page.select("img")
    assert page.select_one("a").attrs == {"href": "attachment-1.bin", "download": ""}


@pytest.mark.parametrize("cut", [in_base64(PNG) + "!", "A", "\xe9"])
def test_a_picture_that_was_cut_is_said_to_be_left_out(cut):
    texts, files = taken_from(cell(f"![my plot](data:image/png;base64,{cut}) so"))
    assert (texts, files) == (["![my plot](picture-left-out) so"], {})
    assert re.search("a picture is left out here, .*: my plot.* so", markdown2html(texts[0]))


def test_of_very_many_pictures_the_first_are_kept():
    (text,), files = taken_from(cell("".join(f"![]({data(png(filling=b'%d' % n))})" for n in range(60))))
    assert (len(files), text.count("picture-left-out")) == (50, 10)


@pytest.mark.parametrize(
    "raw", ["3", "[]", '{"a": 3}', '{"a": {"b": NaN}}', '{"a": {}}', '{"": {"c": "A"}}', '"\\ud83d"']
)
def test_strange_attachments_are_none(raw):
    content = f'{{"nbformat": 4, "cells": [{{"cell_type": "markdown", "source": "so", "attachments": {raw}}}]}}'
    parsed = notebook.parse(content.encode())
    take_out(parsed)
    assert parsed.cells[0].text in ("so", "so\n\n![a](picture-left-out)")


NAMES = [
    "picture-1.svg",
    "../picture-1.png",
    "/picture-1.png",
    "picture-1.png?x",
    "x/picture-1.png",
    "picture-1234.png",
]


@pytest.mark.parametrize("name", [*NAMES, "data:image/png;base64,AAAA", "https://e.example/picture-1.png"])
def test_no_other_picture_is_shown(name):
    page = BeautifulSoup(markdown2html(f"![a]({name})"), "html.parser")
    assert not page.select("img, a")


def test_a_description_is_text():
    page = BeautifulSoup(markdown2html('![<b>"x" onerror=y $z$ *so*](picture-1.png)'), "html.parser")
    (image,) = page.select("img")
    assert set(image.attrs) == {"alt", "src"}
    assert not page.select("b")
    assert "x" in image["alt"]


def test_only_what_the_kit_made_is_put_into_a_page(tmp_path):
    (tmp_path / "picture-1.png").write_bytes(PNG)
    page = markdown2html(
        '![a](picture-1.png) <img alt="" src="picture-1.png"> ![b](picture-2.png) ![c](attachment-1.bin)'
    )
    soup = BeautifulSoup(embedded(page, tmp_path), "html.parser")
    assert [image["src"] for image in soup.select("img")] == [data(PNG)]
    assert not soup.select("a")
    assert "a picture of your notebook, which is not repeated here: b" in soup.text
    assert "a file, for download only: c" in soup.text


def test_an_answer_that_is_too_long_to_format_has_its_pictures_below():
    with Formatter(PageLimits(), "best", trust_submissions=False) as formatter:
        page = PageFormatter(formatter).markdown("word " * 3_000 + "![a](picture-1.png) ![b](attachment-2.bin)")
    soup = BeautifulSoup(page, "html.parser")
    assert [image["src"] for image in soup.select("img")] == ["picture-1.png"]
    assert [link["href"] for link in soup.select("a")] == ["attachment-2.bin"]


CLASS = {
    "ada": f"![photo]({data(png(filling=b'x' * 240_000))})\n\n{BELOW}",
    "bob": "YOUR ANSWER HERE",
    "eve": f"![drawing]({data(SVG)})\n\n{BELOW}",
    "liz": f"![large](data:image/png;base64,{'A' * (13 << 20)})\n\n{BELOW}",
    "zoe": f"{'long ' * 30_000}![photo]({data(PNG)})\n\n{BELOW}",
}


@pytest.fixture(scope="module")
def graded(recorded, tmp_path_factory):
    """The folder of a class with pictures in its answers, graded."""
    root = tmp_path_factory.mktemp("pictures")
    write_settings(root)
    for student, answer in CLASS.items():
        put_submission(root, student, solved(UNIT, **{QUESTION: answer}))
    result = recorded.grade(root)
    assert [row.problem for row in result.rows] == [""] * len(CLASS)
    assert result.grades.waiting == 4
    return root


def page_of(root, student):
    return BeautifulSoup(feedback_page(root, student).read_text(), "html.parser")


def last_row(root, student):
    return [cell.text for cell in page_of(root, student).select("#toc tr")[-1](["td", "th"])]


def files_of(root, student):
    folder = root / "autograded" / student / UNIT
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("picture", "attachment")))


def kept(root, student):
    content = json.loads((root / "autograded" / student / UNIT / f"{UNIT}.ipynb").read_bytes())
    assert "pictures" not in json.dumps(content["metadata"])
    (text,) = ("".join(one["source"]) for one in content["cells"] if f'"{QUESTION}"' in json.dumps(one["metadata"]))
    return text


def test_the_text_below_a_picture_is_kept(graded):
    assert kept(graded, "ada") == f"![photo](picture-1.png)\n\n{BELOW}"
    assert kept(graded, "liz") == f"![large](picture-left-out)\n\n{BELOW}"
    assert kept(graded, "zoe").endswith(BELOW)
    for student in ("ada", "eve", "liz"):
        assert BELOW in page_of(graded, student).text


def test_pictures_are_files(graded):
    assert {student: files_of(graded, student) for student in CLASS} == {
        "ada": ["picture-1.png"],
        "bob": [],
        "eve": ["attachment-1.bin"],
        "liz": [],
        "zoe": ["picture-1.png"],
    }
    before = everything(graded)
    assert before[1][f"autograded/eve/{UNIT}/attachment-1.bin"][1] == SVG


def test_what_is_left_out_is_said(graded):
    assert "a picture is left out here" in page_of(graded, "liz").text
    assert re.search(r"The rest of this cell is left out here: \d+ characters", page_of(graded, "zoe").text)


def test_a_blank_answer_is_called_blank(graded):
    assert last_row(graded, "bob") == ["✗ blank", QUESTION, "0 of 3"]
    assert last_row(graded, "ada") == ["✎ not graded yet", QUESTION, "– of 3"]


def test_a_person_who_grades_a_blank_answer_has_graded_it(graded, recorded, tmp_path):
    root = Path(shutil.copytree(graded, tmp_path / "course"))
    give_points(root, "bob", 0.5)
    recorded.grade(root)
    assert last_row(root, "bob") == ["✎ graded by a person", QUESTION, "0.5 of 3"]


def test_nbgrader_keeps_the_same_files_and_makes_the_same_page(graded, tmp_path):
    root = Path(shutil.copytree(graded, tmp_path / "course"))
    for folder in ("source", "release"):
        shutil.copytree(REPOSITORY / folder / UNIT, root / folder / UNIT)
    for command in ("autograde", "generate_feedback"):
        forked_command.nbgrader(command, UNIT, "--student=ada", "--force", cwd=root).check_returncode()
    assert files_of(root, "ada") == ["picture-1.png"]
    assert kept(root, "ada") == kept(graded, "ada")
    pictures = [[image["src"] for image in page_of(where, "ada").select("img")] for where in (root, graded)]
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) == 1
