"""Passes that planning asks for: the same graph in less memory, perhaps with more work.

Each graph that is worth a plan has gone through all of them; every plan takes the best one.
"""

from microtir.graph.rewriting import GraphPass
from microtir.rewrite.variants.cut_columns import CutColumns
from microtir.rewrite.variants.reorder import Reorder

VARIANT_PASSES: tuple[GraphPass, ...] = (Reorder(), CutColumns())
"""The passes in the order in which they run, as they are for the graph that neither changes."""

__all__ = ["VARIANT_PASSES", "CutColumns", "Reorder"]
