class KVCache:
    """A list of what came; put together when it is read, and kept so."""

    def __init__(self) -> None:
        self._parts: list[tuple[torch.Tensor, torch.Tensor]] = []

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._parts.append((keys, values))

    def _joined(self, which: int) -> torch.Tensor | None:
        if not self._parts:
            return None
        if len(self._parts) > 1:
            self._parts = [tuple(torch.cat(parts, dim=-2) for parts in zip(*self._parts))]
        return self._parts[0][which]

    @property
    def keys(self) -> torch.Tensor | None:
        return self._joined(0)

    @property
    def values(self) -> torch.Tensor | None:
        return self._joined(1)
