"""A report made by hand: three layers, of which two stream, with every kind of buffer but one."""

from __future__ import annotations

from microtir.artifact import Footprint
from microtir.report.data import (
    BufferKind,
    LiveSpan,
    MainCall,
    Report,
    ReportedBuffer,
    ReportedConstant,
    ReportedKernel,
    ReportedLayer,
    ReportedLimit,
    ReportedPool,
    ReportedPort,
    ReportedProfile,
    Stream,
)


def steady(first: int, last: int, low: int, high: int) -> LiveSpan:
    """Keep the same bytes from the first step to the last."""
    return LiveSpan(first, last, low, high, (low, high), (low, high))


def buffer(
    name: str, kind: BufferKind, offset: int, *spans: LiveSpan, at_peak: int = 0
) -> ReportedBuffer:
    """Return a buffer that reaches from its offset to the highest of its spans."""
    first, last = spans[0].first, spans[-1].last
    size = max(span.high for span in spans) - offset
    content = f"{name} tensor 1x{size} int8"
    return ReportedBuffer(
        name, kind, content, offset, size, first, last, first, last, spans, at_peak
    )  # fmt: skip


def pool() -> ReportedPool:
    """Return 100 bytes: a ring, an activation that grows while another shrinks, scratch."""
    return ReportedPool(
        name="workspace",
        size=100,
        lower_bound=90,
        alignment=4,
        is_verified=True,
        peak_step=1,
        buffers=(
            buffer("ring_0", BufferKind.RING, 0, steady(0, 1, 0, 30), at_peak=30),
            buffer("activation_1", BufferKind.ACTIVATION, 40, steady(1, 1, 40, 80),
                   LiveSpan(2, 2, 40, 80, (40, 80), (70, 80)), at_peak=40),
            buffer("layer1_scratch", BufferKind.SCRATCH, 80, steady(1, 1, 80, 100), at_peak=20),
            buffer("activation_2", BufferKind.ACTIVATION, 20,
                   LiveSpan(2, 2, 20, 70, (20, 30), (20, 70)), steady(3, 3, 20, 70)),
        ),
    )  # fmt: skip


def layer(number: str, operator: str, macs: int, streamed: bool = False) -> ReportedLayer:
    """Return a layer that executes three quarters of its work."""
    return ReportedLayer(
        number, f"net/{operator.lower()}", operator, "direct", ("1x4x4x2",), ("1x4x4x3",),
        macs, macs * 3 // 4, 0, macs // 8, 32, 48, streamed, operator != "RESHAPE",
        None if operator == "RESHAPE"
        else ReportedKernel("direct", "the fastest of 2", macs, 2 * macs),
        (ReportedKernel("gemm", "computes other types", None, None),
         ReportedKernel("accumulate", "computes other types", None, None),
         ReportedKernel("blocked", "2,000 instructions more", 2000 + macs, 3000 + macs)),
    )  # fmt: skip


def report() -> Report:
    """Return the report: four steps, as one layer needs two, and a limit that is exceeded."""
    operators = ("CONV_2D", "RELU", "MEAN", "MEAN")
    labels = ("0", "1", "3", "3f")
    return Report(
        generator="microtir",
        model="net",
        file="net.tflite",
        sha256="0f" * 32,
        model_bytes=12345,
        optimize="balanced",
        targets=("c",),
        options=(("module_name", '"net"'),),
        pools=(pool(),),
        ports=(
            ReportedPort("x", BufferKind.INPUT, "1x4x4x2 int8", 32, 0, 1, False),
            ReportedPort("y", BufferKind.OUTPUT, "1x1x1x3 int8", 3, 3, 3, False),
        ),
        ram=Footprint(workspace=100, scratch=0, io=35),
        steps=tuple(
            MainCall(n, label, f"layer{label}", operator, f"net/{operator.lower()}")
            for n, (label, operator) in enumerate(zip(labels, operators, strict=True))
        ),
        streams=(Stream(0, 1), Stream(2, 2)),
        layers=(
            layer("0", "CONV_2D", 16000, True),
            layer("1", "RELU", 0, True),
            layer("2", "RESHAPE", 0),
            layer("3", "MEAN", 800),
        ),
        constants=(ReportedConstant("weights", "0", 2000), ReportedConstant("table", "1, 3", 100)),
        weights_bytes=2100,
        code_bytes=310,
        limits=(ReportedLimit("budget.ram", "workspace", 95, 100),),
        least=64,
        profile=None,
    )


def totals() -> ReportedProfile:
    """Return what a profile of the report's model measured."""
    return ReportedProfile(
        board="board", compiler="cc 1", instructions=1000, cycles=1500,
        flash=(("code", 300), ("weights", 2100)), ram=(("workspace", 80), ("scratch", 20)),
        elsewhere=(),
    )  # fmt: skip
