"""Words the facts of a report as sentences and rows, for the page and for the terminal alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from microtir.config import Target
from microtir.config.processors import for_processors
from microtir.report import data
from microtir.report.pushes import push_facts

EXCEEDS = "exceeds"
"""The column of limits that a layer breaks, where one does."""

_LARGEST = 3
_TERMS = 4  # of a sum that is written out


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of finished cells; the columns named in `right` hold numbers.

    Those in `spare` are what a narrow terminal does without, the first of them first. A page shows
    the row with the number `marked` so that it is seen.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str]
    spare: tuple[str, ...] = ()
    marked: int | None = None


def number(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}"


def facts(report: data.Report) -> list[tuple[str, str]]:
    """Return what one wants to know first, as pairs of name and sentence."""
    rows = [
        ("model", _model(report)),
        ("compiled", f"--optimize {report.optimize}, {', '.join(report.targets)}"),
        ("images", f"{report.images}, one by one" if report.images > 1 else ""),
        ("plan", _plan(report)),
        *((f"pool {pool.name}", _pool(pool)) for pool in report.pools),
        ("weights", f"{number(report.weights_bytes)} bytes of flash"),
        ("code", _code(report)),
        *((f"constants {pool.name}", _constants(pool)) for pool in report.constant_pools),
        ("inputs, outputs", _ports(report)),
        ("state", _state(report)),
        *_pushes(report),
        *((limit.option, _limit(limit)) for limit in report.limits),
        ("recomputed", _recomputed(report)),
        ("rounded", _rounded_rows(report)),
        *(("peak", peak(report, pool)) for pool in report.pools if pool.buffers),
        ("smaller", _least(report)),
        ("trade-off", report.declined),
        *(("tried" if n == 0 else "", line) for n, line in enumerate(report.tried)),
        ("sha-256", report.sha256),
        ("integers", report.quantised_sha256),
    ]
    return [row for row in rows if row[1]]


def _plan(report: data.Report) -> str:
    """Return what does not fit, and the largest part of it; empty if all does."""
    exceeded = [limit for limit in report.limits if limit.free < 0]
    causes = [
        f"{limit.option} lacks {number(-limit.free)} bytes; the largest part is the {limit.largest}"
        for limit in exceeded
        if limit.largest
    ]
    if causes:
        return f"does not fit: {'. '.join(causes)}"
    if exceeded:
        return "does not fit: it exceeds a limit. Of all plans tried, this one exceeds it least"
    return ""


def _model(report: data.Report) -> str:
    processors = for_processors(map(Target, report.targets))
    return f"{report.file or report.model}, {number(report.model_bytes)} bytes, {processors}"


def headline(report: data.Report) -> list[tuple[str, str]]:
    """Return the few figures that stand above all else, as pairs of figure and unit."""
    flash = report.weights_bytes + report.code_bytes
    fullest = max(report.pools, key=lambda pool: pool.size, default=None)
    rows = [(number(report.workspace), "bytes of RAM for the workspace")]
    if fullest is not None and fullest.buffers:
        rows.append((report.layer_of(fullest.peak_step), "where most of it is in use"))
    rows.append((f"about {number(_rounded(flash))}", "bytes of flash for weights and code"))
    rows.append((number(sum(layer.macs_executed for layer in report.layers)), "MACs executed"))
    if report.profile is not None:
        rows.append(
            (number(report.profile.instructions), f"instructions on {report.profile.board}")
        )
    elif expected := sum(_expected(layer) or 0 for layer in report.layers):
        rows.append((f"about {number(_rounded(expected))}", "instructions, an estimate"))
    return rows


def _rounded(estimate: int) -> int:
    """Round to three digits: more would promise too much."""
    unit = int("1".ljust(len(str(estimate)) - 2, "0"))
    return round(estimate / unit) * unit


def _pool(pool: data.ReportedPool) -> str:
    checked = "proven by the checker" if pool.is_verified else "not checked"
    return (
        f"{number(pool.size)} bytes of RAM, lower bound {number(pool.lower_bound)}, "
        f"gap {number(pool.gap)}; {checked}"
    )


def _code(report: data.Report) -> str:
    if report.code_is_compiled:
        return f"{number(report.code_bytes)} bytes of flash, by the board's compiler with -O2"
    return f"about {number(report.code_bytes)} bytes of flash, an estimate for GCC with -O2"


def _constants(pool: data.ReportedConstantPool) -> str:
    where = f", section {pool.section}" if pool.section else ""
    whose = "arrays of the code" if pool.is_internal else "passed by the application"
    return f"{number(pool.size)} bytes of the weights, {whose}{where}"


def _ports(report: data.Report) -> str:
    inside = sum(port.is_in_workspace for port in report.ports)
    by_rows = sum(port.is_by_rows for port in report.ports)
    text = f"{number(report.ram.io)} bytes in the caller's memory"
    text += f", {inside} in the workspace" if inside else ""
    return f"{text}, {by_rows} handed over row by row" if by_rows else text


def _state(report: data.Report) -> str:
    """Return what outlives a run; nothing for a model that keeps nothing."""
    if not report.states:
        return ""
    states = ", ".join(f"{state.name} {state.type}" for state in report.states)
    return f"{number(report.ram.state)} bytes of RAM that outlive a run: {states}"


def _pushes(report: data.Report) -> list[tuple[str, str]]:
    """Return what a push costs beside a run of the whole window, if the model is streamed."""
    pushes, profile = report.pushes, report.profile
    if pushes is None:
        return []
    ram = report.ram.of_model
    if profile is None:
        expected = sum(_expected(layer) or 0 for layer in report.layers)
        return push_facts(pushes, expected, ram)
    if profile.whole is None:
        return push_facts(pushes, None, ram)
    measured = dict(profile.ram)
    ram = measured.get("total", ram) - measured.get("stack", 0) - measured.get("reserve", 0)
    return push_facts(replace(pushes, whole=profile.whole), profile.instructions, ram)


def recomputed(executed: int, again: int) -> str:
    """Return what images that are computed in bands of columns cost; empty without any.

    Args:
        executed: multiply-accumulates in all.
        again: those of them that are done a second time.
    """
    if not again:
        return ""
    share = again / max(executed - again, 1)
    return f"{number(again)} multiply-accumulates, {share:.1%} more, for less memory"


def _recomputed(report: data.Report) -> str:
    executed = sum(layer.macs_executed for layer in report.layers)
    return recomputed(executed, sum(layer.macs_recomputed for layer in report.layers))


def _rounded_rows(report: data.Report) -> str:
    numbers = [layer.number for layer in report.layers if layer.rounds_rows]
    if not numbers:
        return ""
    return f"rows of floats that layers {', '.join(numbers)} read, to int8 while the model runs"


def _limit(limit: data.ReportedLimit) -> str:
    allowed = f"{number(limit.used)} of {number(limit.allowed)} bytes for the {limit.what}"
    if limit.free < 0:
        return f"EXCEEDED by {number(-limit.free)}: {allowed}"
    return f"{allowed}, {number(limit.free)} free"


def peak(report: data.Report, pool: data.ReportedPool) -> str:
    """Return where a pool is fullest, and with what."""
    buffers = at_peak(pool)
    total = sum(buffer.at_peak for buffer in buffers)
    terms = [_peak_term(buffer) for buffer in buffers[:_TERMS]]
    if rest := buffers[_TERMS:]:
        noun = "smaller one" if len(rest) == 1 else "smaller ones"
        terms.append(f"{len(rest)} {noun} {number(sum(b.at_peak for b in rest))}")
    text = f"at {report.layer_of(pool.peak_step)}: {' + '.join(terms)} = {number(total)}"
    if pool.lower_bound > total:
        text += f"; the largest buffer alone has {number(pool.lower_bound)}"
    return text


def at_peak(pool: data.ReportedPool) -> list[data.ReportedBuffer]:
    """Return what is in use where a pool is fullest, the largest first."""
    return sorted((b for b in pool.buffers if b.at_peak), key=lambda b: -b.at_peak)


def _peak_term(buffer: data.ReportedBuffer) -> str:
    part = f" of {number(buffer.size)}" if buffer.at_peak < buffer.size else ""
    return f"{buffer.name} {number(buffer.at_peak)}{part}"


def _least(report: data.Report) -> str:
    if report.optimize == "ram-least":
        return ""
    saved = report.workspace - report.least
    if saved <= 0:
        return "--optimize ram-least needs as much"
    share = 100 * saved // report.workspace
    return (
        f"at --optimize ram-least the workspace would be {number(report.least)} bytes, "
        f"{number(saved)} less ({share} %)"
    )


def steps_text(report: data.Report, first: int, last: int) -> str:
    """Return a range of steps by the labels of their layers."""
    start, end = report.steps[first].label, report.steps[last].label
    return start if first == last else f"{start} to {end}"


def buffer_table(report: data.Report, buffers: Sequence[data.ReportedBuffer]) -> TextTable:
    """Return one row per buffer."""
    rows = tuple(
        (
            b.name,
            b.kind.value,
            number(b.size),
            number(b.offset),
            steps_text(report, b.first_step, b.last_step),
            b.content,
        )
        for b in buffers
    )
    columns = ("buffer", "kind", "bytes", "offset", "layers", "holds")
    return TextTable(columns, rows, frozenset({"bytes", "offset"}), ("holds", "kind"))


def largest_table(report: data.Report) -> TextTable:
    """Return the buffers and the constants that take most."""
    buffers = sorted((b for p in report.pools for b in p.buffers), key=lambda b: -b.size)
    rows = [
        ("RAM", b.name, number(b.size), _used_by(steps_text(report, b.first_step, b.last_step)))
        for b in buffers[:_LARGEST]
    ]
    rows += [
        ("flash", c.name, number(c.bytes), _used_by(c.layers)) for c in report.constants[:_LARGEST]
    ]
    return TextTable(("largest", "array", "bytes", "used by"), tuple(rows), frozenset({"bytes"}))


def _used_by(layers: str) -> str:
    return f"layers {layers}" if " " in layers else f"layer {layers}"


def layer_table(report: data.Report) -> TextTable:
    """Return one row per layer, then the work outside the layers, then the sum.

    Instructions are those of a profile, or else what planning expects.
    """
    counts = "est. instr." if report.profile is None else "instructions"
    columns = ["layer", "operator", "kernel", "input", "output", "MACs", "executed", counts]
    columns += ["weights", "bytes in", "bytes out", "name"]
    rows = [_layer(layer, measured=report.profile is not None) for layer in report.layers]
    if report.profile is not None:
        before, behind = ("",) * 5, ("",) * 4
        rows += [
            ("", name, *before, number(instructions), *behind)
            for name, instructions, _ in report.profile.elsewhere
        ]
    rows.append(_total(report))
    right = frozenset(columns[5:-1])
    if any(layer.exceeds for layer in report.layers):
        columns.insert(1, EXCEEDS)
        marks = [_exceeds(layer) for layer in report.layers]
        rows = [(row[0], mark, *row[1:]) for mark, row in zip_longest(marks, rows, fillvalue="")]
    spare = ("name", "bytes in", "bytes out", "input", "MACs", "output", "weights")
    return TextTable(tuple(columns), tuple(rows), right, spare)


def _exceeds(layer: data.ReportedLayer) -> str:
    return ", ".join(f"{excess.option} by {number(excess.bytes)}" for excess in layer.exceeds)


def _layer(layer: data.ReportedLayer, *, measured: bool) -> tuple[str, ...]:
    count = layer.instructions if measured else _expected(layer)
    return (
        layer.number,
        layer.operator,
        f"{layer.kernel}, by rows" if layer.is_streamed else layer.kernel,
        ", ".join(layer.inputs),
        ", ".join(layer.outputs),
        *map(number, (layer.macs, layer.macs_executed)),
        "" if count is None else number(count),
        *map(number, (layer.weight_bytes, layer.bytes_in, layer.bytes_out)),
        layer.name,
    )


def _expected(layer: data.ReportedLayer) -> int | None:
    """Return a layer's instructions by planning's estimate; None if it has no kernel."""
    return layer.choice.instructions if layer.choice else None


def loop_table(report: data.Report) -> TextTable:
    """Return the elementwise layers with one reader that have loops of their own, and why."""
    rows = tuple((x.number, x.operator, x.own_loop) for x in report.layers if x.own_loop)
    return TextTable(("layer", "operator", "reason for a separate loop"), rows, frozenset())


def layer_reasons(report: data.Report) -> list[str]:
    """Return each layer's name, why it has its kernel, and what was against the others."""
    return ["\n".join(_reasons(layer)) for layer in report.layers]


def _reasons(layer: data.ReportedLayer) -> list[str]:
    named = f"{layer.number} {layer.name}"
    if layer.choice is None:
        return [named]
    able = [other for other in layer.alternatives if other.instructions is not None]
    unable: dict[str, list[str]] = {}
    for other in layer.alternatives:
        if other.instructions is None:
            unable.setdefault(other.reason, []).append(other.name)
    return [
        named,
        _kernel(layer.choice),
        *([f"a separate loop: {layer.own_loop}"] if layer.own_loop else []),
        *(f"not {_kernel(other)}" for other in able),
        *(f"not {', '.join(names)}: {reason}" for reason, names in unable.items()),
    ]


def _kernel(kernel: data.ReportedKernel) -> str:
    """Describe a kernel, its estimated cost, and what was for or against it."""
    instructions, cycles = kernel.instructions or 0, kernel.cycles or 0
    costs = f"{number(instructions)} instructions, {number(cycles)} cycles"
    return f"{kernel.name} ({costs}): {kernel.reason}"


def _total(report: data.Report) -> tuple[str, ...]:
    layers = report.layers
    profile = report.profile
    sums = (
        sum(layer.macs for layer in layers),
        sum(layer.macs_executed for layer in layers),
        profile.instructions if profile else sum(_expected(layer) or 0 for layer in layers),
        report.weights_bytes,
        sum(layer.bytes_in for layer in layers),
        sum(layer.bytes_out for layer in layers),
    )
    return ("", "in all", "", "", "", *map(number, sums), "")


def profile_facts(report: data.Report) -> list[tuple[str, str]]:
    """Return what was measured, for a report with a profile."""
    profile = report.profile
    if profile is None:
        return []
    return [
        ("measured on", f"{profile.board}, {profile.compiler}"),
        ("instructions", f"{number(profile.instructions)} on QEMU, or simavr for an AVR"),
        ("estimated cycles", number(profile.cycles)),
        ("flash", ", ".join(f"{name} {number(size)}" for name, size in profile.flash)),
        ("RAM", ", ".join(f"{name} {number(size)}" for name, size in profile.ram)),
    ]
