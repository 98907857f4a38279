"""docs/cuda.md, from what a run of `cuda_proof` has found."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cuda_proof import Found

_MOST = 50


def page(found: "Found", part: tuple[int, int]) -> str:
    """The page."""
    return "\n".join([*_head(found, part), *_marks(found), *_cases(found), *_speed(found)]) + "\n"


def _head(found: "Found", part: tuple[int, int]) -> list[str]:
    lines = [
        "# Marks on a GPU",
        "",
        f"Written by `python -m benchmarks.cuda_proof` on {found.device}, torch {found.torch}"
        + (f", part {part[0]} of {part[1]}." if part[1] > 1 else "."),
        "",
    ]
    if found.torch.partition("+")[0] != found.pinned:
        lines += [
            f"The kit pins torch {found.pinned}. Of another version the seeded values may differ, on either device: "
            + (", ".join(found.unlike_the_pinned) or "here none does")
            + ".",
            "",
        ]
    return lines


def _marks(found: "Found") -> list[str]:
    lines = [
        "## The same marks",
        "",
        f"{found.tried} notebooks with {found.answers} known answers were marked on both devices. "
        f"Differences: {len(found.differ)}. Not tried for want of time: {found.not_tried} notebooks.",
        "",
        f"Besides these, {len(found.of_device)} answers that leave a tensor on the CPU lose more on the GPU, where "
        "they stop with an error.",
        "",
    ]
    lines += [f"- {one}" for one in found.differ[:_MOST]]
    if len(found.differ) > _MOST:
        lines.append(f"- and {len(found.differ) - _MOST} more")
    return [*lines, ""] if found.differ else lines


def _cases(found: "Found") -> list[str]:
    lines = ["## What a GPU can suffer", ""]
    if not found.cases:
        return [*lines, "Not tried.", ""]
    lines += ["| submission | tries | what is wrong |", "|---|---|---|"]
    lines += [f"| `{case.name}` | {case.tries} | {problem or 'nothing'} |" for case, problem in found.cases]
    return [*lines, ""]


def _speed(found: "Found") -> list[str]:
    lines = ["## Submissions a second", "", "| device | marking processes | a second |", "|---|---|---|"]
    return lines + [f"| {device} | {count} | {rate:.1f} |" for device, count, rate in found.a_second]
