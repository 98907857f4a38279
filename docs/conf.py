"""Settings of Sphinx for the site that `make site` builds from docs/."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

from autograder import __version__
from autograder.formatting.rendering import mathml

project = "Attention, auto-graded"
author = copyright = "The attention-autograder authors"
version = release = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
highlight_language = "none"
html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page opened from a file may not read other files


def _formula(translator: nodes.NodeVisitor, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(mathml(node.astext(), display))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
