"""The marks of a class as a picture: an SVG that takes its colours from the page that it stands in."""

import io
import re
from collections.abc import Sequence

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_MOST_BARS = 20
_TEXT, _BARS, _MEDIAN = "#010101", "#020202", "#030303"
_FROM_THE_PAGE = {_TEXT: "currentColor", _BARS: "var(--accent)", _MEDIAN: "var(--strong)"}
"""What stands in the picture for each of these colours, so that it is read in light and in dark."""
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "class report", "font.family": "sans-serif", "font.size": 10}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def histogram(scores: Sequence[float], max_score: float, median: float) -> str:
    """How many have which mark, as an `svg` element. Raises nothing for any marks that are finite."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(6.4, 2.5), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        top = max(max_score, *scores) or 1.0
        axes.hist(scores, bins=_edges(top), color=_BARS, rwidth=0.92)
        axes.axvline(median, color=_MEDIAN, linewidth=1.5, linestyle=(0, (4, 3)))
        is_right = median > top / 2
        axes.annotate(
            f"median {median:g}", (median, 1), xycoords=("data", "axes fraction"), textcoords="offset points",
            xytext=(-5 if is_right else 5, -2), ha="right" if is_right else "left", va="top", color=_MEDIAN,
        )  # fmt: skip
        axes.set_xlabel(f"points of {max_score:g}", color=_TEXT)
        axes.set_ylabel("students", color=_TEXT)
        axes.set_xlim(0, top)
        axes.margins(y=0.12)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.tick_params(colors=_TEXT, length=3)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(_TEXT)
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata=_NO_METADATA)
    return _for_a_page(written.getvalue())


def _edges(top: float) -> list[float]:
    """Bars of a whole number of points, or of a half where there are few."""
    widths = (0.5, 1, 2, 2.5, 5, 10, 20, 25, 50, 100)
    width = next((width for width in widths if top / width <= _MOST_BARS), top / _MOST_BARS)
    count = max(1, -int(-top // width))
    return [number * width for number in range(count + 1)]


def _for_a_page(svg: str) -> str:
    """What an HTML page needs of the file: without its head and its namespaces, in the page's colours."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.S)
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    for colour, named in _FROM_THE_PAGE.items():
        element = element.replace(colour, named)
    return element.replace("<svg", '<svg aria-hidden="true"', 1)
