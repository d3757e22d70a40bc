"""Collect nodes and constants of an ONNX graph in which integers stand beside floats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from microtir.graph.ir import Array, Tensor, TensorType
from microtir.operators.common.arrays import dequantized
from microtir.support.unique_names import UniqueNames

if TYPE_CHECKING:
    import onnx

CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""Permutations of images: our graph has (N, H, W, C), ONNX (N, C, H, W)."""

_LARGEST_BIAS = 4  # bytes of an integer that DequantizeLinear takes


@dataclass(slots=True)
class QdqGraph:
    """An ONNX graph on its way: each of our tensors has a value of its name and of its type."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    names: UniqueNames = field(default_factory=UniqueNames)
    values: dict[Tensor, str] = field(default_factory=dict)

    def value(self, tensor: Tensor) -> str:
        """Return the value of a tensor, as it is stored."""
        if tensor not in self.values:
            name = self.names.take(tensor.name)
            self.values[tensor] = name
            if tensor.data is not None:
                self._keep(name, tensor.data)
        return self.values[tensor]

    def constant(self, what: str, data: Array) -> str:
        """Return a constant."""
        name = self.names.take(what)
        self._keep(name, data)
        return name

    def node(self, operator: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        """Add an operator, and return its output."""
        from onnx import helper

        output = output or self.names.take(f"{inputs[0]}/{operator.lower()}")
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def nodes_of(
        self, operator: str, inputs: list[str], count: int, **attributes: Any
    ) -> tuple[str, ...]:
        """Add an operator of several outputs, and return these."""
        from onnx import helper

        outputs = [self.names.take(f"{inputs[0]}/{operator.lower()}") for _ in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return tuple(outputs)

    def reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        """Return a value in another shape."""
        return self.node("Reshape", [name, self.constant("shape", np.array(shape, np.int64))])

    def real(self, tensor: Tensor, order: tuple[int, ...] = ()) -> str:
        """Return the real numbers of a tensor, with its axes in an order.

        Axes are moved before integers become floats, so that readers find the layer between.
        """
        if tensor.data is not None:
            return self._real_constant(tensor, order)
        stored = self.value(tensor)
        if order:
            stored = self.node("Transpose", [stored], perm=list(order))
        quant = tensor.type.quantization
        if quant is None:
            return stored
        return self.node("DequantizeLinear", [stored, *self._scale(tensor.type, None)])

    def _real_constant(self, tensor: Tensor, order: tuple[int, ...]) -> str:
        data, quant = tensor.values, tensor.type.quantization
        if quant is not None and tensor.dtype.bytes > _LARGEST_BIAS:
            data, quant = dequantized(data, tensor.type), None
        turned = data.transpose(order) if order else data
        stored = self.constant(tensor.name, np.ascontiguousarray(turned).reshape(turned.shape))
        if quant is None:
            return stored
        axis = quant.axis
        if axis is not None and order:
            axis = order.index(axis)
        inputs = [stored, *self._scale(tensor.type, axis)]
        if axis is None:
            return self.node("DequantizeLinear", inputs)
        return self.node("DequantizeLinear", inputs, axis=axis)

    def result(self, real: str, tensor: Tensor, order: tuple[int, ...] = ()) -> None:
        """Let real numbers be a tensor of the graph, as integers and with its own axes."""
        quant = tensor.type.quantization
        last = self.value(tensor)
        if quant is None:
            name, perm = ("Transpose", {"perm": list(order)}) if order else ("Identity", {})
            self.node(name, [real], last, **perm)
            return
        stored = self.names.take(f"{tensor.name}/stored") if order else last
        self.node("QuantizeLinear", [real, *self._scale(tensor.type, None)], stored)
        if order:
            self.node("Transpose", [stored], last, perm=list(order))

    def _scale(self, type_: TensorType, axis: int | None) -> list[str]:
        quant = type_.quant
        scales = np.array(quant.scales, np.float32)
        zeros = np.array(quant.zero_points, type_.dtype.value)
        shape: tuple[int, ...] = () if axis is None else (len(scales),)
        return [
            self.constant("scale", scales.reshape(shape)),
            self.constant("zero_point", zeros.reshape(shape)),
        ]

    def _keep(self, name: str, data: Array) -> None:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(data), name))
