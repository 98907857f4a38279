"""autograder.toml with anything in it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from autograder.course import settings
from tests import REPOSITORY

from .json_text import damaged

_USUAL = (REPOSITORY / "autograder.toml").read_text()
_STRANGE = [
    "0", "-1", "8.0", "nan", "inf", "1_000_000", "1000001", "9" * 30, "9" * 5000, "0x" + "f" * 5000, "true", '""',
    '"8"', "[8]", "{}", "{a=1}", "1979-05-27", "[" * 2000 + "]" * 2000, "{a=" * 2000 + "1" + "}" * 2000, '"\\ud800"',
    "'''", '"""\n', "", "8 8", "8\nrestarts = 8", "8\n[isolation]", "8\n[[limits]]", "8\na.b.c = 1",
]  # fmt: skip


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "autograder.toml"
        path.write_bytes(data)
        try:
            loaded = settings.load(path)
        except settings.BadSettings as reason:
            str(reason).encode()
            return
    assert all(type(value) is int for value in loaded.limits.__struct_fields__ and _values(loaded))


def _values(loaded: settings.Settings) -> list[object]:
    return [getattr(loaded.limits, name) for name in loaded.limits.__struct_fields__]


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    lines = _USUAL.splitlines()
    for _ in range(draw(st.integers(0, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        name, _, _ = lines[number].partition(" =")
        strange = draw(st.sampled_from(_STRANGE))
        lines[number] = draw(st.sampled_from([f"{name} = {strange}", strange, f"[{strange}]", f"{strange} = 8", ""]))
    return draw(damaged("\n".join(lines).encode("utf-8", "surrogatepass")))


inputs = _files()


def large() -> Iterator[bytes]:
    """The instructor's own file, so nothing larger than a slip of the hand."""
    yield b"#" * (1 << 20)
    yield b"\n" * (1 << 20)
    yield b"a = [" + b"0," * 100_000 + b"]"
