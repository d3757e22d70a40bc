from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir.boards import load_board
from microtir.boards.board import MemoryKind
from microtir.cli.help import DAILY
from microtir.config import FLAGS, CompilationConfig, microcontroller
from tests.support.command import INT8, Command

VERBS = ("compile", "verify", "run", "check", "evidence")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_every_flag(microtir: Command, verb: str) -> None:
    """All flags of the option table, and --dump-config, are in the help of each verb."""
    text = microtir(verb, "--help-all").out
    part = text.split("\nConfiguration:\n")[1].split("\nOptions of tvmc:\n")[0]
    found = [line.split()[0] for line in part.splitlines() if line.startswith("  --")]
    assert sorted(found) == sorted([*(flag.name for flag in FLAGS), "--dump-config"])
    assert found.index("--optimize") < found.index("--dump-config")
    assert found.index("--dump-config") < found.index("--executor-aot-interface-api")
    assert found.index("--executor-debug-link-params") < found.index("--workspace-pools")


@pytest.mark.parametrize("verb", VERBS)
def test_short_help_has_what_is_used_daily(microtir: Command, verb: str) -> None:
    """Of the flags of the table the help has a few, each in a sentence, and says how many more."""
    text = microtir(verb, "--help").out
    part = text.split("\nConfiguration:\n")[1]
    found = [line.split()[0] for line in part.splitlines() if line.startswith("  --")]
    assert sorted(found) == sorted(DAILY)
    assert "Values:" not in part
    assert len(text.splitlines()) <= (90 if verb in ("compile", "verify", "run") else 120)
    whole = microtir(verb, "--help-all").out
    every = [line for line in whole.split("\nConfiguration:\n")[1].splitlines()
             if line.startswith("  -")]  # fmt: skip
    hidden = f"{len(every) - len(DAILY)} more options"
    assert hidden in text and hidden not in whole


@pytest.mark.parametrize("verb", VERBS)
def test_dump_is_the_configuration(microtir: Command, verb: str) -> None:
    """--dump-config prints what would be used, and does nothing else."""
    result = microtir(verb, INT8, "--dump-config")
    assert result.status == 0
    expected = microcontroller().with_(module_name="digits_int8")
    assert CompilationConfig.from_json(result.out) == expected


def test_s2_10_flags_make_one_configuration(microtir: Command) -> None:
    """--target, --executor and --runtime with their options are collated into one object."""
    result = microtir(
        *("compile", INT8, "--dump-config"),
        *("--target", "c -mcpu=cortex-m4", "--executor", "aot", "--runtime", "crt"),
        *("--executor-aot-interface-api", "c", "--executor-aot-unpacked-api", "1"),
        *("--executor-aot-workspace-byte-alignment", "16", "--runtime-crt-system-lib", "1"),
        *("--pass-config", "tir.unroll_max_extent=4", "--pass-config", "tir.verify_each_pass=1"),
        *("--optimize", "ram", "--ram-budget", "64K", "--module-name", "net"),
    )
    config = CompilationConfig.from_json(result.out)
    assert [str(target) for target in config.targets] == ["c -mcpu=cortex-m4"]
    assert config.executor["workspace-byte-alignment"] == 16
    assert config.runtime.system_lib
    assert config.pass_config.unroll_max_extent == 4
    assert config.pass_config.verify_each_pass
    assert config.budget.ram == 65536
    assert (str(config.optimize), config.module_name) == ("ram", "net")


def test_s2_10_dump_feeds_back(microtir: Command, tmp_path: Path) -> None:
    """A dumped configuration gives the artefact that its flags gave, byte for byte."""
    flags = ["--target", "c -mcpu=cortex-m0", "--pass-config", "tir.unroll_max_extent=3"]
    dumped = tmp_path / "config.json"
    dumped.write_text(microtir("compile", INT8, "--dump-config", *flags).out)
    assert microtir("compile", INT8, "-o", tmp_path / "a", *flags).status == 0
    assert microtir("compile", INT8, "-o", tmp_path / "b", "--config", dumped).status == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    again = microtir("compile", INT8, "--config", dumped, "--dump-config").out
    assert again == dumped.read_text()


def test_flags_change_a_file(microtir: Command, tmp_path: Path) -> None:
    """A flag beside --config wins over the file; the rest of the file stays."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"targets": ["c -mcpu=cortex-m4"], "module_name": "net"}))
    text = microtir("run", INT8, "--config", path, "--optimize", "speed", "--dump-config").out
    config = CompilationConfig.from_json(text)
    assert (str(config.optimize), config.module_name) == ("speed", "net")
    assert config.targets[0].mcpu == "cortex-m4"


def test_file_that_is_missing(microtir: Command, tmp_path: Path) -> None:
    """A configuration file that is not there: status 3; one with a wrong field: status 2."""
    result = microtir("run", INT8, "--config", tmp_path / "none.json")
    assert result.status == 3
    assert "none.json" in result.diagnostic
    path = tmp_path / "wrong.json"
    path.write_text('{"targets": ["c"], "optimise": "ram"}')
    result = microtir("run", INT8, "--config", path)
    assert result.status == 2
    assert "did you mean 'optimize'?" in result.diagnostic


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--numerics", "float"], "does not support yet"),
        (["--executor", "graphs"], "did you mean 'graph'"),
        (["--pass-config", "tir.unroll=1"], "did you mean"),
        (["--pass-config", "tir.disable_unroll"], "without a value"),
        (["--runtime-crt-system-lib", "perhaps"], "not true or false"),
    ],
)
def test_wrong_values(microtir: Command, flags: list[str], text: str) -> None:
    """An illegal value is refused before the model is read, with the option's name."""
    result = microtir("compile", "unread.tflite", "-o", "unused", *flags)
    assert result.status == 2
    assert text in result.diagnostic


def test_a_budget_of_the_board(microtir: Command) -> None:
    """`board` is what the board has; without one there is nothing that it could stand for."""
    board = load_board("microbit")
    flags = ("--ram-budget", "board", "--flash-budget", "board", "--stack-budget", "board")
    result = microtir("profile", INT8, "--board", "microbit", *flags, "--dump-config")
    budget = CompilationConfig.from_json(result.out).budget
    sizes = {m.kind: m.size for m in board.memories}
    assert budget.stack == max(support.stack for support in board.projects)
    assert budget.ram == sizes[MemoryKind.RAM] - budget.stack - (64 + 10)  # input and output
    assert budget.flash == sizes[MemoryKind.FLASH]
    refused = microtir("compile", INT8, "-o", "out", "--ram-budget", "board")
    assert refused.status == 2
    assert "--ram-budget board needs a board" in refused.diagnostic
