"""Read what a call cost, as a worker sent it: a student's data, which may hold anything."""

from typing import Annotated, Any

import msgspec

from ..core.cost import Cost, Most
from ..core.packing import ProtocolError

MAX_NAME = 100
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Most = tuple[_Count, str, str, _Count]
_FORM = tuple[_Count, _Most, _Most, _Most, _Most]


def read(sent: Any) -> Cost:
    """Return the cost; raises ProtocolError."""
    try:
        operations, *each = msgspec.convert(sent, _FORM)
    except msgspec.ValidationError as error:
        raise ProtocolError("a cost is not in the protocol's form") from error
    return Cost(operations, *(Most(count, of[:MAX_NAME], file[:MAX_NAME], line) for count, of, file, line in each))
