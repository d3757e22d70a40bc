"""Keep apart integers of 4 bits, which are held in 8: few operators of ONNX take them.

What moves them gives such, and what converts them knows their range; anything else would compute on
them as on integers of 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.frontend.onnx.file import FOUR_BITS, FileNode
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_values import Value, tensors_of

_MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_TAKING = _MOVING | {"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear", "Shape", "Size"}
_GIVING = {"Cast": "to", "QuantizeLinear": "output_dtype"}  # an attribute is the type of the result
_LIKE = {"CastLike": 1, "QuantizeLinear": 2}  # an input has the type of the result


def gives_four_bits(
    node: FileNode, inputs: Sequence[Value | None], known: set[Tensor], where: str
) -> bool:
    """Return whether the result of a node has 4 bits.

    Args:
        node: of the file.
        inputs: of it.
        known: all tensors of 4 bits so far.
        where: the node in words.

    Raises:
        UnsupportedModelError: it takes such tensors and knows nothing of their range.
    """
    if node.attributes.get(_GIVING.get(node.operator, "")) in FOUR_BITS:
        return True
    if known.isdisjoint(tensor for value in inputs for tensor in tensors_of(value)):
        return False
    if node.operator not in _TAKING:
        raise UnsupportedModelError(
            "it computes on integers of 4 bits",
            where=where,
            legal=", ".join(sorted(_TAKING)),
            fix="convert them to int8 before",
            export=ExportProblem.FEW_BITS,
        )
    like = _LIKE.get(node.operator, len(inputs))
    return node.operator in _MOVING or (like < len(inputs) and inputs[like] in known)
