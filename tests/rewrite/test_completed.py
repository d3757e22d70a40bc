"""What a configuration leaves to the model is named once the model is known."""

from __future__ import annotations

import pytest

from microtir.config import CompilationConfig, Measure
from microtir.rewrite.requests.requested import completed
from tests.support.dsp_cases import convolution, floating


@pytest.mark.parametrize(
    ("in_floats", "target", "measure"),
    [
        (True, "c -mcpu=cortex-m4", Measure.CYCLES),
        (True, "c -mcpu=cortex-m7", Measure.CYCLES),
        (True, "c -mcpu=cortex-m3", Measure.INSTRUCTIONS),
        (True, "c", Measure.INSTRUCTIONS),
        (False, "c -mcpu=cortex-m4", Measure.INSTRUCTIONS),
    ],
)
def test_cycles_decide_for_floats_on_an_fpu(in_floats: bool, target: str, measure: Measure) -> None:
    """A fused multiply-add is one instruction, and waits for longer than a product and a sum."""
    graph = (floating(0) if in_floats else convolution(0)).graph
    config = CompilationConfig(targets=target)
    assert completed(config, graph).measure is measure
    for asked in (Measure.CYCLES, Measure.INSTRUCTIONS):
        if target != "c":
            assert completed(config.with_(measure=asked), graph).measure is asked
