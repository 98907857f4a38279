"""Runs a unit's own notebook, answers in, and keeps what its cells print and draw."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg

from ..course.notebook import printable

_OUTPUTS = {"stream", "display_data", "execute_result"}
_SHARP = "%matplotlib inline\n%config InlineBackend.figure_formats = ['retina']"
"""Pictures with twice the pixels: slides are larger than a notebook's cells."""
_MOST_SECONDS = 600
"""For one cell; a training cell may take half a minute."""
_LOOKS_AFTER = 1  # second


class NotRun(Exception):
    """The notebook does not run to its end; `str()` says where and why."""


def run(notebook: Path, cells: Sequence[NotebookNode], beside: Sequence[Path]) -> dict[str, list[Any]]:
    """The outputs of these code cells of a notebook, by the cells' ids, run one after another.

    beside: the check and its data, which git does not have in source/. The kernel is this Python's, in a copy of the
    notebook's folder with these files, so that nothing is left in that. Raises NotRun.
    """
    # Without folders of kernels it is this environment's own, and not one of the same name in somebody's home.
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    with tempfile.TemporaryDirectory(prefix="slides-") as folder:
        place = Path(folder) / "unit"
        shutil.copytree(notebook.parent, place)
        for path in beside:
            shutil.copy(path, place)
        environment = {**os.environ, "IPYTHONDIR": str(Path(folder) / "ipython")}
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            manager.start_kernel(cwd=str(place), env=environment, **silent)
            return _outputs_of(manager, notebook, cells)
        finally:
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)


def _outputs_of(manager: Any, notebook: Path, cells: Sequence[NotebookNode]) -> dict[str, list[Any]]:
    client = manager.client()
    client.start_channels()
    try:
        try:
            client.wait_for_ready(timeout=60)
        except RuntimeError as error:
            raise NotRun(f"No Jupyter kernel starts here: {error}.") from None
        _outputs(manager, client, "", _SHARP)
        return {
            cell.id: _outputs(manager, client, f"Cell {number} (`{printable(cell.id)}`) of {notebook}", cell.source)
            for number, cell in enumerate(cells, start=1)
        }
    finally:
        client.stop_channels()


def _outputs(manager: Any, client: Any, where: str, code: str) -> list[Any]:
    """What one cell prints and draws; raises NotRun."""
    asked = client.execute(code, allow_stdin=False)
    found = list[Any]()
    end = time.monotonic() + _MOST_SECONDS
    while True:
        try:
            said = client.get_iopub_msg(timeout=_LOOKS_AFTER)
        except Empty:
            if not manager.is_alive():
                raise NotRun(f"{where} ends the Jupyter kernel.") from None
            if time.monotonic() > end:
                raise NotRun(f"{where} runs for more than {_MOST_SECONDS} seconds.") from None
            continue
        if said["parent_header"].get("msg_id") != asked:
            continue
        kind, content = said["msg_type"], said["content"]
        if kind == "status" and content["execution_state"] == "idle":
            return found
        if kind == "error":
            raise NotRun(f"{where} fails with the answers in: {content['ename']}: {printable(content['evalue'])}")
        if kind in _OUTPUTS:
            found.append(output_from_msg(said))
