"""How many connections there are: those that have shown who they are never have less room for those that have not."""

from tornado.iostream import IOStream


class Guests:
    """The connections at one door."""

    def __init__(self, most: int, most_unknown: int) -> None:
        """most: who may stay. most_unknown: those whose token is not seen yet; 0 where nobody has to show one."""
        self.is_ending = False
        """Whether nothing more is taken."""
        self._most = most
        self._most_unknown = most_unknown
        self._known: set[IOStream] = set()
        self._unknown: dict[IOStream, None] = {}

    def come(self, stream: IOStream) -> bool:
        """Whether a new connection is taken; of too many unknown ones, the one that has waited longest is closed."""
        if not self._most_unknown:
            return self.is_known(stream)
        while len(self._unknown) >= self._most_unknown:
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.close()
        self._unknown[stream] = None
        return True

    def is_known(self, stream: IOStream) -> bool:
        """It has shown its token; whether there is room for it."""
        if stream in self._known:
            return True
        if len(self._known) >= self._most:
            return False
        self._unknown.pop(stream, None)
        self._known.add(stream)
        return True

    def go(self, stream: IOStream) -> None:
        """The connection is closed."""
        self._known.discard(stream)
        self._unknown.pop(stream, None)
