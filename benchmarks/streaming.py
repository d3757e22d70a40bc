"""`python -m benchmarks streaming`: what streaming costs in instructions, kernels being the same.

Each int8 model is planned for little memory; then every layer is given the kernel of that plan,
and nothing streams.  Both run on an emulated Cortex-M4.  What remains between them is the price of
calling layers row by row: the calls, and borders and rows that a call prepares for itself.
`--record` writes the figures to `streaming.json`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import microtir
from benchmarks.boards import INT8_MODELS, models_folder
from benchmarks.prices import read_prices, write_prices
from microtir import driver
from microtir.artifact import Artifact
from microtir.boards import Board, load_board
from microtir.config import Budget, CompilationConfig, Optimize
from microtir.module.ir_module import IRModule
from microtir.plan.ir import Plan
from microtir.plan.measured import Cost, Key, Measured, signature
from microtir.profiling import profile
from microtir.support.names import module_name_from

RECORDED = Path(__file__).parent / "streaming.json"
BOARD = "mps2_an386"

# Plans by what they are asked for: the least memory, what it is worth, and speed in a third more
# than the least, where fast kernels run row by row.
BUDGET = 1.3
WAYS = ("ram-least", "balanced", "speed within 1.3 x")

# Costs that decide: a kernel that is wanted is charged nothing, any other more than all.
_WANTED, _OTHER = Cost(0, 0), Cost(1 << 40, 1 << 40)


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions of a plan that streams and of the same kernels without; bytes of workspace.

    `differing` layers have another kernel without streaming: one that ends a stream of rows.
    """

    streamed: int
    whole: int
    streamed_bytes: int
    whole_bytes: int
    differing: int

    @property
    def more(self) -> float:
        """Return the price of streaming as a share."""
        return self.streamed / self.whole - 1


def price(model: str, way: str, board: Board) -> Price:
    """Build and measure a model both ways."""
    module = microtir.frontend.from_tflite(models_folder() / f"{model}.tflite")
    config = CompilationConfig.from_target(board.target).with_(module_name=module_name_from(model))
    streamed, plan = _built(module, _config(module, config, way))
    with tempfile.TemporaryDirectory(prefix="microtir-streaming-") as folder:
        records = Path(folder) / "kernels.json"
        records.write_text(_kernels(plan, str(config.primary_target())).to_text())
        forced = config.with_(optimize=Optimize.SPEED, tuning_records=str(records))
        whole, other = _built(module, forced)
    pairs = zip(plan.operators, other.operators, strict=True)
    return Price(
        profile(streamed, board).instructions,
        profile(whole, board).instructions,
        _workspace(streamed),
        _workspace(whole),
        sum(a.candidate.kernel != b.candidate.kernel for a, b in pairs),
    )


def _config(module: IRModule, config: CompilationConfig, way: str) -> CompilationConfig:
    if way in ("ram-least", "balanced"):
        return config.with_(optimize=Optimize(way))
    least = _workspace(driver.build(module, config.with_(optimize=Optimize.RAM_LEAST)))
    return config.with_(optimize=Optimize.SPEED, budget=Budget(ram=int(BUDGET * least)))


def _built(module: IRModule, config: CompilationConfig) -> tuple[Artifact, Plan]:
    artifact = driver.build(module, config)
    return artifact, artifact.module.require_program("streaming").plan


def _kernels(plan: Plan, target: str) -> Measured:
    """Return records by which a plan for speed takes the kernels of this one."""
    costs: dict[Key, Cost] = {}
    for operator in plan.operators:
        chosen = operator.candidate.kernel
        if not operator.candidate.accumulates:
            for candidate in plan.offered[operator.node]:
                is_wanted = candidate.kernel == chosen
                key = Key(signature(operator.node), candidate.kernel)
                costs[key] = _WANTED if is_wanted else costs.get(key, _OTHER)
    return Measured(target, MappingProxyType(costs))


def _workspace(artifact: Artifact) -> int:
    model = artifact.module.model
    assert model is not None, "a frontend gave the graph"
    return model.memory.workspace_size


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print a line for each model and way; those that are named, or all."""
    board = load_board(BOARD)
    print(
        f"{'model':<14}{'plan':<20}{'by rows':>12}{'whole':>12}{'more':>8}{'bytes':>9}{'whole':>9}"
    )
    found: dict[str, dict[str, Price]] = {}
    for model in named or INT8_MODELS:
        found[model] = {}
        for way in WAYS:
            p = found[model][way] = price(model, way, board)
            print(
                f"{model:<14}{way:<20}{p.streamed:>12,}{p.whole:>12,}{p.more:>8.1%}"
                f"{p.streamed_bytes:>11,}{p.whole_bytes:>9,}",
                flush=True,
            )
    return found


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `streaming.json`."""
    return read_prices(RECORDED, Price)


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other models stay."""
    write_prices(RECORDED, Price, found)
