from __future__ import annotations

import pytest

from microtir.config import CompilationConfig, Executor, Feature, Target, host, micro
from microtir.config.creators import MODELS
from microtir.errors import ConfigError

EXPECTED = {
    "host": "c -model=host",
    "atsamd51": "c -mcpu=cortex-m4 -model=atsamd51",
    "cxd5602gg": "c -mcpu=cortex-m4 -model=cxd5602gg",
    "esp32": "c -mcpu=esp32 -model=esp32",
    "imxrt10xx": "c -mcpu=cortex-m7 -model=imxrt10xx",
    "mps2_an521": "c -mcpu=cortex-m33 -mattr=-dsp,-fp -model=mps2_an521",
    "mps3_an547": "c -mcpu=cortex-m55 -model=mps3_an547",
    "nrf52840": "c -mcpu=cortex-m4+nodsp -model=nrf52840",
    "nrf5340dk": "c -mcpu=cortex-m33 -model=nrf5340dk",
    "rp2040": "c -mcpu=cortex-m0plus -model=rp2040",
    "sam3x8e": "c -mcpu=cortex-m3 -model=sam3x8e",
    "stm32f746xx": "c -mcpu=cortex-m7+nofp.dp -model=stm32f746xx",
    "stm32h7xx": "c -mcpu=cortex-m7 -model=stm32h7xx",
    "stm32l4r5zi": "c -mcpu=cortex-m4 -model=stm32l4r5zi",
    "stm32u5xx": "c -mcpu=cortex-m33 -model=stm32u5xx",
    "zynq_mp_r5": "c -mcpu=cortex-r5 -model=zynq_mp_r5",
}


@pytest.mark.parametrize("model", EXPECTED)
def test_s2_9_micro_knows_the_sixteen_models(model: str) -> None:
    """Each of microTVM's models gives a default configuration for its CPU."""
    assert micro(model) == CompilationConfig(targets=EXPECTED[model])


def test_s2_9_no_model_goes_untested() -> None:
    """The table holds the models above and `unknown`, which is portable code."""
    assert set(MODELS) == {*EXPECTED, "unknown"}
    assert micro() == CompilationConfig(targets="c")


def test_s2_9_micro_takes_options_and_executor() -> None:
    """More target options and an executor go into the same configuration."""
    executor = Executor("aot", {"workspace-byte-alignment": 8})
    config = micro("stm32u5xx", "-mattr=-fp", executor)
    assert config == micro("stm32u5xx", ["-mattr=-fp"], executor)
    assert not config.primary_target().has(Feature.FPU)
    assert config.workspace_alignment() == 8


@pytest.mark.parametrize("executor", ["graph", "aot", "debug", None])
def test_s2_9_micro_has_a_system_library_with_the_graph_executor(executor: str | None) -> None:
    """As the RFC has it: `system-lib` is on for `graph`, and off for all others."""
    assert micro("nrf52840", executor=executor).runtime.system_lib == (executor == "graph")


@pytest.mark.parametrize(
    ("model", "options", "executor", "text"),
    [
        ("nrf52480", None, None, "did you mean 'nrf52840'?"),
        ("nonsense!", None, None, "expected: atsamd51, cxd5602gg"),
        ("nrf52840", "-mcpu=cortex-m0", None, "'mcpu' is given twice"),
        ("nrf52840", "-mcu=x", None, "did you mean 'mcpu'?"),
        ("nrf52840", None, "grap", "did you mean 'graph'?"),
    ],
)
def test_s2_9_micro_refuses(model: str, options: str, executor: str, text: str) -> None:
    """A wrong model or option is refused with the nearest name."""
    with pytest.raises(ConfigError) as caught:
        micro(model, options, executor)
    assert text in str(caught.value)


def test_s2_9_host_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's CPU is recorded by name, so that the record means the same elsewhere."""
    assert host() == CompilationConfig.from_target("c -mcpu=native")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    recorded = host()
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert CompilationConfig.from_json(recorded.to_json()) == recorded
    assert recorded.primary_target() == Target("c -mcpu=x86-64")
    assert host() != recorded
