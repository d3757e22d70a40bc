"""Read TFLite's recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor, TensorType
from microtir.operators.common import tflite_written as written
from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteActivation
from microtir.operators.recurrent.definition import GATES, Lstm, Svdf


@dataclass(frozen=True, slots=True)
class SVDFOptions(Options):
    rank: int = 0
    activation: TfliteActivation = TfliteActivation.NONE
    asymmetric_quantize_inputs: bool = False


def svdf(operands: Operands) -> Converted:
    """Read SVDF; the old values become the second input, and the new ones the second output."""
    options = operands.table(SVDFOptions)
    activation = Activation.NONE
    if operands.input(0).dtype.is_float:  # integer kernels ignore it
        activation = operands.activation(options.activation)
    constants = [
        operands.require_computable(1, "the weights of features"),
        operands.require_computable(2, "the weights of time"),
    ]
    if operands.optional(3) is not None:
        constants.append(operands.require_computable(3, "the bias"))
    inputs = (operands.input(0), operands.variable(4), *constants)
    is_asymmetric = options.asymmetric_quantize_inputs
    return Converted(Svdf(options.rank, activation, is_asymmetric), inputs)


@dataclass(frozen=True, slots=True)
class UnidirectionalSequenceLSTMOptions(Options):
    activation: TfliteActivation = TfliteActivation.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    asymmetric_quantize_inputs: bool = False
    diagonal_recurrent_tensors: bool = False


_HIDDEN, _CELL = 18, 19
_INPUTS = 24
_WEIGHTS = range(1, 9)
_BIASES = range(12, 16)
_LEFT_OUT = {
    range(9, 12): "peepholes",
    range(16, 18): "a projection",
    range(20, 24): "layer normalisation",
}


def unidirectional_sequence_lstm(operands: Operands) -> Converted:
    """Read UNIDIRECTIONAL_SEQUENCE_LSTM of four gates, without what may stand between them."""
    options = operands.table(UnidirectionalSequenceLSTMOptions)
    for indices, what in _LEFT_OUT.items():
        if any(operands.optional(index) is not None for index in indices):
            raise operands.unsupported(
                f"it has {what}",
                "four gates of weights for inputs and outputs, and a bias",
                "use a plain LSTM layer",
            )
    if operands.optional(1) is None:
        raise operands.unsupported(
            "its input and forget gates are coupled", "four gates", "use a plain LSTM layer"
        )
    if options.diagonal_recurrent_tensors:
        raise operands.unsupported(
            "its recurrent weights are diagonals", "matrices", "use a plain LSTM layer"
        )
    if options.activation is not TfliteActivation.TANH:
        raise operands.unsupported(
            f"its activation is {options.activation.name}", "TANH", "use a plain LSTM layer"
        )
    if not 0.0 <= options.cell_clip < float("inf"):
        raise operands.malformed(f"cell_clip is {options.cell_clip}", "0 or more")
    weights = (operands.require_computable(n, "the weights") for n in _WEIGHTS)
    biases = (operands.require_computable(n, "the biases") for n in _BIASES)
    states = operands.variable(_HIDDEN), operands.variable(_CELL)
    op = Lstm(options.time_major, options.cell_clip, asymmetric=options.asymmetric_quantize_inputs)
    return Converted(op, (operands.input(0), *states, *weights, *biases))


def write_svdf(node: Node) -> written.Written:
    """Write SVDF; its memory is a variable tensor."""
    op, (x, memory, *constants) = node.attributes(Svdf), node.inputs
    features, time, bias = (*constants, None)[:3]
    options = SVDFOptions(op.rank, written.activation(op.activation), op.asymmetric)
    return written.Written((x, features, time, bias, memory), options, variables=(4,))


def write_unidirectional_sequence_lstm(node: Node) -> written.Written | None:
    """Write UNIDIRECTIONAL_SEQUENCE_LSTM; its states are variable tensors."""
    op, (x, hidden, cell, *constants) = node.attributes(Lstm), node.inputs
    if op.last_only:
        return None
    inputs: list[Tensor | None] = [None] * _INPUTS
    for index, tensor in zip((*_WEIGHTS, *_BIASES), constants, strict=True):
        inputs[index] = tensor
    inputs[0], inputs[_HIDDEN], inputs[_CELL] = x, hidden, cell
    options = UnidirectionalSequenceLSTMOptions(
        TfliteActivation.TANH, op.cell_clip, 0.0, op.time_major, op.asymmetric
    )
    between = () if x.dtype.is_float else tuple(_intermediates(node))
    return written.Written(tuple(inputs), options, (_HIDDEN, _CELL), between)


def _intermediates(node: Node) -> Iterator[Tensor]:
    """Yield what LiteRT asks of integers: four tensors for gates, then one of the hidden scale."""
    for gate in range(GATES):
        type_ = TensorType((0,), DType.FLOAT32)
        yield Tensor(f"{node.name}/gate_{gate}_intermediate", type_)
    hidden = node.inputs[1].type
    yield Tensor(f"{node.name}/hidden_intermediate", TensorType((0,), hidden.dtype, hidden.quant))


READERS = (
    TfliteReader(
        Svdf, BuiltinOperator.SVDF, svdf, SVDFOptions, (5, 5), updates=True, write=write_svdf
    ),
    TfliteReader(
        Lstm,
        BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM,
        unidirectional_sequence_lstm,
        UnidirectionalSequenceLSTMOptions,
        (20, 24),
        updates=True,
        write=write_unidirectional_sequence_lstm,
    ),
)
