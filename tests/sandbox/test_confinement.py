"""The untrusted process: its privileges, files, memory, time and output."""

import ast
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import catalogue
from autograder.core.arguments import Arguments
from autograder.core.observation import Missing
from autograder.core.operations import Call, KindOf
from autograder.core.packing import ProtocolError, Tensors, pack, unpack
from autograder.course.cells import CodeCell, filled_in
from autograder.course.settings import BadSettings, Isolation, Settings, load
from autograder.graders.budget import Budget
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.pool.grading_pool import GradingProcess, GradingRefused
from autograder.sandbox import client, isolation
from autograder.sandbox.client import Crashed, TimedOut, Worker
from autograder.sandbox.confine import scratch
from autograder.sandbox.fork_server import ForkServer
from autograder.sandbox.isolation import launch
from autograder.sandbox.worker import protocol
from tests import CHECK, REPOSITORY, sampling
from tests.typed import solved, stored

UNTRUSTED = [REPOSITORY / "autograder" / name for name in ("core", "sandbox/confine", "sandbox/worker")]


STORED = stored("confinement")
LIMITS = load().limits
UNIT = "dot_product_attention"
CALLED = Call("answer", Arguments()).packed({})


@pytest.fixture(params=["A", "B", "none"])
def parent(request, fork_server):
    return fork_server(request.param)


@pytest.fixture
def run(parent):
    """Runs a cell in a new worker and returns the value of `answer()`."""
    workers = []

    def run(source):
        worker = parent.fork("cpu")
        workers.append(worker)
        worker.request({"operation": "cell", "cell": "c", "source": source}, cpu_seconds=2)
        answer, tensors = worker.request(CALLED, cpu_seconds=2)
        return unpack(answer["value"], tensors)

    yield run
    for worker in workers:
        worker.end()


def printed(worker, source):
    """Return the output of a cell in this worker."""
    answer, _ = worker.request({"operation": "cell", "cell": "c", "source": source}, cpu_seconds=2)
    assert not answer["fault"], answer["fault"]
    return answer["printed"].strip()


def test_worker_holds_no_repository_no_test_and_no_answer(run):
    path, modules, environment, folder = run(
        "import os, sys\ndef answer(): return (list(sys.path), sorted(sys.modules), dict(os.environ), os.getcwd())"
    )
    ours = ("autograder", "solutions", "exercises", "tests")
    assert not [entry for entry in path for name in ours if (Path(entry) / name).exists()]
    assert not [name for name in modules if name.split(".")[0] in ("autograder", "solutions", "pytest", "nbgrader")]
    assert not any(str(REPOSITORY) in value for value in environment.values())
    assert not folder.startswith(str(REPOSITORY))


@pytest.mark.parametrize("name", ["autograder", "solutions", "autograder.hidden"])
def test_worker_cannot_import(run, name):
    assert run(f"def answer():\n    try:\n        import {name}\n    except ImportError:\n        return 'no'") == "no"


def test_forked_from_a_process_with_one_thread(parent):
    tasks = list(Path(f"/proc/{parent.pid}/task").iterdir())
    assert len(tasks) == 1


def test_the_cpu_seconds_of_a_worker_count_when_it_has_ended(parent):
    burns = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    before = parent.cpu_seconds()
    worker = parent.fork("cpu")
    worker.request({"operation": "cell", "cell": "c", "source": burns}, cpu_seconds=10)
    while_it_runs = parent.cpu_seconds()
    worker.end()
    assert while_it_runs - before >= 0.3
    assert parent.cpu_seconds() - before >= 0.3


def test_folders_nested_deeper_than_python_recurses_are_wiped(tmp_path):
    top = tmp_path / "scratch"
    top.mkdir()
    with contextlib.chdir(top):
        for _ in range(3 * sys.getrecursionlimit()):
            Path("d").mkdir()
            os.chdir("d")
    scratch.wipe(str(top))
    assert not top.exists()


def test_scratch_folder_is_gone_with_the_worker(parent):
    worker = parent.fork("cpu")
    folder = printed(worker, "import os; open('left', 'w'); print(os.getcwd())")
    neighbour = parent.fork("cpu")
    assert printed(neighbour, f"import os; print(os.path.exists({folder + '/left'!r}))") == "True"
    worker.end()
    assert printed(neighbour, f"print(os.path.exists({folder!r}))") == "False"
    neighbour.end()


def test_cpu_limit_and_exit_have_different_outcomes(parent):
    for source, loss in [("while True: pass", TimedOut), ("import os; os._exit(1)", Crashed)]:
        with pytest.raises(loss):
            parent.fork("cpu").request({"operation": "cell", "cell": "c", "source": source}, cpu_seconds=1)


def test_a_worker_that_sends_single_bytes_times_out():
    near, far = socket.socketpair()

    def drip():
        with contextlib.suppress(OSError):
            for _ in range(50):
                far.send(b"\0")
                time.sleep(0.1)

    with near, far:
        thread = threading.Thread(target=drip)
        thread.start()
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            protocol.receive(near, started + 0.5)
        near.close()
        thread.join()


CORE = max(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def own_parent():
    """A fork server of these tests' own, on one processor, that forks its first worker in the first of them."""
    with ForkServer(launch("B", LIMITS, cuda=False, core=CORE)) as parent:
        yield parent


def test_what_draws_is_imported_where_it_is_used_and_kept_for_the_second_submission(own_parent):
    """One notebook alone mostly draws nothing; in a class no worker has to import it again."""
    draws = "plt.imshow([[0.0, 1.0]])\nplt.savefig('plot.png')\nimport os\nprint(os.listdir(), len(plt.get_fignums()))"
    said = []
    for _ in range(2):
        worker = own_parent.fork("cpu")
        for source in ("import matplotlib.pyplot as plt\nprint(type(plt).__name__)", draws):
            answer, _ = worker.request({"operation": "cell", "cell": "c", "source": source}, cpu_seconds=10)
            said.append((answer["printed"], answer["fault"]))
        worker.end()
    drawn = ("['plot.png'] 1\n", None)
    assert said == [("_LazyModule\n", None), drawn, ("module\n", None), drawn]


def test_a_lost_fork_server_is_replaced(own_parent):
    first = own_parent.fork("cpu")
    os.kill(own_parent.pid, signal.SIGKILL)
    second = own_parent.fork("cpu")
    first.end()  # a worker of the lost parent is nothing to the new one
    answer, _ = second.request({"operation": "cell", "cell": "c", "source": "print(1)"}, cpu_seconds=2)
    assert answer["printed"] == "1\n"
    second.end()


@pytest.fixture(scope="module")
def own_grading_process():
    """A marking process of these tests' own, on one processor, whose sandbox they may end."""
    with GradingProcess("cpu", Settings(Isolation("best"), LIMITS, check=CHECK), core=CORE) as grading_process:
        yield grading_process


def test_a_grader_and_its_workers_keep_to_the_processor_that_they_are_given(grading_process, own_grading_process):
    source = "def softmax(scores, dim=-1):\n    import os\n    raise RuntimeError(sorted(os.sched_getaffinity(0)))"
    content = filled_in(UNIT, {"softmax": source})
    told = [each.grade("where.ipynb", content, UNIT).exercises for each in (own_grading_process, grading_process)]
    assert os.sched_getaffinity(own_grading_process.pid) == {CORE}
    words = [next(e for e in exercises if e.name == "softmax").message for exercises in told]
    assert f"RuntimeError: [{CORE}]" in words[0]
    assert f"RuntimeError: {sorted(os.sched_getaffinity(0))}" in words[1]


def test_a_lost_fork_server_is_no_fault_of_a_submission(own_grading_process):
    """The system may end it, for want of memory: marked again, not marked down."""
    waits = catalogue.solutions(UNIT)["softmax"].source() + "\nimport time\ntime.sleep(3)"
    content = solved(UNIT, softmax=waits)
    assert own_grading_process.ready.isolation == "A"
    (parent,) = Path(f"/proc/{own_grading_process.pid}/task/{own_grading_process.pid}/children").read_text().split()
    threading.Timer(1.5, os.kill, (int(parent), signal.SIGKILL)).start()
    report = own_grading_process.grade("sleeps.ipynb", content, UNIT)
    assert not Path(f"/proc/{parent}").exists()
    assert (report.status, report.score) == ("graded", report.max_score)


def test_an_answer_that_was_not_asked_for_is_a_crash(parent):
    """Code that finds the connection can speak on it, and then its own call is lost."""
    source = """
import gc, socket, json, struct
def answer():
    head = json.dumps({"kind": "class", "number": 1}).encode()
    for thing in gc.get_objects():
        if isinstance(thing, socket.socket):
            try:
                thing.sendall(struct.pack("<II", len(head), 0) + head)
            except OSError as error:
                print(error)
"""
    worker = parent.fork("cpu")
    worker.request({"operation": "cell", "cell": "c", "source": source}, cpu_seconds=2)
    with pytest.raises(Crashed):
        worker.request(CALLED, cpu_seconds=2)


MEGABYTES = STORED["megabytes"]


def test_a_worker_with_little_memory_is_held_to_it(parent):
    for _ in range(4):  # the fork server imports more once it has forked some
        worker = parent.fork("cpu", spare_memory=48 << 20)
        assert 36 < int(printed(worker, MEGABYTES)) <= 48
        worker.end()


def test_no_other_worker_runs_while_one_with_little_memory_does(parent):
    other = parent.fork("cpu")
    before = set(parent.processes())
    worker = parent.fork("cpu", spare_memory=48 << 20)
    states = []

    def watch():
        time.sleep(0.3)
        states.extend(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in before)

    watching = threading.Thread(target=watch)
    watching.start()
    printed(worker, "import time; time.sleep(1)")
    watching.join()
    assert states == ["T"]
    assert printed(other, "print('goes on')") == "goes on"
    worker.end()
    other.end()


SLEEPY = STORED["sleepy"]


def test_the_time_of_a_large_call_is_not_charged_and_that_of_its_cells_is(parent, monkeypatch):
    """They would otherwise be free, each time that they run again with little memory."""
    cells = [CodeCell("answer", SLEEPY, "answer")]
    with contextlib.closing(SandboxedNotebook(parent, cells, "cpu", exercises=["answer"])) as code:
        code.run_cells()
        large = code.apart(48 << 20, 20)
        forgiven = []
        monkeypatch.setattr(Budget, "forgive", lambda budget, seconds: forgiven.append(seconds))
        monkeypatch.setattr(Worker, "queued", 0.25)  # seconds for which it waited for a processor
        large.ask(Call("answer", Arguments((1.5,))))
    *of_cells, of_call = forgiven
    assert of_cells
    assert set(of_cells) == {0.25}
    assert of_call >= 1.5


def kill_next_worker(parent):
    """Kill the next worker that starts, as an operating system without free memory does."""
    before = set(parent.processes())

    def kill():
        while not (started := set(parent.processes()) - before):
            time.sleep(0.01)
        time.sleep(0.3)  # the cell runs now
        for process in started:
            with contextlib.suppress(ProcessLookupError):  # its parent may have ended it
                os.kill(process, signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    return killing


@pytest.mark.parametrize("is_apart", [True, False], ids=["in a second worker", "in a restarted worker"])
def test_a_cell_that_ran_before_and_is_stopped_once_runs_again(parent, is_apart):
    """Without it the answer would be missing, and a right one would lose points."""
    cells = [CodeCell("answer", SLEEPY, "answer")]
    with contextlib.closing(SandboxedNotebook(parent, cells, "cpu", exercises=["answer"])) as code:
        code.run_cells()
        if not is_apart:
            code.renew()
        killing = kill_next_worker(parent)
        assert (code.apart(0, 0) if is_apart else code).ask(KindOf("answer")) == "function"
        killing.join()


def test_a_cell_that_never_ran_to_its_end_runs_once(parent):
    cells = [CodeCell("answer", SLEEPY, "answer")]
    with contextlib.closing(SandboxedNotebook(parent, cells, "cpu", exercises=["answer"])) as code:
        killing = kill_next_worker(parent)
        assert [cell.status for cell in code.run_cells()] == ["crashed"]
        killing.join()
        with pytest.raises(Missing):
            code.ask(KindOf("answer"))


LOCKS = STORED["locks"]


def test_file_locks_transfer_nothing_between_workers(fork_server):
    """Processes outside of the sandbox could read them, and code in it could read theirs."""
    for level in ("A", "B"):
        worker = fork_server(level).fork("cpu")
        assert printed(worker, LOCKS).split() == ["refused", "works"]
        worker.end()


FIRST_THREAD_ENDS = """
import ctypes, threading, time
held = bytearray(64 << 20)
held[::4096] = bytes([1]) * len(held[::4096])
threading.Thread(target=time.sleep, args=(60,)).start()
print("holds", flush=True)
ctypes.CDLL(None).syscall(60, 0)  # exit(2), of this thread alone
"""


def test_memory_is_seen_though_the_first_thread_has_ended():
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "holds\n"
        while "Z" not in Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]:
            time.sleep(0.01)
        assert client.memory(process.pid) >= 64 << 20
        process.kill()


def test_untrusted_packages_import_no_others():
    """The untrusted side imports its own packages, the standard library and the notebooks' packages."""
    allowed = {
        *sys.stdlib_module_names,
        "torch",
        "numpy",
        "matplotlib",
        "IPython",
        "safetensors",
        "msgspec",
        "landlockpy",
        "pyseccomp",
    }
    own = {folder.relative_to(REPOSITORY).as_posix().replace("/", ".") for folder in UNTRUSTED}
    for module in (path for folder in UNTRUSTED for path in folder.glob("*.py")):
        package = module.parent.relative_to(REPOSITORY).parts
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, module.name
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] in allowed, module.name
            elif isinstance(node, ast.ImportFrom):
                path = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
                assert any(".".join(path).strip(".").startswith(name) for name in own), module.name


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(values)
def test_values_cross_the_wire_unchanged(value):
    near, far = socket.socketpair()
    with near, far:
        tensors: Tensors = {}
        protocol.send(near, {"value": pack(value, tensors)}, tensors)
        header, received = protocol.receive(far)
    assert unpack(header["value"], received) == value


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_cross_the_wire_unchanged(dtype):
    base = torch.arange(12).reshape(3, 4).to(dtype)
    for tensor in (base, base.T, base[0], base[:, 1], torch.tensor(1, dtype=dtype), base[:0]):
        tensors: Tensors = {}
        packed = pack([tensor, tensor], tensors)
        near, far = socket.socketpair()
        with near, far:
            protocol.send(near, {"value": packed}, tensors)
            header, received = protocol.receive(far)
        for item in unpack(header["value"], received):
            assert item.dtype == tensor.dtype
            assert torch.equal(item, tensor)


def test_a_length_beyond_the_cap_is_refused_before_it_is_read():
    near, far = socket.socketpair()
    with near, far:
        near.sendall(struct.pack("<II", 2, protocol.MAX_PAYLOAD_BYTES + 1) + b"{}")
        with pytest.raises(ProtocolError, match="larger"):
            protocol.receive(far)


def test_nothing_that_a_worker_starts_outlives_it(parent):
    """A process in a session of its own escapes a kill of the group; where starting one is refused, there is none."""
    worker = parent.fork("cpu")
    start = "import subprocess\nsubprocess.Popen(['sleep', '98765'], start_new_session=True)"
    answer, _ = worker.request({"operation": "cell", "cell": "c", "source": start}, cpu_seconds=2)
    assert (answer["fault"] is None) == (parent.isolation == "none")
    worker.end()
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in running if b"98765" in command]


REFUSED = """
    accept add_key bind bpf chown chroot connect execve execveat fallocate fanotify_init fchown fchownat flock fork
    get_mempolicy inotify_init io_uring_enter io_uring_register io_uring_setup ioprio_set kcmp keyctl
    landlock_restrict_self lchown link linkat listen lsetxattr mbind memfd_create migrate_pages mknod mknodat mlock
    mount move_mount move_pages mq_open msgget name_to_handle_at open_by_handle_at open_tree openat2 perf_event_open
    personality pidfd_getfd pidfd_open pidfd_send_signal pivot_root process_madvise process_vm_readv
    process_vm_writev ptrace quotactl recvmsg removexattr request_key rt_sigqueueinfo rt_tgsigqueueinfo
    sched_setaffinity sched_setattr sched_setparam sched_setscheduler seccomp semget sendmsg setgid setgroups setns
    setpgid setpriority setregid setresgid setresuid setreuid setuid setxattr shmat shmctl shmget socket socketpair
    splice sync syslog tee tkill truncate umount2 unshare userfaultfd vfork vmsplice
"""


@pytest.mark.parametrize("level", ["A", "B"])
def test_these_system_calls_are_refused(level, fork_server):
    """Each is made with arguments that mean nothing: were it allowed, the kernel would complain of them instead."""
    import pyseccomp

    numbers = {name: pyseccomp.resolve_syscall(pyseccomp.system_arch(), name) for name in REFUSED.split()}
    assert -1 not in numbers.values(), "a name that no system call has"
    source = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in {numbers!r}.items():
    if number >= 0:
        worked = libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1
        if worked or ctypes.get_errno() not in (1, 38):
            print(name, ctypes.get_errno())
print('done')
"""
    worker = fork_server(level).fork("cpu")
    assert printed(worker, source) == "done"
    worker.end()


def test_the_self_test_refuses_where_a_denial_does_not_come(fork_server):
    """At level `none` nearly everything works, and so the self-test, which is not run there, must say so."""
    worker = fork_server("none").fork("cpu")
    with pytest.raises(isolation.NotDenied) as refusal:
        isolation.verify_denials(lambda header: worker.request(header, cpu_seconds=5)[0])
    worker.end()
    for name in ("reading a file", "deleting a file", "connecting to a port", "starting a process", "a connection"):
        assert name in str(refusal.value)


def test_what_lies_where_submissions_may_read_is_refused():
    isolation.keep_private(REPOSITORY / "solutions")
    private = [Path(place, "course") for place in (sys.base_prefix, Path(torch.__file__).parent, "/usr/share")]
    for folder in private:
        with pytest.raises(isolation.NotIsolated, match="which submissions may read"):
            isolation.keep_private(folder)
    with (
        GradingProcess("cpu", Settings(Isolation("B"), LIMITS, check=CHECK), private=private[:1]) as grading_process,
        pytest.raises(GradingRefused, match="which submissions may read"),
    ):
        assert grading_process.ready


def test_trusting_is_a_level_of_its_own():
    with pytest.raises(isolation.NotIsolated, match="not trusted"):
        isolation.choose("none", trust_submissions=False)
    assert isolation.choose("none", trust_submissions=True) == "none"


def test_unusable_settings_are_reported(tmp_path):
    usual = (REPOSITORY / "autograder.toml").read_text()
    broken = {
        usual.replace("restarts = 8", "restart = 8"): "restart",
        usual.replace("restarts = 8", "restarts = 0"): "restarts must be from 1 to",
        re.sub(r"(?m)^cell_cpu_seconds = \d+", "cell_cpu_seconds = 0", usual, count=1): "cell_cpu_seconds must be",
        re.sub(r"(?m)^memory_megabytes = \d+", "memory_megabytes = 1", usual, count=1): "memory_megabytes must be from",
        usual.replace('"best"  ', '"C"  ', 1): "'C'",
        usual.replace("[limits]", "limits"): "cannot be used",
    }
    for text, words in broken.items():
        (tmp_path / "autograder.toml").write_text(text)
        with pytest.raises(BadSettings, match=words):
            load(tmp_path / "autograder.toml")
    with pytest.raises(BadSettings, match="cannot be read"):
        load(tmp_path / "none.toml")


@pytest.fixture(scope="module")
def mark_in_little_time():
    """Marks where a submission has 16 seconds; the report, and how long it took."""
    limits = msgspec.structs.replace(LIMITS, submission_wall_seconds=16, cell_cpu_seconds=4, wall_factor=1)
    with GradingProcess("cpu", Settings(Isolation("B"), limits, check=CHECK)) as quick:
        assert quick.ready

        def mark(content):
            started = time.monotonic()
            return quick.grade("slow.ipynb", content, UNIT), time.monotonic() - started

        yield mark


def with_cells(sources, **answers):
    """The solved notebook with these answers, and with cells of a student's own before all others."""
    notebook = json.loads(solved(UNIT, **answers))
    own = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    return json.dumps({**notebook, "cells": own + notebook["cells"]}).encode()


WAITS = "import time\ntime.sleep(1000)"
LOOPS = "while True: pass"
ENDS = "import os\nos._exit(0)"
NOT_COMING_BACK = {"wait and loop": [WAITS, LOOPS] * 6, "end": [ENDS] * 30}
if sampling.every:
    NOT_COMING_BACK |= {"wait": [WAITS] * 12, "loop": [LOOPS] * 12}


@pytest.mark.parametrize("cells", NOT_COMING_BACK.values(), ids=NOT_COMING_BACK)
def test_cells_that_do_not_come_back_take_no_point_from_right_answers(mark_in_little_time, cells):
    report, seconds = mark_in_little_time(with_cells(cells))
    assert report.score == report.max_score
    assert report.status in ("timed_out", "crashed")
    assert seconds < 60


@pytest.mark.parametrize("each", [3, 100])
def test_exercises_whose_calls_wait_take_no_point_from_right_answers(mark_in_little_time, each):
    solutions = catalogue.solutions(UNIT)
    first, *rest, last = solutions
    waiting = {name: f"def {name}(*args):\n    import time; time.sleep({each})" for name in rest}
    report, seconds = mark_in_little_time(with_cells([], **waiting))
    assert {e.status for e in report.exercises if e.name in (first, last)} == {"passed"}
    assert {e.status for e in report.exercises if e.name in rest} <= {"timeout", "skipped", "failed"}
    assert report.status == "timed_out"
    assert seconds < 50


def test_waiting_and_computing_have_different_time_limits(fork_server):
    """A cell that waits is ended after ten seconds, however long it may compute, and its message says so."""
    request = {"operation": "cell", "cell": "c", "source": WAITS}
    started = time.monotonic()
    with pytest.raises(TimedOut) as waited:
        fork_server("B").fork("cpu").request(request, cpu_seconds=10)
    assert time.monotonic() - started < 40
    assert str(waited.value) == "The code waited 10 seconds without computing anything."


def test_waiting_for_a_processor_ends_no_worker(own_parent):
    """On a busy machine a cell takes long by the clock: its CPU time is what is limited."""
    busy = f"import os\nos.sched_setaffinity(0, {{{CORE}}})\nwhile True: pass"
    assert own_parent.enforced  # it has started before there is a queue
    # Each in a session of its own: some kernels share a processor among sessions first.
    others = [subprocess.Popen([sys.executable, "-c", busy], start_new_session=True) for _ in range(6)]
    try:
        # Half a second of seven's processor: its turns are looked at twice a second, so the last are not counted.
        computes = "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"
        worker = own_parent.fork("cpu")
        request = {"operation": "cell", "cell": "c", "source": computes}
        try:
            answer, _ = worker.request(request, cpu_seconds=2, wall_seconds=1, idle_seconds=1)
        finally:
            worker.end()
        assert answer["printed"] == "done\n"
        assert worker.queued > 1
    finally:
        for other in others:
            other.kill()
            other.wait()


FILLS = STORED["fills"]


@pytest.mark.parametrize(("fills", "level"), sampling.at_a_level(FILLS))
def test_the_kernel_keeps_files_to_their_limits(fills, level, fork_server):
    """A cell that exceeds a limit gets an error from Python, in whichever way it writes."""
    parent = fork_server(level)
    assert "tmpfs" in parent.enforced
    worker = parent.fork("cpu")
    cell = {"operation": "cell", "cell": "c", "source": f"import os, time\n{FILLS[fills]}\ntime.sleep(5)"}
    answer, _ = worker.request(cell, cpu_seconds=5)
    assert answer["fault"]["message"].startswith("[Errno 28] No space left")
    worker.end()
    again = parent.fork("cpu")  # the next has all of it again
    assert printed(again, "for n in range(7): open(str(n), 'wb').write(bytes(31 << 20))\nprint('all')") == "all"
    again.end()


WITHOUT_NAMESPACES = """
import sys
from autograder.sandbox.isolation import launch
from autograder.sandbox.client import Crashed
from autograder.sandbox.fork_server import ForkServer
from autograder.course.settings import load
with ForkServer(launch("B", load().limits, cuda=False)) as parent:
    print("tmpfs" in parent.enforced)
    for fill in sys.argv[1:]:
        cell = {"operation": "cell", "cell": "c", "source": "import os, time\\n" + fill + "\\ntime.sleep(9)"}
        try:
            print(parent.fork("cpu").request(cell, cpu_seconds=5)[0])
        except Crashed as loss:
            print(loss)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take namespaces away from itself")
def test_files_are_counted_where_the_kernel_gives_no_namespace():
    """Simulate a machine that forbids namespaces to ordinary users; what is written within half a second counts too."""
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all"
    run = [sys.executable, "-c", WITHOUT_NAMESPACES, *FILLS.values()]
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{forbid} "$@"', "sh", *run]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=200)
    said = dict.fromkeys(FILLS, "The notebook's files had more than 256 MB in all.") | {
        "many files": "The notebook made more than 1000 files."
    }
    assert done.stdout.splitlines() == ["False", *said.values()], done.stderr


@pytest.mark.parametrize("level", ["A", "B"])
def test_no_thread_has_a_table_of_files_of_its_own(level, fork_server):
    """In such a table files would be held open that no count sees."""
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
SHARES_ALL_BUT_FILES = 0x100 | 0x200 | 0x800 | 0x10000
print(libc.syscall(436, 1000, 1001, 2), libc.syscall(56, SHARES_ALL_BUT_FILES, 0, 0, 0, 0), ctypes.get_errno())
print(libc.syscall(436, 1000, 1001, 0), libc.syscall(436, 1000, 1001, 4))
"""
    worker = fork_server(level).fork("cpu")
    assert printed(worker, source) == "-1 -1 1\n0 0"
    worker.end()


PASSED = STORED["passed"]


@pytest.fixture
def with_little_memory():
    """A fork server of a level, whose workers soon have no more."""
    with contextlib.ExitStack() as parents:
        limits = msgspec.structs.replace(LIMITS, memory_megabytes=512)
        yield lambda level: parents.enter_context(ForkServer(launch(level, limits, cuda=False)))


@pytest.mark.parametrize(("said", "level"), sampling.at_a_level(PASSED))
def test_the_cause_of_a_workers_end_is_reported(said, level, fork_server, with_little_memory):
    worker = (with_little_memory if "memory" in said else fork_server)(level).fork("cpu")
    with pytest.raises(Crashed) as loss:
        worker.request({"operation": "cell", "cell": "c", "source": PASSED[said]}, cpu_seconds=5)
    assert str(loss.value) == said


def test_the_cause_of_a_workers_end_is_reported_for_cells_and_calls(grading_process):
    threads = "import threading, time\nfor _ in range(80): threading.Thread(target=time.sleep, args=(100,)).start()\n"
    call = f"def softmax(x):\n    {threads.strip().replace(chr(10), chr(10) + '    ')}\n    time.sleep(5)"
    report = grading_process.grade("threads.ipynb", with_cells([threads + "time.sleep(5)"], softmax=call), UNIT)
    words = "More than 64 threads ran at once; a notebook may have 64."
    assert next(cell.message for cell in report.cells if cell.status == "crashed").startswith(words)
    assert report.exercise("softmax").message == f"{words} The rest of the tests was not run."
    assert report.score == report.max_score - report.exercise("softmax").max_score
