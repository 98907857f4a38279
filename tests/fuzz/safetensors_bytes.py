"""safetensors blobs as a hostile worker may write them: every field of the format wrong in every way."""

import json

from hypothesis import strategies as st

from .json_text import STRANGE

WIDTHS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
    "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64,
}  # fmt: skip
"""Bits of each of the format's types."""

SHAPES = [[], [1], [2, 3], [6, 6], [0], [0, 5], [3, 0], [1] * 16, [1] * 17, [2] * 16]
HOSTILE_SHAPES = [
    [2**63], [2**64], [2**32, 2**32], [0, 2**62], [0, 2**63], [2**40, 2**40, 0], [2**31, 0, 2**33], [-1], [-1, -6],
    [2, -3], [10**400], [0] * 16, [0] * 5000, [2**20, 2**20], [2**62, 0],
]  # fmt: skip


def blob(listed: str, body: bytes, size: int | None = None) -> bytes:
    """A blob with this text as its header; size: the header's length as the blob says it."""
    head = listed.encode("utf-8", "surrogatepass")
    return (len(head) if size is None else size).to_bytes(8, "little") + head + body


def volume(dtype: str, shape: list[int]) -> int:
    """The bytes of a tensor."""
    bits = WIDTHS.get(dtype, 8)
    for length in shape:
        bits *= length
    return bits // 8


def honest(tensors: list[tuple[str, list[int]]], byte: int = 0) -> bytes:
    """Tensors of these types and shapes, named "0", "1" and so on, in the format's own terms."""
    listed, offset = {}, 0
    for number, (dtype, shape) in enumerate(tensors):
        end = offset + volume(dtype, shape)
        listed[str(number)] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    return blob(json.dumps(listed), bytes([byte]) * offset)


@st.composite
def blobs(draw: st.DrawFn) -> bytes:
    """Blobs of one to three tensors, half of them with something wrong."""
    kinds = st.tuples(st.sampled_from([*WIDTHS]), st.sampled_from(SHAPES).map(list))
    tensors = draw(st.lists(kinds, min_size=1, max_size=3))
    byte = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    if draw(st.booleans()):
        return honest(tensors, byte)
    listed, offset = {}, 0
    for number, (dtype, shape) in enumerate(tensors):
        end = offset + volume(dtype, shape)
        listed[str(number)] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    victim = listed[draw(st.sampled_from(sorted(listed)))]
    body, size = bytes([byte]) * min(offset, 1 << 20), None
    extra = ""
    match draw(st.sampled_from(["shape", "offsets", "dtype", "field", "size", "body", "metadata", "twice", "any"])):
        case "shape":
            victim["shape"] = draw(st.sampled_from(HOSTILE_SHAPES))
            if 0 in victim["shape"]:
                victim["data_offsets"] = [0, 0]
        case "offsets":
            ends = st.sampled_from([0, 1, 4, offset, offset + 1, -1, -8, 2**31, 2**63, 2**64 - 1, 2**64])
            victim["data_offsets"] = draw(st.lists(ends, max_size=3))
        case "dtype":
            victim["dtype"] = draw(st.sampled_from(["F128", "", "f32", "OBJECT", None, 3, ["F32"], "BOOL\0"]))
        case "field":
            del victim[draw(st.sampled_from(["dtype", "shape", "data_offsets"]))]
        case "size":
            size = draw(st.sampled_from([0, 1, 8, 2**20, 2**20 + 1, 2**31, 2**63, 2**64 - 1]))
        case "body":
            body = draw(st.sampled_from([b"", body[:-1], body + b"\0", body * 2]))
        case "metadata":
            listed["__metadata__"] = draw(
                st.sampled_from([None, 3, [], {}, {"shape": "x" * 100}, {"a": 1}, {"a": "b"}])
            )
        case "twice":
            extra = json.dumps(victim)
        case "any":
            listed[draw(st.sampled_from(["0", "", "\0", "\ud800", "x" * 100_000]))] = "@@"
    text = json.dumps(listed).replace('"@@"', draw(st.sampled_from(STRANGE)))
    if extra:
        text = text[:-1] + f', "0": {extra}, "0": {extra}}}'
    return blob(text, body, size)


def large() -> list[bytes]:
    """Blobs that are as large, or as crowded, as the protocol lets them be."""
    room = (64 << 20) - 200
    many = {str(n): {"dtype": "U8", "shape": [0] * 16, "data_offsets": [0, 0]} for n in range(2000)}
    crowd = ",".join(f'"{n}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for n in range(18_000))
    return [
        honest([("U8", [room])]),
        honest([("F4", [2, room])]),
        honest([("F64", [room // 8])], 0x7F),
        honest([("U8", [room // 2000])] * 1500),
        blob(json.dumps(many), b""),
        blob("{" + crowd + "}", b""),
        blob('{"a":' + "[" * 500_000, b""),
        blob('{"__metadata__":{' + ",".join(f'"{n}":"x"' for n in range(70_000)) + "}}", b""),
    ]
