"""Keep apart integers of few bits, which are held in 8: few operators of ONNX take them.

What moves them gives such, and what converts them knows their range; anything else would compute on
them as on integers of 8 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.frontend.onnx.file import FileNode
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_few_bits import FEW_BITS, FewBits
from microtir.operators.common.onnx_values import Value, tensors_of

_MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_TAKING = _MOVING | {"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear", "Shape", "Size"}
_GIVING = {"Cast": "to", "QuantizeLinear": "output_dtype"}  # an attribute is the type of the result
_LIKE = {"CastLike": 1, "QuantizeLinear": 2}  # an input has the type of the result


def few_bits_of_result(
    node: FileNode, inputs: Sequence[Value | None], known: Mapping[Tensor, FewBits], where: str
) -> FewBits | None:
    """Return the type of the result of a node if it has few bits.

    Args:
        node: of the file.
        inputs: of it.
        known: the types of all tensors of few bits so far.
        where: the node in words.

    Raises:
        UnsupportedModelError: it takes such tensors and knows nothing of their range.
    """
    number = node.attributes.get(_GIVING.get(node.operator, ""))
    if isinstance(number, int) and number in FEW_BITS:
        return FEW_BITS[number]
    sources = [tensor for value in inputs for tensor in tensors_of(value) if tensor in known]
    if not sources:
        return None
    if node.operator not in _TAKING:
        raise UnsupportedModelError(
            f"it computes on integers of {known[sources[0]].bits} bits",
            where=where,
            legal=", ".join(sorted(_TAKING)),
            fix="convert these integers to int8 before this operator",
            export=ExportProblem.FEW_BITS,
        )
    if node.operator in _MOVING:
        return known[sources[0]]
    like = _LIKE.get(node.operator, len(inputs))
    tensors = tensors_of(inputs[like]) if like < len(inputs) else ()
    return known.get(tensors[0]) if tensors else None
