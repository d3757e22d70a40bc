"""Prints what quantisation chose and what it costs, in one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtir.cli.output import cell, facts, write, write_table

if TYPE_CHECKING:
    from microtir.host.float_samples import FloatSamples
    from microtir.quantise import LayerFigures, Quantised
    from microtir.quantise.cost import Cost, Score

_MOST_LAYERS = 16  # rows of a table that fits a screen
_MOST_FLOATS = 6
_CLIPPED = 1e-3  # share of values above which a range is too narrow
_LOW = 20.0  # dB, below which a layer is worth a look


def facts_of(
    result: Quantised,
    cost: Cost,
    samples: FloatSamples,
    model: Path,
    output: Path,
    wider: tuple[str, ...],
) -> dict[str, Any]:
    """Return the figures of a quantised model as they are written as JSON."""
    score = cost.score
    worst = _worst(result)
    return {
        "model": model.name,
        "output": str(output),
        "bytes": {"before": model.stat().st_size, "after": output.stat().st_size},
        "samples": {
            "all": len(next(iter(samples.inputs.values()))) if samples.inputs else 0,
            "measured": cost.samples,
            "measured_are_new": cost.are_new,
        },
        "outputs": [
            {"name": one.name, "sqnr_db": one.sqnr, "largest_difference": one.largest}
            for one in cost.outputs
        ],
        "decided_otherwise": cost.decided_otherwise,
        "score": None
        if score is None
        else {"kind": _kind(score), "before": score.before, "after": score.after},
        "layers": [
            {
                "name": layer.name,
                "operator": layer.operator,
                "width": layer.width.value,
                "sqnr_db": layer.sqnr,
                "dead_channels": list(layer.dead),
                "outlier": layer.outlier,
            }
            for layer in result.layers
        ],
        "worst": None if worst is None else {"name": worst.name, "fix": _mended_by(result, worst)},
        "tensors": [
            {
                "name": one.name,
                "dtype": one.type.dtype.value,
                "scale": one.type.quant.scale,
                "zero_point": one.type.quant.zero_point,
                "seen": list(one.seen),
                "chosen": list(one.chosen),
                "calibration": None if one.calibration is None else one.calibration.value,
                "clipped": one.clipped,
            }
            for one in result.tensors
        ],
        "floats": [{"name": one.name, "why": one.why} for one in result.floats],
        "stored_in_8_bits": list(wider),
        "warnings": [*result.warnings, *samples.doubts],
    }


def print_quantised(result: Quantised, cost: Cost, figures: Mapping[str, Any]) -> None:
    """Print what was chosen, what it costs, and the layers with the worst one marked."""
    size = figures["bytes"]
    write(
        f"{figures['model']} -> {figures['output']}, {cell(size['after'])} bytes of"
        f" {cell(size['before'])}"
    )
    rows: list[tuple[str, object]] = [
        ("layers", _counted(layer.width.value for layer in result.layers) or "none measured"),
        ("ranges", _counted(
            "fixed" if one.calibration is None else one.calibration.value for one in result.tensors
        )),
        ("measured on", _measured(cost, figures["samples"]["all"])),
        *(("error", f"'{one.name}': {one.sqnr:.1f} dB, largest difference {one.largest:.4g}")
          for one in cost.outputs),
    ]  # fmt: skip
    if cost.decided_otherwise is not None:
        rows.append(("decisions", f"{cost.decided_otherwise} of {cost.samples} are others"))
    if cost.score is not None:
        rows.append((_kind(cost.score), _before_after(cost.score)))
    facts(rows)
    _print_layers(result)
    _print_notes(result, figures)


def _measured(cost: Cost, count: int) -> str:
    which = "that did not calibrate" if cost.are_new else "that calibrated it, too"
    return f"{cost.samples} of {count} samples, {which}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).items())


def _kind(score: Score) -> str:
    return "accuracy" if score.is_accuracy else "mean squared error"


def _before_after(score: Score) -> str:
    if score.is_accuracy:
        return f"{score.before:.2%} before, {score.after:.2%} after"
    return f"{score.before:.6g} before, {score.after:.6g} after"


def _worst(result: Quantised) -> LayerFigures | None:
    return min(result.layers, key=lambda layer: layer.sqnr, default=None)


def _mended_by(result: Quantised, layer: LayerFigures) -> str:
    """Return what would bring a layer nearer to its floats."""
    clipped = {one.name: one.clipped for one in result.tensors}
    names = {n.name: [t.name for t in n.outputs] for n in result.floats_graph.nodes}
    share = max((clipped.get(name, 0.0) for name in names.get(layer.name, ())), default=0.0)
    if share > _CLIPPED:
        return f"--calibration min-max: {share:.2%} of its values are clipped"
    wider = {"weights4": "int8", "int8": "16x8", "16x8": "float"}
    return f"--layer '{layer.name}={wider[layer.width.value]}'"


def _print_layers(result: Quantised) -> None:
    layers = result.layers
    if not layers:
        return
    worst = _worst(result)
    lowest = sorted(layers, key=lambda layer: layer.sqnr)[:_MOST_LAYERS]
    shown = [layer for layer in layers if layer in lowest]
    rows = [
        (
            layer.name,
            layer.operator,
            layer.width.value,
            f"{layer.sqnr:.1f}",
            len(layer.dead) or None,
            "worst" if layer is worst else "",
        )
        for layer in shown
    ]
    write("")
    columns = ("layer", "operator", "width", "SQNR dB", "dead", "")
    write_table(columns, rows, right=("SQNR dB", "dead"))
    if len(shown) < len(layers):
        least = min(layer.sqnr for layer in layers if layer not in lowest)
        write(
            f"{len(layers) - len(shown)} others have {least:.1f} dB and more: --json FILE has all"
        )
    if worst is not None and worst.sqnr < _LOW:
        write(f"\nthe worst, '{worst.name}', would gain by {_mended_by(result, worst)}")


def _print_notes(result: Quantised, figures: Mapping[str, Any]) -> None:
    if result.floats:
        write(f"\n{len(result.floats)} layers stay in floats:")
        for one in result.floats[:_MOST_FLOATS]:
            write(f"  - {one.source} ('{one.name}'): {one.why}")
        rest = len(result.floats) - _MOST_FLOATS
        if rest > 0:
            write(f"  - and {rest} others: --json FILE has all")
    wider = figures["stored_in_8_bits"]
    if wider:
        write(
            f"\n{len(wider)} weights of 4 bits take 8 in the file: tflite-micro has no dense layer"
            " for them with a scale for each channel, and QDQ is of 8"
        )
    for warning in figures["warnings"]:
        write(f"\nnote: {warning}")
