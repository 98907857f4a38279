"""CPU time of the student check, in multiples of `import torch`: `python -m benchmarks.student_check [--each N]`.

Checks every Nth known answer as a notebook does, fault location included. All figures are CPU time of this run, so that
they can be compared with those of another machine.
"""

import argparse
import contextlib
import io
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch

from autograder import course
from autograder.catalogue.mutation_report import check_verdict, entries, released_check

_STARTS = 5


def cpu_of(code: str, folder: str = ".") -> float:
    """Return the median CPU seconds of a Python process that runs this code in this folder."""
    seconds = []
    for _ in range(_STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(seconds)


def cpu_of_call(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process."""
    before = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        call()
    return time.process_time() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=7, metavar="N", help="check every Nth known answer")
    known = entries()[:: parser.parse_args().each]
    torch.set_num_threads(1)
    unit = course.unit_names()[0]
    folder = str(course.released(unit).parent)
    import_torch, nothing = cpu_of("import torch"), cpu_of("")
    import_check = cpu_of("import torch, attention_check", folder)
    unit_of_time = import_torch - nothing
    for name in course.unit_names():
        released_check(name)
    found = []
    for unit, entry in known:
        seconds = cpu_of_call(partial(check_verdict, unit, entry))
        found.append((seconds / unit_of_time, entry.exercise, entry.name))
    found.sort()
    times = [time for time, *_ in found]
    print(f"import torch: {unit_of_time:.2f} CPU s; the rest is in multiples of it")
    print(f"import attention_check: {(import_check - import_torch) / unit_of_time:.3f}")
    print(f"{len(times)} checks: median {statistics.median(times):.3f}, ", end="")
    print(f"95% at most {times[int(0.95 * len(times))]:.3f}, most {times[-1]:.3f}")
    for seconds, exercise, answer in found[-10:]:
        print(f"  {seconds:.3f} {exercise} {answer}")


if __name__ == "__main__":
    main()
