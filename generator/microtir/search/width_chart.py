"""Pictures the frontier of a search over widths of layers: work over flash, losses as names."""

from __future__ import annotations

from microtir.quantise import Point, WidthSearch
from microtir.quantise.bits.trials import said
from microtir.search.picture import Picture, Spot


def picture_of_widths(search: WidthSearch, title: str) -> Picture:
    """Return the picture of all combinations of widths that were tried."""
    on_frontier = set(search.frontier)
    order = sorted(search.points, key=lambda point: (-point.price.flash, point.price.work))
    return Picture(
        title,
        tuple(_spot(search, point, point in on_frontier) for point in order),
        "bytes of flash, as planning expects",
        "instructions or cycles of one inference, as planning expects",
        "filled: no other widths beat it in flash, work and loss; the line keeps to all limits",
    )


def _spot(search: WidthSearch, point: Point, is_best: bool) -> Spot:
    price, name = point.price, f"{point.loss:.2%}"
    text = (
        f"{said(point.widths)}: loss {name}, {point.weights:,} bytes of weights, "
        f"{price.flash:,} of flash, {price.ram:,} of RAM, work {price.work:,}"
    )
    name = f"{name}, chosen" if point is search.best else name
    return Spot(price.flash, price.work, name, text, is_best, point.is_within(search.limits))
