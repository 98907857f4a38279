"""Code that acts on what is outside: files, processes, the network, the kernel."""

from .case import UNHARMED, must


@must(UNHARMED)
def writes_into_the_gradebook():
    """Opens the gradebook to write, locks it, and changes it through SQLite."""
    import fcntl
    import os
    import sqlite3

    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_PATH):
        attempt(lambda: os.open(GRADEBOOK, flags)) if flags != os.O_PATH else None
    attempt(lambda: sqlite3.connect(GRADEBOOK).execute("create table mine (x)"))
    attempt(lambda: fcntl.flock(open(GRADEBOOK), fcntl.LOCK_EX))


@must(UNHARMED)
def writes_elsewhere():
    """Writes into a neighbour's notebook, the graders, the answers, and makes files beside them."""
    import os

    for path in (NEIGHBOUR, GRADERS, ANSWERS, SECRET):
        attempt(open, path, "a")
        attempt(open, path, "w")
        attempt(os.truncate, path, 0)
        attempt(open, os.path.join(os.path.dirname(path), "conftest.py"), "w")


@must(UNHARMED)
def deletes():
    """Deletes, moves and replaces the instructor's files."""
    import os
    import shutil

    for path in (SECRET, GRADEBOOK, NEIGHBOUR, GRADERS):
        attempt(os.remove, path)
        attempt(os.rename, path, path + ".old")
        attempt(os.replace, path, "mine")
        attempt(shutil.rmtree, os.path.dirname(path))
        open("mine", "w").write("mine")
        attempt(os.replace, "mine", path)


@must(UNHARMED)
def modes_owners_and_times():
    """Changes modes, owners, times and attributes, which no rule about opening files governs."""
    import os

    for path in (SECRET, GRADEBOOK, NEIGHBOUR, os.path.dirname(SECRET)):
        for change in (lambda: os.chmod(path, 0o777), lambda: os.utime(path, (1, 1))):
            try:
                change()  # may seem to work; what it did is looked at afterwards
            except OSError:
                pass
        attempt(os.chown, path, os.getuid(), os.getgid())
        attempt(os.setxattr, path, "user.mine", b"1")
        attempt(os.lchown, path, os.getuid(), os.getgid())


@must(UNHARMED)
def deletes_its_home():
    """Deletes its own folder."""
    import pathlib
    import shutil

    shutil.rmtree(pathlib.Path.home(), ignore_errors=True)


@must(UNHARMED)
def connects():
    """Connects to a port and a socket of this machine, and to the world."""
    import socket
    import urllib.request

    attempt(socket.create_connection, ("127.0.0.1", PORT), 1)
    attempt(lambda: socket.socket(socket.AF_UNIX).connect(SOCKET))
    attempt(socket.socketpair)
    attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)
    attempt(socket.getaddrinfo, "localhost", 80)
    attempt(urllib.request.urlopen, f"http://127.0.0.1:{PORT}/", timeout=1)


@must(UNHARMED)
def signals():
    """Sends signals to every process that it can name."""
    import os
    import signal

    for pid in (BYSTANDER, GRADER, os.getppid()):
        attempt(os.kill, pid, signal.SIGKILL)
        attempt(os.kill, pid, signal.SIGSTOP)
        attempt(os.killpg, pid, signal.SIGTERM)
    for pid in (-1, 0, 1):
        attempt(os.kill, pid, 0)


@must(UNHARMED)
def signals_by_other_doors():
    """Signals by a process descriptor, by a queue, and by a file that signals its owner when it is ready."""
    import ctypes
    import fcntl
    import os
    import signal

    for pid in (BYSTANDER, GRADER, os.getppid()):
        attempt(os.pidfd_open, pid)
        if ctypes.CDLL(None).sigqueue(pid, signal.SIGKILL, None) == 0:
            print("ESCAPED by sigqueue")
        near, far = os.pipe()
        attempt(fcntl.fcntl, near, 10, signal.SIGKILL)
        attempt(fcntl.fcntl, near, fcntl.F_SETOWN, pid)
        attempt(fcntl.ioctl, near, 0x8901, pid.to_bytes(4, "little"))


@must(UNHARMED)
def others_limits():
    """Changes limits, processors and priorities of other processes."""
    import os
    import resource

    for pid in (BYSTANDER, GRADER, os.getppid()):
        attempt(resource.prlimit, pid, resource.RLIMIT_CPU, (1, 1))
        attempt(resource.prlimit, pid, resource.RLIMIT_NOFILE, (3, 3))
        attempt(os.sched_setaffinity, pid, {0})
        attempt(os.setpriority, os.PRIO_PROCESS, pid, 19)
        attempt(os.sched_setscheduler, pid, os.SCHED_BATCH, os.sched_param(0))


@must(UNHARMED)
def its_own_limits():
    """Raises its own limits."""
    import resource

    for kind in (
        resource.RLIMIT_AS,
        resource.RLIMIT_CPU,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_CORE,
    ):
        attempt(resource.setrlimit, kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    attempt(__import__("os").nice, -10)


@must(UNHARMED)
def debugs_its_parent():
    """Traces, reads and writes other processes' memory."""
    import ctypes
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    for pid in (BYSTANDER, os.getppid()):
        for request in (16, 0x4206):  # attach, seize
            if libc.ptrace(request, pid, None, None) == 0:
                print("ESCAPED by ptrace")
        buffer = ctypes.create_string_buffer(8)
        vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
        for call in (libc.process_vm_readv, libc.process_vm_writev):
            if call(pid, vector, 1, vector, 1, 0) > 0:
                print("ESCAPED by process_vm")


@must(UNHARMED)
def shared_memory():
    """Makes shared memory, message queues and semaphores that would outlive it."""
    import ctypes
    import multiprocessing.shared_memory
    import os

    libc = ctypes.CDLL(None)
    for call in (
        lambda: libc.shmget(4711, 4096, 0o1666),
        lambda: libc.msgget(4711, 0o1666),
        lambda: libc.semget(4711, 1, 0o1666),
    ):
        if call() != -1:
            print("ESCAPED by System V")
    if libc.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, None) >= 0:
        print("ESCAPED by a message queue")
    attempt(multiprocessing.shared_memory.SharedMemory, "left", True, 4096)
    attempt(__import__("torch").zeros(4).share_memory_)
    attempt(os.memfd_create, "left")


@must(UNHARMED)
def runs_programs():
    """Runs programs by every way that Python has."""
    import os
    import pty
    import subprocess

    attempt(subprocess.check_output, ["id"])
    attempt(subprocess.check_output, "id", shell=True)
    attempt(os.popen, "id")
    attempt(os.posix_spawn, "/usr/bin/id", ["id"], {})
    attempt(os.execv, "/usr/bin/id", ["id"])
    attempt(pty.fork)
    if os.system("true") == 0:
        print("ESCAPED by system")


@must(UNHARMED)
def the_kernels_doors():
    """Calls what an escape would need: namespaces, mounts, keys, BPF, io_uring, and the like."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"unshare": 272, "setns": 308, "mount": 165, "pivot_root": 155, "chroot": 161, "keyctl": 250, "bpf": 321}
    numbers |= {
        "perf_event_open": 298,
        "userfaultfd": 323,
        "io_uring_setup": 425,
        "open_by_handle_at": 304,
        "kcmp": 312,
    }
    numbers |= {
        "clone3": 435,
        "pidfd_getfd": 438,
        "open_tree": 428,
        "fsopen": 430,
        "memfd_secret": 447,
        "personality": 135,
    }
    if __import__("platform").machine() == "x86_64":
        for name, number in numbers.items():
            arguments = (0x10000000,) if name == "unshare" else (0, 0, 0, 0, 0)
            if libc.syscall(number, *arguments) != -1 or ctypes.get_errno() not in (1, 38):
                print("ESCAPED by", name, ctypes.get_errno())


@must(UNHARMED)
def takes_the_filter_off():
    """Asks the kernel for privileges, and to forget what it was told."""
    import ctypes
    import os

    libc = ctypes.CDLL(None)
    for option in (22, 4, 24, 8, 0x59616D61):  # seccomp, dumpable, bounding set, keepcaps, ptracer
        if libc.prctl(option, 1, 0, 0, 0) == 0:
            print("ESCAPED by prctl", option)
    for change in (os.setuid, os.setgid, os.seteuid):
        attempt(change, 12345)
    attempt(os.setgroups, [])
    attempt(os.setsid)


@must(UNHARMED)
def other_architectures_calls():
    """Makes system calls by the numbers of another architecture, which a filter may forget."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if __import__("platform").machine() == "x86_64":
        x32 = 0x40000000
        if libc.syscall(x32 + 57) == 0:  # fork
            __import__("os")._exit(0)
