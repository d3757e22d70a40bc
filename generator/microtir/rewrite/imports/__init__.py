"""Passes that make a graph as a file has it one of this compiler's operators.

The readers of files emit nodes one by one, as the format defines them.  Layouts of images,
loops and integers are settled here, where the whole graph is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from microtir.config import PassConfig
from microtir.graph.ir import Graph
from microtir.graph.rewriting import GraphPass
from microtir.rewrite.checked import rewritten
from microtir.rewrite.extra_passes import GraphFunction, refuse_unknown_passes
from microtir.rewrite.imports.caller_scales import CallerScales
from microtir.rewrite.imports.fold_affine import FoldAffine
from microtir.rewrite.imports.forget_scales import ForgetScales
from microtir.rewrite.imports.fuse_quantised import FuseQuantised
from microtir.rewrite.imports.older_quantization import OlderQuantization
from microtir.rewrite.imports.settle_layout import SettleLayout
from microtir.rewrite.imports.settle_loops import SettleLoops
from microtir.rewrite.imports.signed_integers import SignedIntegers
from microtir.rewrite.imports.transpose_inputs_first import TransposeInputsFirst

READ_OPERATORS = "read_operators"
"""Name of what readers do, one operator after the other, before the passes."""

TFLITE_PASSES: tuple[GraphPass, ...] = (OlderQuantization(),)
"""The passes over what a TFLite file says, in order."""

ONNX_PASSES: tuple[GraphPass, ...] = (
    SettleLayout(),
    SettleLoops(),
    CallerScales(),
    SignedIntegers(),
    FuseQuantised(),
    ForgetScales(),
    TransposeInputsFirst(),
    FoldAffine(),
)
"""The passes over what an ONNX file says, in order."""


def read(
    graph: Graph,
    passes: Sequence[GraphPass],
    options: PassConfig | None,
    after: Mapping[str, Sequence[GraphFunction]] | None,
) -> Graph:
    """Return what a file says as a graph of this compiler's operators.

    Args:
        graph: as the readers of operators made it.
        passes: those of the format.
        options: what is checked on the way; by default nothing but the result.
        after: functions of the user, by the name of the pass behind which they run.

    Raises:
        UsageError: no pass has such a name.
        GraphError: the graph breaks a rule.
    """
    names = (READ_OPERATORS, *(graph_pass.name for graph_pass in passes))
    refuse_unknown_passes(after or {}, names, "after")
    return rewritten(graph, (_Readers(), *passes), options or PassConfig(), after or {})


@dataclass(frozen=True, slots=True)
class _Readers:
    """Work of the readers, which is done, as a pass behind which functions of the user run."""

    name: ClassVar[str] = READ_OPERATORS

    def __call__(self, graph: Graph) -> Graph:
        return graph


__all__ = ["ONNX_PASSES", "READ_OPERATORS", "TFLITE_PASSES", "read"]
