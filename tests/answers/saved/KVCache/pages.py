class KVCache:
    """Pages of 16 tokens, each a tensor of its own; full ones are never copied."""

    PAGE = 16

    def __init__(self) -> None:
        self.pages = {"keys": [], "values": []}

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        for name, new in (("keys", keys), ("values", values)):
            pages = self.pages[name]
            if pages and pages[-1].shape[-2] < self.PAGE:
                new = torch.cat([pages.pop(), new], dim=-2)
            pages.extend(new.split(self.PAGE, dim=-2))

    def __getattr__(self, name):
        if name in ("keys", "values"):
            pages = self.pages[name]
            return torch.cat(pages, dim=-2) if pages else None
        raise AttributeError(name)
