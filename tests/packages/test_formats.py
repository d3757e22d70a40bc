"""Packages of every format: their files obey it, and are compiled as their users would."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kconfiglib
import pytest
from pykwalify.core import Core
from ruamel.yaml import YAML

from microtir import CompilationConfig, build, frontend
from microtir.artifact import Artifact
from microtir.boards import Label
from microtir.dtype import DType
from microtir.operators.activations.definition import Relu
from microtir.operators.conversion.definition import Quantize
from microtir.packages import PackageFormat, PackageManifest, PackageOptions, all_formats, generate
from tests.packages import pdsc_rules
from tests.support import shared_programs
from tests.support.board_projects import digits, digits_samples
from tests.support.c_compilers import CPP_COMPILERS, STRICT_CPP
from tests.support.frameworks import (
    ESP_IDF_PROJECT,
    MICROPYTHON_BUFFERS,
    MICROPYTHON_HEADERS,
    PICO_IMPORT,
    ZEPHYR_KCONFIG,
    ZEPHYR_PACKAGE,
)
from tests.support.graphs import graph, node, quant, tensor
from tests.support.sanitizers import FLAGS
from tests.support.small_models import module_of, tiny_graph
from tests.support.stateful import running_sum

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECTS = Path(__file__).resolve().parents[1] / "projects"
M4 = "c -mcpu=cortex-m4"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
# Schemas of the two formats whose own tools fetch from the network where they check more.
COMPONENT_KEYS = {"version", "description", "url", "license", "dependencies"}
LIBRARY_KEYS = {
    *("name", "version", "description", "keywords", "authors", "license", "homepage"),
    *("frameworks", "platforms", "headers", "examples", "build"),
}


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a program in a folder, and return what it prints."""
    given = {"PATH": "/usr/bin:/bin", **environment} if environment else None
    done = subprocess.run(
        command, cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def optimisation(build: Path, sources: Sequence[str]) -> set[str]:
    """Return the last -O option of each of the sources in a build of CMake."""
    commands = json.loads((build / "compile_commands.json").read_text())
    found = [c["command"] for c in commands if c["file"].endswith(tuple(sources))]
    assert len(found) == len(sources)
    return {re.findall(r"-O\w*", command)[-1] for command in found}


def read_yaml(text: str) -> Any:
    """Return what a text in YAML says."""
    return YAML(typ="safe").load(text)


@pytest.fixture(scope="module")
def models() -> list[Artifact]:
    """Two models, of which tests know what the first computes."""
    config = CompilationConfig(targets=M4, module_name="other")
    return [digits(M4), shared_programs.build(module_of(tiny_graph()), config)]


@pytest.fixture(scope="module")
def options() -> PackageOptions:
    """What the packages say of themselves."""
    return PackageOptions(
        name="two_models", version="1.2.3", summary="Two digits", author="Somebody",
        licence="MIT", homepage="https://example.com/two", samples={"digits": digits_samples(2)},
    )  # fmt: skip


class Made:
    """A package in a folder."""

    def __init__(self, folder: Path, manifest: PackageManifest) -> None:
        self.folder, self.manifest = folder, manifest

    def text(self, path: str) -> str:
        return (self.folder / path).read_text()


@pytest.fixture(scope="module")
def made(
    models: list[Artifact], options: PackageOptions, tmp_path_factory: pytest.TempPathFactory
) -> dict[PackageFormat, Made]:
    """Return a package of each format."""
    root = tmp_path_factory.mktemp("packages")
    found = {}
    for kind in PackageFormat:
        folder = root / str(kind) / "two_models"
        found[kind] = Made(folder, generate(models, kind, folder, options=options))
    return found


def test_one_manifest(made: dict[PackageFormat, Made]) -> None:
    """Every package says the same of itself, in whatever words, and lists the files it has."""
    said = {
        (m.name, m.version, m.summary, m.licence, m.cpu.flags, m.sizes, m.models)
        for m in (package.manifest for package in made.values())
    }
    assert len(said) == 1
    for kind, package in made.items():
        manifest = package.manifest
        for path in (*manifest.sources, *manifest.headers, *manifest.example):
            assert (package.folder / path).is_file(), (kind, path)
        there = {path.relative_to(package.folder) for path in package.folder.rglob("*.[ch]")}
        listed = {*manifest.sources, *manifest.headers, *manifest.example}
        assert {str(path) for path in there if path.suffix == ".c"} <= listed
        readme = package.text("README.md")
        assert "Two digits" in readme
        assert "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard" in readme
        assert "{{" not in readme.replace("${{", "")


def test_archives_are_the_same_bytes(
    models: list[Artifact], options: PackageOptions, made: dict[PackageFormat, Made], tmp_path: Path
) -> None:
    """An archive holds the files of the folder, in one folder or none, and no date of today."""
    for kind, root in ((PackageFormat.ARDUINO, "two_models/"), (PackageFormat.CMSIS_PACK, "")):
        name = "p.zip" if root else "microtir.two_models.1.2.3.pack"
        for place in (tmp_path / "a" / name, tmp_path / "b" / name):
            generate(models, kind, place, options=options)
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        with zipfile.ZipFile(tmp_path / "a" / name) as archive:
            files = {entry: archive.read(entry) for entry in archive.namelist()}
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        folder = made[kind].folder
        assert files == {
            f"{root}{path.relative_to(folder).as_posix()}": path.read_bytes()
            for path in folder.rglob("*") if path.is_file()
        }  # fmt: skip


def test_arduino(made: dict[PackageFormat, Made]) -> None:
    """The library has the fields that Arduino asks for, and words for its editor."""
    package = made[PackageFormat.ARDUINO]
    fields = dict(line.split("=", 1) for line in package.text("library.properties").splitlines())
    assert list(fields) == [
        *("name", "version", "author", "maintainer", "sentence", "paragraph", "category"),
        *("url", "architectures", "includes", "license"),
    ]
    assert (fields["name"], fields["version"], fields["sentence"]) == (
        "two_models", "1.2.3", "Two digits.",
    )  # fmt: skip
    assert fields["architectures"] == "*"
    assert (package.folder / "src" / fields["includes"]).is_file()
    assert [path.name for path in package.folder.rglob("*.ino")] == ["run.ino"]
    for line in package.text("keywords.txt").splitlines():
        assert re.fullmatch(r"\w+\t(KEYWORD[12]|LITERAL1)", line)
    assert "other_run\tKEYWORD2" in package.text("keywords.txt")


def test_code_of_avr_is_for_avr(tmp_path: Path) -> None:
    """Libraries whose weights an AVR alone can read say so, and other formats refuse them."""
    artifact = digits("c -mcpu=atmega2560")
    generate(artifact, "arduino", tmp_path / "a")
    assert "architectures=avr\n" in (tmp_path / "a" / "library.properties").read_text()
    generate(artifact, "platformio", tmp_path / "p")
    assert json.loads((tmp_path / "p" / "library.json").read_text())["platforms"] == "atmelavr"
    taking = [f.format for f in all_formats() if "flash-reads" not in map(str, f.refuses)]
    assert taking == [
        PackageFormat.ARDUINO, PackageFormat.PLATFORMIO, PackageFormat.SINGLE_HEADER,
    ]  # fmt: skip


def test_platformio(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """library.json names files that are there, and they compile as PlatformIO looks for headers."""
    package = made[PackageFormat.PLATFORMIO]
    facts = json.loads(package.text("library.json"))
    assert set(facts) <= LIBRARY_KEYS
    assert (facts["name"], facts["version"], facts["license"]) == ("two_models", "1.2.3", "MIT")
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,63}", facts["name"])
    assert facts["authors"] == [{"name": "Somebody"}]
    (example,) = facts["examples"]
    files = {path.name for path in (package.folder / example["base"]).iterdir()}
    assert files == set(example["files"])
    assert (package.folder / facts["build"]["srcDir"] / facts["headers"]).is_file()
    assert facts["build"]["flags"] == ["-O2", "-ffp-contract=off"]
    assert "-Os" in facts["build"]["unflags"]
    sources = [str(path) for path in package.folder.rglob("*.c")]
    run(["gcc", "-fsyntax-only", "-std=c99", *STRICT, "-Isrc", *sources], package.folder)


def test_esp_idf(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """The component's manifest has known keys, and its example builds and runs with stand-ins."""
    package = made[PackageFormat.ESP_IDF]
    facts = read_yaml(package.text("idf_component.yml"))
    assert set(facts) == COMPONENT_KEYS
    assert (facts["version"], facts["license"]) == ("1.2.3", "MIT")
    # The ESP-IDF calls a component as its folder, which users call as they like.
    folder = tmp_path / "unpacked-1.2.3"
    shutil.copytree(package.folder, folder)
    example = folder / "examples" / "run"
    tools = tmp_path / "idf" / "tools" / "cmake"
    tools.mkdir(parents=True)
    (tools / "project.cmake").write_text(ESP_IDF_PROJECT)
    build = tmp_path / "build"
    options = ["-DCMAKE_C_FLAGS=-Og", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    run(["cmake", "-B", str(build), *options], example, IDF_PATH=str(tmp_path / "idf"))
    run(["cmake", "--build", str(build)], example, IDF_PATH=str(tmp_path / "idf"))
    assert run([str(build / "run_models.elf")], example).count(" equal\n") == 2
    assert optimisation(build, package.manifest.sources) == {"-O2"}
    assert optimisation(build, ["application.c"]) == {"-Og"}


def test_zephyr(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """Module file, Kconfig and west manifest are read by Zephyr's own parsers; CMake files run."""
    package = made[PackageFormat.ZEPHYR]
    schema = PROJECTS / "zephyr_module_schema.yml"
    module = package.folder / "zephyr" / "module.yml"
    facts = Core(source_file=str(module), schema_files=[str(schema)]).validate()
    assert facts["name"] == "two_models"
    for place in (facts["build"]["cmake"], *facts["samples"]):
        assert (package.folder / place).is_dir()
    root = tmp_path / "Kconfig"
    root.write_text(f'{ZEPHYR_KCONFIG}\nsource "{package.folder / "Kconfig"}"\n')
    kconfig = kconfiglib.Kconfig(str(root), warn_to_stderr=False)
    sample = package.folder / "samples" / "run"
    kconfig.load_config(str(sample / "prj.conf"))
    assert kconfig.warnings == []
    assert kconfig.syms["TWO_MODELS"].str_value == "y"
    west = read_yaml(package.text("west.yml"))["manifest"]
    assert west["self"] == {"path": "two_models"}
    remotes = {remote["name"] for remote in west["remotes"]}
    assert {project["remote"] for project in west["projects"]} <= remotes
    base = tmp_path / "zephyr"
    (base / "share/zephyr-package/cmake").mkdir(parents=True)
    (base / "share/zephyr-package/cmake/ZephyrConfig.cmake").write_text(
        ZEPHYR_PACKAGE.replace("DIGITS_MODELS", "TWO_MODELS")
    )
    build = tmp_path / "build"
    options = ["-DBOARD=x", "-DCMAKE_C_FLAGS=-Os", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    run(["cmake", "-B", str(build), *options], sample, ZEPHYR_BASE=str(base))
    run(["cmake", "--build", str(build), "--target", "two_models"], sample)
    assert (build / "module" / "libtwo_models.a").is_file()
    assert optimisation(build, package.manifest.sources) == {"-O2"}


def test_zephyr_sample_compares(made: dict[PackageFormat, Made]) -> None:
    """Twister asks for the lines of a sample whose outputs are right, and no others will do."""
    sample = made[PackageFormat.ZEPHYR].folder / "samples" / "run"
    (test,) = read_yaml((sample / "sample.yaml").read_text())["tests"].values()
    asked = test["harness_config"]["regex"]
    assert asked == [
        *(f"digits sample {number} probabilities equal" for number in range(2)),
        *("digits stack [0-9]+", "other stack [0-9]+"),
    ]


def test_cmsis_pack(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """The pack's description obeys the format's rules, and every file compiles for its CPU."""
    package = made[PackageFormat.CMSIS_PACK]
    (file,) = package.folder.glob("*.pdsc")
    assert pdsc_rules.violations(file) == []
    text = file.read_text()
    for before, after in (
        ('category="source"', 'category="sauce"'),
        ('version="1.2.3"', 'version="1.2"'),
        ("<name>two_models</name>", ""),
        ("models/other/other.c", "models/another.c"),
    ):
        (tmp_path / file.name).write_text(text.replace(before, after))
        for folder in package.folder.iterdir():
            if not (tmp_path / folder.name).exists():
                (tmp_path / folder.name).symlink_to(folder)
        assert pdsc_rules.violations(tmp_path / file.name), before
    flags = package.manifest.cpu.flags
    sources = package.manifest.sources
    run(
        ["arm-none-eabi-gcc", *flags, "-std=c99", *STRICT, "-fsyntax-only", "-Imodels", *sources],
        package.folder,
    )


def test_pico(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """The example builds and runs with a stand-in for the SDK."""
    package = made[PackageFormat.PICO]
    sdk = tmp_path / "sdk" / "external"
    sdk.mkdir(parents=True)
    (sdk / "pico_sdk_import.cmake").write_text(PICO_IMPORT)
    build = tmp_path / "build"
    path = str(tmp_path / "sdk")
    run(["cmake", "-S", "example", "-B", str(build)], package.folder, PICO_SDK_PATH=path)
    run(["cmake", "--build", str(build)], package.folder, PICO_SDK_PATH=path)
    assert run([str(build / "run_models")], tmp_path).count(" equal\n") == 2


def test_stm32cube(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """The library is built by itself, and as part of a project with the flags of that."""
    package = made[PackageFormat.STM32CUBE]
    file = f"-DCMAKE_TOOLCHAIN_FILE={package.folder / 'gcc-arm-none-eabi.cmake'}"
    run(["cmake", "-S", ".", "-B", str(tmp_path / "alone"), file], package.folder)
    run(["cmake", "--build", str(tmp_path / "alone")], package.folder)
    library = str(tmp_path / "alone" / "libtwo_models.a")
    assert "Tag_ABI_VFP_args: VFP registers" in run(
        ["arm-none-eabi-readelf", "-A", library], tmp_path
    )
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.c").write_text(
        '#include "digits/digits.h"\n#include "other/other.h"\n'
        "static DIGITS_WORKSPACE(workspace);\n"
        "int main(void)\n{\n"
        "    return (int)(digits_run(0, 0, workspace) + other_run(0, 0, workspace));\n}\n"
    )
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        "project(firmware C)\n"
        f"add_subdirectory({package.folder} two_models)\n"
        "add_executable(firmware main.c)\n"
        "target_link_options(firmware PRIVATE --specs=nosys.specs)\n"
        "target_link_libraries(${CMAKE_PROJECT_NAME} two_models)\n"
    )
    run(["cmake", "-B", "build", file, "-DCMAKE_BUILD_TYPE=Debug"], project)
    assert " -O2" in run(["cmake", "--build", "build", "--verbose"], project)
    assert (project / "build" / "firmware").is_file()


def micropython_compiler(folder: Path, module: str) -> list[str]:
    """How a package's module is compiled, which finds stand-ins for MicroPython in a folder."""
    for path, text in MICROPYTHON_HEADERS.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    # Interned strings are numbers that MicroPython makes of the names it finds.
    words = sorted(set(re.findall(r"MP_QSTR_\w+", module)))
    defined = [f"-D{word}=(const void*){number}" for number, word in enumerate(words)]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    return ["gcc", *flags, f"-I{folder}", "-Imodels", *defined]


def test_micropython(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """The module compiles against what MicroPython declares, and make and CMake see its files."""
    package = made[PackageFormat.MICROPYTHON]
    compiler = micropython_compiler(tmp_path, package.text("two_models.c"))
    run([*compiler, "-fsyntax-only", "two_models.c"], package.folder)
    makefile = (
        f"USERMOD_DIR := {package.folder}\ninclude {package.folder}/micropython.mk\n"
        "all:\n\t@echo $(SRC_USERMOD_C) $(SRC_USERMOD_LIB_C)\n\t@echo $(CFLAGS_USERMOD)\n"
        "CFLAGS = -Os\n$(BUILD)/%.o:\n\t@echo $(CFLAGS)\n"
    )
    (tmp_path / "Makefile").write_text(makefile)
    port = [f"USER_C_MODULES={package.folder.parent}", "BUILD=b"]
    for source, flag in (
        ("models/other/other", "-Os -O2 -ffp-contract=off"),
        ("two_models", "-Os"),
    ):
        told = run(["make", "-s", *port, f"b/two_models/{source}.o"], tmp_path)
        assert told.strip() == flag
    files, flags = run(["make", "-s"], tmp_path).splitlines()
    sources = [package.folder / path for path in ("two_models.c", *package.manifest.sources)]
    assert sorted(map(Path, files.split())) == sorted(sources)
    assert flags == f"-I{package.folder}/models"
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(port C)\nadd_library(usermod INTERFACE)\n"
        f"include({package.folder}/micropython.cmake)\n"
        "get_target_property(files usermod_two_models INTERFACE_SOURCES)\n"
        f"get_source_file_property(flag {package.folder}/models/other/other.c COMPILE_OPTIONS)\n"
        'file(GENERATE OUTPUT flag CONTENT "${flag}")\n'
        'file(GENERATE OUTPUT files CONTENT "${files}")\n'
    )
    run(["cmake", "-B", "build"], tmp_path)
    assert (tmp_path / "build" / "flag").read_text() == "-O2;-ffp-contract=off"
    listed = (tmp_path / "build" / "files").read_text().split(";")
    assert sorted(map(Path, listed)) == sorted(sources)


MICROPYTHON_SLICES = """
#include "odd.c"
int main(void)
{
    static union { double place; uint8_t bytes[64]; } given, made, small;
    for (size_t at = 0; at < 64; at++) {
        mp_buffer_info_t x = {given.bytes + at % 8, 28};
        mp_buffer_info_t z = {small.bytes + at % 7, 7};
        mp_buffer_info_t y = {made.bytes + at / 8, 28};
        const mp_obj_t tensors[] = {&x, &z, &y};
        const int is_aligned = at % 8 % 4 == 0 && at / 8 % 4 == 0;
        const char *const text = raised_by(&floats_call_obj, 3, tensors);
        if (strcmp(text, is_aligned ? "" : "a tensor is not aligned") != 0) {
            return printf("%u: %s", (unsigned int)at, text), 1;
        }
    }
    return 0;
}
"""


def test_micropython_refuses_a_slice_that_is_not_aligned(tmp_path: Path) -> None:
    """A memoryview may begin at any byte: some cores end in a fault where a float is read there.

    The next call, of tensors that are aligned, runs: the model is not taken for ever.
    """
    x, y = tensor("x", (1, 7)), tensor("y", (1, 7))
    z = tensor("z", (1, 7), DType.INT8, quant(0.1))
    model = graph([node(Relu(), (x,), y), node(Quantize(), (y,), z)], [x], [z, y])
    config = CompilationConfig(targets="c", module_name="floats")
    folder = tmp_path / "package"
    manifest = generate(
        build(module_of(model), config), PackageFormat.MICROPYTHON, folder,
        options=PackageOptions(name="odd"),
    )  # fmt: skip
    compiler = micropython_compiler(tmp_path, (folder / "odd.c").read_text())
    (folder / "main.c").write_text(MICROPYTHON_BUFFERS + MICROPYTHON_SLICES)
    run([*compiler, *FLAGS, "main.c", *manifest.sources, "-lm", "-o", "main"], folder)
    assert run(["./main"], folder) == ""


def test_micropython_says_what_tensors_are(made: dict[PackageFormat, Made]) -> None:
    """A module has the shape of each tensor, and scale and zero point of those that have them."""
    text = made[PackageFormat.MICROPYTHON].text("two_models.c")
    shape, scale = re.findall(r"MP_QSTR_image_(?:shape|scale)\), MP_ROM_PTR\(&(\w+)\)", text)
    extents = "MP_ROM_INT(1), MP_ROM_INT(8), MP_ROM_INT(8), MP_ROM_INT(1)"
    assert f"{shape} = {{\n    {{&mp_type_tuple}}, 4, {{ {extents} }}\n}};" in text
    (function,) = re.findall(rf"{scale}, (\w+)\);", text)
    assert f"{function}(void)\n{{\n    return mp_obj_new_float((mp_float_t)0.003921569f);" in text
    assert "{MP_ROM_QSTR(MP_QSTR_image_zero_point), MP_ROM_INT(-128)}" in text


def test_rust(made: dict[PackageFormat, Made]) -> None:
    """The crate's manifest has no dependency; `make product` builds and tests the crate."""
    package = made[PackageFormat.RUST]
    facts = tomllib.loads(package.text("Cargo.toml"))
    assert set(facts) == {"package", "features", "lib"}
    assert facts["features"] == {"std": []}
    assert (facts["package"]["name"], facts["package"]["version"]) == ("two_models", "1.2.3")
    assert facts["package"]["license"] == "MIT"
    script = package.text("build.rs")
    for path in (*package.manifest.sources, *package.manifest.headers):
        assert f'"{path}",' in script
    library = package.text("src/lib.rs")
    assert "#![no_std]" in library
    assert "pub mod digits {" in library
    assert library.count("unsafe fn") == 1
    assert "pub const IMAGE_SHAPE: [usize; 4] = [1, 8, 8, 1];" in library
    assert "pub const IMAGE_SCALE: f32 = 0.003921569;" in library
    assert "pub const IMAGE_ZERO_POINT: i32 = -128;" in library
    assert "impl core::error::Error for Error {}" in library
    readme = package.text("README.md")
    assert "= [0i8; digits::" in readme and " as " not in readme


def test_rust_hides_nothing(tmp_path: Path) -> None:
    """No model's name hides one that the crate uses: its root has the models and `Error` alone.

    A model `Error` or `core` ended in a crate that does not compile, and `type` in none at all.
    """
    names = ("Error", "core", "u8", "Result", "type", "self")
    config = CompilationConfig(targets="c")
    models = [
        shared_programs.build(module_of(tiny_graph()), config.with_(module_name=name))
        for name in names
    ]
    generate(models, "rust", tmp_path, options=PackageOptions(name="odd"))
    library = (tmp_path / "src" / "lib.rs").read_text()
    root = re.findall(r"^(?!#|//)\S.*$", library, re.MULTILINE)
    modules = ("Error_", "core", "u8", "Result", "r#type", "self_")
    assert [line for line in root if line != "}"] == [
        "pub use self::__crate::Error;", "mod __crate {", *(f"pub mod {m} {{" for m in modules),
    ]  # fmt: skip
    assert library.count("    use super::__crate::{check, static_text, Error};\n") == len(names)


def test_rust_begins_a_state_anew(tmp_path: Path) -> None:
    """Where each run is a sample the test of a crate counts no steps: clippy refuses `% 1`."""
    model = frontend.from_tflite(running_sum())
    artifact = build(model, CompilationConfig(targets="c", module_name="summed"))
    generate(artifact, "rust", tmp_path)
    text = (tmp_path / "tests" / "samples.rs").read_text()
    assert "state.reset();" in text and " % " not in text


def test_single_header(made: dict[PackageFormat, Made], tmp_path: Path) -> None:
    """Two files of one program include it, as C99 and as C++, and the outputs are as expected."""
    folder = made[PackageFormat.SINGLE_HEADER].folder
    other = '#include "two_models.h"\nconst int size = OTHER_X_SIZE;\n'
    for compiler, standard, end in (("gcc", "c99", "c"), ("g++", "c++11", "cpp")):
        example, user = tmp_path / f"example.{end}", tmp_path / f"user.{end}"
        example.write_text((folder / "example.c").read_text())
        user.write_text(other)
        program = tmp_path / f"example_{end}"
        files = [str(example), str(user), f"-I{folder}", "-o", str(program)]
        run([compiler, f"-std={standard}", "-O1", *STRICT, *files], tmp_path)
        output = run([str(program)], tmp_path)
        assert "digits run 1 probabilities = 127 -128" in output
        assert output.endswith("0 values differ\n")


def test_a_header_that_compares_nothing_says_so(tmp_path: Path) -> None:
    """Without expected outputs no example claims that none differs."""
    config = CompilationConfig(targets="c", module_name="other")
    generate(shared_programs.build(module_of(tiny_graph()), config), "single-header", tmp_path)
    run(["gcc", "-std=c99", *STRICT, "example.c", "-o", "example"], tmp_path)
    output = run(["./example"], tmp_path)
    assert output.endswith(
        "other: no output is compared, since none is known\nnothing was compared\n"
    )


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_a_single_header_is_quiet_in_cpp(
    made: dict[PackageFormat, Made], compiler: str, tmp_path: Path
) -> None:
    """Its casts are those of C, which projects in C++ are warned of."""
    folder = made[PackageFormat.SINGLE_HEADER].folder
    text = '#define TWO_MODELS_IMPLEMENTATION\n#include "two_models.h"\n'
    (tmp_path / "models.cpp").write_text(text + "char *cast(int *x);\n")
    extra = ["-Wuseless-cast"] * (not compiler.startswith("clang"))
    flags = [*STRICT_CPP, "-Wold-style-cast", *extra, f"-I{folder}", "-std=c++17", "-c"]
    run([compiler, *flags, "models.cpp", "-o", "models.o"], tmp_path)


def test_kernels_for_x86_are_no_old_cpp(tmp_path: Path) -> None:
    """Vectors of x86 name members of structs: in C++ that is legal from 2020 on, and said so."""
    generate(digits("c -mcpu=x86-64"), "single-header", tmp_path)
    command = ["g++", "-xc++", "-mavx2", "-fsyntax-only", *STRICT[:2], "-Werror", "example.c"]
    run([*command, "-std=c++20"], tmp_path)
    done = subprocess.run(
        [*command, "-std=c++11"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "compile this file as C or C++20" in done.stderr


def test_labels() -> None:
    """What is called executed or built is: here, or by `make product`."""
    labels = {known.format: known.label for known in all_formats()}
    executed = {PackageFormat.ARDUINO, PackageFormat.RUST, PackageFormat.SINGLE_HEADER}
    assert {kind for kind, label in labels.items() if label is Label.EXECUTED} == executed
    assert {kind for kind, label in labels.items() if label is Label.BUILT} == {
        PackageFormat.STM32CUBE
    }
