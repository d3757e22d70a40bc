"""All readers of ONNX, by family."""

from __future__ import annotations

from microtir.operators.activations.onnx import ONNX_READERS as ACTIVATIONS
from microtir.operators.arithmetic.onnx import ONNX_READERS as ARITHMETIC
from microtir.operators.attention.onnx import ONNX_READERS as ATTENTION
from microtir.operators.bits.onnx import ONNX_READERS as BITS
from microtir.operators.block_dense.onnx import ONNX_READERS as BLOCK_DENSE
from microtir.operators.common.onnx_operands import OnnxReader
from microtir.operators.conditions.onnx import ONNX_READERS as CONDITIONS
from microtir.operators.control.onnx import ONNX_READERS as CONTROL
from microtir.operators.conversion.onnx import ONNX_READERS as CONVERSION
from microtir.operators.convolution.onnx import ONNX_READERS as CONVOLUTION
from microtir.operators.cumulation.onnx import ONNX_READERS as CUMULATION
from microtir.operators.dense.onnx import ONNX_READERS as DENSE
from microtir.operators.detection.onnx import ONNX_READERS as DETECTION
from microtir.operators.division.onnx import ONNX_READERS as DIVISION
from microtir.operators.features.onnx import ONNX_READERS as FEATURES
from microtir.operators.indexing.onnx import ONNX_READERS as INDEXING
from microtir.operators.linear_models.onnx import ONNX_READERS as LINEAR_MODELS
from microtir.operators.losses.onnx import ONNX_READERS as LOSSES
from microtir.operators.matmul.onnx import ONNX_READERS as MATMUL
from microtir.operators.movement.onnx import ONNX_READERS as MOVEMENT
from microtir.operators.normalization.onnx import ONNX_READERS as NORMALIZATION
from microtir.operators.pooling.onnx import ONNX_READERS as POOLING
from microtir.operators.ranking.onnx import ONNX_READERS as RANKING
from microtir.operators.rearrangement.onnx import ONNX_READERS as REARRANGEMENT
from microtir.operators.recurrent.onnx import ONNX_READERS as RECURRENT
from microtir.operators.reduction.onnx import ONNX_READERS as REDUCTION
from microtir.operators.repetition.onnx import ONNX_READERS as REPETITION
from microtir.operators.resize.onnx import ONNX_READERS as RESIZE
from microtir.operators.sampling.onnx import ONNX_READERS as SAMPLING
from microtir.operators.selection.onnx import ONNX_READERS as SELECTION
from microtir.operators.sequences.onnx import ONNX_READERS as SEQUENCES
from microtir.operators.shapes.onnx import ONNX_READERS as SHAPES
from microtir.operators.signal.onnx import ONNX_READERS as SIGNAL
from microtir.operators.softmax.onnx import ONNX_READERS as SOFTMAX
from microtir.operators.support_vectors.onnx import ONNX_READERS as SUPPORT_VECTORS
from microtir.operators.transposed_convolution.onnx import ONNX_READERS as TRANSPOSED_CONVOLUTION
from microtir.operators.trees.onnx import ONNX_READERS as TREES
from microtir.operators.unary.onnx import ONNX_READERS as UNARY

ONNX_READERS: tuple[OnnxReader, ...] = (
    *CONVOLUTION,
    *TRANSPOSED_CONVOLUTION,
    *DENSE,
    *MATMUL,
    *BLOCK_DENSE,
    *POOLING,
    *REDUCTION,
    *CUMULATION,
    *ARITHMETIC,
    *DIVISION,
    *BITS,
    *CONDITIONS,
    *SELECTION,
    *ACTIVATIONS,
    *UNARY,
    *SOFTMAX,
    *NORMALIZATION,
    *MOVEMENT,
    *REPETITION,
    *REARRANGEMENT,
    *INDEXING,
    *SHAPES,
    *RANKING,
    *DETECTION,
    *RESIZE,
    *SAMPLING,
    *CONVERSION,
    *RECURRENT,
    *ATTENTION,
    *LOSSES,
    *SIGNAL,
    *CONTROL,
    *SEQUENCES,
    *FEATURES,
    *LINEAR_MODELS,
    *SUPPORT_VECTORS,
    *TREES,
)
"""Every operator of ONNX that is read, in the order of the docs."""
