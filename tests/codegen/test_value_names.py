"""Names of an output's values: in the header, in metadata.json, and in packages."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from microtir import (
    Artifact,
    CompilationConfig,
    export_model_library_format,
    import_model_library_format,
)
from microtir.dtype import DType
from microtir.graph.ir import Graph, NamedResult
from microtir.operators.reduction.definition import ArgMax
from microtir.packages import generate
from tests.support import shared_programs
from tests.support.c_compilers import strict_problems
from tests.support.frameworks import MICROPYTHON_HEADERS
from tests.support.graphs import graph, node, tensor
from tests.support.small_models import module_of

NAMES = ('the "cat"', "a\\b", "??/ ??=", "line\nbreak", "*/", "", "01", "\x07" + "1", "日本", "%s")
CONFIG = CompilationConfig(targets="c", module_name="named")


def classifier(names: tuple[str, ...] = NAMES) -> Graph:
    """The place of the highest score, of as many as there are names."""
    x = tensor("scores", (1, len(names)), DType.FLOAT32)
    label = tensor("label", (1,), DType.INT64)
    made = graph([node(ArgMax(1), (x,), label)], [x], [label])
    return replace(made, named=(NamedResult("label", names),))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """The classifier, compiled."""
    return shared_programs.build(module_of(classifier()), CONFIG)


def test_an_application_has_the_names(artifact: Artifact, tmp_path: Path) -> None:
    """They come out of C byte by byte, whatever characters they have; unused they cost nothing."""
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""
    lines = [
        '#include "named.h"', "#include <stdio.h>", "int main(void) {",
        "    static const char *const names[NAMED_LABEL_NAMES_COUNT] = NAMED_LABEL_NAMES;",
        "    for (int i = 0; i < NAMED_LABEL_NAMES_COUNT; i++) {",
        "        fputs(names[i], stdout);", "        putchar(0);", "    }", "    return 0;", "}",
    ]  # fmt: skip
    for suffix, compiler in ((".c", ["gcc", "-std=c99"]), (".cpp", ["g++", "-std=c++11"])):
        source = tmp_path / f"main{suffix}"
        source.write_text("\n".join(lines) + "\n")
        command = [*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{folder}",
                   str(source), "-o", str(tmp_path / "main")]  # fmt: skip
        subprocess.run(command, check=True)
        out = subprocess.run([str(tmp_path / "main")], capture_output=True, check=True).stdout
        assert tuple(out.decode().split("\0")[:-1]) == NAMES
    header = artifact.source("named.h")
    assert header.isascii() and max(map(len, header.splitlines())) <= 100


def test_metadata_has_the_names(artifact: Artifact, tmp_path: Path) -> None:
    """So does what is read from an archive; ports of numbers have no field for them."""
    ports = json.loads(artifact.source("metadata.json"))["ports"]
    assert [port.get("names") for port in ports] == [None, list(NAMES)]
    path = export_model_library_format(artifact, tmp_path / "model.tar")
    (read,) = import_model_library_format(path)
    model = read.module.model
    assert model is not None
    assert [port.names for port in model.ports] == [(), NAMES]


def test_a_long_list_is_broken_into_lines() -> None:
    """A line has at most 100 characters, unless one name alone has more."""
    names = (*(f"class number {n}" for n in range(200)), "x" * 200)
    text = shared_programs.build(module_of(classifier(names)), CONFIG).source("named.h")
    lines = text.splitlines()
    assert sum(len(line) > 100 for line in lines) == 1
    macro = text.partition("#define NAMED_LABEL_NAMES {")[2].partition("\n}")[0]
    assert tuple(re.findall(r'"([^"]*)"', macro)) == names


def test_packages_have_the_names(artifact: Artifact, tmp_path: Path) -> None:
    """Rust has an array of them, MicroPython a tuple."""
    generate([artifact], "rust", tmp_path / "rust")
    library = (tmp_path / "rust" / "src" / "lib.rs").read_text()
    array = library.partition("pub const LABEL_NAMES: &[&str] = &[\n")[2].partition("    ];")[0]
    assert [line.strip().removesuffix(",") for line in array.splitlines()] == [
        r'"the \"cat\""', r'"a\\b"', '"??/ ??="', r'"line\u{a}break"', '"*/"', '""', '"01"',
        r'"\u{7}1"', '"日本"', '"%s"',
    ]  # fmt: skip
    generate([artifact], "micropython", tmp_path / "python")
    (file,) = (tmp_path / "python").glob("*.c")
    text = file.read_text()
    (names,) = re.findall(r"MP_QSTR_label_names\), MP_ROM_PTR\(&(\w+)\)", text)
    listed = text.partition(f"{names} = {{\n    {{&mp_type_tuple}}, 10, {{\n")[2].partition("}")[0]
    objects = re.findall(r"MP_ROM_PTR\(&(\w+)\)", listed)
    found = [text.partition(f"MP_DEFINE_STR_OBJ({name}, ")[2].splitlines()[0] for name in objects]
    assert found[0] == r'"the \"cat\"");' and found[3] == r'"line\012break");'
    for path, header in MICROPYTHON_HEADERS.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(header)
    words = sorted(set(re.findall(r"MP_QSTR_\w+", text)))
    defined = [f"-D{word}=(const void*){number}" for number, word in enumerate(words)]
    models = f"-I{tmp_path / 'python' / 'models'}"
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{tmp_path}"]
    subprocess.run([*command, models, *defined, str(file)], check=True)
    assert "`TENSOR_names`" in (tmp_path / "python" / "README.md").read_text()
