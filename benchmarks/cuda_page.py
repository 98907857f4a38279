"""docs/cuda.md, from the results of a run of `cuda_proof`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cuda_proof import Found

_MOST = 50


def page(found: "Found", part: tuple[int, int]) -> str:
    """Return the page. part: number of the part that was graded, and number of parts."""
    return "\n".join([*_head(found, part), *_grades(found), *_cases(found), *_speed(found)]) + "\n"


def _head(found: "Found", part: tuple[int, int]) -> list[str]:
    number, of = part
    lines = [
        "# Grades on a GPU",
        "",
        "`python -m benchmarks.cuda_proof` graded the same notebooks on the CPU and on a GPU, and wrote this page. "
        f"It ran on {found.device} with torch {found.torch}."
        + (f" It graded one in {of} of the notebooks (part {number} of {of})." if of > 1 else ""),
        "",
    ]
    if found.torch.partition("+")[0] != found.pinned:
        unlike = ", ".join(found.unlike_the_pinned)
        lines += [
            f"The autograder pins torch {found.pinned}. With another version of torch, seeded values may differ, both "
            "on the CPU and on a GPU.",
            f"In this run, these solutions lost points on the CPU for this reason: {unlike}."
            if unlike
            else "This run used another version, and no solution lost points on the CPU because of that.",
            "",
        ]
    return lines


def _grades(found: "Found") -> list[str]:
    left = f"{found.not_tried} notebooks were" if found.not_tried else "No notebook was"
    lines = [
        "## Comparison of grades",
        "",
        f"The program graded {found.tried} notebooks with {found.answers} known answers on both devices. A known "
        "answer is a solution, another right answer, or a known mistake of the course. "
        f"{left} left out for lack of time.",
        "",
        f"The results of {len(found.differ)} known answers differ between the two devices. In addition, "
        f"{len(found.of_device)} answers that leave a tensor on the CPU lose more points on the GPU, where they stop "
        f"with an error. These {len(found.of_device)} answers are not in the table.",
        "",
    ]
    if not found.differ:
        return lines
    return [
        *lines,
        f"The table shows {min(_MOST, len(found.differ))} of the {len(found.differ)} answers with different results. A "
        "result consists of the exercise's status, its points, and the mistakes that the feedback names. "
        '"No mistake" means that the feedback names none. The answer\'s name says what is wrong with it.',
        "",
        "| unit | exercise | answer | result on the CPU | result on the GPU |",
        "|---|---|---|---|---|",
        *found.differ[:_MOST],
        "",
    ]


def _cases(found: "Found") -> list[str]:
    lines = ["## Submissions that misuse the GPU", ""]
    if not found.cases:
        return [*lines, "Not tried.", ""]
    return [
        *lines,
        "The table lists submissions that misuse the GPU. After each of them, an ordinary submission was graded. "
        "The last column shows what was wrong in the results of the two submissions.",
        "",
        "| submission | what it tries | wrong result |",
        "|---|---|---|",
        *(f"| `{case.name}` | {case.tries} | {problem or 'nothing'} |" for case, problem in found.cases),
        "",
    ]


def _speed(found: "Found") -> list[str]:
    return [
        "## Submissions per second",
        "",
        "The table shows how many submissions the grading processes graded per second.",
        "",
        "| device | grading processes | submissions per second |",
        "|---|---|---|",
        *(f"| {device} | {count} | {rate:.1f} |" for device, count, rate in found.a_second),
    ]
