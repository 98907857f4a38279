"""Compare grades on a GPU with those on the CPU: `python -m benchmarks.cuda_proof`, on a machine with a GPU.

It marks the same notebooks on both devices, sandboxed, and compares what an instructor sees: status and points of each
exercise, and the name of the mistake. The notebooks hold the solutions; then every known answer, one for each exercise
in a notebook; then what only a GPU can suffer (`cuda_cases`), each with an honest notebook after it. It ends with
submissions a second, and writes docs/cuda.md.

    --part I/N        every N-th of the notebooks, from the I-th
    --seconds 480     no notebook is begun after that; the page says which were not tried
    --markers 8       marking processes side by side
    --page FILE       in place of docs/cuda.md
    --rehearse        the CPU in the GPU's place, where there is none; writes no page unless --page says where

A bare machine needs a CUDA build of torch, whatever its version, and a folder of wheels of all else that pyproject.toml
names:

    python3 -m venv --system-site-packages env
    env/bin/pip install --no-index --find-links WHEELS msgspec nbgrader pytest typer ...   # all but torch
    env/bin/pip install --no-index --find-links WHEELS --no-deps -e .
    env/bin/python -m benchmarks.cuda_proof
"""

import argparse
import ast
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue

from autograder import catalogue, course
from autograder.course.cells import filled_in
from autograder.course.settings import load
from autograder.pool.grading_pool import GradingProcess, GradingRefused, GradingStopped
from autograder.pool.requests import Device
from autograder.report import ExerciseReport, Report
from tests import REPOSITORY

from .cuda_cases import CASES, UNIT, Case
from .cuda_page import page

PAGE = REPOSITORY / "docs" / "cuda.md"


@dataclass(frozen=True)
class Notebook:
    """A notebook that is graded on both devices."""

    unit: str
    known: dict[str, catalogue.Candidate]
    """The known answers in it, by exercise; the others are solved."""

    @property
    def content(self) -> bytes:
        """The file."""
        answers = {**catalogue.solutions(self.unit), **self.known}
        return filled_in(self.unit, {exercise: answer.source() for exercise, answer in answers.items()})


@dataclass
class Found:
    """Results of the run."""

    device: str
    torch: str
    pinned: str
    tried: int = 0
    not_tried: int = 0
    answers: int = 0
    differ: list[str] = field(default_factory=list)
    of_device: list[str] = field(default_factory=list)
    """Answers that leave a tensor on the CPU, and lose more on a GPU, where they cannot run."""
    unlike_the_pinned: list[str] = field(default_factory=list)
    """Exercises whose solution loses points on the CPU too: their seeded values are another torch's."""
    cases: list[tuple[Case, str]] = field(default_factory=list)
    """With what went wrong; empty where it is as it must be."""
    a_second: list[tuple[str, int, float]] = field(default_factory=list)
    """Device, marking processes, submissions a second."""


class Markers:
    """Marking processes on one device, each taken by one caller at a time."""

    def __init__(self, device: Device, count: int) -> None:
        self._device = device
        self._free: SimpleQueue[GradingProcess] = SimpleQueue()
        for marker in [GradingProcess(device, load()) for _ in range(count)]:
            self._free.put(marker)
        self._all = count

    def grade(self, notebook: Notebook) -> Report | None:
        """The report; None where the marking process ended over it."""
        marker = self._free.get()
        try:
            return marker.grade("one.ipynb", notebook.content, notebook.unit, digest="")
        except GradingStopped:
            marker.close()
            marker = GradingProcess(self._device, load())
            return None
        finally:
            self._free.put(marker)

    def close(self) -> None:
        """Ends them."""
        for _ in range(self._all):
            self._free.get().close()


def notebooks() -> Iterator[Notebook]:
    """The solutions of each unit, then every known answer once."""
    for unit in course.unit_names():
        yield Notebook(unit, {})
    for unit in course.unit_names():
        known = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
        of = {exercise: [one for one in known if one.exercise == exercise] for exercise in catalogue.solutions(unit)}
        using = {exercise for exercise in of if _uses_another(unit, exercise)}
        for chosen in (set(of) - using, using):  # what uses another exercise's answer meets the right one
            for row in zip_longest(*(of[exercise] for exercise in sorted(chosen))):
                yield Notebook(unit, {one.exercise: one for one in row if one})


def _uses_another(unit: str, exercise: str) -> bool:
    solutions = catalogue.solutions(unit)
    tree = ast.parse(solutions[exercise].source())
    return bool({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(solutions) - {exercise})


def compared(found: Found, tried: Sequence[Notebook], cpu: Markers, gpu: Markers, until: float, at_once: int) -> None:
    """Marks each on both devices, and notes where they differ."""

    def one(notebook: Notebook) -> tuple[Report | None, Report | None] | None:
        if time.monotonic() > until:
            return None
        return cpu.grade(notebook), gpu.grade(notebook)

    with ThreadPoolExecutor(at_once) as threads:
        for notebook, reports in zip(tried, threads.map(one, tried), strict=True):
            if reports is None:
                found.not_tried += 1
                continue
            found.tried += 1
            found.answers += len(notebook.known)
            on_cpu, on_gpu = reports
            if not notebook.known and on_cpu is not None:
                found.unlike_the_pinned += [
                    f"{notebook.unit}: {one.name}" for one in on_cpu.exercises if one.status != "passed"
                ]
            for differs, of_device in differences(notebook, on_cpu, on_gpu):
                (found.of_device if of_device else found.differ).append(differs)


def differences(notebook: Notebook, on_cpu: Report | None, on_gpu: Report | None) -> Iterator[tuple[str, bool]]:
    """Yield a table row for each exercise with another result, and whether it is because a tensor stays on the CPU.

    Of a notebook with known answers these alone are compared: another exercise may use one of them.
    """
    if on_cpu is None or on_gpu is None:
        names = ", ".join(f"`{one.name}`" for one in notebook.known.values()) or "the solutions"
        ended = ["" if report else "the grading process ended" for report in (on_cpu, on_gpu)]
        yield _row(f"`{notebook.unit}`", "", names, *ended), False
        return
    gpu = {one.name: one for one in on_gpu.exercises}
    for exercise in on_cpu.exercises:
        known = notebook.known.get(exercise.name)
        if notebook.known and known is None:
            continue
        other = gpu.get(exercise.name)
        here, there = _seen(exercise), _seen(other) if other else "no such exercise"
        if here != there:
            what = f"`{known.name}`" if known else "the solution"
            is_left = known is not None and known.kind == "device"
            of_device = is_left and other is not None and other.score <= exercise.score
            yield _row(f"`{notebook.unit}`", f"`{exercise.name}`", what, here, there), of_device


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _seen(exercise: ExerciseReport) -> str:
    """Return what an instructor sees of an exercise: status, points and the misconception's name."""
    seen = f"{exercise.status}, {exercise.score:g} points"
    if exercise.status == "passed":
        return seen
    named = " and ".join(f"`{name}`" for name in exercise.diagnosis.names.split(" + ")) if exercise.diagnosis else ""
    return f"{seen}, {named or 'no mistake'}"


def suffered(found: Found, gpu: GradingProcess) -> None:
    """Grade each of `CASES` on the GPU, and an honest notebook after it."""
    honest = Notebook(UNIT, {}).content
    answers = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    for case in CASES:
        report = gpu.grade("case.ipynb", filled_in(UNIT, {**answers, case.exercise: case.code}), UNIT)
        after = gpu.grade("honest.ipynb", honest, UNIT)
        found.cases.append((case, case.problem(report, after)))


def speed(found: Found, device: Device, counts: Sequence[int], each: int) -> None:
    """Submissions a second, once the processes are warm."""
    solved = Notebook(UNIT, {})
    for count in counts:
        markers = Markers(device, count)
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(markers.grade, [solved] * count))
            started = time.monotonic()
            list(threads.map(markers.grade, [solved] * each * count))
            found.a_second.append((device, count, each * count / (time.monotonic() - started)))
        markers.close()


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text} is no part: say 1/3")
    return int(number), int(of)


def main(say: Callable[[str], None] = print) -> int:
    """Runs the proof; returns the exit code: 1 where the devices differ, 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="I/N")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--markers", type=int, default=8)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    asked = parser.parse_args()
    number, of = asked.part
    until = time.monotonic() + asked.seconds
    device: Device = "cpu" if asked.rehearse else "cuda"
    try:
        with GradingProcess(device, load()) as gpu:
            ready = gpu.ready  # refused here where there is none
            found = Found(_called(device), *_versions())
            say(f"{ready.device}, isolation {ready.isolation}: {found.device}, torch {found.torch}")
            if not asked.rehearse:
                suffered(found, gpu)
    except GradingRefused as reason:
        say(str(reason))
        return 2
    cpus, gpus = Markers("cpu", asked.markers), Markers(device, asked.markers)
    compared(found, list(notebooks())[number - 1 :: of], cpus, gpus, until, asked.markers)
    cpus.close()
    gpus.close()
    for where in dict.fromkeys(("cpu", device)):
        if time.monotonic() < until:
            speed(found, where, (1, asked.markers), each=5)
    text = page(found, asked.part)
    to = asked.page or (None if asked.rehearse else PAGE)
    if to:
        to.write_text(text)
    say(text)
    for differs in (*found.differ, *found.of_device):
        say(differs)
    return int(bool(found.differ or any(problem for _, problem in found.cases)))


def _called(device: Device) -> str:
    """The GPU's name. This process computes nothing, so asking does no harm."""
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "the CPU, in a rehearsal"


def _versions() -> tuple[str, str]:
    """torch's version here, and the one that the kit pins."""
    from importlib.metadata import requires, version

    pinned = next(one for one in requires("attention-autograder") or () if one.startswith("torch=="))
    return version("torch"), pinned.removeprefix("torch==").partition(";")[0].strip()


if __name__ == "__main__":
    sys.exit(main())
