"""Frames messages on a line that may lose, change or invent bytes: the other end is `frames.c`.

    sync 0xA5 0x5A | sequence | type | length, 2 bytes | payload | CRC-16, 2 bytes

Numbers are little-endian; the CRC covers what is between sync and itself.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass

SYNC = b"\xa5\x5a"
HEADER = 6  # bytes up to the payload
CRC = 2  # bytes behind it
PAYLOAD_MAX = 1024  # a longer one is garbage: the largest that any server sends is shorter


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """One message; an answer has the sequence number and the type of its request."""

    sequence: int
    type: int
    payload: bytes = b""


def crc16(data: bytes) -> int:
    """Return the CRC-16 with polynomial 0x1021 and start value 0xFFFF."""
    return binascii.crc_hqx(data, 0xFFFF)


def encode(frame: MessageFrame) -> bytes:
    """Return the bytes of a frame."""
    head = bytes((frame.sequence, frame.type)) + len(frame.payload).to_bytes(2, "little")
    body = head + frame.payload
    return SYNC + body + crc16(body).to_bytes(2, "little")


class Decoder:
    """A reader that finds frames between other bytes.

    What is no valid frame is dropped byte by byte, so that no frame behind it is lost: at worst it
    is found when as many bytes have come as a damaged header promised.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._other = bytearray()

    @property
    def text(self) -> str:
        """Return what came between the frames: a program that fails prints why."""
        data = bytes(self._other + self._pending)
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    def feed(self, data: bytes) -> list[MessageFrame]:
        """Take bytes as they come, and give the frames that they complete."""
        self._pending += data
        frames = []
        while self._pending:
            size = self._frame_size()
            if size is None:
                break
            if size:
                frames.append(_frame(bytes(self._pending[:size])))
            else:
                self._other.append(self._pending[0])
            del self._pending[: size or 1]
        return frames

    def _frame_size(self) -> int | None:
        """Return the size of the frame at the start, 0 if none is there, None if unknown yet."""
        pending = bytes(self._pending)
        if not (pending.startswith(SYNC) or pending == SYNC[:1]):
            return 0
        if len(pending) < HEADER:
            return None
        length = int.from_bytes(pending[4:HEADER], "little")
        size = HEADER + length + CRC
        if length > PAYLOAD_MAX:
            return 0
        if len(pending) < size:
            return None
        checked = crc16(pending[len(SYNC) : HEADER + length])
        return size if pending[size - CRC : size] == checked.to_bytes(2, "little") else 0


def _frame(data: bytes) -> MessageFrame:
    return MessageFrame(data[2], data[3], data[HEADER:-CRC])
