"""Words what quantisation cost as sentences and rows, for the page and for the terminal alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from microtir.quantise.cost import Score
from microtir.quantise.summary import (
    CLIPPED,
    EXCESS,
    LOW,
    UNEVEN,
    LayerCost,
    Remedy,
    Summary,
)
from microtir.report.summary import TextTable

SCREEN = 16
"""Rows of a table of layers that fits a screen."""

WORST = "worst"
_MOST_NAMED = 6  # layers in floats, ranges that clip


def headline(summary: Summary) -> list[tuple[str, str]]:
    """Return the few figures that stand above all else, as pairs of figure and words."""
    cost, worst = summary.cost, summary.worst
    rows = []
    if cost.score is not None:
        rows += [
            (_number(cost.score.before, cost.score), f"{cost.score.kind} in floats"),
            (_number(cost.score.after, cost.score), f"{cost.score.kind} in integers"),
        ]
    elif cost.decided_otherwise is not None:
        rows.append((f"{cost.decided_otherwise} of {cost.samples}", "decisions differ"))
    if cost.outputs:
        least = min(cost.outputs, key=lambda one: one.sqnr)
        rows.append((f"{least.sqnr:.1f} dB", f"SQNR of '{least.name}'"))
    if worst is not None:
        rows.append((f"{worst.figures.sqnr:.1f} dB", f"at '{worst.figures.name}', the worst layer"))
    return rows


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return what was chosen and what it costs, as pairs of name and sentence."""
    cost = summary.cost
    widths = Counter(layer.figures.width.value for layer in summary.layers)
    chosen = {"fixed" if c is None else c.value: count for c, count in summary.calibrations}
    which = "that did not calibrate" if cost.are_new else "that calibrated it, too"
    rows = [
        ("layers", _counted(widths) or "none measured"),
        ("ranges", _counted(chosen)),
        ("measured on", f"{cost.samples} of {summary.samples} samples, {which}"),
        *(("error", f"'{one.name}': {one.sqnr:.1f} dB, largest difference {one.largest:.4g}")
          for one in cost.outputs),
    ]  # fmt: skip
    if cost.decided_otherwise is not None:
        rows.append(
            ("decisions", f"{cost.decided_otherwise} of {cost.samples} differ from the floats")
        )
    if cost.score is not None:
        before, after = (_number(n, cost.score) for n in (cost.score.before, cost.score.after))
        rows.append((cost.score.kind, f"{before} before, {after} after"))
    return rows


def _counted(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _number(value: float, score: Score) -> str:
    return f"{value:.2%}" if score.is_accuracy else f"{value:.6g}"


def layer_table(summary: Summary, most: int | None = None) -> TextTable:
    """Return a row for each layer, in their order.

    Args:
        summary: of the model.
        most: rows; where there are more layers, those of least SQNR are taken.
    """
    worst = summary.worst
    lowest = sorted(summary.layers, key=lambda layer: layer.figures.sqnr)[:most]
    shown = [layer for layer in summary.layers if layer in lowest]
    rows = tuple(
        (
            layer.figures.name,
            layer.figures.operator,
            layer.figures.width.value,
            f"{layer.figures.sqnr:.1f}",
            "; ".join([*([WORST] if layer is worst else []), *_faults(layer)]),
        )
        for layer in shown
    )
    columns = ("layer", "operator", "width", "SQNR dB", "notes")
    marked = None if worst is None else shown.index(worst)
    return TextTable(columns, rows, frozenset({"SQNR dB"}), ("operator", "width"), marked)


def _faults(layer: LayerCost) -> Iterator[str]:
    """Yield what is wrong with a layer."""
    figures = layer.figures
    if layer.clipped > CLIPPED:
        yield f"{layer.clipped:.2%} of its values clipped"
    if layer.excess >= EXCESS:
        yield f"a few outliers make the range {layer.excess:.1f} times as wide"
    if figures.dead:
        yield f"{len(figures.dead)} channels of weights are 0"
    if figures.outlier >= UNEVEN and figures.sqnr < LOW:
        yield f"the weights of one channel are {figures.outlier:.0f} times those of others"


def notes(summary: Summary, most: int | None = None) -> list[str]:
    """Return sentences behind the table: layers that were left out, what would mend the worst.

    Args:
        summary: of the model.
        most: rows that the table has at most.
    """
    said = []
    if most is not None and len(summary.layers) > most:
        least = sorted(layer.figures.sqnr for layer in summary.layers)[most]
        count = len(summary.layers) - most
        said.append(f"{count} others have {least:.1f} dB and more: --json FILE has all")
    worst = summary.worst
    if worst is not None and (worst.figures.sqnr < LOW or len(worst.remedies) > 1):
        ways = "; or ".join(_sentence(remedy, worst) for remedy in worst.remedies)
        said.append(f"to improve the worst layer, '{worst.figures.name}': {ways}")
    named = [f"'{one.name}' {one.clipped:.2%}" for one in summary.clipping[:_MOST_NAMED]]
    if named:
        others = f" and {len(summary.clipping) - len(named)} others" * (
            len(summary.clipping) > len(named)
        )
        said.append(f"values outside of the range are clipped: {', '.join(named)}{others}")
    if summary.floats:
        said.append(f"{len(summary.floats)} layers stay in floats: {_floats(summary)}")
    return [*said, *(f"note: {warning}" for warning in summary.warnings)]


def _sentence(remedy: Remedy, layer: LayerCost) -> str:
    match remedy:
        case Remedy.WIDER:
            width = {"weights4": "int4"}.get(layer.wider.value, layer.wider.value)
            return f"--layer '{layer.figures.name}={width}'"
        case Remedy.WHOLE_RANGE:
            return "--calibration min-max, which clips nothing"
        case Remedy.PERCENTILE:
            return "--calibration percentile, which leaves out the few values that widen its range"
        case Remedy.ACTIVATION:
            return "a bounded activation, such as RELU6, in training"


def _floats(summary: Summary) -> str:
    named = [f"'{one.name}', {one.why}" for one in summary.floats[:_MOST_NAMED]]
    rest = len(summary.floats) - len(named)
    return "; ".join([*named, *([f"and {rest} others"] if rest > 0 else [])])
