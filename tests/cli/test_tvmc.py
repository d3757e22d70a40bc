"""Command lines written for tvmc: accepted with their meaning, or refused with a way out."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from microtir.cli.tvmc_refused import REFUSED, instead_of
from microtir.config.tvmc_flags import TVMC_FLAGS
from microtir.lowering.stages import pipeline
from tests.support.command import INT8, TEST_SET, Command

COMPILE = [
    "--target=c",
    "--target-c-mcpu=cortex-m4",
    "--runtime=crt",
    "--runtime-crt-system-lib",
    "0",
    "--executor=aot",
    "--executor-aot-interface-api=c",
    "--executor-aot-unpacked-api=1",
    "--executor-aot-workspace-byte-alignment=8",
    "--executor-aot-link-params=1",
    "--pass-config",
    "tir.disable_vectorize=1",
    "--pass-config",
    "tir.usmp.enable=1",
    "--workspace-pools=sram",
    "--workspace-pools-targets=sram:c",
    "--workspace-pools-size-hint-bytes=sram:65536",
    "--model-format",
    "tflite",
    "--input-shapes",
    "image:[1,8,8,1]",
    "--module-name=default",
    "-O",
    "3",
    "--compatibility",
    "microtvm",
]


def test_the_tutorial_s_command_line(microtir: Command, tmp_path: Path) -> None:
    """Compile to an archive, a project, a build, a run with made-up inputs, as tvmc has them."""
    archive, folder = tmp_path / "module.tar", tmp_path / "project"
    done = microtir("compile", INT8, *COMPILE, "--output-format", "mlf", "--output", archive)
    assert (done.status, done.err) == (0, "")
    plain = tmp_path / "plain.tar"
    assert microtir("compile", INT8, "-f", "mlf", "-o", plain, "--target", "c").status == 0
    made = microtir(
        *("micro", "create-project", folder, plain, "crt"),
        *("--project-option", "project_type=host_driven"),
    )
    assert (made.status, made.err) == (0, "")
    assert microtir("micro", "build", folder, "crt").status == 0
    np.savez(tmp_path / "in.npz", image=np.load(TEST_SET)["inputs"][0])
    for words, out in ((("--device", "micro", folder), "a.npz"), ((INT8,), "b.npz")):
        ran = microtir("run", *words, "-i", tmp_path / "in.npz", "-o", tmp_path / out)
        assert (ran.status, ran.err) == (0, "")
    one, two = (np.load(tmp_path / name)["probabilities"] for name in ("a.npz", "b.npz"))
    assert np.array_equal(one, two)
    printed = microtir("run", "--device", "micro", folder, "--fill-mode", "ones", "--print-top", 2)
    first, *more = printed.out.splitlines()
    assert first == "digits_int8.tflite for any CPU on host"
    assert len(more) == 5


def test_one_word_more_is_enough(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`microtir tvmc` has tvmc's defaults: file, module, executor, packed arguments, interface."""
    monkeypatch.chdir(tmp_path)
    words = ("tvmc", "compile", INT8, "--target=c")
    wanted = {
        (): ("graph", None),
        ("--executor=aot", "--runtime=crt"): ("aot", "packed"),
        ("--executor=aot", "--executor-aot-interface-api=c"): ("aot", "c"),
        ("--executor=aot", "--executor-aot-unpacked-api=1"): ("aot", "c"),
    }
    for flags, (executor, interface) in wanted.items():
        assert microtir(*words, *flags).status == 0  # the file is replaced each time
        with tarfile.open("module.tar") as tar:
            stream = tar.extractfile("./metadata.json")
            assert stream is not None
            [(name, module)] = json.load(stream)["modules"].items()
            assert "./codegen/host/include/tvmgen_default.h" in tar.getnames()
            assert "./runtime/src/runtime/crt/common/crt_runtime_api.c" in tar.getnames()
        config = module["microtir"]["metadata"]["config"]
        assert (name, module["executors"]) == ("default", [executor])
        assert config["compatibility"] == "microtvm"
        assert interface is None or config["executor"]["options"]["interface-api"] == interface


def test_scripts_of_tvmc_run_to_the_end(microtir: Command, tmp_path: Path) -> None:
    """Compile, create a project, build and run it; flashing an emulated one is no error."""
    archive, folder = tmp_path / "module.tar", tmp_path / "project"
    flags = ("--target=c", "--runtime=crt", "--executor=aot", "-f", "mlf", "-o", archive)
    assert microtir("tvmc", "compile", INT8, *flags).status == 0
    option = ("--project-option", "project_type=host_driven")
    made = microtir("tvmc", "micro", "create", folder, archive, "crt", *option)
    assert (made.status, made.err) == (0, "")
    assert microtir("tvmc", "micro", "build", folder, "crt").status == 0
    assert microtir("tvmc", "micro", "flash", folder, "crt").status == 0
    ones = ("--fill-mode", "ones", "-o")
    ran = microtir("tvmc", "run", "--device", "micro", folder, *ones, tmp_path / "a.npz")
    assert (ran.status, ran.err) == (0, "")
    assert microtir("run", INT8, *ones, tmp_path / "b.npz").status == 0
    one, two = (np.load(tmp_path / name)["probabilities"] for name in ("a.npz", "b.npz"))
    assert np.array_equal(one, two)


def test_outside_of_tvmc_nothing_changes(microtir: Command, tmp_path: Path) -> None:
    """The verbs themselves keep their defaults, and tvmc has no others of tvmc's."""
    assert "add -o FILE.tar" in microtir("compile", INT8, "-f", "mlf").err
    dumped = json.loads(microtir("compile", INT8, "-o", tmp_path / "x", "--dump-config").out)
    assert dumped["executor"]["name"] == "aot" and dumped["compatibility"] == "none"
    tune = microtir("tvmc", "tune", INT8)
    assert tune.status != 0 and "expected: compile, run, micro" in tune.err


def test_project_options(microtir: Command, tmp_path: Path) -> None:
    """Options after the first need no flag of their own; boards have tvmc's names."""
    archive, folder = tmp_path / "module.tar", tmp_path / "project"
    microtir("compile", INT8, "-f", "mlf", "-o", archive, "--target", "c -mcpu=cortex-m33")
    made = microtir(
        *("micro", "create", "-f", folder, archive, "zephyr", "--project-option"),
        *("project_type=aot_standalone_demo", "board=nrf5340dk_nrf5340_cpuapp"),
    )
    assert (made.status, made.err) == (0, "")
    assert json.loads((folder / "project.json").read_text())["board"] == "nrf5340dk"
    refused = microtir("micro", "flash", folder, "arduino")
    assert "the project is of type 'zephyr'" in refused.diagnostic


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("p", "m.tar"), "the output folder is missing"),
        (("p", "m.tar", "zephir"), "did you mean 'zephyr'?"),
        (("p", "m.tar", "zephyr"), "'zephyr' needs a board"),
        (("p", "m.tar", "zephyr", "bord=x"), "did you mean 'board'?"),
        (("p", "m.tar", "zephyr", "board=x", "board=y"), "'board' is given twice"),
        (("p", "m.tar", "crt", "project_type=host"), "did you mean 'host_driven'?"),
        (("p", "m.tar", "crt", "config_main_stack_size=2K"), "is '2K'"),
        (("p", "m.tar", "zephyr", "board=host", "project_type=host_driven"), "zephyr"),
        (("p", "m.tar", "zephyr", "zephyr_board=x", "board=y"), "'board' is given twice"),
        (("p", "m.tar", "zephyr", "board=x", "west_cmd=y"), "a folder of PATH"),
        (("p", "m.tar", "template"), "--template-dir"),
    ],
)
def test_wrong_projects(microtir: Command, words: tuple[str, ...], text: str) -> None:
    """A wrong word or option is named before anything is read, with the nearest."""
    result = microtir("micro", "create-project", *words)
    assert result.status in (2, 3)
    assert text in result.diagnostic


def test_both_forms_do_not_mix(microtir: Command, tmp_path: Path) -> None:
    """A project option beside -o would be ignored."""
    command = ("micro", "create-project", INT8, "-o", tmp_path / "p", "--board", "host")
    result = microtir(*command, "--project-option", "board=host")
    assert "--project-option needs the arguments DIR ARCHIVE PLATFORM" in result.diagnostic
    result = microtir("micro", "create-project", INT8, "-o", tmp_path / "p")
    assert "add --board BOARD" in result.diagnostic


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("micro", "create-project", "p", "m.tar", "zephyr"), ("project_type", "boards of crt:")),
        (("micro", "build", "p", "zephyr"), ("board ",)),
        (("micro", "flash"), ("port ", "board ")),
        (("run", "--device", "micro", "p"), ("port ",)),
    ],
)
def test_project_options_are_listed(
    microtir: Command, words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """--list-options shows them, whatever else is or is not on the line."""
    result = microtir(*words, "--list-options")
    assert (result.status, result.err) == (0, "")
    assert all(f"\n{text}" in result.out for text in expected)


def test_builds_take_project_options(microtir: Command, tmp_path: Path) -> None:
    """The board must be the project's; what microtir does not have is said."""
    archive, folder = tmp_path / "module.tar", tmp_path / "project"
    microtir("compile", INT8, "-f", "mlf", "-o", archive, "--target", "c")
    microtir("micro", "create", folder, archive, "crt", "project_type=host_driven")
    build = ("micro", "build", "-f", folder, "crt", "--project-option")
    assert microtir(*build, "board=host").status == 0
    for words, text in (
        ((*build, "board=uno"), "the project is for 'host', not 'uno'"),
        ((*build, "board=host", "verbose=1"), "leave it out, because failed builds"),
        (("micro", "flash", folder, "crt", "--project-option", "arduino_board=uno"), "for 'host'"),
        (("run", "--device", "micro", folder, "--project-option", "board=uno"), "for 'host'"),
        (("run", archive, "--project-option", "port=x"), "use --port"),
    ):
        assert text in microtir(*words).diagnostic


def test_dumped_code_lies_beside_the_output(microtir: Command, tmp_path: Path) -> None:
    """Operators, TIR and C, in files named after the output; tvmc's other formats are refused."""
    archive = tmp_path / "module.tar"
    command = ("compile", INT8, "-f", "mlf", "-o", archive, "--target", "c", "--dump-code")
    assert microtir(*command, "tir, c,graph").status == 0
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "module.tar",
        "module.tar.c",
        "module.tar.graph",
        "module.tar.tir",
    ]
    with tarfile.open(archive) as tar:
        entries = {"c": "codegen/host/src/digits_int8_lib0.c", "tir": "src/digits_int8.tir"}
        for name, entry in entries.items():
            found = tar.extractfile(f"./{entry}")
            assert found is not None
            assert (tmp_path / f"module.tar.{name}").read_bytes() == found.read()
    dumped = (tmp_path / "module.tar.graph").read_text()
    assert dumped.startswith("--- read_operators\ngraph ")
    shown = re.findall(r"^--- (\w+)( \(unchanged\))?$", dumped, re.MULTILINE)
    lowering = [name for stage in pipeline() for name, _ in stage.passes if stage.name != "tir"]
    assert [n for n, _ in shown] == ["read_operators", "older_quantization", *lowering, "planned"]
    unchanged = {name for name, is_unchanged in shown if is_unchanged}
    assert {"older_quantization", "bind_states", "partition"} <= unchanged
    assert not unchanged & {"read_operators", "planned"}
    for given, text in (("relay", "there is no Relay"), ("asm", "with -S"), ("tri", "'tir'")):
        assert text in microtir(*command, given).diagnostic
    project = ("compile", INT8, "-f", "project", "-o", tmp_path / "p", "--dump-code", "c")
    assert "--dump-code cannot be used" in microtir(*project).diagnostic


@pytest.mark.parametrize("flag", REFUSED)
def test_flags_without_a_counterpart(microtir: Command, flag: str) -> None:
    """Each says what to do instead; none is a flag of a verb."""
    result = microtir("compile", INT8, flag, "x")
    assert instead_of(flag) == REFUSED[flag]
    assert result.status == 2
    assert f"microtir does not have tvmc's option '{flag}'" in result.diagnostic
    assert f"fix:      {REFUSED[flag]}" in result.diagnostic


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("compile", INT8, "--target-c-mcp", "x"), "did you mean '--target-c-mcpu'?"),
        (("compile", INT8, "--workspace-pool", "x"), "did you mean '--workspace-pools'?"),
        (("compile", INT8, "-o", "x", "--model-format", "tfl"), "did you mean 'tflite'?"),
        (("compile", INT8, "-o", "x", "--input-shapes", "image:[1,9,9,1]"), "[1, 8, 8, 1]"),
        (("compile", INT8, "-o", "x", "--input-shapes", "imag:[1]"), "is not an input"),
        (("compile", INT8, "-o", "x", "--input-shapes", "image=1"), "cannot read"),
        (("compile", INT8, "--target-ethos-u-accelerator_config", "x"), "does not have tvmc's"),
        (
            ("compile", INT8, "--target-llvm-mcpu", "x"),
            "leave out the option. The generated code is C",
        ),
        (("run", INT8, "--device", "cuda"), "there is no device 'cuda'"),
        (("run", INT8, "--device", "micro"), "is not a project's folder"),
    ],
)
def test_wrong_words_get_the_nearest(
    microtir: Command, words: tuple[object, ...], text: str
) -> None:
    """A wrong flag or word is one diagnostic with the nearest name, or with what is so."""
    result = microtir(*words)
    assert result.status == 2
    assert text in result.diagnostic


def test_help_has_them(microtir: Command) -> None:
    """The flags stand under a heading of their own, behind those of the configuration."""
    text = microtir("compile", "--help-all").out.split("\nOptions of tvmc:\n")[1].split("\n\n")[0]
    found = [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")]
    assert found == [flag.short or flag.name for flag in TVMC_FLAGS]
