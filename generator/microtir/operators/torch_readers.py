"""All readers of PyTorch, by family."""

from __future__ import annotations

from microtir.operators.activations.torch import TORCH_READERS as ACTIVATIONS
from microtir.operators.common.torch_operands import TorchReader
from microtir.operators.control.torch import TORCH_READERS as CONTROL
from microtir.operators.conversion.torch_quantised import TORCH_READERS as QUANTISED
from microtir.operators.convolution.torch import TORCH_READERS as CONVOLUTION
from microtir.operators.dense.torch import TORCH_READERS as DENSE
from microtir.operators.movement.torch import TORCH_READERS as MOVEMENT
from microtir.operators.normalization.torch import TORCH_READERS as NORMALIZATION
from microtir.operators.pooling.torch import TORCH_READERS as POOLING
from microtir.operators.shapes.torch_sizes import TORCH_READERS as SIZES
from microtir.operators.state.torch import TORCH_READERS as STATE

TORCH_READERS: tuple[TorchReader, ...] = (
    *CONVOLUTION,
    *DENSE,
    *POOLING,
    *ACTIVATIONS,
    *NORMALIZATION,
    *MOVEMENT,
    *CONTROL,
    *STATE,
    *SIZES,
    *QUANTISED,
)
"""Every operator of PyTorch that is read, in the order of the docs."""
