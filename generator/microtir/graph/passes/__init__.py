"""Rewrites of the graph. Each keeps every output bit for bit, and is a frozen dataclass."""

from microtir.graph.passes.bound_sums import BoundSums
from microtir.graph.passes.cut_columns import CutColumns
from microtir.graph.passes.drop_redundant_clamps import DropRedundantClamps
from microtir.graph.passes.fold_constant_channels import FoldConstantChannels
from microtir.graph.passes.fold_constants import FoldConstants
from microtir.graph.passes.fold_pad import FoldPad
from microtir.graph.passes.fuse_activation import FuseActivation
from microtir.graph.passes.gather_constant_channels import GatherConstantChannels
from microtir.graph.passes.remove_dead_nodes import RemoveDeadNodes
from microtir.graph.passes.remove_identities import RemoveIdentities
from microtir.graph.passes.rewrite import GraphPass
from microtir.graph.passes.row_ports import RowPorts

GRAPH_PASSES: tuple[GraphPass, ...] = (
    FoldConstants(),
    RemoveIdentities(),
    FoldPad(),
    FuseActivation(),
    GatherConstantChannels(),
    FoldConstantChannels(),
    RemoveDeadNodes(),
    DropRedundantClamps(),
    BoundSums(),
)
"""The passes in the order in which the driver runs them."""

__all__ = [
    "GRAPH_PASSES",
    "BoundSums",
    "CutColumns",
    "DropRedundantClamps",
    "FoldConstantChannels",
    "FoldConstants",
    "FoldPad",
    "FuseActivation",
    "GatherConstantChannels",
    "GraphPass",
    "RemoveDeadNodes",
    "RemoveIdentities",
    "RowPorts",
]
