"""Notebook format 3, which IPython wrote before 2015: its cells are in worksheets, and code is called `input`."""

import msgspec

_Text = str | list[str] | None
_MOST_LEVELS = 6


class OldCell(msgspec.Struct):
    """A cell as format 3 writes it, read as `nbformat` converts it to format 4."""

    cell_type: str
    source: _Text = ""
    input: _Text = ""
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    level: msgspec.Raw = msgspec.Raw(b"1")

    @property
    def kind(self) -> str:
        """The type of the cell in format 4."""
        return "markdown" if self.cell_type in ("heading", "html") else self.cell_type

    @property
    def text(self) -> str:
        """The text of the cell in format 4."""
        text = (self.input or self.source) if self.cell_type == "code" else self.source
        text = text if isinstance(text, str) else "".join(text or [])
        return f"{'#' * self._level} {' '.join(text.split())}" if self.cell_type == "heading" else text

    @property
    def _level(self) -> int:
        try:
            return min(max(msgspec.json.decode(self.level, type=int), 1), _MOST_LEVELS)
        except msgspec.DecodeError:
            return 1


class _Worksheet(msgspec.Struct):
    cells: list[OldCell] = []


def old_cells(worksheets: msgspec.Raw) -> list[OldCell]:
    """Return the cells of all worksheets, in order; raises msgspec.ValidationError."""
    sheets = msgspec.json.decode(worksheets, type=list[_Worksheet] | None)
    return [cell for sheet in sheets or [] for cell in sheet.cells]
