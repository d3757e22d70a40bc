"""Global average pooling with channels innermost, so that a compiler adds them in vectors."""

from __future__ import annotations

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel, work
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.statements import let, load, loop, seq, store
from microtir.operators.common.rows import Extents
from microtir.operators.pooling.definition import AveragePool2D, pool_params
from microtir.operators.pooling.formula import windows_of
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_MOST_CHANNELS = 2048  # sums on the stack


class GlobalAverage(Kernel):
    """A sum for each channel, channels innermost."""

    name = "pool_s8_1x8_avx2"
    operators = (AveragePool2D,)
    needs = Feature.VECTOR

    def instructions(self, node: Node, _calls: Calls) -> int:
        return work(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 windows of the size of their only image."""
        image = Extents.of(node.inputs[0].type)
        if node.inputs[0].dtype is not DType.INT8:
            return Refusal.TYPES
        if image.images != 1:
            return Refusal.IMAGES
        if not 0 < image.channels <= _MOST_CHANNELS:
            return Refusal.SIZES
        windows, count = windows_of(node), image.height * image.width
        whole = (windows.rows.taps, windows.columns.taps) == (image.height, image.width)
        one = node.output.type.elements == image.channels
        inside = not windows.clip(Extents.of(node.output.type)) and count > 0
        return None if whole and one and inside else Refusal.WINDOWS

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of vectorised loops beyond those of the direct kernel."""
        return 400

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        node, image = layer.node, Extents.of(layer.node.inputs[0].type)
        x, y = layer.input_rows(0), layer.output_rows()
        sums = ir.Buffer("sums", (image.channels,), DType.INT32, ir.Scope.LOCAL)
        params, count = pool_params(_op(node), node.output.type), image.height * image.width

        def added(row: te.Expr, column: te.Expr, channel: te.Expr) -> ir.Stmt:
            value = te.cast(DType.INT32, load(x.buffer, x.slot(row), column, channel))
            return store(sums, (channel,), load(sums, channel) + value)

        def output(row: te.Expr, channel: te.Expr) -> ir.Stmt:
            def rounded(total: te.Expr) -> ir.Stmt:
                half = te.select(total > 0, total + count // 2, total - count // 2)
                value = te.clamp(
                    te.truncdiv(half, te.as_expr(count, DType.INT32)),
                    params.activation_min, params.activation_max,
                )  # fmt: skip
                return store(y.buffer, (y.slot(row), 0, channel), te.cast(DType.INT8, value))

            return let("total", load(sums, channel), rounded)

        def image_of(row: te.Expr) -> ir.Stmt:
            every = image.channels
            return ir.Allocate(sums, seq(
                loop("ch", 0, every, lambda channel: store(sums, (channel,), 0)),
                loop("y_in", 0, image.height, lambda y_in: loop(
                    "col", 0, image.width, lambda column: loop(
                        "ch", 0, every, lambda channel: added(y_in, column, channel)))),
                loop("ch", 0, every, lambda channel: output(row, channel)),
            ))  # fmt: skip

        return layer.function(name, None, loop("row", layer.y0, layer.y1, image_of))


def _op(node: Node) -> AveragePool2D:
    return node.attributes(AveragePool2D)
