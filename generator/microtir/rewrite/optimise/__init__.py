"""Rewrites of the graph. Each is a frozen dataclass.

Every output is kept bit for bit; only FuseLstmLoops adds floats in another order.
"""

from microtir.config import CompilationConfig, Feature, Optimize
from microtir.graph.rewriting import GraphPass
from microtir.rewrite.optimise.bound_sums import BoundSums
from microtir.rewrite.optimise.count_turns import CountTurns
from microtir.rewrite.optimise.drop_redundant_clamps import DropRedundantClamps
from microtir.rewrite.optimise.fold_constant_channels import FoldConstantChannels
from microtir.rewrite.optimise.fold_constants import FoldConstants
from microtir.rewrite.optimise.fold_pad import FoldPad
from microtir.rewrite.optimise.fuse_activation import FuseActivation
from microtir.rewrite.optimise.fuse_chains import FuseChains
from microtir.rewrite.optimise.fuse_lstm_loops import FuseLstmLoops
from microtir.rewrite.optimise.gather_constant_channels import GatherConstantChannels
from microtir.rewrite.optimise.groups_to_depthwise import GroupsToDepthwise
from microtir.rewrite.optimise.matmul_to_dense import MatmulToDense
from microtir.rewrite.optimise.order_assigns import OrderAssigns
from microtir.rewrite.optimise.place_rows import PlaceRows
from microtir.rewrite.optimise.push_rows import PushRows
from microtir.rewrite.optimise.remove_dead_nodes import RemoveDeadNodes
from microtir.rewrite.optimise.remove_identities import RemoveIdentities
from microtir.rewrite.optimise.split_images import SplitImages
from microtir.rewrite.optimise.tabulate import Tabulate
from microtir.rewrite.optimise.transposed_to_convolution import TransposedToConvolution
from microtir.rewrite.optimise.tree_thresholds import TreeThresholds
from microtir.rewrite.optimise.unroll_turns import UnrollTurns
from microtir.rewrite.optimise.update_in_place import UpdateInPlace
from microtir.rewrite.optimise.view_parts import ViewParts

GRAPH_PASSES: tuple[GraphPass, ...] = (
    FoldConstants(),
    RemoveIdentities(),
    MatmulToDense(),
    TreeThresholds(),
    FuseLstmLoops(),
    UnrollTurns(),
    TransposedToConvolution(),
    GroupsToDepthwise(),
    FoldPad(),
    FuseActivation(),
    Tabulate(),
    GatherConstantChannels(),
    FoldConstantChannels(),
    PushRows(),
    ViewParts(),
    PlaceRows(),
    RemoveDeadNodes(),
    CountTurns(),
    DropRedundantClamps(),
    SplitImages(),
    BoundSums(),
    OrderAssigns(),
    UpdateInPlace(),
)
"""The passes in the order in which the driver runs them."""

_BYTE_PRICES = {Optimize.SPEED: 0, Optimize.BALANCED: 16, Optimize.RAM: 12, Optimize.RAM_LEAST: 12}
"""Instructions that a byte of a table is worth, as planning has it of code; none where flash is."""


def graph_passes_of(config: CompilationConfig) -> tuple[GraphPass, ...]:
    """Return the passes over the graph that a configuration asks for, in order."""
    left_out = {SplitImages.name} if not config.splits_images() else set()
    if not config.is_graph():
        left_out.add(UnrollTurns.name)
    chosen: dict[str, GraphPass] = {
        TreeThresholds.name: _tree_thresholds(config),
        Tabulate.name: Tabulate(_BYTE_PRICES.get(config.optimize)),
        SplitImages.name: SplitImages(counted=config.executor.batch_count),
    }
    return tuple(chosen.get(p.name, p) for p in GRAPH_PASSES if p.name not in left_out)


def _tree_thresholds(config: CompilationConfig) -> TreeThresholds:
    """Return the pass for a CPU and a goal; integers of floats take memory."""
    saved_bytes = 0 if config.optimize is Optimize.SPEED else 9
    if not config.primary_target().has(Feature.FPU):
        return TreeThresholds(20, saved_bytes)
    if config.optimize in (Optimize.RAM, Optimize.RAM_LEAST):
        return TreeThresholds()
    return TreeThresholds(2, saved_bytes)


__all__ = [
    "GRAPH_PASSES",
    "BoundSums",
    "DropRedundantClamps",
    "FoldConstantChannels",
    "FoldConstants",
    "FoldPad",
    "FuseActivation",
    "FuseChains",
    "FuseLstmLoops",
    "GatherConstantChannels",
    "GraphPass",
    "GroupsToDepthwise",
    "MatmulToDense",
    "OrderAssigns",
    "PlaceRows",
    "PushRows",
    "RemoveDeadNodes",
    "RemoveIdentities",
    "SplitImages",
    "Tabulate",
    "TransposedToConvolution",
    "TreeThresholds",
    "UnrollTurns",
    "UpdateInPlace",
    "ViewParts",
    "graph_passes_of",
]
