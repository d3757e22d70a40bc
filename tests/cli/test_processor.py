"""For which processor a verb plans that is told none, and where it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir.cli.app import APP
from microtir.config import CompilationConfig, Target, host
from microtir.config.processors import for_processors, run_here
from tests.support.command import INT8, Command

# What each verb needs beside its model; the command line's own table says which take a target.
NEEDS: dict[str, list[str]] = {
    "compile": ["-o", "out"],
    "verify": [],
    "run": [],
    "evaluate": [],
    "profile": ["--board", "mps2_an386"],
    "pareto": ["--board", "mps2_an386"],
    "tune": ["--board", "mps2_an386", "-o", "records.json"],
    "check": [],
    "evidence": ["-o", "evidence"],
    "fit": [],
    "report": [],
    "diff": [str(INT8)],
    "package": ["-o", "package", "--format", "rust"],
    "micro create-project": ["-o", "project", "--board", "mps2_an386"],
}


def test_every_verb_with_a_target_is_asked(microtir: Command) -> None:
    """The verbs above are all that take a target."""
    names = [command.name for command in APP.registered_commands]
    micro = next(group.typer_instance for group in APP.registered_groups)
    assert micro is not None
    names += [f"micro {command.name}" for command in micro.registered_commands]
    names.remove("micro create")  # tvmc's word for create-project
    names.remove("quantise")  # it has a target for --max-loss, and takes no model of integers
    asked = [name for name in names if name and "--target " in microtir(*name.split(), "-h").out]
    assert asked == list(NEEDS)


@pytest.mark.parametrize("verb", NEEDS)
def test_every_verb_plans_for_a_microcontroller(microtir: Command, verb: str) -> None:
    """Without a target or with the board of that core all verbs make one configuration.

    They planned for the PC: its C took ten times the instructions on the microcontroller.
    """
    dumped = microtir(*verb.split(), INT8, *NEEDS[verb], "--dump-config").out
    expected = CompilationConfig(targets="c -mcpu=cortex-m4", module_name="digits_int8")
    assert CompilationConfig.from_json(dumped) == expected


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--target", "native"], str(host().primary_target())),
        (["--target", "cortex-m4"], "c -mcpu=cortex-m4"),
        (["--target", "cortex-m33+nodsp"], "c -mcpu=cortex-m33 -mattr=-dsp"),
        (["--target", "rv32imac"], "c -march=rv32imac"),
        (["--target", "cortex-m7", "--target-c-model", "x"], "c -mcpu=cortex-m7 -model=x"),
        (["--board", "mps2_an385"], "c -mcpu=cortex-m3"),
        (["--board", "mps2_an385", "--config", "default"], "c -mcpu=cortex-m3"),
        (["--board", "mps2_an385", "--target", "c"], "c"),
        (["--config", "default"], "c -mcpu=cortex-m4"),
        (["--config", "host"], str(host().primary_target())),
    ],
)
def test_a_processor_by_its_name(microtir: Command, given: list[str], meant: str) -> None:
    """A core's name is a target, `native` is this machine, and a board's target is its own."""
    dumped = microtir("verify", INT8, *given, "--dump-config").out
    assert CompilationConfig.from_json(dumped).targets == (Target(meant),)


def test_attributes_beside_json_are_not_dropped(microtir: Command) -> None:
    """Flags that add to a target string are refused beside JSON: they were dropped in silence."""
    flags = ("--target", '{"kind": "c"}', "--target-c-mcpu", "cortex-m4")
    result = microtir("check", INT8, *flags)
    assert (result.status, "'--target-c-mcpu'" in result.diagnostic) == (2, True)


def test_the_first_line_says_for_whom(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a verb made of the default, its first line names the core, and where it ran."""
    monkeypatch.chdir(tmp_path)
    first = {
        verb: microtir(*verb.split(), INT8, *NEEDS[verb]).out.partition("\n")[0]
        for verb in ("compile", "verify", "run", "check", "report", "micro create-project")
    }
    assert all("for cortex-m4" in line for line in first.values()), first
    for verb in ("verify", "run"):
        assert first[verb].endswith("for cortex-m4, run here as portable C")


def test_an_archive_says_for_whom(microtir: Command, tmp_path: Path) -> None:
    """An archive was compiled for its own target, which its run names."""
    archive = tmp_path / "net.tar"
    microtir("compile", INT8, "-f", "mlf", "-o", archive, "--target", "cortex-m0")
    first = microtir("run", archive).out.partition("\n")[0]
    assert first == "digits_int8.tflite for cortex-m0, run here as portable C"


def test_json_names_the_targets(microtir: Command, tmp_path: Path) -> None:
    """Results as JSON have the targets, as `--target` takes them."""
    flags = ("--target", "cortex-m55")
    for arguments in (
        ("compile", INT8, "-o", tmp_path / "out", "--json"),
        ("verify", INT8, "--samples", "1", "--json", "-"),
        ("check", INT8, "--json"),
        ("report", INT8, "--json"),
    ):
        facts = json.loads(microtir(*arguments, *flags).out)
        assert facts["targets"] == ["c -mcpu=cortex-m55"], arguments


@pytest.mark.parametrize(
    ("target", "name", "is_here"),
    [
        ("c", "any CPU", True),
        ("native", host().primary_target().core.name, True),
        ("cortex-m33 -mattr=-dsp", "cortex-m33+nodsp", False),
        ("armv7e-m+fp", "armv7e-m+fp", False),
        ("esp32", "esp32", False),
        ("rv32imac -model=x", "rv32imac", False),
    ],
)
def test_names_of_processors(target: str, name: str, is_here: bool) -> None:
    """A sentence names the core and what differs from it; only what is this machine ran as such."""
    assert for_processors([Target(target)]) == f"for {name}"
    as_c = "" if is_here else " as portable C"
    assert run_here([Target(target)]) == f"for {name}, run here{as_c}"
