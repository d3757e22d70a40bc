"""Costs of a push of frames beside those of a run of the whole window, as facts and sentences."""

from __future__ import annotations

from microtir.graph.ir import Stream, StreamedLayer
from microtir.report.data import NO_NUMBER, PushedLayer, ReportedPushes, WholeRun


def pushes_of(stream: Stream, whole: WholeRun) -> ReportedPushes:
    """Return what a push computes of each layer that multiplies."""
    window = stream.input.shape[stream.axis]
    layers = tuple(map(_layer, stream.layers))
    return ReportedPushes(stream.input.name, stream.hop, window, layers, whole)


def _layer(layer: StreamedLayer) -> PushedLayer:
    source = layer.node.source
    return PushedLayer(
        number=str(source.index) if source.index >= 0 else NO_NUMBER,
        name=layer.node.name,
        operator=source.operator,
        rows=layer.rows,
        computed=layer.computed,
        macs=layer.macs,
        macs_computed=layer.macs_computed,
        is_padded=layer.is_padded,
    )


def push_facts(pushes: ReportedPushes, instructions: int | None, ram: int) -> list[tuple[str, str]]:
    """Return what a push is and takes beside a run of the whole window, as name and sentence.

    Args:
        pushes: the facts.
        instructions: of a push, counted as those of the whole window are.
        ram: bytes of a push, without the stack.
    """
    whole = pushes.whole
    newest = "the newest frame" if pushes.frames == 1 else f"the newest {pushes.frames} frames"
    rows = [
        ("a push", f"{newest} of '{pushes.input}', of a window of {pushes.window}"),
        ("of the MACs", _part(pushes.macs_computed, pushes.macs)),
        ("padded in time", _padded(pushes)),
    ]
    if instructions is not None:
        about = "" if whole.is_measured else "about "
        rows.append(("of instructions", about + _part(instructions, whole.instructions)))
    rows.append(("RAM beside it", f"{ram:,} bytes, {whole.ram:,} for runs of the whole window"))
    return [row for row in rows if row[1]]


def _part(part: int, whole: int) -> str:
    return f"{part:,} of the whole window's {whole:,}, {part / max(whole, 1):.3f}"


def _padded(pushes: ReportedPushes) -> str:
    """Return which layers pad along time, and what that fixes; nothing if none does."""
    padded = [layer for layer in pushes.layers if layer.is_padded]
    if not padded:
        return ""
    names = ", ".join(
        f"{layer.number} {layer.operator} ({layer.computed} of {layer.rows} rows)"
        for layer in padded
    )
    share = pushes.macs_computed / max(pushes.macs, 1)
    return (
        f"layers {names}: rows near their padding are computed again, so every push takes at least "
        f"{share:.3f} of the MACs"
    )
