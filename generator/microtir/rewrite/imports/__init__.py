"""Passes that make a graph as a file has it one of this compiler's operators.

The readers of files emit nodes one by one, as the format defines them.  Layouts of images,
loops and integers are settled here, where the whole graph is seen.
"""

from microtir.graph.rewriting import GraphPass
from microtir.rewrite.imports.caller_scales import CallerScales
from microtir.rewrite.imports.fold_affine import FoldAffine
from microtir.rewrite.imports.forget_scales import ForgetScales
from microtir.rewrite.imports.fuse_quantised import FuseQuantised
from microtir.rewrite.imports.older_quantization import OlderQuantization
from microtir.rewrite.imports.settle_layout import SettleLayout
from microtir.rewrite.imports.settle_loops import SettleLoops
from microtir.rewrite.imports.signed_integers import SignedIntegers
from microtir.rewrite.imports.transpose_inputs_first import TransposeInputsFirst

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

__all__ = ["ONNX_PASSES", "TFLITE_PASSES"]
