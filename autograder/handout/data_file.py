"""The released data: JSON, packed so that a unit's folder stays small."""

import gzip
import json
from pathlib import Path
from typing import Any


def read_data(path: Path) -> Any:
    """What the file says; raises OSError or ValueError where it is missing or damaged."""
    if not path.exists() and path.with_suffix("").exists():
        return json.loads(path.with_suffix("").read_text(encoding="utf-8"))  # unpacked by a browser that fetched it
    try:
        return json.loads(gzip.decompress(path.read_bytes()))
    except EOFError as error:
        raise ValueError(str(error)) from error


def data_of(value: Any) -> bytes:
    """The file's content."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)
