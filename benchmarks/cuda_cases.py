"""Submissions that harm only a GPU. Each must lose the points of its harmful exercise, and nothing else."""

from dataclasses import dataclass

from autograder import course
from autograder.report import ExerciseStatus, Report

UNIT = "dot_product_attention"


@dataclass(frozen=True)
class Case:
    """One submission, right but for one exercise."""

    name: str
    tries: str
    status: ExerciseStatus
    """The status that the exercise must get."""
    says: str
    """Text that a message on the exercise must contain, unlike that on a wrong answer; empty for any message."""
    code: str
    exercise: str = "context_vector"

    def problem(self, report: Report, after: Report) -> str:
        """Return a description of the first wrong result; empty if all are right.

        after: the report on the honest notebook that was graded next.
        """
        lost = {one.name: one for one in report.exercises if one.status != "passed"}
        if set(lost) != {self.exercise}:
            return f"lost: {', '.join(lost) or 'nothing'}"
        one = lost[self.exercise]
        said = " ".join([one.message or "", *(test.message or "" for test in one.tests)])
        if one.status != self.status or self.says not in said:
            return f"{one.status}: {said[:200]}"
        full = course.unit(UNIT).max_score
        return "" if after.score == full else f"the honest one after it got {after.score:g} of {full:g}"


CASES = [
    Case(
        "out_of_memory",
        "Asks for more memory than the GPU has.",
        "failed",
        "out of memory",
        """
def context_vector(weights, inputs):
    return torch.empty(1 << 40, device=weights.device)
""",
    ),
    Case(
        "keeps_all_memory",
        "Takes the memory of the GPU piece by piece, and keeps it.",
        "failed",
        "out of memory",
        """
kept = []

def context_vector(weights, inputs):
    while True:
        kept.append(torch.empty(1 << 28, device=weights.device))
""",
    ),
    Case(
        "index_out_of_range",
        "Stops the kernel by an index that is out of range, after which the device refuses all else.",
        "failed",
        "CUDA error",
        """
def context_vector(weights, inputs):
    found = inputs[torch.full((6,), 10**6, device=inputs.device)]
    torch.cuda.synchronize()
    return found.sum(0)
""",
    ),
    Case(
        "endless_kernel",
        "Keeps the device busy for ever.",
        "timeout",
        "",
        """
def context_vector(weights, inputs):
    for _ in range(10**6):
        torch.cuda._sleep(10**12)
    torch.cuda.synchronize()
""",
    ),
]
