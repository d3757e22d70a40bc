"""The recorded figures of README.md, docs/index.md and docs/figures.md, and the picture.

    python -m benchmarks pages

writes them again. A test compares them with the JSON files, so that no figure is typed by hand.
Each table has one configuration, the default, `--optimize balanced`. The other benchmarks record
`boards.json` and `arena.json`; `tflm.json` has what TFLite Micro takes, measured once on the same
emulated board; this command records `frontier.json`:

    microtir pareto kws_int8.tflite --board mps2_an386 --json benchmarks/frontier.json
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from benchmarks import arena
from microtir.config import Budget, CompilationConfig, Measure
from microtir.search.chart import picture_of
from microtir.search.pareto import Frontier, ProgramCost, Trial
from microtir.search.picture import to_svg

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "frontier.svg"
BOARD = "mps2_an386"
NETWORKS: Mapping[str, str] = MappingProxyType(
    {
        "ad01_int8": "ad01",
        "kws_int8": "kws",
        "resnet8_int8": "resnet8",
        "vww_int8": "vww",
        "strww_int8": "strww",
    }
)
_FIRST = {
    "kws_int8": "keyword spotting",
    "resnet8_int8": "image classification",
    "vww_int8": "person detection",
}
_KINDS = {"float32_int8": "float32 with weights of int8", "int16_int8": "int16"}

Facts: TypeAlias = Mapping[str, Any]
"""The measured figures of a network, by name."""


def _read(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / name).read_text("utf-8"))


def _own() -> Mapping[str, Facts]:
    """Return what microtir's programs take on the board, by model."""
    (figures,) = _read("boards.json")[BOARD].values()
    return dict(figures)


def _ram(facts: Facts) -> int:
    return sum(int(facts[part]) for part in ("workspace", "scratch", "io", "data"))


def _row(label: str, models: Iterable[str], cell: Callable[[str], str]) -> list[str]:
    return [label, *map(cell, models)]


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def first_table() -> str:
    """Return the table of README.md."""
    own, theirs = _own(), _read("tflm.json")["models"]
    return _table(
        [
            ["", *_FIRST.values()],
            _row("instructions, TFLite Micro", _FIRST, lambda m: f"{theirs[m]['instructions']:,}"),
            _row("instructions, microtir", _FIRST, lambda m: f"{own[m]['instructions']:,}"),
            _row("RAM in bytes, TFLite Micro", _FIRST, lambda m: f"{theirs[m]['arena']:,}"),
            _row("RAM in bytes, microtir", _FIRST, lambda m: f"{_ram(own[m]):,}"),
        ]
    )


def three_figures() -> str:
    """Return the list of the site's first page: keyword spotting with default options."""
    own, theirs = _own()["kws_int8"], _read("tflm.json")["models"]["kws_int8"]
    figures = (
        (f"{own['instructions']:,}", "instructions", f"TFLite Micro: {theirs['instructions']:,}"),
        (f"{_ram(own):,}", "bytes of RAM", f"TFLite Micro: {theirs['arena']:,}, its arena"),
        (f"{own['code'] + own['weights']:,}", "bytes of flash", "code and weights"),
    )
    return "".join(f"- **{count}** {unit} ({beside})\n" for count, unit, beside in figures)


def default_table() -> str:
    """Return what the default takes on the Cortex-M4, beside TFLite Micro."""
    own, theirs = _own(), _read("tflm.json")["models"]
    return _table(
        [
            ["", *NETWORKS.values()],
            _row("instructions", NETWORKS, lambda m: f"{own[m]['instructions']:,}"),
            _row(
                "instructions, TFLite Micro", NETWORKS, lambda m: f"{theirs[m]['instructions']:,}"
            ),
            _row("RAM, bytes", NETWORKS, lambda m: f"{_ram(own[m]):,}"),
            _row("TFLite Micro's arena, bytes", NETWORKS, lambda m: f"{theirs[m]['arena']:,}"),
            _row("code, bytes", NETWORKS, lambda m: f"{own[m]['code']:,}"),
            _row("flash, bytes", NETWORKS, lambda m: f"{own[m]['code'] + own[m]['weights']:,}"),
            _row("stack touched, bytes", NETWORKS, lambda m: f"{own[m]['stack']:,}"),
        ]
    )


def arena_table() -> str:
    """Return RAM of models with states and int16, beside the arena on a machine of 64 bits."""
    rows = [["", "instructions on QEMU", "RAM", "of it state", "arena on 64 bits"]]
    recorded = arena.read_recorded()
    for name in arena.WAYS:
        price = recorded[name]["balanced"]
        base, comma, kind = name.partition(", ")
        shown = f"{base}{comma}{_KINDS.get(kind, kind)}"
        if name.startswith("exported/") or name.endswith("_16x8"):
            shown = f"{name.removesuffix('_16x8').replace('_', ' ')}, int16"
        state = f"{price.state:,}" if price.state else ""
        figures = [f"{price.instructions:,}", f"{price.ram:,}", state]
        rows.append([shown, *figures, f"{price.arena:,}" if price.arena else "refused"])
    return _table(rows)


def picture() -> str:
    """Return the frontier of keyword spotting, without the trials that are about flash."""
    facts = _read("frontier.json")
    trials = tuple(
        Trial(
            _config(trial["flags"].split()),
            ProgramCost(
                ram=trial["ram"],
                instructions=trial["instructions"],
                cycles=trial["cycles_estimate"],
                flash=trial["flash"],
                macs_recomputed=trial["macs_recomputed"],
            ),
        )
        for trial in facts["trials"]
        if "flash" not in trial["flags"]
    )
    frontier = Frontier(trials, Measure(facts["measure"]))
    return to_svg(picture_of(frontier, "keyword spotting on a Cortex-M4"))


def _config(flags: Sequence[str]) -> CompilationConfig:
    """Return the configuration of a trial: its goal, and a budget of RAM."""
    values = dict(zip(flags[::2], flags[1::2], strict=True))
    ram = values.get("--ram-budget")
    return CompilationConfig(
        targets="cortex-m4",
        optimize=values["--optimize"],
        budget=Budget(ram=None if ram is None else int(ram)),
    )


TABLES: Mapping[tuple[str, str], Callable[[], str]] = MappingProxyType(
    {
        ("README.md", "first"): first_table,
        ("docs/index.md", "three"): three_figures,
        ("docs/figures.md", "default"): default_table,
        ("docs/figures.md", "arena"): arena_table,
    }
)
"""By page and mark; a table stands between two comments with its mark."""


def renewed(page: str, mark: str, table: str) -> str:
    """Return a page with the table in its place."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def write() -> None:
    """Write every table into its page, and the picture."""
    for (name, mark), table in TABLES.items():
        page = ROOT / name
        page.write_text(renewed(page.read_text("utf-8"), mark, table()), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
