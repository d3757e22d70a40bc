"""The types that ONNX allows for the operands of an operator, from the package's own table.

Readers rely on it: what follows from other types would be a number that ONNX has no meaning for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from microtir.dtype import DType
from microtir.errors import ModelFileError
from microtir.frontend.onnx.file import FileNode
from microtir.graph.ir import Tensor
from microtir.graph.names import brief
from microtir.operators.common.onnx_values import Value

# Floats of other widths are computed as float32.
_NAMES: Mapping[str, DType] = MappingProxyType(
    {
        **{dtype.value: dtype for dtype in DType},
        **dict.fromkeys(("float", "float16", "double"), DType.FLOAT32),
    }
)


def check_types(
    node: FileNode, version: int, inputs: Sequence[Value | None], few: Mapping[int, object],
    where: str,
) -> None:  # fmt: skip
    """Refuse tensors of a type that the operator's definition does not take.

    Args:
        node: of the file.
        version: of the operator set of its domain.
        inputs: what it is given.
        few: places of inputs of fewer than 8 bits, which are held in another type than the file's.
        where: the node, in words.
    """
    legal = _legal_types(node.domain, node.operator, version)
    for place, value in enumerate(inputs):
        allowed = legal[min(place, len(legal) - 1)] if legal else ()
        if not allowed or not isinstance(value, Tensor) or place in few:
            continue
        if value.dtype not in allowed:
            raise ModelFileError(
                f"its input {place} {brief(value.name)!r} has the type {value.dtype.value}",
                where=where,
                legal=", ".join(dtype.value for dtype in allowed),
                fix="export the model again",
            )


@cache
def _legal_types(domain: str, operator: str, version: int) -> tuple[tuple[DType, ...], ...]:
    """Return the types of each input, the last of which may be many; empty if that is not known."""
    from onnx import defs

    try:
        schema = defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return ()  # of onnxruntime's domain, or of functions
    return tuple(_tensor_types(formal.types) for formal in schema.inputs)


def _tensor_types(names: Collection[str]) -> tuple[DType, ...]:
    """Return the types of tensors that microtir has among those that a definition lists."""
    held = {name.removeprefix("tensor(").removesuffix(")") for name in names}
    return tuple(dict.fromkeys(dtype for name, dtype in _NAMES.items() if name in held))
