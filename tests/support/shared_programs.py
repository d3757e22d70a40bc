"""The example models, compiled once for each configuration by each worker.

Hundreds of tests compile the example the same way, to look at what is done with the result.  What
a compilation is given, beside the file, is its configuration: both are the key.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from microtir import driver
from microtir.artifact import Artifact
from microtir.config import CompilationConfig
from microtir.module.ir_module import IRModule

_KEPT = 48
_LARGEST = 100_000  # bytes of a model file: what larger ones become is not kept
_BUILD, _LOWER = driver.build, driver.lower
_SHARED = frozenset(("best_effort", "compiler"))
_Stages = list[tuple[str, object]]
_known: OrderedDict[str, tuple[Artifact, _Stages]] = OrderedDict()


def build(
    inputs: Any,
    config: CompilationConfig | None = None,
    *,
    observe: Callable[[str, object], None] | None = None,
    **options: Any,
) -> Artifact:
    """Compile as `driver.build` does; a model file for a configuration only once."""
    see = observe or (lambda _stage, _made: None)
    given = inputs if config is None else inputs.with_configuration(config)
    key = _key(given, {name: value for name, value in options.items() if value})
    if key is None:
        return _BUILD(inputs, config, observe=observe, **options)
    if key not in _known:
        stages: _Stages = []
        artifact = _BUILD(given, observe=lambda *stage: stages.append(stage), **options)
        _known[key] = artifact, stages
        if len(_known) > _KEPT:
            _known.popitem(last=False)
    artifact, stages = _known[key]
    for stage, made in stages:
        see(stage, made)
    return artifact


def _key(module: object, options: dict[str, Any]) -> str | None:
    """Return what a program depends on; None if that is more than a file and a configuration."""
    if not isinstance(module, IRModule) or module.config is None or module.is_lowered:
        return None
    graph, config = module.graph, module.config
    # A compiler of a board is asked about a budget of flash only.
    asks = config.budget.flash is not None and "compiler" in options
    if graph is None or options.keys() - _SHARED or asks or driver.lower is not _LOWER:
        return None
    if not 0 < graph.source_bytes < _LARGEST or config.tuning_records or config.external:
        return None
    source = graph.nodes[0].source.file if graph.nodes else ""
    facts = [
        graph.source_sha256, graph.quantised_sha256, graph.name, source, config.to_dict(),
        "best_effort" in options,
    ]  # fmt: skip
    return json.dumps(facts, sort_keys=True)
