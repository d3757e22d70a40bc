"""Prints the verdict of `microtir verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microtir.cli.output import cell, write, write_table
from microtir.config.enums import Numerics
from microtir.config.processors import for_processors, run_here

if TYPE_CHECKING:
    from microtir.host.compare import Comparison, Difference
    from microtir.host.layers import WrongLayer
    from microtir.host.tolerance import Tolerance
    from microtir.host.verify import Verification
    from microtir.module.ir_module import ModelInfo

_SHOWN = 20  # rows of a table of differences; the JSON has the count of all


def print_verdict(
    verdict: Verification,
    model: ModelInfo,
    tolerance: Tolerance,
    source: str,
    sanitized: bool,
    numerics: Numerics,
    *,
    exact: bool = False,
) -> None:
    """Write one line when all is equal, else a table of what differs and the layer behind it.

    The first line says for which processor the C is, and that it ran here, if it did.

    Args:
        verdict: what was found.
        model: whose outputs were compared.
        tolerance: how much floats could differ.
        source: the reference in words.
        sanitized: whether the C ran under sanitizers.
        numerics: what the C was asked to reproduce.
        exact: whether a difference of one quantisation step is one.
    """
    comparison = verdict.comparison
    processors = (run_here if verdict.is_here else for_processors)(verdict.targets)
    where = "" if verdict.is_here else f" on {verdict.board}"
    if verdict.within_one_step and not exact:
        write(
            f"equal within one quantisation step{where} ({cell(comparison.mismatches)} of "
            f"{cell(comparison.values)} values; the reference rounds halves differently); "
            f"{processors}"
        )
    elif comparison.equal:
        how = _how_equal(comparison, model, tolerance)
        write(f"equal{where}: {_counts(comparison)}, {how}; {processors}")
    else:
        _print_differences(comparison, processors)
    write(f"reference: {source}")
    error = _reference_error(comparison, tolerance, numerics)
    if error:
        write(error)
    if sanitized:
        write("sanitizers: nothing found")  # else the run would have ended in an error
    if verdict.layers_checked:
        _print_layers(verdict)


def _counts(comparison: Comparison) -> str:
    noun = "sample" if comparison.samples == 1 else "samples"
    steps = "" if comparison.steps is None else f" of {cell(comparison.steps)} steps"
    return f"{cell(comparison.samples)} {noun}{steps}, {cell(comparison.values)} values"


def _how_equal(comparison: Comparison, model: ModelInfo, tolerance: Tolerance) -> str:
    dtypes = list(dict.fromkeys(port.type.dtype.value for port in model.outputs))
    parts = []
    for dtype in dtypes:
        if dtype.startswith("float"):
            parts.append(f"every {dtype} output {_how_near(tolerance)}")
        else:
            unit = "byte" if dtype in ("int8", "uint8") else "value"
            parts.append(f"every {dtype} output {unit} identical")
    text = "; ".join(parts)
    if comparison.max_abs_error:
        text += f" (largest difference {comparison.max_abs_error:.3g})"
    return text


def _how_near(tolerance: Tolerance) -> str:
    from microtir.host.tolerance import RelativeTolerance

    if isinstance(tolerance, RelativeTolerance):
        return f"within {tolerance.rtol:g} of the sample's largest"
    return f"within the error of a float32 sum of {cell(tolerance.terms)} terms"


def _reference_error(comparison: Comparison, tolerance: Tolerance, numerics: Numerics) -> str:
    """Explain a reference that is farther from the exact values than float32 is."""
    from microtir.host.tolerance import RelativeTolerance

    share = comparison.reference_error
    if isinstance(tolerance, RelativeTolerance) or share <= tolerance.plausible / 16:
        return ""
    text = f"the reference itself is up to {share:.2g} of the largest output from the exact values"
    if tolerance.is_pt2e:
        text += (
            ":\nthe model is quantised with PT2E, and PyTorch computes its layers in floats: near "
            "the middle of two\nintegers either of them comes out, and layers behind take it in"
        )
    elif tolerance.is_hybrid:
        text += (
            ":\nthe model is hybrid (float activations, int8 weights), and TFLite's kernels round "
            "the activations of such\nlayers to 8 bits. Two of its own kernels differ by as much"
        )
        if numerics is not Numerics.TFLITE_REF:
            text += (
                ". microtir computes in float32;\nwith --numerics tflite_ref it rounds as LiteRT's "
                "reference kernels do"
            )
    return text


def _print_differences(comparison: Comparison, processors: str) -> None:
    write(
        f"DIFFERENT: {cell(comparison.mismatches)} of {cell(comparison.values)} values in "
        f"{_samples(comparison)}, by up to {comparison.max_abs_error:.6g}; {processors}\n"
    )
    rows = [_row(difference) for difference in comparison.differences[:_SHOWN]]
    columns = ["sample", "output", "differ", "of", "by up to", "first at", "expected", "got"]
    if comparison.steps is not None:
        columns.insert(1, "step")
    right = ("sample", "step", "differ", "of", "by up to", "expected", "got")
    write_table(columns, rows, right=right)
    hidden = len(comparison.differences) - len(rows)
    write(f"... and {cell(hidden)} more rows\n" if hidden else "")


def _samples(comparison: Comparison) -> str:
    wrong = len({difference.sample for difference in comparison.differences})
    return f"{cell(wrong)} of {cell(comparison.samples)} samples"


def _row(difference: Difference) -> tuple[object, ...]:
    return (
        difference.sample,
        *([] if difference.step is None else [difference.step]),
        difference.output,
        difference.mismatches,
        difference.values,
        f"{difference.max_abs_error:.6g}",
        list(difference.index),
        f"{difference.expected:.9g}",
        f"{difference.got:.9g}",
    )


def _print_layers(verdict: Verification) -> None:
    layer = verdict.first_wrong_layer
    if layer is not None:
        write(_layer_text(layer))
    elif verdict.comparison.equal:
        write("layers: all equal to microtir's numpy reference")
    elif not verdict.is_here:
        write(
            "layers: all equal to microtir's numpy reference on this machine; compare with\n"
            "`microtir verify` without --board: if that is equal, the cause is the compiler, the\n"
            f"kernels or the emulator of {verdict.board}"
        )
    else:
        write("layers: all equal to microtir's numpy reference")
        if not verdict.within_one_step:
            write("the reference outputs belong to another model, other numerics, or other inputs")


def _layer_text(layer: WrongLayer) -> str:
    wrong = layer.difference
    return (
        f"first wrong layer: operator {layer.index} {layer.operator} '{layer.name}', "
        f"C function {layer.function}\n"
        f"  {wrong.place}, tensor '{wrong.output}': {cell(wrong.mismatches)} of "
        f"{cell(wrong.values)} values differ by up to {wrong.max_abs_error:.6g};\n"
        f"  first at {list(wrong.index)}: expected {wrong.expected:.9g}, got {wrong.got:.9g}"
    )
