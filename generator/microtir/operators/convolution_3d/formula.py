"""Compute convolutions over volumes with windows clipped to the volume."""

from __future__ import annotations

from microtir import te
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.windows import Window
from microtir.operators.convolution_3d.definition import Conv3D


def conv_3d(layer: FormulaContext) -> None:
    """Emit CONV_3D for float32."""
    node, op = layer.node, layer.node.attributes(Conv3D)
    x, weights, bias = layer.whole(0), layer.weights, layer.bias
    size, taps = node.inputs[0].shape[1:], node.inputs[1].shape
    windows = [
        Window(taps[axis], op.strides[axis], op.dilations[axis], op.before[axis], size[axis])
        for axis in range(3)
    ]

    def element(n: te.Expr, depth: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        place = (depth, row, col)
        axes = [w.axis(p, name) for w, p, name in zip(windows, place, _NAMES, strict=True)]
        kd, ky, kx = axes
        ic = te.reduce_axis(0, taps[3], "ic")
        z, y, across = (w.position(p, k) for w, p, k in zip(windows, place, axes, strict=True))
        total = te.sum(x[n, z, y, across, ic] * weights[kd, ky, kx, ic, ch], (kd, ky, kx, ic))
        return activate(total if bias is None else total + bias[ch], op.activation)

    layer.tensor(element)


_NAMES = ("kd", "ky", "kx")
