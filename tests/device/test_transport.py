"""Frames: found between any other bytes, by the computer and by the board alike."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.device.transport import PAYLOAD_MAX, Decoder, MessageFrame, crc16, encode
from microtir.support import resources

FRAMES = st.builds(MessageFrame, st.integers(0, 255), st.integers(0, 255), st.binary(max_size=64))
# What garbage is made of: also the start of a frame, and headers that promise a payload.
GARBAGE = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([b"\xa5", b"\xa5\x5a", b"\xa5\xa5\x5a", b"\xa5\x5a\x01\x02\x40\x00"]),
    ),
    max_size=6,
).map(b"".join)
# Enough that a header in the garbage has got all that it promised.
ENOUGH = bytes(PAYLOAD_MAX + 16)

SHIM = """
#include "frames.h"
static struct frame frame;
int receive(int byte) { return frame_receive(&frame, (uint8_t)byte); }
int drop(void) { return frame_drop(&frame); }
void reset(void) { frame.count = 0; }
int count(void) { return frame.count; }
const uint8_t *bytes(void) { return frame.bytes; }
int length(void) { return frame_length(&frame); }
int finish(int sequence, int type, const uint8_t *payload, int size)
{
    for (int i = 0; i < size; i++) {
        frame_payload(&frame)[i] = payload[i];
    }
    frame_finish(&frame, (uint8_t)sequence, (uint8_t)type, (uint16_t)size);
    return frame.count;
}
"""


class Board:
    """The C that runs on boards, as a library of this machine."""

    def __init__(self, folder: Path) -> None:
        source = resources.templates() / "projects" / "server"
        (folder / "shim.c").write_text(SHIM)
        library = folder / "frames.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-fsanitize=undefined", "-static-libubsan",
             f"-I{source}", str(source / "frames.c"), str(folder / "shim.c"), "-o", str(library)],
            check=True,
        )  # fmt: skip
        self._c = ctypes.CDLL(str(library))
        self._c.bytes.restype = ctypes.POINTER(ctypes.c_uint8)

    def encode(self, frame: MessageFrame) -> bytes:
        """Encode a frame as the board sends it."""
        payload = (ctypes.c_uint8 * max(len(frame.payload), 1))(*frame.payload)
        size = self._c.finish(frame.sequence, frame.type, payload, len(frame.payload))
        return bytes(self._c.bytes()[:size])

    def decode(self, data: bytes) -> list[MessageFrame]:
        """Decode the frames that the board finds."""
        self._c.reset()
        found = []
        for byte in data:
            has_frame = self._c.receive(byte)
            while has_frame:
                size = 6 + self._c.length()
                raw = bytes(self._c.bytes()[:size])
                found.append(MessageFrame(raw[2], raw[3], raw[6:]))
                has_frame = self._c.drop()
        return found


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Return the C that runs on boards."""
    return Board(tmp_path_factory.mktemp("frames"))


def test_crc_of_the_standard() -> None:
    """The check value that catalogues give for this CRC."""
    assert crc16(b"123456789") == 0x29B1


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(GARBAGE, FRAMES), max_size=4))
def test_computer_finds_every_frame(parts: list[tuple[bytes, MessageFrame]]) -> None:
    """Whatever lies between frames, each of them is found, in order, and nothing else is."""
    decoder = Decoder()
    found = []
    for byte in b"".join(garbage + encode(frame) for garbage, frame in parts) + ENOUGH:
        found += decoder.feed(bytes((byte,)))
    assert found == [frame for _, frame in parts]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(GARBAGE, FRAMES), max_size=4))
def test_board_finds_every_frame(board: Board, parts: list[tuple[bytes, MessageFrame]]) -> None:
    """The C finds the same frames."""
    data = b"".join(garbage + encode(frame) for garbage, frame in parts) + ENOUGH
    assert board.decode(data) == [frame for _, frame in parts]


@settings(deadline=None, max_examples=100)
@given(FRAMES)
def test_both_ends_speak_the_same(board: Board, frame: MessageFrame) -> None:
    """Board and computer make the same bytes of a frame."""
    assert board.encode(frame) == encode(frame)


@settings(deadline=None, max_examples=100)
@given(FRAMES, st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_noticed(
    board: Board, frame: MessageFrame, place: int, change: int
) -> None:
    """No frame with a wrong byte is taken for the one that was sent."""
    data = bytearray(encode(frame))
    data[place % len(data)] ^= change
    for found in (Decoder().feed(bytes(data) + ENOUGH), board.decode(bytes(data) + ENOUGH)):
        assert frame not in found


def test_text_between_frames_is_kept() -> None:
    """What a program prints beside its frames can be shown."""
    decoder = Decoder()
    frame = MessageFrame(1, 2, b"x")
    assert decoder.feed(b"fault: no\r\n" + encode(frame) + b"more") == [frame]
    assert decoder.text == "fault: no\nmore"
