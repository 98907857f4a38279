"""Reads what a call cost, as a worker sent it. It is a student's data: what does not hold together is no cost."""

from typing import Annotated, Any

import msgspec

from ..sandbox.inside.cost import Cost, Most
from ..sandbox.inside.packing import ProtocolError

MAX_NAME = 100
_MOST_NAMES = 10
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Most = tuple[_Count, str, str, _Count]
_FORM = tuple[_Count, _Most, _Most, _Most, list[str]]


def read(sent: Any) -> Cost:
    """The cost; raises ProtocolError."""
    try:
        operations, *each, names = msgspec.convert(sent, _FORM)
    except msgspec.ValidationError as error:
        raise ProtocolError("a cost is not in the protocol's form") from error
    largest, alive, rows = (Most(count, of[:MAX_NAME], file[:MAX_NAME], line) for count, of, file, line in each)
    return Cost(operations, largest, alive, rows, [name[:MAX_NAME] for name in names[:_MOST_NAMES]])
