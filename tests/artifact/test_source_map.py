"""From lines of generated C to layers: in messages of tools, and by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact, layers_at, places_in
from microtir.boards.errors import BuildError
from microtir.projects.build import run_build
from tests.support.command import INT8, Command


@pytest.fixture(scope="module")
def digits() -> Artifact:
    """Return a model whose layers share micro-kernels."""
    config = CompilationConfig(targets="c -mcpu=cortex-m4", module_name="digits")
    return microtir.build(microtir.frontend.from_tflite(INT8), config)


def test_every_line_of_a_layer_is_its_own(digits: Artifact) -> None:
    """The function of a layer is its; what stands between functions is nobody's."""
    text = digits.source("digits.c").splitlines()
    for layer in digits.metadata.layers:
        first, last = layer.lines
        assert layer.function in text[first - 1]
        for line in (first, (first + last) // 2, last):
            assert layers_at(digits.metadata, line) == (layer,)
    assert layers_at(digits.metadata, 1) == ()


def test_a_line_of_a_kernel_is_of_all_that_call_it(digits: Artifact) -> None:
    """What several layers call is called by each of them."""
    shared = [kernel for kernel in digits.metadata.kernels if len(kernel.layers) > 1]
    assert shared
    for kernel in shared:
        found = layers_at(digits.metadata, kernel.lines[0])
        assert sorted(layer.function for layer in found) == sorted(kernel.layers)


def test_messages_of_tools_name_layers(digits: Artifact, tmp_path: Path) -> None:
    """Of compilers and sanitizers, with or without folders, once for each line."""
    layer = digits.metadata.layers[1]
    line = layer.lines[0] + 1
    said = f"/x/digits.c:{line}:7: runtime error: overflow\n#1 in f digits_lib0.c:{line}"
    whose = f"is in {layer.name}, {layer.operator}, operator {layer.index} of digits_int8"
    assert places_in(said, digits.metadata).splitlines() == [
        "",
        f"digits.c:{line} {whose}.tflite",
    ]
    assert places_in(f"mydigits.c:{line} digits.h:{line} digits.c:1", digits.metadata) == ""
    with pytest.raises(BuildError, match=whose):
        run_build(
            ["/bin/sh", "-c", f"echo 'digits.c:{line}:1: error: bad'; exit 3"],
            tmp_path,
            lambda: (digits.metadata,),
        )


def test_the_command_line_says_whose_a_line_is(
    digits: Artifact, microtir: Command, tmp_path: Path
) -> None:
    """As a debugger names it; a line of no layer is status 1, another file a wrong usage."""
    folder = digits.export(tmp_path / "out")
    layer = digits.metadata.layers[0]
    place = f"{folder}/digits.c:{layer.lines[1]}"
    found = microtir("explain", place)
    assert (found.status, found.err) == (0, "")
    assert f"{layer.name}, CONV_2D, operator 0 of digits_int8.tflite" in found.out
    assert json.loads(microtir("explain", f"{place}:4", "--json").out)[0]["name"] == layer.name
    assert microtir("explain", f"{folder}/digits.c:1").status == 1
    for wrong, text in (
        ("digits_weights.c:3", "are in digits.c"),
        ("a/digits.c:3", "does not contain the metadata.json of a model"),
    ):
        assert text in microtir("explain", folder / wrong).diagnostic


@pytest.mark.parametrize("line", ["0", "-3", "99999999", "9" * 5000, "", "x", "1e2", "\u0663"])
def test_only_lines_of_the_file_are_explained(
    line: str, digits: Artifact, microtir: Command, tmp_path: Path
) -> None:
    """A line that the file does not have was answered as if it were one of what layers share."""
    folder = digits.export(tmp_path / "out")
    last = len((folder / "digits.c").read_text().splitlines())
    found = microtir("explain", f"{folder}/digits.c:{line}")
    assert found.status == 2
    assert f"the file has no line {line[:40]!r}" in found.diagnostic
    assert f"expected: lines 1 to {last}" in found.diagnostic
    assert microtir("explain", f"{folder}/digits.c:{last}").status == 1


def test_only_the_file_that_was_generated_is_explained(
    digits: Artifact, microtir: Command, tmp_path: Path
) -> None:
    """One that was edited has its functions elsewhere, a header and a missing one have none."""
    folder = digits.export(tmp_path / "out")
    source = folder / "digits.c"
    source.write_text(source.read_text().replace("#include", "\n#include", 1))
    assert "edited after it was generated" in microtir("explain", f"{source}:40").diagnostic
    source.write_text("int main(void) { return 0; }\n")
    assert "edited after it was generated" in microtir("explain", f"{source}:1").diagnostic
    source.unlink()
    assert "cannot be read" in microtir("explain", f"{source}:1").diagnostic
    assert "are in digits.c" in microtir("explain", f"{folder}/digits.h:3").diagnostic
