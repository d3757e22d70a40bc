"""What a package says of itself is checked, arrives as it is, and models without a place go."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.boards.errors import ProjectError
from microtir.config import Executor
from microtir.errors import MicrotirError, OutputError, UsageError
from microtir.packages import PackageFormat, PackageOptions, generate
from microtir.packages.rust import rust_lines, rust_name, rust_names
from microtir.packages.traits import ModelTrait, traits_of
from microtir.projects import ProjectOptions
from microtir.projects.models import describe_models
from tests.support.small_models import module_of, tiny_graph
from tests.test_encoding import HOSTILE

TEXTS = [text for text in HOSTILE if text]


def tiny(name: str = "tiny", **changes: Any) -> Artifact:
    """Compile a model of two layers."""
    config = CompilationConfig(targets="c", module_name=name)
    return microtir.build(module_of(tiny_graph()), config.with_(**changes))


@pytest.mark.parametrize(
    ("field", "value", "legal"),
    [
        ("name", "my models", "C identifier"),
        ("name", "int", "C identifier"),
        ("version", "1.0", "three numbers"),
        ("version", "01.0.0", "three numbers"),
        ("summary", "", "one line"),
        ("summary", "two\nlines", "one line"),
        ("summary", "x" * 201, "200"),
        ("author", " ", "one line"),
        ("licence", "MIT; rm -rf", "Apache-2.0"),
        ("homepage", "ftp://x", "https://"),
        ("homepage", 'https://x" onclick="', "https://"),
        ("vendor", "a", "2 to 32"),
        ("vendor", "../x", "2 to 32"),
    ],
)
def test_wrong_values(field: str, value: str, legal: str) -> None:
    """The message names the field, the value and what is legal."""
    with pytest.raises(UsageError) as caught:
        PackageOptions(**{field: value})  # type: ignore[arg-type]
    assert caught.value.where == f"PackageOptions({field})"
    assert legal in (caught.value.legal or "")


def test_definitions_are_values(tmp_path: Path) -> None:
    """A macro that a build system would read is refused, and so is one with no place to go."""
    with pytest.raises(ProjectError, match="NAME or NAME=value"):
        PackageOptions(definitions=["X=$(shell touch owned)"])
    options = PackageOptions(definitions=["PROBE=7"])
    with pytest.raises(UsageError, match="cannot define macros"):
        generate(tiny(), "arduino", tmp_path / "a", options=options)
    for kind in ("platformio", "esp-idf", "zephyr", "pico", "stm32cube", "micropython", "rust"):
        folder = tmp_path / kind
        generate(tiny(), kind, folder, options=options)
        texts = [p.read_text() for p in folder.rglob("*") if p.is_file()]
        assert any("PROBE=7" in text for text in texts), kind


@pytest.mark.parametrize("text", TEXTS)
def test_texts_arrive_as_they_are(text: str, tmp_path: Path) -> None:
    """Readers of XML, YAML and JSON get the very text of summary and author."""
    artifact, options = tiny(), PackageOptions(summary=text, author=text)
    generate(artifact, "cmsis-pack", tmp_path / "c", options=options)
    root = ET.parse(tmp_path / "c" / "microtir.tiny_models.pdsc").getroot()
    assert root.findtext("description") == text
    generate(artifact, "esp-idf", tmp_path / "e", options=options)
    facts = YAML(typ="safe").load((tmp_path / "e" / "idf_component.yml").read_text())
    assert facts["description"] == text
    generate(artifact, "platformio", tmp_path / "p", options=options)
    library = json.loads((tmp_path / "p" / "library.json").read_text())
    assert (library["description"], library["authors"][0]["name"]) == (text, text)


def test_names(tmp_path: Path) -> None:
    """A package has another name than its models, and one that its format can hold."""
    with pytest.raises(UsageError, match="both called 'tiny'"):
        generate(tiny(), "rust", tmp_path / "p", options=PackageOptions(name="tiny"))
    long = [tiny(f"a_model_with_a_long_name_{number}") for number in range(3)]
    with pytest.raises(UsageError, match="characters") as caught:
        generate(long, "rust", tmp_path / "p")
    assert "--package-name" in str(caught.value.for_command_line())
    with pytest.raises(UsageError, match="33 characters"):
        generate(tiny(), "cmsis-pack", tmp_path / "p", options=PackageOptions(name="n" * 33))
    with pytest.raises(ProjectError, match=r"itself contains a file 'samples\.h'"):
        generate(tiny("samples"), "arduino", tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_models_of_two_cpus(tmp_path: Path) -> None:
    """Flags of a compiler are for all models of a package."""
    other = tiny("other", targets="c -mcpu=cortex-m4")
    with pytest.raises(UsageError, match="'other' is for cortex-m4, and 'tiny' is for any CPU"):
        generate([tiny(), other], "stm32cube", tmp_path / "p")


@pytest.mark.parametrize(
    ("kind", "changes", "what"),
    [
        ("rust", {"executor": Executor("aot", {"interface-api": "packed"})}, "packed arguments"),
        ("rust", {"executor": Executor("aot", {"row-fed-inputs": True})}, "gets rows"),
        ("single-header", {"executor": Executor("graph")}, "needs the C runtime"),
        (
            "micropython",
            {"pass_config": {"memory.use_workspace_io": True}},
            "inputs or outputs in its workspace",
        ),
        ("zephyr", {"targets": "c -mcpu=atmega328p"}, "as only an AVR can"),
    ],
)
def test_what_a_format_has_no_place_for(
    kind: str, changes: dict[str, Any], what: str, tmp_path: Path
) -> None:
    """Such a model is refused by what it asks for, with the option that it comes from."""
    with pytest.raises(UsageError, match=what) as caught:
        generate(tiny(**changes), kind, tmp_path / "p")
    assert caught.value.fix
    assert not (tmp_path / "p").exists()


def test_plain_models_ask_for_nothing() -> None:
    """A model with the usual options fits every format."""
    artifact = tiny()
    (values,) = describe_models([artifact], ProjectOptions()).models
    assert traits_of(artifact, values) == frozenset()
    assert len({trait.value for trait in ModelTrait}) == len(ModelTrait)


def test_targets_are_not_replaced(tmp_path: Path) -> None:
    """Folders and archives that are there are refused without force; a wrong name always."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "mine").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        generate(tiny(), "rust", tmp_path / "p")
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"mine")
    with pytest.raises(OutputError, match="exists"):
        generate(tiny(), "rust", archive)
    assert archive.read_bytes() == b"mine"
    generate(tiny(), "rust", archive, force=True)
    assert archive.read_bytes()[:2] == b"PK"
    for name in ("a.zip", "x.pack"):
        with pytest.raises(OutputError, match="not a name of a CMSIS-Pack") as caught:
            generate(tiny(), "cmsis-pack", tmp_path / name, force=True)
        assert "microtir.tiny_models.1.0.0.pack" in (caught.value.legal or "")
    with pytest.raises(OutputError, match="not a name of a Rust crate"):
        generate(tiny(), "rust", tmp_path / "x.pack")


def test_formats_and_models_are_checked(tmp_path: Path) -> None:
    """A word that is no format, and a package of nothing."""
    with pytest.raises(UsageError, match="no package format 'rst'"):
        generate(tiny(), "rst", tmp_path / "p")
    with pytest.raises(UsageError, match="at least one model"):
        generate([], PackageFormat.RUST, tmp_path / "p")
    with pytest.raises(MicrotirError, match="2 models with the module name"):
        generate([tiny(), tiny()], "rust", tmp_path / "p")


def test_templates_of_a_user(tmp_path: Path) -> None:
    """A file of the same path replaces a template."""
    own = tmp_path / "own" / "rust" / "files"
    own.mkdir(parents=True)
    (own / "README.md.j2").write_text("# {{ package }}, ours\n")
    generate(tiny(), "rust", tmp_path / "p", template_dir=tmp_path / "own")
    assert (tmp_path / "p" / "README.md").read_text() == "# tiny_models, ours\n"


def test_identifiers_and_numbers_of_rust() -> None:
    """Words of Rust become raw, those that cannot get a line, and suffixes of C go."""
    assert [rust_name(name) for name in ("image", "type", "self")] == ["image", "r#type", "self_"]
    models = ["Error", "self", "Error_", "core", "u8", "match"]
    assert rust_names(models, ["Error"]) == (
        *("Error__", "self_", "Error_", "core", "u8", "r#match"),
    )
    assert rust_names(["self", "self_", "Error"]) == ("self__", "self_", "Error")
    lines = ["1.5f, -0.0f, (0.0f / 0.0f), 1e-05f,", "7ul, 7ull, (-2147483647l - 1), -3,"]
    assert rust_lines(lines) == (
        "1.5, -0.0, (0.0 / 0.0), 1e-05,",
        "7, 7, (-2147483647 - 1), -3,",
    )
