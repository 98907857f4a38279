"""The pictures of the pages in docs/: each is there, says what it shows, and is small."""

import re

from PIL import Image

from tests import REPOSITORY

from .pictures import PAGES, PICTURES, linked

MOST_BYTES = 1_200_000
"""Bytes of all pictures together: everybody who clones the repository gets them."""


def test_the_pages_show_the_pictures_that_there_are():
    pictures = sorted(PICTURES.glob("*.png"))
    assert {f"{name}.png" for name in linked()} == {picture.name for picture in pictures}
    shown = sum(len(re.findall(r"pictures/\w+\.png", page.read_text())) for page in PAGES)
    told = sum(len(re.findall(r"!\[[^]]{20,}\]\(\S*pictures/", page.read_text())) for page in PAGES)
    assert shown == told, "a picture without a text that says what it shows"
    assert sum(picture.stat().st_size for picture in pictures) < MOST_BYTES
    for picture in pictures:
        with Image.open(picture) as opened:
            assert opened.width == 1280


def test_each_picture_is_taken_by_a_test():
    tests = "".join(path.read_text() for path in (REPOSITORY / "tests" / "browser").glob("test_*.py"))
    assert set(linked()) <= set(re.findall(r'picture\("(\w+)"\)', tests))
