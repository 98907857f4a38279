"""The figures of `scale` as tables and as a plot, for docs/performance.md."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from .memory import ROLES
from .performance import table

_OTHERS = ("grade again", "report", "export")
_SLICES = 5


def tables(figures: Mapping[str, Any]) -> str:
    """Return tables of what a submission costs, of memory, and of the other commands."""
    costs, memory, others = [], [], []
    for size, found in figures["sizes"].items():
        grade, name = found["grade"], f"{int(size):,}"
        slices = [f"{1000 * seconds:.0f}" for seconds in _each(grade["along"], int(size))] or ["", ""]
        each = [f"{1000 * grade['cpu'] / int(size):.0f}", slices[0], slices[-1]]
        disk = [f"{found['gradebook MB']:.1f}", f"{found['folder MB']:.0f}"]
        costs.append([name, f"{found['load']:.1f}", f"{grade['cpu']:.0f}", *each, f"{grade['wall']:.0f}", *disk])
        held = grade["memory"]
        memory += [[name, role, *(f"{most:.0f}" for most in held[role])] for role in ROLES if role in held]
        for command, its in ((other, found[other]) for other in _OTHERS if other in found):
            resident = its["memory"]["coordinator"][0]
            others.append([name, command, f"{its['cpu']:.1f}", f"{its['wall']:.1f}", f"{resident:.0f}"])
    columns = ["class of", "load", "CPU s, all", "CPU ms a submission", "the first fifth", "the last fifth", "wall s"]
    return "\n\n".join(
        [
            f"`{figures['unit']}`, {figures['markers']} grading processes on {figures['cores']} cores:",
            table([*columns, "gradebook MB", "folder MB"], costs),
            table(["class of", "process", "resident MB, at most", "proportional", "private"], memory),
            table(["class of", "command", "CPU s", "wall s", "resident MB, at most"], others),
        ]
    )


def plot(figures: Mapping[str, Any], place: Path) -> None:
    """CPU time a submission along the way, and the memory of each kind of process, over how many were marked."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    cost, memory = figure.subplots(1, 2)
    for size, found in figures["sizes"].items():
        along = found["grade"]["along"]
        ends = list(_ends(along))
        cost.plot(
            [done for done, _ in ends],
            [1000 * each for _, each in ends],
            marker="o",
            ms=3,
            label=f"class of {int(size):,}",
        )
    cost.set(xscale="log", ylim=(0, None), xlabel="submissions graded", ylabel="CPU ms a submission")
    cost.legend(fontsize="small")
    largest = max(figures["sizes"], key=int)
    for role in ROLES[:-1]:
        points = [
            (done, held[role]) for done, _, _, held in figures["sizes"][largest]["grade"]["along"] if role in held
        ]
        memory.plot([done for done, _ in points], [held for _, held in points], label=role)
    memory.set(ylim=(0, None), xlabel=f"submissions graded, class of {int(largest):,}", ylabel="proportional MB")
    memory.legend(fontsize="small")
    for axes in (cost, memory):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(place, metadata={"Date": None})


def _each(along: list[Any], size: int) -> list[float]:
    """CPU seconds a submission in each fifth of the class; the start, before the first mark, is left out."""
    return [each for _, each in _ends(along)] if len(along) > _SLICES else []


def _ends(along: list[Any]) -> Iterator[tuple[int, float]]:
    """By fifths of a class: how many were marked at its end, and CPU seconds a submission in it."""
    if len(along) < 2:
        return
    first, last = along[0][0], along[-1][0]
    before = along[0]
    for part in range(1, _SLICES + 1):
        wanted = first + (last - first) * part / _SLICES
        point = next(point for point in along if point[0] >= wanted)
        if point[0] > before[0]:
            yield point[0], (point[1] - before[1]) / (point[0] - before[0])
            before = point
