"""Prints what quantisation chose and what it costs, in one screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtir.cli.output import cell, facts, write, write_table

if TYPE_CHECKING:
    from microtir.host.quantised import QuantisedBySamples
    from microtir.quantise.summary import Summary


_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Stored:
    """Parts of a file that are stored otherwise than the program computes them.

    Args:
        wider: weights of 4 bits that take 8.
        floats: layers of integers that the format has in floats alone.
    """

    wider: tuple[str, ...]
    floats: tuple[str, ...] = ()


def facts_of(
    by: QuantisedBySamples, summary: Summary, model: Path, output: Path, stored: Stored
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
        "stored_in_8_bits": list(stored.wider),
        "stored_in_floats": list(stored.floats),
    }


def print_quantised(summary: Summary, model: Path, output: Path, stored: Stored) -> None:
    """Print what was chosen, what it costs, and the layers with the worst one marked."""
    before, after = (cell(path.stat().st_size) for path in (model, output))
    write(f"{model.name} -> {output}, {after} bytes of {before}")
    print_cost(summary)
    if stored.wider:
        why = (
            "QDQ has 8-bit weights" if output.suffix == ".onnx"
            else "tflite-micro has no dense layer for them with a scale for each channel"
        )  # fmt: skip
        write(f"\n4-bit weights, stored with 8 bits in the file: {_named(stored.wider)}; {why}")
    if stored.floats:
        write(
            f"\nLSTMs in floats in the file: {_named(stored.floats)}. QDQ has no integer LSTM; "
            "write a .tflite file, or use compile --quantise"
        )


def _named(names: tuple[str, ...]) -> str:
    rest = len(names) - _MOST_NAMED
    shown = [f"'{name}'" for name in names[:_MOST_NAMED]]
    return ", ".join([*shown, *([f"{rest} others"] if rest > 0 else [])])


def print_cost_below(summary: Summary) -> None:
    """Print what integers cost behind other figures of a program."""
    write("\nintegers, next to the floats that they represent\n")
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
