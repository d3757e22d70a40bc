"""Models that a project has as an array in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.errors import ModelFileError
from microtir.frontend import read_model
from microtir.frontend.c_array import model_in_c
from tests.support.command import INT8, Command

MODEL = b"\x1c\x00\xff\x46TFL3"


@pytest.mark.parametrize(
    "declared",
    [
        "unsigned char digits[] = {BYTES};",
        (
            "#ifdef __has_attribute\n#define HAVE(x) __has_attribute(x)\n#endif\n"
            "#if HAVE(aligned) || (defined(__GNUC__) && !defined(__clang__))\n"
            "#define DATA_ALIGN_ATTRIBUTE __attribute__((aligned(4)))\n#endif\n"
            "const unsigned char g_model[] DATA_ALIGN_ATTRIBUTE = {BYTES};\n"
            "const int g_model_len = 4;"
        ),
        "extern const uint8_t model[];\nalignas(16) const uint8_t model[4] = {BYTES};",
        '/* model[] = {1}; */\nconst uint8_t m[] __attribute__((section(".model"))) =\n{BYTES};',
        "const uint8_t labels[] = {1, 2, 3}; const int far[] = {300}; const uint8_t m[]{BYTES};",
    ],
)
def test_an_array_is_the_model(declared: str) -> None:
    """In the forms in which examples of TFLite Micro and of vendors write it."""
    numbers = "\n  0x1c, 0x00, // 16 bytes a line\n  0XfF, 70, 0124, 70u, /* L */ 76, 51,\n"
    assert model_in_c(declared.replace("BYTES", numbers).encode(), "m.cc") == MODEL


def test_signed_bytes_are_bytes() -> None:
    """Arrays of int8_t or char have negative numbers."""
    assert model_in_c(b"char m[] = {28, 0, -1, 70, 84, 70, 76, 51};", "m.h") == MODEL


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"}" * 9, b"/*" * 10_000, b"{{{{" * 10_000, b"\xff\xfe{\x00}", b"{1,,2}",
        b"{08}", b"{0x}", b"{300,0,0,0,84,70,76,51}", b"int x[] = {1, 2, 3};",
        b"// {28,0,255,70,84,70,76,51}",
    ],
)  # fmt: skip
def test_other_c_is_left_as_it_is(text: bytes) -> None:
    """The reader of TFLite files says what it is."""
    assert model_in_c(text, "m.c") == text


def test_a_long_hostile_file_takes_no_time() -> None:
    """Comments and braces without an end, a million times."""
    for piece in (b"/*", b"{0,", b"//", b"{1}", b"[x"):
        model_in_c(piece * 1_000_000, "m.c")


def test_several_models_are_refused() -> None:
    """Nobody says which one is meant."""
    array = b"{28,0,255,70,84,70,76,51};"
    with pytest.raises(ModelFileError, match="arrays of 2 models"):
        model_in_c(array + array, "m.c")
    assert model_in_c(array, "m.tflite") == array


def test_commands_take_a_c_file(microtir: Command, tmp_path: Path) -> None:
    """The model is that of the file, with its digest."""
    data = INT8.read_bytes()
    file = tmp_path / "model_data.cc"
    file.write_text(f"unsigned char m[] = {{{', '.join(map(hex, data))}}};\n")
    graph, original = read_model(file).graph, read_model(INT8).graph
    assert graph is not None and original is not None
    assert graph.source_sha256 == original.source_sha256
    assert microtir("check", file).status == 0
    file.write_text("int x[] = {1, 2};\n")
    refused = microtir("check", file)
    assert refused.status != 0 and "without an array of a TFLite model" in refused.diagnostic
