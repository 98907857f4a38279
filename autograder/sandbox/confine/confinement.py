"""The isolation levels: prepared once in the process that forks, enforced in each worker, and tested there.

Levels, as docs/security.md describes them: `A` is bubblewrap around the fork server and, on each worker, Landlock, a
system-call filter and limits; `B` is the same without bubblewrap; `none` is the limits only.

Landlock (https://docs.kernel.org/userspace-api/landlock.html) governs opening, listing and changing files. It does not
govern the modes, owners and times of files: the system-call filter prevents their change. It does not hide whether a
path exists.

The filter is a list of the system calls that a worker may make. The kernel refuses all others. The list comes from
traces of the known answers, plots, IPython, einops and pandas; see seccomp(2), seccomp_rule_add(3). The filter is
compiled once, in the fork server, and loaded into each worker, which cannot remove it.
"""
# ruff: noqa: SIM905 (a list of a hundred names is read more easily without its quotes)

import ctypes
import errno
import os
import resource
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from . import process, scratch
from .process import call_kernel, forbid_new_privileges

FILES = """
    access chdir close copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fchdir
    fdatasync fstat fstatfs fsync ftruncate getcwd getdents getdents64 lseek lstat newfstatat pread64
    preadv pwrite64 pwritev read readlink readlinkat readv rename renameat renameat2 rmdir sendfile stat statfs statx
    symlink symlinkat unlink unlinkat write writev
""".split()
WAITING = """
    alarm clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 getitimer
    nanosleep pause pipe pipe2 poll ppoll pselect6 restart_syscall select setitimer timer_create timer_delete
    timer_gettime timer_settime wait4
""".split()
CONNECTION = "getsockname getsockopt recvfrom shutdown".split()
"""Calls on the connection that a worker inherits; it cannot open another connection."""
MEMORY = "brk madvise mincore mmap mprotect mremap msync munmap".split()
THREADS = """
    exit exit_group futex futex_waitv gettid membarrier rseq sched_get_priority_max sched_get_priority_min
    sched_yield set_robust_list set_tid_address
""".split()
SIGNALS = "rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack".split()
FACTS = """
    clock_getres clock_gettime getcpu getegid geteuid getgid getgroups getpgrp getpid getppid getrandom
    getresgid getresuid getrlimit getrusage gettimeofday getuid setrlimit sysinfo time times uname
""".split()

NOT_THERE = "clone3 openat2 fchmodat2 io_uring_setup".split()
"""Calls reported as unknown, so that the C library falls back to older calls whose arguments the filter can check."""

PRETENDED = "chmod fchmod fchmodat futimesat utime utimensat utimes".split()
"""Calls that report success but do nothing, so that `shutil.copy` in a notebook works and no file is changed."""

_OWN_PID = 0x5E1F5E1F  # placeholder in the compiled filter for the worker's process id
_CLONE_THREAD = 0x00010000
_CLONE_SHARED = 0x00000600
"""CLONE_FS and CLONE_FILES: files in a thread's own table of open files would not be counted."""
_CLOSE_ON_EXEC = 0x4
_CLONE_NEW_NAMESPACES = 0x7E020080
_WRITE_MODES, _TRUNCATE, _PATH_ONLY = 0o3, 0o1000, 0o10000000
_OWNER = 0o700
# No F_SETOWN and no F_SETSIG: they send a signal to any process of the same user when a file becomes ready.
_FCNTL = {"DUPFD": 0, "GETFD": 1, "SETFD": 2, "GETFL": 3, "SETFL": 4} | {"DUPFD_CLOEXEC": 1030}
_LOCKS = {"SETLK": 6, "SETLKW": 7}
"""Setting a lock reports success but does nothing, because outside processes could read it. Reading one is refused."""
_IOCTL = {"TCGETS": 0x5401, "TIOCGWINSZ": 0x5413, "FIONREAD": 0x541B, "FIONBIO": 0x5421, "FIONCLEX": 0x5450} | {
    "FIOCLEX": 0x5451
}
_PRCTL = {"SET_NAME": 15, "GET_NAME": 16, "SET_VMA": 0x53564D41}

_SET_SECCOMP, _MODE_FILTER = 22, 2
Level = Literal["A", "B", "none"]
LEAST_LANDLOCK: dict[Level, int] = {"A": 1, "B": 2}
"""Least Landlock version for each level. Without bubblewrap, Landlock must also govern moves between folders."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def compile_filter(*, cuda: bool) -> bytes:
    """Return the filter as BPF instructions for `load_filter`. Raises OSError or ImportError if libseccomp is missing.

    cuda: also allow every ioctl, which the GPU's driver needs.
    """
    import pyseccomp as seccomp

    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.ERRNO(errno.EPERM))
    for name in (*FILES, *WAITING, *CONNECTION, *MEMORY, *THREADS, *SIGNALS, *FACTS):
        rules.add_rule(seccomp.ALLOW, name)
    for name in NOT_THERE:
        rules.add_rule(seccomp.ERRNO(errno.ENOSYS), name)
    for name in PRETENDED:
        rules.add_rule(seccomp.ERRNO(0), name)
    for name, condition in _conditions(cuda=cuda):
        rules.add_rule(seccomp.ALLOW, name, *condition)
    for value in _LOCKS.values():
        rules.add_rule(seccomp.ERRNO(0), "fcntl", seccomp.Arg(1, seccomp.EQ, value))
    if cuda:
        rules.add_rule(seccomp.ALLOW, "ioctl")
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _conditions(*, cuda: bool) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each system call that is allowed only with certain arguments, and the conditions on these arguments."""
    from pyseccomp import EQ, MASKED_EQ, Arg

    thread = _CLONE_THREAD | _CLONE_SHARED
    yield "clone", (Arg(0, MASKED_EQ, thread | _CLONE_NEW_NAMESPACES, thread),)
    yield "close_range", (Arg(2, MASKED_EQ, 0xFFFFFFFF & ~_CLOSE_ON_EXEC, 0),)  # not CLOSE_RANGE_UNSHARE
    flags = _WRITE_MODES | _TRUNCATE | _PATH_ONLY
    for position, name in ((1, "open"), (2, "openat")):
        # Never read-only with O_TRUNC, which would empty the file: Landlock before version 3 allows that.
        for mode in range(_WRITE_MODES + 1):
            yield name, (Arg(position, MASKED_EQ, flags, mode),)
            if mode:
                yield name, (Arg(position, MASKED_EQ, flags, mode | _TRUNCATE),)
    # Files in a folder that its owner cannot read would not be counted.
    for position, name in ((1, "mkdir"), (2, "mkdirat")):
        yield name, (Arg(position, MASKED_EQ, _OWNER, _OWNER),)
    yield "umask", (Arg(0, MASKED_EQ, _OWNER, 0),)
    for name in ("kill", "tgkill"):
        yield name, (Arg(0, EQ, _OWN_PID),)
    yield "sendto", (Arg(4, EQ, 0),)
    for pid in (0, _OWN_PID):
        for name in ("prlimit64", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getpgid", "getsid"):
            yield name, (Arg(0, EQ, pid),)
    for position, name, values in ((1, "fcntl", _FCNTL), (0, "prctl", _PRCTL)):
        for value in values.values():
            yield name, (Arg(position, EQ, value),)
    if not cuda:
        for value in _IOCTL.values():
            yield "ioctl", (Arg(1, EQ, value),)


def load_filter(program: bytes, pid: int) -> None:
    """Apply the filter to this process and to all processes that it starts; raises OSError. pid: this process's id."""
    program = program.replace(struct.pack("<I", _OWN_PID), struct.pack("<I", pid))
    instructions = _Program(len(program) // 8, program)
    forbid_new_privileges()  # or the kernel accepts no filter
    call_kernel("prctl", _SET_SECCOMP, _MODE_FILTER, ctypes.byref(instructions), 0, 0)


class CannotConfine(Exception):
    """Raised if the isolation level is not available on this machine; `str()` says what is missing."""


@dataclass(frozen=True)
class Terms:
    """The confinement that the trusted side requires of a process that forks workers."""

    level: Level
    readable: Sequence[str]
    """Folders and files that a worker may read."""
    scratch: str | None = None
    """The folder in which workers' scratch folders are made; None if workers have none."""
    scratch_bytes: int = 0
    """Limit in bytes for all scratch folders together."""
    devices: Sequence[str] = DEVICES
    cuda: bool = False


@dataclass(frozen=True)
class Confinement:
    """An isolation level that is ready to be enforced."""

    terms: Terms
    program: bytes
    """The compiled filter of system calls; empty at level `none`."""
    enforced: list[str] = field(default_factory=list)
    """Names of the mechanisms that are enforced, such as `seccomp`."""
    has_disk: bool = False
    """True if the kernel keeps scratch folders within their limits; otherwise the fork server must watch them."""

    def enforce(self, limits: process.WorkerLimits, scratch_folder: str | None) -> None:
        """Confine this process for good. If any layer raises OSError, no student's code may run."""
        cuda = self.terms.cuda
        process.limit(limits, cuda=cuda, counts_threads=self.terms.level == "A")
        if self.terms.level != "none":
            process.set_visible(True)
            restrict_files(self.terms.readable, scratch_folder, self.terms.devices, allow_ioctl=cuda)
            load_filter(self.program, os.getpid())


def prepare(terms: Terms) -> Confinement:
    """Prepare this process for forking workers at the level that `terms` requires; raises CannotConfine."""
    if terms.level == "none":
        return Confinement(terms, b"", ["rlimits"])
    version, least = landlock_version(), LEAST_LANDLOCK[terms.level]
    if version < least:
        raise CannotConfine(f"Level {terms.level} needs Landlock version {least}; here it is {version or 'off'}.")
    is_wrapped = terms.level == "A"
    if is_wrapped and os.getpid() != 1:
        raise CannotConfine("Level A needs a process namespace of its own.")
    has_disk = bool(terms.scratch) and scratch.mount(str(terms.scratch), terms.scratch_bytes, has_namespace=is_wrapped)
    try:
        program = compile_filter(cuda=terms.cuda)
        process.drop_privileges()
    except (ImportError, OSError, RuntimeError) as error:
        raise CannotConfine(f"Level {terms.level} is not available: {error}.") from None
    around, disk = ["bubblewrap"] if is_wrapped else [], ["tmpfs"] if has_disk else []
    return Confinement(terms, program, [*around, f"Landlock {version}", "seccomp", "rlimits", *disk], has_disk)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 if the kernel has none, or a container's filter refuses it."""
    try:
        import landlockpy

        return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def restrict_files(
    readable: Sequence[str], scratch_folder: str | None, devices: Sequence[str] = DEVICES, *, allow_ioctl: bool = False
) -> None:
    """Restrict this process to reading the given files and folders, and to writing in one folder; raises OSError.

    scratch_folder: the folder for writing; None to allow no writing. devices: paths to allow reading and writing of.
    allow_ioctl: also allow ioctl on the devices, which a GPU's driver needs.
    """
    from landlockpy import AccessFS, Ruleset, fs_for_abi, net_for_abi, scope_for_abi

    version = landlock_version()
    files = fs_for_abi(version)
    on_device = AccessFS.READ_FILE | AccessFS.WRITE_FILE | (AccessFS.IOCTL_DEV if allow_ioctl else AccessFS.NONE)
    with Ruleset(
        handled_fs=files, handled_net=net_for_abi(version), scoped=scope_for_abi(version), best_effort=False
    ) as rules:
        for path in map(Path, readable):
            if path.exists():
                rules.allow_path(path, AccessFS.READ_FILE | (AccessFS.READ_DIR if path.is_dir() else AccessFS.NONE))
        for device in map(Path, devices):
            if device.exists():
                rules.allow_path(device, on_device)
        if scratch_folder is not None:
            special = AccessFS.EXECUTE | AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.MAKE_SOCK
            rules.allow_path(scratch_folder, files & ~special)
        rules.restrict()


_PTRACE_SEIZE, _PRIVATE_SEGMENT = 0x4206, 0  # seizing, unlike attaching, does not stop the other


@dataclass(frozen=True)
class Bait:
    """Targets of the attempts, which the trusted side provides: a file, a port, a socket and a process id."""

    file: str
    port: int
    socket: str
    pid: int


def attempt_all(bait: Bait) -> dict[str, Any]:
    """Return the number of attempts, and the names of those that succeeded: none if the confinement holds."""
    outcomes = {name: _works(attempt) for name, attempt in _attempts(bait)}
    return {"tried": len(outcomes), "succeeded": [name for name, worked in outcomes.items() if worked]}


def _works(attempt: Callable[[], object]) -> bool:
    try:
        return attempt() is not False
    except (OSError, ValueError):
        return False


def _attempts(bait: Bait) -> Iterator[tuple[str, Callable[[], object]]]:
    libc = ctypes.CDLL(None)
    file, parent = Path(bait.file), os.getppid()
    yield "reading a file", file.read_bytes
    yield "writing into a file", lambda: file.write_bytes(b"overwritten")
    yield "cutting a file short", lambda: os.truncate(file, 0)
    # These two may seem to work: the trusted side checks whether they did.
    yield "changing a file's mode", lambda: _checked_outside(partial(file.chmod, 0o777))
    yield "changing a file's times", lambda: _checked_outside(partial(os.utime, file, (0, 0)))
    yield "listing a folder", lambda: list(file.parent.iterdir())
    yield "making a file", lambda: file.with_name("made").write_bytes(b"")
    yield "deleting a file", file.unlink
    yield "connecting to a port", lambda: socket.create_connection(("127.0.0.1", bait.port), timeout=1)
    yield "connecting to a socket", lambda: socket.socket(socket.AF_UNIX).connect(bait.socket)
    yield "opening a socket", socket.socket
    yield "starting a process", _fork
    yield "running a program", lambda: os.posix_spawn("/bin/true", ["true"], {})
    for name, pid in (("the fork server", parent), ("the grader", bait.pid)):
        yield f"a signal to {name}", partial(os.kill, pid, 0)
        yield f"the limits of {name}", partial(resource.prlimit, pid, resource.RLIMIT_CPU)
        yield f"the environment of {name}", Path(f"/proc/{pid}/environ").read_bytes
        yield f"the debugging of {name}", partial(_debug, libc, pid)
    yield "the processors of the fork server", lambda: os.sched_setaffinity(parent, {0})
    yield "shared memory", lambda: libc.shmget(_PRIVATE_SEGMENT, 4096, 0o600) != -1
    yield "a file in memory", lambda: os.memfd_create("made")


def _checked_outside(attempt: Callable[[], None]) -> bool:
    attempt()
    return False


def _debug(libc: ctypes.CDLL, pid: int) -> bool:
    return bool(libc.ptrace(_PTRACE_SEIZE, pid, None, None) == 0)


def _fork() -> bool:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return True
