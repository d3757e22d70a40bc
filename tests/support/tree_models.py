"""Random ensembles of decision trees, as attributes of both ways in which ONNX has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper

from microtir.operators.trees.forest import LEAF, Question
from tests.support.onnx_models import Array

MODES = [question.value for question in Question]
WIDTH = 3


@dataclass
class Forest:
    """The attributes of random trees; `weighted` are leaves with target and weight."""

    rng: np.random.Generator
    modes: list[str]
    sparse: bool = True
    nodes: list[tuple[int, int, str, int, float, int, int, int]] = field(default_factory=list)
    weighted: list[tuple[int, int, int, float]] = field(default_factory=list)

    def grow(self, tree: int, depth: int, targets: list[int], sign: float) -> int:
        """Add a node with all below it, and return its number."""
        number = len([node for node in self.nodes if node[0] == tree])
        place = len(self.nodes)
        self.nodes.append((tree, number, LEAF, 0, 0.0, 0, 0, 0))
        if depth == 0 or (number and self.rng.random() < 0.2):
            few = self.sparse and self.rng.random() < 0.3
            for target in self.rng.permutation(targets)[: 1 if few else None].tolist():
                weight = float(np.float32(self.rng.normal()))
                self.weighted.append((tree, number, target, abs(weight) if sign else weight))
            return number
        yes = self.grow(tree, depth - 1, targets, sign)
        no = self.grow(tree, depth - 1, targets, sign)
        self.nodes[place] = (
            tree, number, str(self.rng.choice(self.modes)), int(self.rng.integers(WIDTH)),
            float(self.rng.integers(-3, 4)) / 2, yes, no, int(self.rng.integers(2)),
        )  # fmt: skip
        return number

    def attributes(self, prefix: str) -> dict[str, Any]:
        """Return what the file says of the trees; `prefix` is that of what leaves give."""
        trees, numbers, modes, features, values, yes, no, missing = zip(*self.nodes, strict=True)
        of_trees, of_nodes, ids, weights = zip(*self.weighted, strict=True)
        return {
            "nodes_treeids": trees, "nodes_nodeids": numbers, "nodes_modes": modes,
            "nodes_featureids": features, "nodes_values": values, "nodes_truenodeids": yes,
            "nodes_falsenodeids": no, "nodes_missing_value_tracks_true": missing,
            f"{prefix}_treeids": of_trees, f"{prefix}_nodeids": of_nodes, f"{prefix}_ids": ids,
            f"{prefix}_weights": weights,
        }  # fmt: skip

    def positions(self, targets: int, dtype: Any) -> dict[str, Any]:
        """Return what the file says since ai.onnx.ml 5: each leaf has a number for one target.

        A tree that is a leaf is a node with that leaf on both sides.
        """
        numbers = {(tree, number): weight for tree, number, _, weight in self.weighted}
        inner = [node for node in self.nodes if node[2] != LEAF or node[1] == 0]
        leaves = [node[:2] for node in self.nodes if node[2] == LEAF]
        places = {node[:2]: place for place, node in enumerate(inner)}
        ends: dict[str, list[int]] = {name: [] for name in ("true", "false", "trues", "falses")}
        for tree, number, mode, *_, yes, no, _ in inner:
            for name, end in (("true", yes), ("false", no)):
                key = (tree, number if mode == LEAF else end)
                ends[f"{name}s"].append(int(key in leaves))
                ends[name].append(leaves.index(key) if key in leaves else places[key])
        modes = [0 if mode == LEAF else MODES.index(mode) for _, _, mode, *_ in inner]
        weights = [numbers[key] for key in leaves]
        return {
            "leaf_targetids": self.rng.integers(0, targets, len(leaves)).tolist(),
            "leaf_weights": numpy_helper.from_array(np.array(weights, dtype)),
            "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
            "nodes_splits": numpy_helper.from_array(np.array([n[4] for n in inner], dtype)),
            "nodes_featureids": [node[3] for node in inner],
            "nodes_missing_value_tracks_true": [node[7] for node in inner],
            "nodes_truenodeids": ends["true"], "nodes_trueleafs": ends["trues"],
            "nodes_falsenodeids": ends["false"], "nodes_falseleafs": ends["falses"],
            "tree_roots": [place for key, place in places.items() if key[1] == 0],
            "n_targets": targets,
        }  # fmt: skip


def forest(
    seed: int, targets: list[int], modes: list[str], *, positive: bool = False, sparse: bool = True
) -> Forest:
    """Return up to five trees of up to five levels."""
    rng = np.random.default_rng(seed)
    grown = Forest(rng, modes, sparse)
    for tree in range(int(rng.integers(1, 6))):
        grown.grow(tree, int(rng.integers(0, 5)), targets, float(positive))
    return grown


def rows(seed: int) -> Array:
    """Return features, many of them thresholds, some of them no numbers."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-4, 5, (4, WIDTH)) / 2).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x
