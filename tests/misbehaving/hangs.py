"""Code that does not come back, or that takes what others need: time, memory, files, output."""

from .case import CRASH, FAILED, TIMEOUT, UNHARMED, must


@must(TIMEOUT, speaks_alone=True)
def hangs_in_a_call():
    """A loop without an end."""

    def context_vector(weights, inputs):
        while True:
            pass


@must(TIMEOUT, speaks_alone=True)
def hangs_in_its_cell():
    """A loop without an end, before the function is defined."""
    while True:
        pass


@must(TIMEOUT)
def sleeps():
    """Waits, and uses no CPU time."""

    def context_vector(weights, inputs):
        import time

        time.sleep(10_000)


@must(TIMEOUT, speaks_alone=True)
def swallows_every_exception():
    """Catches whatever is raised in it and goes on."""

    def context_vector(weights, inputs):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass


@must(TIMEOUT)
def ignores_every_signal():
    """Ignores all signals, the one of the CPU limit included."""
    import signal

    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass

    def context_vector(weights, inputs):
        while True:
            pass


@must(TIMEOUT, speaks_alone=True)
def hangs_in_native_code():
    """A loop in C, which no exception of Python's ends."""

    def context_vector(weights, inputs):
        return 9 ** (9**9**9)


@must(TIMEOUT, speaks_alone=True)
def catastrophic_pattern():
    """A regular expression that takes exponential time."""

    def context_vector(weights, inputs):
        import re

        re.match(r"(a+)+$", "a" * 60 + "b")


@must(TIMEOUT, speaks_alone=True)
def waits_for_itself():
    """Takes a lock twice."""

    def context_vector(weights, inputs):
        import threading

        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


@must(FAILED)
def asks_for_input():
    """Waits for the keyboard."""

    def context_vector(weights, inputs):
        return input("Which vector? ")


@must(FAILED)
def all_the_memory_at_once():
    """Asks for 400 gigabytes."""

    def context_vector(weights, inputs):
        import torch

        return torch.zeros(10**11)


@must(FAILED)
def all_the_memory_piece_by_piece():
    """Fills memory with a list of tensors."""
    import torch

    def context_vector(weights, inputs):
        blocks = []
        while True:
            blocks.append(torch.empty(1 << 26))


@must(FAILED)
def all_the_memory_shared():
    """Maps shared memory, which a limit on data does not count."""

    def context_vector(weights, inputs):
        import mmap

        maps = []
        while True:
            maps.append(mmap.mmap(-1, 1 << 30))


@must(CRASH)
def a_thousand_threads():
    """Starts threads until no more are to be had, all of which outlive the cell."""
    import threading
    import time

    threading.stack_size(64 << 10)
    for _ in range(1000):
        try:
            threading.Thread(target=time.sleep, args=(10_000,), daemon=True).start()
        except RuntimeError:
            break


@must(UNHARMED)
def a_busy_thread():
    """Leaves a thread behind that writes on."""
    import threading

    def write():
        while True:
            open("left", "w").write("x" * 1000)
            __import__("time").sleep(0.01)

    threading.Thread(target=write, daemon=True).start()


@must(UNHARMED)
def leaves_processes_behind():
    """Starts processes in sessions of their own."""
    attempt(__import__("os").fork)
    attempt(__import__("subprocess").Popen, ["sleep", "98765"], start_new_session=True)
    attempt(__import__("multiprocessing").Process(target=print).start)


@must(UNHARMED)
def fork_bomb():
    """Forks until it cannot."""
    import os

    for _ in range(50):
        attempt(os.fork)


@must(UNHARMED)
def opens_files_without_end():
    """Opens files until there are no more to be had, and keeps them for a while."""
    held = []
    try:
        while True:
            held.append(open("/dev/null"))
    except OSError:
        held.clear()


@must(UNHARMED)
def one_huge_file():
    """Writes a file beyond the limit."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("huge", "wb") as file:
            while True:
                file.write(bytes(1 << 24))
    except OSError:
        pass


@must(UNHARMED)
def deep_folders():
    """Makes folders in folders, deeper than a path can name."""
    import os

    for _ in range(900):
        os.mkdir("deeper" * 4)
        os.chdir("deeper" * 4)


@must(FAILED)
def files_without_number():
    """Makes empty files as fast as it can, in a call."""

    def context_vector(weights, inputs):
        number = 0
        while True:
            open(str(number), "w").close()
            number += 1


@must(UNHARMED)
def folder_without_permissions():
    """Wants to leave a folder behind that its owner may not open."""
    import os

    attempt(os.mkdir, "closed", 0)
    attempt(os.umask, 0o777)


@must(FAILED, speaks_alone=True)
def floods_stdout():
    """Prints a hundred megabytes in a call."""

    def context_vector(weights, inputs):
        for _ in range(1000):
            print("x" * 100_000)


@must(UNHARMED)
def floods_stdout_in_its_cell():
    """Prints a hundred megabytes, on Python's output and on the process's."""
    import os

    for _ in range(1000):
        print("x" * 100_000)
        os.write(1, b"x" * 100_000)


@must(UNHARMED)
def closes_its_output():
    """Closes stdout and stderr, in Python and in the process."""
    import os
    import sys

    sys.stdout.close()
    sys.stderr.close()
    for number in (0, 1, 2):
        os.close(number)


@must(UNHARMED, speaks_alone=True)
def output_is_gone():
    """Puts None in the place of stdout."""
    import sys

    sys.stdout = sys.stderr = sys.__stdout__ = None


@must(UNHARMED)
def alarm():
    """Sets a timer whose signal ends the process, far in the future."""
    import signal

    signal.alarm(3600)


@must(UNHARMED, speaks_alone=True)
def slow_garbage():
    """Leaves objects behind whose deletion never comes back."""

    class Slow:
        def __del__(self):
            while True:
                pass

    kept = [Slow() for _ in range(10)]


@must(TIMEOUT)
def puts_its_own_limit_off():
    """Raises its limit on CPU time, ignores the signal, and comes back with the right answer, but late."""

    def context_vector(weights, inputs):
        import resource
        import signal
        import time

        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
        begun = time.process_time()
        while time.process_time() - begun < 4.9:
            pass
        return weights @ inputs


@must(CRASH)
def threads_in_a_call():
    """Starts more threads than a notebook may have, in a call, and waits for them."""

    def context_vector(weights, inputs):
        import threading
        import time

        for _ in range(80):
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        time.sleep(3)


@must(FAILED)
def fills_the_disk_under_changing_names():
    """Writes more than all files may have, and renames them all the while."""
    import threading

    def rename():
        import os

        number = 0
        while True:
            for name in range(20):
                try:
                    os.rename(f"{name}-{number}", f"{name}-{number + 1}")
                except OSError:
                    pass
            number += 1

    def context_vector(weights, inputs):
        threading.Thread(target=rename, daemon=True).start()
        for name in range(20):
            open(f"{name}-0", "wb").write(bytes(31 << 20))


@must(UNHARMED)
def a_table_of_files_of_its_own():
    """Wants a thread whose open files nobody counts."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(436, 1000, 1001, 2) == 0:  # close_range with CLOSE_RANGE_UNSHARE
        print("ESCAPED: a table of files of its own")


@must(CRASH)
def a_file_too_large_for_its_signal():
    """Writes a file beyond the limit, with the signal of that put back to what it does by itself."""

    def context_vector(weights, inputs):
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        open("large", "wb").write(bytes(40 << 20))


@must(TIMEOUT)
def threads_that_keep_each_other_waiting():
    """Has threads stand in a queue that is theirs alone, so that all of its time seems to be spent waiting for others."""

    def context_vector(weights, inputs):
        import hashlib
        import threading
        import time

        much, until = b"x" * 60_000, time.monotonic() + 30

        def wake():
            while (now := time.monotonic()) < until:
                time.sleep(0.2 - now % 0.2)
                hashlib.sha256(much)

        threads = [threading.Thread(target=wake) for _ in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return weights @ inputs
