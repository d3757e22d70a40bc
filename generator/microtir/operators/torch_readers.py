"""All readers of PyTorch, by family."""

from __future__ import annotations

from microtir.operators.activations.torch import TORCH_READERS as ACTIVATIONS
from microtir.operators.arithmetic.torch import TORCH_READERS as ARITHMETIC
from microtir.operators.attention.torch import TORCH_READERS as ATTENTION
from microtir.operators.bits.torch import TORCH_READERS as BITS
from microtir.operators.common.torch_operands import TorchReader
from microtir.operators.conditions.torch import TORCH_READERS as CONDITIONS
from microtir.operators.control.torch import TORCH_READERS as CONTROL
from microtir.operators.conversion.torch import TORCH_READERS as CONVERSION
from microtir.operators.conversion.torch_quantised import TORCH_READERS as QUANTISED
from microtir.operators.convolution.torch import TORCH_READERS as CONVOLUTION
from microtir.operators.cumulation.torch import TORCH_READERS as CUMULATION
from microtir.operators.dense.torch import TORCH_READERS as DENSE
from microtir.operators.division.torch import TORCH_READERS as DIVISION
from microtir.operators.framing.torch import TORCH_READERS as FRAMING
from microtir.operators.indexing.torch import TORCH_READERS as INDEXING
from microtir.operators.indexing.torch_puts import TORCH_READERS as PUTS
from microtir.operators.movement.torch import TORCH_READERS as MOVEMENT
from microtir.operators.movement.torch_pads import TORCH_READERS as PADS
from microtir.operators.movement.torch_parts import TORCH_READERS as PARTS
from microtir.operators.normalization.torch import TORCH_READERS as NORMALIZATION
from microtir.operators.pooling.torch import TORCH_READERS as POOLING
from microtir.operators.pooling.torch_adaptive import TORCH_READERS as ADAPTIVE_POOLING
from microtir.operators.ranking.torch import TORCH_READERS as RANKING
from microtir.operators.rearrangement.torch import TORCH_READERS as REARRANGEMENT
from microtir.operators.recurrent.torch import TORCH_READERS as RECURRENT
from microtir.operators.reduction.torch import TORCH_READERS as REDUCTION
from microtir.operators.repetition.torch import TORCH_READERS as REPETITION
from microtir.operators.resize.torch import TORCH_READERS as RESIZE
from microtir.operators.sampling.torch import TORCH_READERS as SAMPLING
from microtir.operators.selection.torch import TORCH_READERS as SELECTION
from microtir.operators.shapes.torch import TORCH_READERS as SHAPES
from microtir.operators.shapes.torch_sizes import TORCH_READERS as SIZES
from microtir.operators.signal.torch import TORCH_READERS as SIGNAL
from microtir.operators.softmax.torch import TORCH_READERS as SOFTMAX
from microtir.operators.state.torch import TORCH_READERS as STATE
from microtir.operators.unary.torch import TORCH_READERS as UNARY

TORCH_READERS: tuple[TorchReader, ...] = (
    *CONVOLUTION, *DENSE, *POOLING, *ADAPTIVE_POOLING, *ACTIVATIONS, *NORMALIZATION, *SOFTMAX,
    *ATTENTION, *RECURRENT, *ARITHMETIC, *DIVISION, *UNARY, *CONDITIONS, *BITS, *SELECTION,
    *REDUCTION, *CUMULATION, *RANKING, *MOVEMENT, *PARTS, *PADS, *REPETITION, *INDEXING, *PUTS,
    *FRAMING, *REARRANGEMENT, *RESIZE, *SAMPLING, *SIGNAL, *CONVERSION, *SHAPES, *CONTROL,
    *STATE, *SIZES, *QUANTISED,
)  # fmt: skip
"""Every operator of PyTorch that is read, in the order of the docs."""
