"""Decision trees as conditions, beside the same ones as tables."""

from __future__ import annotations

import numpy as np
import pytest

from microtir import build, host
from microtir.boards import load_board
from microtir.config import CompilationConfig, Optimize
from microtir.frontend import from_onnx
from microtir.graph.ir import Array
from microtir.kernels.portable import branches
from microtir.module.ir_module import IRModule
from microtir.operators.trees.definition import TreeEnsemble
from microtir.plan.ir import Refusal
from microtir.profiling import BoardCompiler
from microtir.rewrite.reference import execute
from tests.support.onnx_models import ml_model_of, ml_node, typed
from tests.support.tree_models import MODES, forest, rows

pytestmark = pytest.mark.tools


def _module(targets: int, *, sparse: bool, modes: list[str] = MODES) -> tuple[IRModule, Array]:
    grown = forest(11, list(range(targets)), modes, sparse=sparse)
    node = ml_node("TreeEnsembleRegressor", n_targets=targets, **grown.attributes("target"))
    x = rows(5)
    return from_onnx(ml_model_of([node], [typed("x", x)], ["y"])), x


def _kernels(module: IRModule, config: CompilationConfig, x: Array) -> list[str]:
    """Compile the trees, compare every float, and return the kernels that were taken."""
    artifact = build(module, config)
    assert module.graph is not None
    [expected] = execute(module.graph, {"x": x}).values()
    got = host.load(artifact, sanitize=True)(x)
    np.testing.assert_array_equal(np.asarray(got), expected)
    operators = artifact.module.require_program("x").plan.operators
    return [op.candidate.kernel for op in operators if isinstance(op.node.op, TreeEnsemble)]


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m0"])
@pytest.mark.parametrize(("targets", "sparse"), [(1, False), (2, False), (3, True)])
def test_conditions_give_what_tables_give(cpu: str, targets: int, sparse: bool) -> None:
    """With all questions and missing features, of floats and of integers made of them."""
    module, x = _module(targets, sparse=sparse)
    fast = CompilationConfig.from_target(f"c -mcpu={cpu}").with_(optimize=Optimize.SPEED)
    assert _kernels(module, fast, x) == ["branches"]


def test_what_is_too_much() -> None:
    """A tree of more questions within each other than compilers like stays a table."""
    module, _ = _module(1, sparse=False)
    assert module.graph is not None
    [node] = (n for n in module.graph.nodes if isinstance(n.op, TreeEnsemble))
    assert branches.Branches().reject(node) is None
    deep = type(node)(TreeEnsemble(1, 31), node.inputs, node.outputs, node.name, node.source)
    assert branches.Branches().reject(deep) is Refusal.SIZES


@pytest.mark.parametrize("name", ["mps2_an386", "uno"])
def test_their_code_is_estimated(name: str) -> None:
    """Neither half nor twice of what a compiler makes: an estimate decides if a board has room.

    A condition counted as much as any branch, so that no forest was said to fit an Uno.
    """
    module, _ = _module(3, sparse=False)
    board = load_board(name)
    config = CompilationConfig.from_target(board.target).with_(optimize=Optimize.SPEED)
    artifact = build(module, config)
    compiler = BoardCompiler.of(board)
    assert compiler is not None
    code = compiler(artifact)
    assert code / 2 < artifact.metadata.code_bytes_estimate < 2 * code
