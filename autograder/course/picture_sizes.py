"""Recognise raster pictures by their first bytes, and tell how many pixels they have without decoding them."""

import struct

_SOF = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""The markers in a JPEG file before its height and width."""


def kind_of(content: bytes) -> tuple[str, int]:
    """Return the ending of a raster picture's name and its pixels; "" and 0 for anything else."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return "png", _product(">II", content[16:24])
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "gif", _product("<HH", content[6:10])
    if content.startswith(b"\xff\xd8\xff"):
        return "jpg", _of_jpeg(content)
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp", _of_webp(content)
    return "", 0


def _product(layout: str, sizes: bytes) -> int:
    if len(sizes) < struct.calcsize(layout):
        return 0
    width, height = struct.unpack(layout, sizes)
    return int(width) * int(height)


def _of_jpeg(content: bytes) -> int:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _SOF:
            return _product(">HH", content[at + 5 : at + 9])
        at += 1 if marker == 0xFF else 2 + int.from_bytes(content[at + 2 : at + 4])
    return 0


def _of_webp(content: bytes) -> int:
    form, data = content[12:16], content[20:30]
    if len(data) < 10:
        return 0
    if form == b"VP8X":
        return (1 + int.from_bytes(data[4:7], "little")) * (1 + int.from_bytes(data[7:10], "little"))
    if form == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        return (1 + (bits & 0x3FFF)) * (1 + (bits >> 14 & 0x3FFF))
    return (int.from_bytes(data[6:8], "little") & 0x3FFF) * (int.from_bytes(data[8:10], "little") & 0x3FFF)
