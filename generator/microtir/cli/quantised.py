"""Prints what quantisation chose and what it costs, in one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtir.cli.output import cell, facts, write, write_table

if TYPE_CHECKING:
    from microtir.host.quantised import QuantisedBySamples
    from microtir.quantise.summary import Summary


def facts_of(
    by: QuantisedBySamples, summary: Summary, model: Path, output: Path, wider: tuple[str, ...]
) -> dict[str, Any]:
    """Return the figures of a quantised model as they are written as JSON."""
    return {
        "model": model.name,
        "output": str(output),
        "bytes": {"before": model.stat().st_size, "after": output.stat().st_size},
        **summary.to_dict(),
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
            for one in by.result.tensors
        ],
        "stored_in_8_bits": list(wider),
    }


def print_quantised(summary: Summary, model: Path, output: Path, wider: tuple[str, ...]) -> None:
    """Print what was chosen, what it costs, and the layers with the worst one marked."""
    before, after = (cell(path.stat().st_size) for path in (model, output))
    write(f"{model.name} -> {output}, {after} bytes of {before}")
    print_cost(summary)
    if wider:
        write(
            f"\n{len(wider)} weights of 4 bits take 8 in the file: tflite-micro has no dense layer"
            " for them with a scale for each channel, and QDQ is of 8"
        )


def print_cost_below(summary: Summary) -> None:
    """Print what integers cost behind other figures of a program."""
    write("\nintegers, beside the floats that they stand for\n")
    print_cost(summary)


def print_cost(summary: Summary) -> None:
    """Print what integers cost."""
    from microtir.report import quantisation

    facts(quantisation.facts(summary))
    if summary.layers:
        table = quantisation.layer_table(summary, quantisation.SCREEN)
        write("")
        write_table(table.columns, table.rows, right=tuple(table.right), spare=table.spare)
    for note in quantisation.notes(summary, quantisation.SCREEN):
        write(f"\n{note}")
