# line: _keys = [] || _values = []
class KVCache:
    _keys = []
    _values = []

    def __init__(self) -> None:
        self.keys = None
        self.values = None

    def append(self, keys, values):
        self._keys.append(keys)
        self._values.append(values)
        self.keys = torch.cat(self._keys, dim=-2)
        self.values = torch.cat(self._values, dim=-2)
