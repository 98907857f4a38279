"""Ordinary work of a notebook is possible in the sandbox too: at level A; with `pytest --every` also at B."""

import pytest

from autograder import catalogue
from autograder.course.settings import Isolation, Settings, load
from autograder.pool.grading_pool import GradingProcess
from tests import CHECK, sampling
from tests.typed import solved, with_cells

UNIT = "self_attention"

CELLS = {
    "plots": """
%matplotlib inline
import matplotlib.pyplot as plt
from matplotlib import animation
figure, axes = plt.subplots(1, 2)
axes[0].imshow(torch.eye(6)); axes[1].hist(torch.randn(100).numpy(), label="$\\\\frac{q k}{\\\\sqrt{d_k}}$")
plt.legend(); plt.tight_layout(); plt.savefig("weights.png"); plt.savefig("weights.pdf"); plt.show()
animation.FuncAnimation(figure, lambda frame: axes[0].imshow(torch.eye(6)), frames=2).to_jshtml()
assert plt.imread("weights.png").shape[2] == 4
""",
    "a line that goes on in an empty one": "total = 1 \\\n\n",
    "empty lines": "\n" * 100_000,
    "magics and displays": """
%time total = sum(range(10))
%timeit -n 1 -r 1 sum(range(10))
!nvidia-smi
%pip install einops
%load_ext autoreload
%autoreload 2
%cd .
%env OMP_NUM_THREADS=1
from IPython.display import HTML, Markdown, Math, clear_output, display
display(HTML("<b>bold</b>"), Markdown("*x*"), Math("x")); clear_output()
len?
""",
    "a written module": """%%writefile helper.py
def double(x):
    return 2 * x


""",
    "and its import": "import helper\nassert helper.double(2) == 4 and len(open('helper.py').readlines()) == 4",
    "einops and pandas": """
import einops, pandas
heads = einops.rearrange(torch.zeros(2, 6, 8), "b t (h d) -> b h t d", h=2)
frame = pandas.DataFrame(torch.randn(6, 3).numpy(), columns=list("abc"))
frame.to_csv("scores.csv"); assert pandas.read_csv("scores.csv").shape == (6, 4)
print(frame.describe(), frame.style.to_html()[:10], heads.shape)
""",
    "files": """
import json, os, pickle, shutil, tempfile, pathlib
torch.save({"w": torch.eye(2)}, "w.pt"); assert torch.load("w.pt")["w"].sum() == 2
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "a.json").write_text(json.dumps([1])); shutil.copyfile(f"{folder}/a.json", "b.json")
pickle.dump(torch.eye(2), open("p.pkl", "wb")); os.makedirs("a/b", exist_ok=True); shutil.rmtree("a")
""",
    "threads and waiting": """
import asyncio, concurrent.futures, threading, time
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(lambda x: x * x, range(8)))[-1] == 49
await asyncio.sleep(0.01)
assert await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)) == [1, 2]
thread = threading.Thread(target=time.sleep, args=(0.01,)); thread.start(); thread.join()
torch.set_num_threads(2); torch.randn(500, 500) @ torch.randn(500, 500)
""",
    "more of torch": """
import functools, inspect, logging, dataclasses, typing, random, math, copy
from torch.utils.data import DataLoader, TensorDataset
batches = list(DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, shuffle=True))
layer = nn.Linear(2, 2); optimizer = torch.optim.AdamW(layer.parameters())
layer(batches[0][0]).sum().backward(); optimizer.step()
torch.func.vmap(torch.sin)(torch.randn(3)); torch.jit.script(nn.Linear(2, 2))
assert torch.compile(torch.exp)(torch.zeros(1)) == 1
print(inspect.getsource(scaled_softmax), copy.deepcopy(layer), layer)
logging.getLogger(__name__).warning("careful")
""",
}


@pytest.fixture(scope="module", params=["A", "B"] if sampling.every else ["A"])
def report(request, grading_process):
    """Report on a right notebook that does all this at its end."""
    compiled = f"@torch.compile\n{catalogue.solutions(UNIT)['scaled_softmax'].source()}"
    content = with_cells(solved(UNIT, scaled_softmax=compiled), *CELLS.values())
    if request.param == grading_process.ready.isolation:
        return grading_process.grade("busy.ipynb", content, UNIT)
    with GradingProcess("cpu", Settings(Isolation(request.param), load().limits, check=CHECK)) as other:
        return other.grade("busy.ipynb", content, UNIT)


def test_everything_ran(report):
    assert [cell.message for cell in report.cells if cell.troubled] == []
    assert "did not work" not in "".join(cell.printed for cell in report.cells)


def test_nothing_was_lost(report):
    assert (report.status, report.score) == ("graded", report.max_score)
