"""Draws the memory map as rectangles and lines: every coordinate is a finished string."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.report.data import (
    LiveSpan,
    MainCall,
    Report,
    ReportedBuffer,
    ReportedLimit,
    ReportedPool,
    ReportedPort,
)
from microtir.report.summary import number, steps_text

# Pixels of the drawing at its natural size.
_LEFT, _RIGHT, _TOP, _PLOT, _LANE, _LABELS = 72, 92, 46, 380, 22, 112
_WIDTH, _NARROWEST, _WIDEST = 1010, 16, 110
_LETTER = 6.6  # width of one, on average
_SLANT = 0.71  # how much of its length a label that leans reaches down
_APART = 13  # between lines of text
_TICKS = 6
_STRIPE = 5  # from one to the next
_FAR = 1.5  # a limit higher than this many workspaces would make the map flat


@dataclass(frozen=True, slots=True)
class MapBox:
    """A rectangle with what it says and what hovering shows."""

    x: str
    y: str
    width: str
    height: str
    kind: str  # CSS classes
    points: str = ""  # of the polygon to draw instead
    tip: str = ""
    buffer: str = ""  # what it belongs to
    label: str = ""
    detail: str = ""
    label_x: str = ""
    label_y: str = ""
    detail_y: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A horizontal line at an offset, with its text, which may have had to make room."""

    y: str
    text_y: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class StepLabel:
    x: str
    y: str
    text: str
    tip: str
    column: MapBox


@dataclass(frozen=True, slots=True)
class Drawing:
    """The map of one pool."""

    width: str
    height: str
    left: str
    right: str
    top: str
    bottom: str
    text_left: str  # where the numbers of the axis end
    text_right: str  # where the words about lines begin
    peak: MapBox
    streams: tuple[MapBox, ...]
    ticks: tuple[Mark, ...]
    lines: tuple[Mark, ...]
    boxes: tuple[MapBox, ...]
    shared: tuple[str, ...]  # paths of stripes, where rows of one buffer follow rows of another
    lanes: tuple[MapBox, ...]
    labels: tuple[StepLabel, ...]


@dataclass(frozen=True, slots=True)
class _Overlap:
    """Steps first to last and bytes [low, high) that two buffers have in common."""

    first: int
    last: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale that turns steps and offsets into pixels."""

    column: float
    most: int

    def x(self, step: int) -> float:
        return _LEFT + step * self.column

    def y(self, offset: int) -> float:
        return _TOP + _PLOT * (1 - offset / self.most)


def draw(report: Report, pool: ReportedPool) -> Drawing:
    """Draw a pool: steps from left to right, offset 0 at the bottom, ports in lanes below."""
    count = len(report.steps)
    column = min(max((_WIDTH - _LEFT - _RIGHT) / max(count, 1), _NARROWEST), _WIDEST)
    limits = [limit for limit in report.limits if limit.what == "workspace"]
    near = [limit for limit in limits if limit.allowed <= _FAR * pool.size]
    scale = _Scale(column, max(pool.size, 1, *(limit.allowed for limit in near)))
    ports = [port for port in report.ports if not port.is_in_workspace]
    bottom = _TOP + _PLOT + _LANE * len(ports) + 8
    below = _below(report)
    right = scale.x(count)
    overlaps = _overlaps(pool)
    return Drawing(
        width=_px(right + _RIGHT),
        height=_px(bottom + below),
        left=_px(_LEFT),
        right=_px(right),
        top=_px(_TOP),
        bottom=_px(_TOP + _PLOT),
        text_left=_px(_LEFT - 8),
        text_right=_px(right + 6),
        peak=_peak(pool, scale),
        streams=tuple(_stream(report, s.first, s.last, scale) for s in report.streams),
        ticks=tuple(_mark(scale.y(at), number(at), "tick") for at in ticks(scale.most)),
        lines=tuple(_lines(pool, near, scale)),
        boxes=tuple(
            _box(report, b, span, overlaps.get(b.name, []), scale)
            for b in pool.buffers
            for span in b.spans
        ),
        shared=tuple(
            _stripes(overlap, scale)
            for overlap in dict.fromkeys(o for shared in overlaps.values() for o in shared)
        ),
        lanes=tuple(_lane(report, port, row, scale) for row, port in enumerate(ports)),
        labels=tuple(_label(report, step, bottom, below, scale) for step in range(count)),
    )


def ticks(most: int) -> list[int]:
    """Round offsets from 0 to `most`, not more than a few."""
    step = 1
    while most / step > _TICKS:
        first = int(str(step)[0])
        step = step * 5 // 2 if first == 2 else step * 2
    return list(range(0, most + 1, step))


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _rectangle(
    kind: str, scale: _Scale, steps: tuple[int, int], top: float, height: float
) -> MapBox:
    """Return a box over some steps, first and last included, from `top` down."""
    x, end = scale.x(steps[0]), scale.x(steps[1] + 1)
    return MapBox(_px(x), _px(top), _px(end - x), _px(height), kind)


def _overlaps(pool: ReportedPool) -> dict[str, list[_Overlap]]:
    """Return what each buffer has in common with others, but for those that grow or shrink."""
    overlaps: dict[str, list[_Overlap]] = {}
    alive: list[tuple[str, LiveSpan]] = []
    all_spans = ((b.name, span) for b in pool.buffers for span in b.spans if span.is_steady)
    for name, span in sorted(all_spans, key=lambda one: one[1].first):
        alive = [(other, there) for other, there in alive if there.last >= span.first]
        for other, there in alive:
            low, high = max(span.low, there.low), min(span.high, there.high)
            if low < high and other != name:
                common = _Overlap(span.first, min(span.last, there.last), low, high)
                overlaps.setdefault(name, []).append(common)
                overlaps.setdefault(other, []).append(common)
        alive.append((name, span))
    return overlaps


def _stripes(overlap: _Overlap, scale: _Scale) -> str:
    """Return level lines that lie as rows do."""
    x, width = scale.x(overlap.first), (overlap.last + 1 - overlap.first) * scale.column
    count = int((scale.y(overlap.low) - scale.y(overlap.high)) / _STRIPE)
    top = scale.y(overlap.high)
    lines = (f"M{_px(x)} {_px(top + (n + 0.5) * _STRIPE)}h{_px(width)}" for n in range(count))
    return "".join(lines)


def _own_steps(span: LiveSpan, overlaps: list[_Overlap]) -> range:
    """Return the longest run of a span's steps at which no other buffer lies over it."""
    longest = range(0)
    start = span.first
    for step in range(span.first, span.last + 2):
        is_own = step <= span.last and not any(
            o.first <= step <= o.last and o.low < span.high and span.low < o.high for o in overlaps
        )
        if not is_own:
            longest = max(longest, range(start, step), key=len)
            start = step + 1
    return longest


def _box(
    report: Report, buffer: ReportedBuffer, span: LiveSpan, overlaps: list[_Overlap], scale: _Scale
) -> MapBox:
    x, width = scale.x(span.first), scale.x(span.last + 1) - scale.x(span.first)
    top, height = scale.y(span.high), scale.y(span.low) - scale.y(span.high)
    box = replace(
        _rectangle(buffer.kind.value, scale, (span.first, span.last), top, max(height, 1.5)),
        points="" if span.is_steady else _points(span, scale),
        tip=_tip(report, buffer, span),
        buffer=buffer.name,
    )
    if not span.is_steady:
        # The text goes to where there is more of the buffer.
        grows = span.end[1] - span.end[0] > span.begin[1] - span.begin[0]
        low, high = span.end if grows else span.begin
        middle = (scale.y(low) + scale.y(high)) / 2
        return _named(box, buffer, (x + width * (0.7 if grows else 0.3), middle), width * 0.6, 14)
    if span.high - span.low < buffer.size:
        box = replace(box, kind=f"{buffer.kind.value} partial")
    own = _own_steps(span, overlaps)
    centre = (scale.x(own.start) + scale.x(own.stop)) / 2, top + height / 2
    return _named(box, buffer, centre, len(own) * scale.column, height)


def _named(
    box: MapBox, buffer: ReportedBuffer, middle: tuple[float, float], width: float, height: float
) -> MapBox:
    """Write the buffer's name into its box, and its size below, as far as there is room."""
    x, y = middle
    room = int((width - 6) / _LETTER)
    names = (buffer.name, buffer.name.rpartition("_")[2])
    label = next((name for name in names if len(name) <= room), "") if height >= 14 else ""
    detail = number(buffer.size) if label and height >= 30 else ""
    if len(detail) > room:
        detail = ""
    return replace(
        box,
        label=label,
        detail=detail,
        label_x=_px(x),
        label_y=_px(y - 2 if detail else y + 4),
        detail_y=_px(y + 12),
    )


def _points(span: LiveSpan, scale: _Scale) -> str:
    """Return the outline of a buffer in a one-step nest, where it grows or shrinks."""
    corners = [
        (span.first, span.begin[1]),
        (span.last + 1, span.end[1]),
        (span.last + 1, span.end[0]),
        (span.first, span.begin[0]),
    ]
    return " ".join(f"{_px(scale.x(step))},{_px(scale.y(at))}" for step, at in corners)


def _tip(report: Report, buffer: ReportedBuffer, span: LiveSpan) -> str:
    lines = [
        f"{buffer.name}: {buffer.kind.value}",
        buffer.content,
        f"{number(buffer.size)} bytes at offset {number(buffer.offset)}",
        f"made in {report.layer_of(buffer.written)}",
        f"last used in {report.layer_of(buffer.used)}",
    ]
    if span.high - span.low < buffer.size:
        here = steps_text(report, span.first, span.last)
        lines.append(f"at most {number(span.high - span.low)} bytes in use in layer {here}")
    if buffer.at_peak:
        lines.append(f"{number(buffer.at_peak)} bytes of the peak")
    return "\n".join(line for line in lines if line)


def _peak(pool: ReportedPool, scale: _Scale) -> MapBox:
    step = pool.peak_step
    return replace(
        _rectangle("peak", scale, (step, step), _TOP, _PLOT),
        label=f"peak {number(sum(buffer.at_peak for buffer in pool.buffers))}",
        label_x=_px((scale.x(step) + scale.x(step + 1)) / 2),
        label_y=_px(_TOP - 8),
    )


def _stream(report: Report, first: int, last: int, scale: _Scale) -> MapBox:
    steps = steps_text(report, first, last)
    who = f"layer {steps} runs" if first == last else f"layers {steps} run"
    room = int((scale.x(last + 1) - scale.x(first)) / _LETTER)
    long, short = f"{who} row by row", "by rows"
    return replace(
        _rectangle("stream", scale, (first, last), 4, _TOP + _PLOT - 4),
        tip=f"{who} row by row; each box shows what is kept at the calls of a layer",
        label=next((text for text in (long, short) if len(text) <= room), ""),
        label_x=_px((scale.x(first) + scale.x(last + 1)) / 2),
        label_y="18",
    )


def _lines(pool: ReportedPool, limits: list[ReportedLimit], scale: _Scale) -> list[Mark]:
    wanted = [(pool.size, f"size {number(pool.size)}", "size")]
    if pool.gap:
        wanted.append((pool.lower_bound, "lower bound", "bound"))
    for limit in limits:
        kind = "limit" if limit.free >= 0 else "limit exceeded"
        wanted.append((limit.allowed, limit.option, kind))
    marks: list[Mark] = []
    free = 0.0
    for offset, text, kind in sorted(wanted, key=lambda mark: -mark[0]):
        marks.append(_mark(scale.y(offset), text, kind, at_least=free))
        free = float(marks[-1].text_y) + _APART
    return marks


def _mark(y: float, text: str, kind: str, at_least: float = 0) -> Mark:
    return Mark(_px(y), _px(max(y + 4, at_least)), text, kind)


def _lane(report: Report, port: ReportedPort, row: int, scale: _Scale) -> MapBox:
    top = _TOP + _PLOT + 8 + row * _LANE
    width = scale.x(port.last_step + 1) - scale.x(port.first_step)
    text = f"{port.kind.value} {port.name}, {number(port.bytes)}"
    room = int((width - 8) / _LETTER)
    label = next((t for t in (text, number(port.bytes)) if len(t) <= room), "")
    layers = steps_text(report, port.first_step, port.last_step)
    tip = f"{port.kind.value} {port.name}\n{port.type}, {number(port.bytes)} bytes"
    return replace(
        _rectangle(port.kind.value, scale, (port.first_step, port.last_step), top, _LANE - 4),
        tip=f"{tip} in the caller's memory\nin use in layer {layers}",
        label=label,
        label_x=_px(scale.x(port.first_step) + width / 2),
        label_y=_px(top + 13),
    )


def _step_text(call: MainCall) -> str:
    return f"{call.label} {call.operator.lower()}"


def _below(report: Report) -> float:
    """Return the height of what stands below the lanes: as much as the longest label reaches."""
    longest = max((len(_step_text(call)) for call in report.steps), default=0)
    return max(_LABELS, longest * _LETTER * _SLANT + _APART)


def _label(report: Report, step: int, bottom: float, below: float, scale: _Scale) -> StepLabel:
    call = report.steps[step]
    layer = next((one for one in report.layers if one.number == call.label), None)
    lines = [report.layer_of(step), call.layer, f"C function {call.function}"]
    if layer is not None:
        reason = f": {layer.choice.reason}" if layer.choice else ""
        lines.append(f"kernel {layer.kernel}{reason}")
        lines.append(f"{number(layer.macs_executed)} multiply-accumulates")
        if layer.macs_recomputed:
            lines.append(f"{number(layer.macs_recomputed)} of them a second time")
        if layer.instructions is not None:
            lines.append(f"{number(layer.instructions)} instructions")
    middle = (scale.x(step) + scale.x(step + 1)) / 2
    return StepLabel(
        _px(middle + 4),
        _px(bottom + 12),
        _step_text(call),
        "\n".join(lines),
        _rectangle("column", scale, (step, step), _TOP, bottom + below - _TOP),
    )
