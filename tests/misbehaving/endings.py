"""Code that ends Python, or means to."""

from .case import CELL_FAILED, CRASH, FAILED, UNHARMED, must


@must(CRASH)
def exits_in_a_call():
    """Ends the process while a grader waits for the answer."""

    def context_vector(weights, inputs):
        import os

        os._exit(0)


@must(CRASH)
def exits_in_its_cell():
    """Ends the process before the function is defined."""
    import os

    os._exit(3)


@must(FAILED, speaks_alone=True)
def sys_exit_in_a_call():
    """Raises SystemExit."""

    def context_vector(weights, inputs):
        import sys

        sys.exit(0)


@must(UNHARMED, speaks_alone=True)
def exits_as_notebooks_do():
    """Calls exit(), which in Jupyter ends the kernel."""
    exit()


@must(FAILED, speaks_alone=True)
def keyboard_interrupt():
    """Raises KeyboardInterrupt."""

    def context_vector(weights, inputs):
        raise KeyboardInterrupt


@must(CRASH)
def segfault():
    """Reads address 0."""

    def context_vector(weights, inputs):
        import ctypes

        ctypes.string_at(0)


@must(CRASH)
def abort():
    """Aborts, as C++ does after an exception nobody catches."""

    def context_vector(weights, inputs):
        import os

        os.abort()


@must(CRASH)
def kills_itself():
    """Sends SIGKILL to its own process."""

    def context_vector(weights, inputs):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


@must(CRASH)
def stack_overflow_in_c():
    """Raises the recursion limit and recurses until the C stack is used up."""

    def context_vector(weights, inputs):
        import sys

        sys.setrecursionlimit(10**9)

        class Nested:
            def __repr__(self):
                return repr(self) + "."

        repr(Nested())


@must(FAILED, speaks_alone=True)
def recursion():
    """Calls itself for ever."""

    def context_vector(weights, inputs):
        return context_vector(weights, inputs)


@must(CELL_FAILED, speaks_alone=True)
def raises_in_its_cell():
    """An exception before the function is defined."""
    1 / 0


@must(FAILED, speaks_alone=True)
def exception_whose_text_fails():
    """Raises an exception whose __str__ raises another."""

    class Nasty(Exception):
        def __str__(self):
            raise self

    def context_vector(weights, inputs):
        raise Nasty


@must(FAILED, speaks_alone=True)
def exception_with_a_huge_text():
    """Raises an exception with a message of a hundred megabytes."""

    def context_vector(weights, inputs):
        raise ValueError("x" * 10**8)


@must(FAILED, speaks_alone=True)
def exception_of_a_class_that_lies():
    """Raises an exception whose class has a name of a megabyte and half a character in it."""

    def context_vector(weights, inputs):
        raise type("Oh" * 500_000 + chr(0xD800), (BaseException,), {})


@must(CRASH)
def frees_what_is_not_its_own():
    """Frees memory twice."""

    def context_vector(weights, inputs):
        import ctypes

        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        block = ctypes.c_void_p(libc.malloc(64))
        for _ in range(3):
            libc.free(block)
        ctypes.memset(id(weights), 0, 200)
        return weights @ inputs
