"""Configurations by whose tuning records a layer takes one kernel, whatever it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.layers import records_for
from microtir.config import CompilationConfig
from microtir.graph.ir import Node


def forced(
    config: CompilationConfig, nodes: Sequence[Node], kernel: str, folder: Path
) -> CompilationConfig:
    """Return a configuration with records by which no other kernel of the nodes is chosen."""
    records = folder / f"{config.module_name}.json"
    records.write_text(records_for(kernel, nodes, config).to_text(), encoding="utf-8")
    return config.with_(tuning_records=str(records))
