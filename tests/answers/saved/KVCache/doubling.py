class KVCache:
    """Room for twice as many tokens, whenever there is none left."""

    def __init__(self) -> None:
        self.used = 0
        self.room_k = self.room_v = None
        self.keys = self.values = None

    @staticmethod
    def _grown(room, new, used):
        need = used + new.shape[-2]
        if room is None or room.shape[-2] < need:
            larger = new.new_empty(*new.shape[:-2], max(16, 2 * need), new.shape[-1])
            if room is not None:
                larger[..., :used, :] = room[..., :used, :]
            room = larger
        room[..., used:need, :] = new
        return room

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.room_k = self._grown(self.room_k, keys, self.used)
        self.room_v = self._grown(self.room_v, values, self.used)
        self.used += keys.shape[-2]
        self.keys = self.room_k[..., : self.used, :]
        self.values = self.room_v[..., : self.used, :]
