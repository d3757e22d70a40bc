"""Ready-made configurations: for a part by name, for any microcontroller, for this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.config.compilation import CompilationConfig
from microtir.config.enums import ExecutorKind
from microtir.config.executor import Executor
from microtir.config.options import DEFAULT_TARGET
from microtir.config.runtime import Runtime
from microtir.errors import ConfigError, Fix, nearest_part
from microtir.support.arguments import checked_arguments

# microTVM's sixteen models, corrected where the part is not what microTVM said: the first core of
# the AN521 image has neither DSP nor FPU (SXTB16 faults on it), the FPU of the STM32F746 is single
# precision, and the RP2040 is a Cortex-M0+. No DSP on the nRF52840 is microTVM's own choice.
MODELS: Mapping[str, str] = MappingProxyType(
    {
        "atsamd51": "-mcpu=cortex-m4",
        "cxd5602gg": "-mcpu=cortex-m4",
        "esp32": "-mcpu=esp32",
        "host": "",
        "imxrt10xx": "-mcpu=cortex-m7",
        "mps2_an521": "-mcpu=cortex-m33+nodsp+nofp",
        "mps3_an547": "-mcpu=cortex-m55",
        "nrf52840": "-mcpu=cortex-m4+nodsp",
        "nrf5340dk": "-mcpu=cortex-m33",
        "rp2040": "-mcpu=cortex-m0plus",
        "sam3x8e": "-mcpu=cortex-m3",
        "stm32f746xx": "-mcpu=cortex-m7+nofp.dp -march=armv7e-m",
        "stm32h7xx": "-mcpu=cortex-m7",
        "stm32l4r5zi": "-mcpu=cortex-m4",
        "stm32u5xx": "-mcpu=cortex-m33",
        "unknown": "",
        "zynq_mp_r5": "-mcpu=cortex-r5",
    }
)


@checked_arguments
def micro(
    model: str = "unknown",
    options: str | Sequence[str] | None = None,
    executor: Executor | str | None = None,
) -> CompilationConfig:
    """Return a configuration for a microcontroller.

    Args:
        model: name of a part or board; `unknown` is portable code for any.
        options: more target options, such as ``"-mattr=-fp"``.
        executor: default is `aot`. With `graph` the runtime has a system library, in which the
            program and its operators are found by name.

    Raises:
        ConfigError: an unknown model (says the nearest), or an illegal option.
    """
    if model not in MODELS:
        hint = nearest_part(model, MODELS)
        what = f"micro(): the model '{model}' is unknown"
        raise ConfigError(
            f"{what}: {hint}" if hint else what,
            where="model",
            legal=", ".join(MODELS),
            fix=Fix(
                "use Target('c -mcpu=…') for a part that is not listed",
                "use --target 'c -mcpu=…' for a part that is not listed",
            ),
        )
    more = options.split() if isinstance(options, str) else list(options or ())
    words = ["c", MODELS[model], f"-model={model}" if model != "unknown" else "", *more]
    target = " ".join(word for word in words if word)
    config = CompilationConfig(targets=target, executor="aot" if executor is None else executor)
    is_graph = config.executor.kind is ExecutorKind.GRAPH
    return config.with_(runtime=Runtime("crt", {"system-lib": is_graph}))


def microcontroller() -> CompilationConfig:
    """Return a configuration for what a command line means that names neither a target nor a board.

    That is never the machine that the compiler happens to run on: what is planned for a PC takes
    many times the instructions on a microcontroller.
    """
    return CompilationConfig.from_target(DEFAULT_TARGET)


def host() -> CompilationConfig:
    """Return a configuration for the CPU of the machine that runs the compiler.

    The CPU is resolved to the name of its architecture at once, so that a recorded
    configuration says the same on every machine.
    """
    return CompilationConfig.from_target("c -mcpu=native")
