"""Reads the pictures that a browser writes: PNG of 8 bits a channel, not interlaced."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
_CHANNELS = {2: 3, 6: 4}  # by colour type: RGB, RGBA


def read_png(path: Path) -> Pixels:
    """Read the picture as (height, width, 3), from the top down."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    width = height = channels = 0
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = _CHANNELS[colour]
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    raw = zlib.decompress(packed)
    stride = width * channels
    above, lines = bytes(stride), []
    for start in range(0, len(raw), stride + 1):
        above = _unfiltered(raw[start], raw[start + 1 : start + 1 + stride], above, channels)
        lines.append(above)
    picture = np.frombuffer(b"".join(lines), np.uint8).reshape(height, width, channels)
    return picture[:, :, :3]


def _unfiltered(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    """Undo the filter of a line (PNG specification, 9.2)."""
    if kind == 0:
        return line
    # In plain integers: numpy takes longer for one value than Python does.
    result = bytearray(bytes(channels) + line)
    corners = bytes(channels) + above
    for x, value in enumerate(line):
        left, up = result[x], above[x]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            guess = _paeth(left, up, corners[x])
        result[x + channels] = (value + guess) & 255
    return bytes(result[channels:])


def _paeth(left: int, above: int, corner: int) -> int:
    """Return the one of the three nearest to left + above - corner, the first if equal."""
    to_left, to_above = abs(above - corner), abs(left - corner)
    to_corner = abs(left + above - 2 * corner)
    if to_left <= to_above and to_left <= to_corner:
        return left
    return above if to_above <= to_corner else corner
