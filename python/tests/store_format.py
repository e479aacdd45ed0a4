"""The files of durable structures, read and written without the library: from the description in `format.rs` alone.

So that what stands there is checked, and files can be made that the library would not make.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

MASK = (1 << 64) - 1
PARAMETERS, IMAGE, JOURNAL = 1, 2, 3
MARK = 32


def _rounds(v: list[int], count: int) -> None:
    def left(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    for _ in range(count):
        v[0] = (v[0] + v[1]) & MASK
        v[1] = left(v[1], 13) ^ v[0]
        v[0] = left(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = left(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = left(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = left(v[1], 17) ^ v[2]
        v[2] = left(v[2], 32)


def checksum(key: bytes, data: bytes) -> bytes:
    """SipHash-1-3 of 128 bits (Aumasson and Bernstein, 2012)."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + last):
        v[3] ^= word
        _rounds(v, 1)
        v[0] ^= word
    v[2] ^= 0xEE
    _rounds(v, 3)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    _rounds(v, 3)
    return struct.pack("<QQ", first, v[0] ^ v[1] ^ v[2] ^ v[3])


@dataclass
class Frame:
    kind: int
    body: bytes
    generation: int = 0
    step: int = 1
    sealed: bool = False
    #: Whether a mark stands behind it.
    marked: bool = False


@dataclass
class File:
    identity: bytes
    frames: list[Frame] = field(default_factory=list)
    version: int = 1

    def preamble(self) -> bytes:
        return b"fastgame" + struct.pack("<II", self.version, 0) + self.identity

    def to_bytes(self) -> bytes:
        out = self.preamble()
        link = checksum(self.identity, out)
        for frame in self.frames:
            header = struct.pack(
                "<4sBBHQQQ", b"fgfr", frame.kind, frame.sealed, 0, len(frame.body), frame.generation, frame.step
            )
            padded = header + frame.body + b"\0" * (-len(frame.body) % 8)
            link = checksum(self.identity, link + struct.pack("<Q", len(out)) + padded)
            out += padded + link
            if frame.marked:
                mark = b"fgsynced" + struct.pack("<Q", len(out))
                out += mark + checksum(self.identity, mark)
        return out


def parse(data: bytes) -> File:
    """A whole file; every checksum is compared."""
    name, version, zero, identity = struct.unpack_from("<8sII16s", data)
    assert (name, zero) == (b"fastgame", 0)
    file, place = File(identity, [], version), 32
    while place < len(data):
        magic, kind, sealed, zero, length, generation, step = struct.unpack_from("<4sBBHQQQ", data, place)
        assert (magic, zero) == (b"fgfr", 0), place
        body = data[place + 32 : place + 32 + length]
        place += 32 + length + -length % 8 + 16
        marked = data[place : place + 8] == b"fgsynced"
        place += MARK * marked
        file.frames.append(Frame(kind, body, generation, step, bool(sealed), marked))
    assert file.to_bytes() == data
    return file


@dataclass
class Parameters:
    words: str
    values: list[tuple[str, str]]
    noise: list[float]

    def to_bytes(self) -> bytes:
        texts = [self.words, *(text for pair in self.values for text in pair), ""]
        encoded = [text.encode() for text in texts]
        listed = b"".join(struct.pack("<Q", len(text)) + text for text in encoded)
        return listed + struct.pack(f"<{len(self.noise)}d", *self.noise)


def parse_parameters(body: bytes) -> Parameters:
    def text() -> str:
        nonlocal body
        (length,) = struct.unpack_from("<Q", body)
        found, body = body[8 : 8 + length], body[8 + length :]
        return found.decode()

    words, values = text(), []
    while name := text():
        values.append((name, text()))
    return Parameters(words, values, list(struct.unpack(f"<{len(body) // 8}d", body)))
