"""The released data: JSON, packed so that a unit's folder stays small."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any


def read_data(path: Path) -> Any:
    """Return what a packed file holds; raises OSError if it cannot be read, and ValueError if it is damaged."""
    try:
        return json.loads(gzip.decompress(path.read_bytes()))
    except (EOFError, zlib.error) as error:
        raise ValueError(str(error)) from error


def data_of(value: Any) -> bytes:
    """The file's content."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)
