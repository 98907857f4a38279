# line: self.values, self.keys = keys, values
class KVCache:
    def __init__(self) -> None:
        self.keys, self.values = None, None

    def append(self, keys, values):
        if self.keys is None:
            self.values, self.keys = keys, values
            return
        self.keys = torch.cat([self.keys, keys], dim=-2)
        self.values = torch.cat([self.values, values], dim=-2)
