"""What a package says of itself is so: files that it names are there, sizes are its models'."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from microtir import CompilationConfig, build, frontend
from microtir.artifact import Artifact
from microtir.errors import UsageError
from microtir.instruction_sets import CPUS
from microtir.packages import PackageFormat, PackageOptions, all_formats, generate
from microtir.packages.micropython import python_names
from tests.support import shared_programs
from tests.support.board_projects import digits, digits_samples
from tests.support.named_files import missing_files
from tests.support.small_models import module_of, tiny_graph
from tests.support.stateful import running_sum

# What a text calls so is the user's, the tool's or the compiler's.
ELSEWHERE = {
    *("NAME.h", "platformio.ini", "platform.local.txt", "compiler.c", "idf_component.yml"),
    *("mphal.h", "obj.h", "objtuple.h", "runtime.h", "stdlib.h"),
}


@pytest.fixture(scope="module")
def models() -> list[Artifact]:
    """A model that keeps something, and one that does not."""
    config = CompilationConfig(targets="c", module_name="summed")
    summed = build(frontend.from_tflite(running_sum()), config)
    return [summed, digits("c")]


@pytest.mark.parametrize("kind", PackageFormat)
def test_files_that_are_named_are_there(
    kind: PackageFormat, models: list[Artifact], tmp_path: Path
) -> None:
    """README, comments and #include name files of the package, or such as ELSEWHERE has."""
    options = PackageOptions(samples={"digits": digits_samples(1)})
    generate(models, kind, tmp_path, options=options)
    # The parts of a single header are under their own names in it.
    parts = {
        f"{name}{end}"
        for name in ("summed", "digits")
        for end in (".h", ".c", "_weights.h", "_weights.c")
    }
    own = parts if kind is PackageFormat.SINGLE_HEADER else set[str]()
    assert missing_files(tmp_path, ELSEWHERE | own) == []


@pytest.mark.parametrize("known", all_formats(), ids=lambda known: str(known.format))
def test_memory_is_shared_where_it_says_so(known: object, tmp_path: Path) -> None:
    """A model alone shares nothing, and models with workspaces of their own add up."""
    kind = known.format  # type: ignore[attr-defined]
    rows: list[dict[str, int]] = []
    for count in (1, 2):
        names = ["first", "second"][:count]
        config = CompilationConfig(targets="c")
        some = [
            shared_programs.build(module_of(tiny_graph()), config.with_(module_name=name))
            for name in names
        ]
        folder = tmp_path / str(count)
        manifest = generate(some, kind, folder)
        table = re.findall(r"^\| ([^|]+) \| (\d+) \|$", (folder / "README.md").read_text(), re.M)
        rows.append({what: int(size) for what, size in table})
        assert [(what, int(size)) for what, size in table] == list(manifest.memory)
    one, two = rows
    assert "shared" not in " ".join(one)
    if "workspaces, one for each model" in two:
        assert kind in (
            PackageFormat.RUST, PackageFormat.MICROPYTHON, PackageFormat.SINGLE_HEADER,
        )  # fmt: skip
        assert two["workspaces, one for each model"] == 2 * one["workspace"]
    else:
        assert two["workspace, shared by all models"] == one["workspace"]


def test_chips_of_espressif() -> None:
    """The ESP-IDF's chips are all that targets may name, and are called as they are there."""
    (known,) = (each for each in all_formats() if each.format is PackageFormat.ESP_IDF)
    assert set(known.chips) == {name for name in CPUS if name.startswith("esp32")}
    assert all(name == chip for name, chip in known.chips.items())


def test_names_that_mean_something_else(tmp_path: Path) -> None:
    """A package is not called as what its tool, language or system has already."""
    for kind, name in (
        ("rust", "std"), ("rust", "Self"), ("micropython", "array"), ("micropython", "lambda"),
        ("arduino", "Arduino"), ("platformio", "models"), ("esp-idf", "main"), ("zephyr", "fpu"),
        ("pico", "run_models"), ("stm32cube", "m"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"'{name}' has another meaning") as caught:
            generate(digits("c"), kind, tmp_path / "p", options=PackageOptions(name=name))
        assert "--package-name" in str(caught.value.for_command_line())
    generate(digits("c"), "single-header", tmp_path / "p", options=PackageOptions(name="array"))


def test_models_called_as_words_of_python(tmp_path: Path) -> None:
    """A model whose name Python cannot say gets a line behind it, in C none changes its own."""
    assert python_names(["lambda", "digits", "lambda_", "None"]) == (
        *("lambda__", "digits", "lambda_", "None_"),
    )
    config = CompilationConfig(targets="c")
    some = [
        shared_programs.build(module_of(tiny_graph()), config.with_(module_name=name))
        for name in ("lambda", "package")
    ]
    generate(some, "micropython", tmp_path, options=PackageOptions(name="odd"))
    text = (tmp_path / "odd.c").read_text()
    assert "{MP_ROM_QSTR(MP_QSTR_lambda_), MP_ROM_PTR(&lambda_module)}" in text
    # The table of the package was called `package_names`, as that of a model `package`.
    defined = re.findall(r"^static .*?(\w+)\[\] = \{$", text, re.MULTILINE)
    assert len(defined) == len(set(defined)) == 3
    assert "from odd import lambda_\n" in (tmp_path / "README.md").read_text()


def test_nobody_serves_a_pack_that_is_said_to_be_served_nowhere(tmp_path: Path) -> None:
    """The address in a pack is where newer ones are fetched from: it was that of microtir."""
    for homepage in (None, "https://example.com/packs/"):
        folder = tmp_path / str(homepage is None)
        generate(digits("c"), "cmsis-pack", folder, options=PackageOptions(homepage=homepage))
        (file,) = folder.glob("*.pdsc")
        assert ET.parse(file).getroot().findtext("url") == (homepage or "")


CALLED_IN_C = (
    PackageFormat.ARDUINO, PackageFormat.ESP_IDF, PackageFormat.ZEPHYR, PackageFormat.PICO,
    PackageFormat.CMSIS_PACK, PackageFormat.STM32CUBE, PackageFormat.PLATFORMIO,
    PackageFormat.SINGLE_HEADER,
)  # fmt: skip


@pytest.mark.parametrize("kind", CALLED_IN_C)
@pytest.mark.parametrize("language", ["c99", "c++11"])
def test_the_call_of_the_readme_compiles(
    kind: PackageFormat, language: str, models: list[Artifact], tmp_path: Path
) -> None:
    """Each call that is shown is a file of C, and of C++, as it stands."""
    folder = tmp_path / "package"
    manifest = generate(models, kind, folder)
    blocks = re.findall(r"```c\n(.*?)```", (folder / "README.md").read_text(), re.S)
    calls = [block for block in blocks if "_run(" in block]
    assert len(calls) == len(models)
    compiler = "g++" if "+" in language else "gcc"
    paths = [f"-I{folder / path}" for path in (".", *manifest.include_folders)]
    for number, call in enumerate(calls):
        file = tmp_path / f"call{number}.{'cpp' if '+' in language else 'c'}"
        file.write_text(call)
        flags = ("-Wall", "-Wextra", "-Werror", f"-std={language}", "-fsyntax-only")
        command = [compiler, *flags, *paths, str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{call}\n{run.stderr}"


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not on this machine")
def test_the_call_in_rust_compiles(models: list[Artifact], tmp_path: Path) -> None:
    """Each call that the crate's README shows is a crate that compiles as it stands."""
    folder = tmp_path / "package"
    generate(models, PackageFormat.RUST, folder, options=PackageOptions(name="two_models"))
    flags = ["--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "-Dwarnings"]
    compiler = ["rustc", *flags, "--out-dir", str(tmp_path)]
    known = ["--cfg", "has_core_error", "--crate-name", "two_models"]
    subprocess.run([*compiler, *known, str(folder / "src" / "lib.rs")], check=True)
    calls = re.findall(r"```rust\n(.*?)```", (folder / "README.md").read_text(), re.S)
    assert len(calls) == len(models)
    for number, call in enumerate(calls):
        file = tmp_path / f"call{number}.rs"
        file.write_text(call)
        crate = f"two_models={tmp_path / 'libtwo_models.rmeta'}"
        subprocess.run([*compiler, "--extern", crate, str(file)], check=True)


def test_the_call_in_python_runs(
    models: list[Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of MicroPython's README gives buffers of the sizes that the C asks for, in order.

    `make product` runs it in MicroPython itself.
    """
    generate(models, PackageFormat.MICROPYTHON, tmp_path, options=PackageOptions(name="two_models"))
    package, sizes = types.ModuleType("two_models"), []
    for name, ports in (
        ("summed", {"x": 8, "out": 8}),
        ("digits", {"image": 64, "probabilities": 10}),
    ):
        members = {f"{port}_bytes": size for port, size in ports.items()}
        run = lambda *buffers: sizes.append([len(buffer) for buffer in buffers])  # noqa: E731
        setattr(package, name, types.SimpleNamespace(run=run, **members))
    monkeypatch.setitem(sys.modules, "two_models", package)
    for call in re.findall(r"```python\n(.*?)```", (tmp_path / "README.md").read_text(), re.S):
        exec(call, {})
    assert sizes == [[8, 8], [64, 10]]


@pytest.mark.parametrize("kind", PackageFormat)
def test_the_readme_answers_an_engineer(
    kind: PackageFormat, models: list[Artifact], tmp_path: Path
) -> None:
    """It says what stack a run takes, where weights lie, who may run, and what integers mean."""
    generate(models, kind, tmp_path / "package")
    readme = " ".join((tmp_path / "package" / "README.md").read_text().split())
    most = max(artifact.metadata.stack.bytes_in_c for artifact in models)
    code = sum(artifact.metadata.code_bytes_estimate for artifact in models)
    assert f"| stack of a run, at most | {most} |" in readme
    assert f"| code, estimated, in flash | {code} |" in readme
    assert "| `digits`: `image` | 64 | int8_t | 0.003921569 | -128 |" in readme
    weights, tasks = {
        PackageFormat.RUST: ("arrays of the C library, which the linker places in flash",
                             "each with its own `Workspace` and `State`"),
        PackageFormat.MICROPYTHON: ("arrays of the firmware, in flash",
                                    "only one task at a time can run a model"),
    }.get(kind, ("which the linker places in flash",
                 "each with its own state and workspace"))  # fmt: skip
    assert weights in readme and tasks in readme


def test_metadata_is_no_part_of_a_sketch(models: list[Artifact], tmp_path: Path) -> None:
    """The library of Arduino has no file that only tools of microtir read."""
    generate(models, PackageFormat.ARDUINO, tmp_path / "a")
    assert not [*(tmp_path / "a").rglob("metadata.json")]
    generate(models, PackageFormat.ZEPHYR, tmp_path / "z")
    assert len([*(tmp_path / "z").rglob("metadata.json")]) == len(models)
