from __future__ import annotations

import shutil
import subprocess

import pytest

from microtir.config import Feature, Target
from microtir.config.processors import unused_extensions
from microtir.errors import ConfigError
from microtir.instruction_sets import CPUS
from microtir.instruction_sets.features import closure, in_order

V7M = "mul-long div unaligned"
EXPECTED = {
    "cortex-m0": "",
    "cortex-m0plus": "",
    "cortex-m1": "",
    "cortex-m3": V7M,
    "cortex-m4": f"{V7M} dsp fp",
    "cortex-m7": f"{V7M} dsp fp fp.dp",
    "cortex-m23": "div",
    "cortex-m33": f"{V7M} dsp fp",
    "cortex-m35p": f"{V7M} dsp fp",
    "cortex-m52": f"{V7M} dsp mve mve.fp fp fp.dp",
    "cortex-m55": f"{V7M} dsp mve mve.fp fp fp.dp",
    "cortex-m85": f"{V7M} dsp mve mve.fp fp fp.dp",
    "cortex-r5": f"{V7M} dsp fp fp.dp",
    "cortex-a7": f"{V7M} dsp fp fp.dp",
    "cortex-a9": "mul-long unaligned dsp fp fp.dp",
    "cortex-a53": f"{V7M} fp fp.dp bit64",
    "cortex-a72": f"{V7M} fp fp.dp bit64",
    "aarch64": f"{V7M} fp fp.dp bit64",
    "x86-64": f"{V7M} fp fp.dp vector bit64",
    "atmega328p": "unaligned progmem",
    "atmega2560": "unaligned progmem",
    "esp32": "mul-long div fp",
    "esp32s2": "mul-long div",
    "esp32s3": "mul-long div fp",
    "esp32c2": "mul-long div",
    "esp32c3": "mul-long div",
    "esp32c5": "mul-long div",
    "esp32c6": "mul-long div",
    "esp32c61": "mul-long div",
    "esp32h2": "mul-long div",
    "esp32p4": "mul-long div fp",
}

BY_STRING = {
    "c": "",
    "c -march=armv6-m": "",
    "c -march=armv7e-m": f"{V7M} dsp",
    "c -march=armv7e-m+fp": f"{V7M} dsp fp",
    "c -march=armv7e-m+fp.dp": f"{V7M} dsp fp fp.dp",
    "c -march=armv8-m.main": V7M,
    "c -march=armv8-m.main+dsp": f"{V7M} dsp",
    "c -march=armv8.1-m.main+mve": f"{V7M} dsp mve",
    "c -march=armv8.1-m.main+mve.fp": f"{V7M} dsp mve mve.fp fp",
    "c -mcpu=cortex-m4+nofp": f"{V7M} dsp",
    "c -mcpu=cortex-m4+nodsp": f"{V7M} fp",
    "c -mcpu=cortex-m7+nofp.dp": f"{V7M} dsp fp",
    "c -mcpu=cortex-m55+nomve": f"{V7M} dsp fp fp.dp",
    "c -mcpu=cortex-m55+nomve.fp": f"{V7M} dsp mve fp fp.dp",
    "c -mcpu=cortex-m55+nofp": f"{V7M} dsp mve",
    "c -mcpu=cortex-m55+nodsp": f"{V7M} fp fp.dp",
    "c -mcpu=cortex-m4 -mattr=-unaligned": "mul-long div dsp fp",
    "c -march=rv32i": "",
    "c -march=rv32e": "",
    "c -march=rv32ec": "",
    "c -march=rv32imc": "mul-long div",
    "c -march=rv32imac": "mul-long div",
    "c -march=rv32imc_zbb": "mul-long div zbb",
    "c -march=rv32imac_zba_zbb_zbs": "mul-long div zbb",
    "c -march=rv32imc_zbb+nozbb": "mul-long div",
    "c -march=rv32imcb": "mul-long div zbb",
    "c -march=rv32imc_zicsr2p0_zbb1p0_smepmp_xtheadba": "mul-long div zbb",
    "c -march=rv64imafdcv_zvl128b": "mul-long div fp fp.dp bit64",
    "c -march=rv32imafc": "mul-long div fp",
    "c -march=rv32imafdc_zicsr_zifencei": "mul-long div fp fp.dp",
    "c -march=rv32gc": "mul-long div fp fp.dp",
    "c -march=rv64imac": "mul-long div bit64",
}


def names(target: Target) -> set[str]:
    """The features of a target as their spellings."""
    return {str(feature) for feature in target.features}


@pytest.mark.parametrize("mcpu", EXPECTED)
def test_features_of_a_cpu(mcpu: str) -> None:
    """Each CPU of the table has exactly these features."""
    assert names(Target(f"c -mcpu={mcpu}")) == set(EXPECTED[mcpu].split())


def test_every_cpu_is_expected_above() -> None:
    """No CPU of the table goes without an expectation."""
    assert set(CPUS) == set(EXPECTED)


@pytest.mark.parametrize("text", BY_STRING)
def test_features_of_a_target_string(text: str) -> None:
    """Architectures, RISC-V strings and suffixes give exactly these features."""
    assert names(Target(text)) == set(BY_STRING[text].split())


@pytest.mark.parametrize(
    "march",
    ["rv32", "rv31i", "rv32cm", "rv32imm", "rv32imdc", "rv32im-c", "RV32IMC", "rv32i_"],
)
def test_malformed_riscv_strings_are_refused(march: str) -> None:
    """Order, repetition, and d without f are checked, so that gcc never sees a bad string."""
    with pytest.raises(ConfigError, match=f"'march' is '{march}'"):
        Target(f"c -march={march}")


@pytest.mark.parametrize(
    ("march", "name"),
    [
        ("rv32imc_xfoo", "xfoo"), ("rv32imc_zbb_zfoo", "zfoo"), ("rv32imc_zve32", "zve32"),
        ("rv32imc_zbb_xwrong", "xwrong"), ("rv32i_zicsrx", "zicsrx"),
    ],
)  # fmt: skip
def test_extensions_that_are_none_are_refused(march: str, name: str) -> None:
    """A C compiler would refuse them, after everything was generated."""
    with pytest.raises(ConfigError, match=f"'march' is '{march}', .*extension '{name}'"):
        Target(f"c -march={march}")
    with pytest.raises(ConfigError, match=f"leave out _{name}"):
        Target(march)
    assert Target(march.replace(f"_{name}", "")).march is not None


@pytest.mark.parametrize("letter", "ljtn")
def test_letters_that_no_extension_has_are_refused(letter: str) -> None:
    """They were kept for extensions that there are not."""
    with pytest.raises(ConfigError, match="which is unknown"):
        Target(f"c -march=rv32imc{letter}")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("rv32imacv", "v"), ("rv32imacp", "p"), ("rv32imc_zve32x", "zve32x"),
        ("rv64gcv_zvl256b_zvfh_zvbb", "v, zvl256b, zvfh, zvbb"),
        ("rv32imafc_xesploop_xespv2p1", "xesploop, xespv"),
        ("rv32imac_zicsr_zifencei_zba_zbb_zbs_zca_zfinx_ssaia", ""), ("esp32p4", ""),
        ("cortex-m55", ""), ("c", ""),
    ],
)  # fmt: skip
def test_extensions_that_no_kernel_uses_are_named(text: str, names: str) -> None:
    """A core is named with a vector unit for its sake: that nothing uses it is said."""
    target = Target(text)
    want = names and f"note: no kernel uses {names} of {text}; the C is as for a core without it"
    assert unused_extensions([target, target]) == want


@pytest.mark.parametrize(
    ("march", "abi"),
    [
        ("rv32e", "ilp32e"),
        ("rv32imac", "ilp32"),
        ("rv32imafc", "ilp32f"),
        ("rv32gc", "ilp32d"),
        ("rv64imac", "lp64"),
        ("rv64gc", "lp64d"),
    ],
)
def test_default_abi_of_riscv(march: str, abi: str) -> None:
    """The default ABI passes floats in registers where there are such registers."""
    assert Target(f"c -march={march}").mabi == abi


def _defined(arguments: list[str]) -> dict[str, str] | None:
    """Macros of arm-none-eabi-gcc for `arguments`; None if it does not know the CPU."""
    gcc = shutil.which("arm-none-eabi-gcc")
    assert gcc is not None, "the tests need arm-none-eabi-gcc"
    run = subprocess.run(
        [gcc, *arguments, "-mthumb", "-mfloat-abi=softfp", "-dM", "-E", "-x", "c", "-"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        return None
    return dict(line.split(maxsplit=2)[1:] for line in run.stdout.splitlines() if "__ARM" in line)


def _macros(arguments: list[str]) -> set[str] | None:
    """Features that arm-none-eabi-gcc states for `arguments`; None if it does not know the CPU."""
    defined = _defined(arguments)
    if defined is None:
        return None
    fp = int(defined.get("__ARM_FP", "0"), 0)
    mve = int(defined.get("__ARM_FEATURE_MVE", "0"), 0)
    facts = {
        "dsp": "__ARM_FEATURE_DSP" in defined,
        "div": "__ARM_FEATURE_IDIV" in defined,
        "unaligned": "__ARM_FEATURE_UNALIGNED" in defined,
        "fp": bool(fp & 4),
        "fp.dp": bool(fp & 8),
        "mve": bool(mve & 1),
        "mve.fp": bool(mve & 2),
    }
    return {name for name, true in facts.items() if true}


@pytest.mark.tools
def test_table_agrees_with_gcc() -> None:
    """For every Arm CPU that gcc knows, its macros state the features of the table."""
    compared = 0
    for mcpu in EXPECTED:
        target = Target(f"c -mcpu={mcpu}")
        if not mcpu.startswith("cortex-") or target.has(Feature.BIT64):
            continue
        stated = _macros([f"-mcpu={mcpu}"])
        if stated is not None:
            compared += 1
            assert names(target) - {"mul-long"} == stated, mcpu
    assert compared >= 10


@pytest.mark.tools
def test_suffixes_agree_with_gcc() -> None:
    """For gcc's own suffixes, its macros state the features that the target has."""
    for text in (
        "-mcpu=cortex-m4+nofp",
        "-mcpu=cortex-m7+nofp.dp",
        "-mcpu=cortex-m33+nodsp",
        "-mcpu=cortex-m55+nomve",
        "-mcpu=cortex-m55+nomve.fp",
        "-mcpu=cortex-m55+nodsp",
        "-mcpu=cortex-m55+nofp",
        "-march=armv7e-m+fp",
        "-march=armv8.1-m.main+mve.fp",
        "-march=armv8.1-m.main+mve",
    ):
        assert names(Target(f"c {text}")) - {"mul-long"} == _macros([text]), text


FUSING = (
    "cortex-m4", "cortex-m4+nofp", "cortex-m3", "cortex-m7", "cortex-m7+nofp.dp", "cortex-m33",
    "cortex-m55", "cortex-m55+nofp", "cortex-r5", "cortex-a7", "cortex-a9",
)  # fmt: skip


@pytest.mark.tools
@pytest.mark.parametrize("mcpu", FUSING)
def test_fusing_agrees_with_gcc(mcpu: str) -> None:
    """Gcc says which cores multiply and add in one instruction that rounds once."""
    defined = _defined([f"-mcpu={mcpu}"])
    assert defined is not None
    assert Target(f"c -mcpu={mcpu}").fuses_floats == ("__ARM_FEATURE_FMA" in defined)


@pytest.mark.parametrize(
    ("target", "fuses"),
    [
        ("c", False), ("c -mcpu=x86-64", False), ("c -mcpu=aarch64", True),
        ("c -march=rv32imac", False), ("c -march=rv32imafc", True), ("c -mcpu=esp32", True),
        ("c -mcpu=esp32s2", False), ("c -mcpu=atmega328p", False), ("c -march=armv7e-m+fp", True),
    ],
)  # fmt: skip
def test_other_cpus_that_fuse(target: str, fuses: bool) -> None:
    """Whoever has floats in hardware since about 2005 fuses; x86-64 does not need to."""
    assert Target(target).fuses_floats is fuses


def test_closure_adds_what_is_needed() -> None:
    """A float vector unit needs the integer one, which needs DSP, and an FPU."""
    needed = closure(frozenset({Feature.MVE_FLOAT}))
    assert in_order(needed) == (Feature.DSP, Feature.MVE, Feature.MVE_FLOAT, Feature.FPU)
