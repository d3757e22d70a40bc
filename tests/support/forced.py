"""Configurations by whose tuning records a layer takes one kernel, whatever it costs."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from microtir.config import CompilationConfig
from microtir.graph.ir import Node
from microtir.kernels import candidates
from microtir.plan.measured import Cost, Key, Measured, signature

_FREE, _DEAR = Cost(0, 0), Cost(1 << 40, 1 << 40)


def forced(config: CompilationConfig, node: Node, kernel: str, folder: Path) -> CompilationConfig:
    """Return a configuration with records by which no other kernel of a node is chosen."""
    costs = {
        Key(signature(node), c.kernel): _FREE if c.kernel == kernel else _DEAR
        for c in candidates(node, config)
    }
    records = folder / f"{config.module_name}.json"
    target = str(config.primary_target())
    records.write_text(Measured(target, MappingProxyType(costs)).to_text(), encoding="utf-8")
    return config.with_(tuning_records=str(records))
