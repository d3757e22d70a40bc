"""docs/runtime.md: its C compiles without a warning and runs, its bytes are what is measured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from microtir.support.resources import runtime_crt
from tests.support.c_compilers import STRICT, compiler_output

PAGE = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text("utf-8")
BLOCKS = re.findall(r"^```c\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ARM = ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-Os", "-std=c99")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.findall(r"example_\w+", block)[0])
def test_examples_of_the_page_run(tmp_path: Path, block: str) -> None:
    """Each block of C is a file of its own, whose function returns MICROTIR_OK."""
    (name,) = re.findall(r"^int32_t (example_\w+)\(void\)$", block, re.MULTILINE)
    call = f"int32_t {name}(void);\n"
    main = f"\nint main(void)\n{{\n    return {name}() != MICROTIR_OK;\n}}\n"
    head, rest = block.split("\n", 1)
    (tmp_path / "example.c").write_text(f"{head}\n{call}{rest}{main}", encoding="utf-8")
    sources = sorted(map(str, (runtime_crt() / "src").glob("*.c")))
    include = f"-I{runtime_crt() / 'include'}"
    command = ["gcc", "-std=c99", *STRICT, *SANITIZERS, include, "example.c", *sources]
    assert compiler_output([*command, "-o", "example"], tmp_path) == ""
    done = subprocess.run(
        [str(tmp_path / "example")], capture_output=True, text=True, timeout=60, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _bytes(folder: Path, *flags: str) -> dict[str, int]:
    """Bytes of flash of each file of the runtime; none of them has data or bss."""
    units = sorted((runtime_crt() / "src").glob("*.c"))
    command = [*ARM, *flags, f"-I{runtime_crt() / 'include'}", "-c", *map(str, units)]
    assert compiler_output(command, folder) == ""
    objects = [f"{unit.stem}.o" for unit in units]
    said = subprocess.run(
        ["arm-none-eabi-size", *objects], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    rows = [line.split() for line in said]
    assert all(row[1:3] == ["0", "0"] for row in rows)
    return {unit.stem: int(row[0]) for unit, row in zip(units, rows, strict=True)}


def test_bytes_of_the_page(tmp_path: Path) -> None:
    """With the compiler that the page names, every figure of its tables is the measured one."""
    (version,) = re.findall(r"arm-none-eabi-gcc (\d+\.\d+\.\d+)", PAGE)
    command = ["arm-none-eabi-gcc", "-dumpfullversion"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if found != version:
        sys.stdout.write(f"the page was measured with {version}, this compiler is {found}\n")
        return
    usual = _bytes(tmp_path)
    names = {"observed": "observe", "steps": "graph_steps", "stack": "stack", "pages": "pages"}
    listed = {}
    for header, part, text in re.findall(
        r"^\| `(\w+)\.h`(?:, (\w+))? \| .* \| ([\d,]+) \|$", PAGE, re.MULTILINE
    ):
        listed[names.get(part, header)] = int(text.replace(",", ""))
    assert listed == usual
    rows = re.findall(
        r"^\| `(MICROTIR_\w+)` \| (\d+) \| (\d+): .* \| ([-+]?[\d,]+)", PAGE, re.MULTILINE
    )
    assert len(rows) >= 9
    for macro, _, value, text in rows:
        changed = _bytes(tmp_path, f"-D{macro}={value}")
        difference = sum(changed.values()) - sum(usual.values())
        assert difference == int(text.replace(",", "")), (macro, value)


def test_the_page_lists_every_macro() -> None:
    """Names and defaults are those of config.h."""
    text = (runtime_crt() / "include" / "microtir" / "config.h").read_text("utf-8")
    listed = re.findall(r"^\| `(MICROTIR_\w+)` \| (\d+) \|", PAGE, re.MULTILINE)
    assert dict(listed) == dict(re.findall(r"#define (MICROTIR_\w+) (\S+)", text))
