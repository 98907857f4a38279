"""Makes the pictures in docs/pictures/ of what the browser tests saw: `make pictures`, which runs these tests first.

The pages say which pictures there are: whatever they link as `pictures/NAME.png` is taken from the screenshot of that
name, so no picture shows what the tests have not gone through.
"""

import re
import sys

from PIL import Image

from tests import REPOSITORY

from .conftest import SCREENSHOTS

PICTURES = REPOSITORY / "docs" / "pictures"
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
COLOURS = 128  # a page has few; what is left of shading cannot be seen


def linked() -> dict[str, str]:
    """The pictures that the pages show, each with its alternative text."""
    found = re.findall(r"!\[([^]]+)\]\((?:docs/)?pictures/(\w+)\.png\)", "\n".join(page.read_text() for page in PAGES))
    return {name: text for text, name in found}


def make() -> None:
    """Write each picture with a palette; raises SystemExit if the tests left no screenshot."""
    PICTURES.mkdir(exist_ok=True)
    for name in linked():
        if not (SCREENSHOTS / f"{name}.png").is_file():
            sys.exit(f"The browser tests made no screenshot {name}.png: name it in one of them, or drop the link.")
        with Image.open(SCREENSHOTS / f"{name}.png") as screenshot:
            few = screenshot.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            few.save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    make()
