"""Read recurrent layers: cells, loops over their steps, and layers that run others.

What the inputs add to the gates is one product for all steps.  A layer with the usual functions
is one LSTM of the graph; all else is a loop whose turn is a step of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.config import LayerRecord, parse_layer
from microtir.frontend.keras.layer import KerasLayer, KerasReader, tensors_of
from microtir.frontend.keras.layers.activations import apply
from microtir.frontend.keras.layers.convolution import FIELDS, convolved, window_of
from microtir.frontend.keras.layers.core import dense, is_channels_first
from microtir.frontend.keras.refusals import unknown_layer
from microtir.frontend.keras.weights import WRAPPED, Weights, snake_case
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_loops import Loop, Turn
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import (
    along,
    backwards,
    joined,
    reshaped,
    stacked,
    transposed,
)
from microtir.operators.common.onnx_windows import OnnxWindow
from microtir.operators.indexing.definition import Gather

_MOST_STEPS = 1 << 9  # that are written out


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: one step of a recurrent layer.

    Args:
        states: shapes of its states without the batch.
        project: gives what inputs add to the gates, of one step (N, …) or of all (T, N, …).
        step: given that of one step, and the states, the new states.
        lstm: its weights, if all is as the LSTM of the graph has it.
        output: place of the state that comes out.
    """

    states: tuple[tuple[int, ...], ...]
    project: Callable[[Tensor], Tensor]
    step: Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, ...]]
    lstm: tuple[Tensor, ...] | None = None
    output: int = 0


def _gate(layer: KerasLayer, gates: Tensor, number: int, size: int) -> Tensor:
    return along(layer.node, gates, len(gates.shape) - 1, number * size, size)


def _activation(layer: KerasLayer, name: str) -> Callable[[Tensor], Tensor]:
    return lambda x: apply(layer, x, layer.setting(name))


def _weights(layer: KerasLayer, gates: int) -> tuple[int, Tensor, Tensor, Tensor | None]:
    """Return the units of a cell, its kernels of inputs and state, and its bias."""
    has_bias = layer.flag("use_bias", default=True)
    kernel, recurrent, *bias = layer.arrays(
        "kernel", "recurrent_kernel", *(("bias",) if has_bias else ())
    )
    units = layer.integer("units")
    if recurrent.shape != (units, gates * units) or kernel.shape[1:] != recurrent.shape[1:]:
        raise layer.malformed(
            f"kernels of shape {kernel.shape} and {recurrent.shape}",
            f"{gates} gates of {units} units",
        )
    return units, kernel, recurrent, bias[0] if bias else None


def _some(bias: Tensor | None) -> tuple[Tensor, ...]:
    return () if bias is None else (bias,)


def _simple_cell(layer: KerasLayer) -> Cell:
    units, kernel, recurrent, bias = _weights(layer, 1)
    activation = _activation(layer, "activation")

    def step(inputs: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (activation(layer.emit(Add(), inputs, dense(layer, states[0], recurrent))),)

    return Cell(((units,),), lambda x: dense(layer, x, kernel, *_some(bias)), step)


def _gru_cell(layer: KerasLayer) -> Cell:
    """Read GRUCell: update, reset and the new state; the reset may be after the product."""
    units, kernel, recurrent, bias = _weights(layer, 3)
    is_after, node = layer.flag("reset_after", default=True), layer.node
    own, past = bias, None
    if is_after and bias is not None:
        if bias.shape != (2, 3 * units):
            raise layer.malformed(f"a bias of shape {bias.shape}", f"(2, {3 * units})")
        own, past = (
            reshaped(node, along(node, bias, 0, at, 1), 3 * units) for at in (0, 1)
        )  # fmt: skip
    activation, recurrent_activation = (
        _activation(layer, name) for name in ("activation", "recurrent_activation")
    )
    of_gates = along(node, recurrent, 1, 0, 2 * units)
    of_new = along(node, recurrent, 1, 2 * units, units)

    def step(inputs: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        (h,) = states
        if is_after:
            inner = dense(layer, h, recurrent, *_some(past))
        else:
            inner = dense(layer, h, of_gates)
        update, reset = (
            recurrent_activation(
                layer.emit(Add(), *(_gate(layer, x, number, units) for x in (inputs, inner)))
            )
            for number in (0, 1)
        )
        if is_after:
            rest = arithmetic.mul(node, reset, _gate(layer, inner, 2, units))
        else:
            rest = dense(layer, arithmetic.mul(node, reset, h), of_new)
        new = activation(layer.emit(Add(), _gate(layer, inputs, 2, units), rest))
        moved = arithmetic.mul(node, update, arithmetic.sub(node, h, new))
        return (arithmetic.add(node, new, moved),)

    return Cell(((units,),), lambda x: dense(layer, x, kernel, *_some(own)), step)


def _lstm_step(layer: KerasLayer, units: int, gates: Tensor, cell: Tensor) -> tuple[Tensor, ...]:
    """Return output and cell of a step: its gates are input, forget, cell, output."""
    node = layer.node
    activation, recurrent_activation = (
        _activation(layer, name) for name in ("activation", "recurrent_activation")
    )
    entry, forget, output = (
        recurrent_activation(_gate(layer, gates, number, units)) for number in (0, 1, 3)
    )
    proposal = activation(_gate(layer, gates, 2, units))
    old, own = arithmetic.mul(node, forget, cell), arithmetic.mul(node, entry, proposal)
    new = arithmetic.add(node, old, own)
    return arithmetic.mul(node, output, activation(new)), new


def _lstm_cell(layer: KerasLayer) -> Cell:
    units, kernel, recurrent, bias = _weights(layer, 4)

    def step(inputs: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        gates = layer.emit(Add(), inputs, dense(layer, states[0], recurrent))
        return _lstm_step(layer, units, gates, states[1])

    names = (layer.setting("activation"), layer.setting("recurrent_activation"))
    is_usual = names == ("tanh", "sigmoid")
    return Cell(
        ((units,), (units,)), lambda x: dense(layer, x, kernel, *_some(bias)), step,
        (kernel, recurrent, *_some(bias)) if is_usual else None,
    )  # fmt: skip


def _conv_lstm_cell(layer: KerasLayer, rank: int, x: Tensor) -> Cell:
    """Return the cell of ConvLSTM, whose products are convolutions; x is (T, N, …)."""
    has_bias = layer.flag("use_bias", default=True)
    kernel, recurrent, *bias = layer.arrays(
        "kernel", "recurrent_kernel", *(("bias",) if has_bias else ())
    )
    units, ones = layer.integer("filters"), (1,) * rank
    if recurrent.shape[-2:] != (units, 4 * units) or len(kernel.shape) != rank + 2:
        raise layer.malformed(f"kernels of shape {kernel.shape} and {recurrent.shape}")
    strides, dilations = layer.extents("strides", rank), layer.extents("dilation_rate", rank)

    def project(steps: Tensor) -> Tensor:
        frames = reshaped(layer.node, steps, steps.shape[0] * steps.shape[1], *steps.shape[2:])
        window = window_of(layer, frames.shape[1:-1], kernel.shape[:rank], strides, dilations)
        y = convolved(layer, frames, kernel, tuple(bias), window)
        return reshaped(layer.node, y, *steps.shape[:2], *y.shape[1:])

    taps = recurrent.shape[:rank]
    before = tuple((tap - 1) // 2 for tap in taps)
    after = tuple(tap - 1 - first for tap, first in zip(taps, before, strict=True))
    inner = OnnxWindow(taps, ones, ones, before, after)

    def step(inputs: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        gates = layer.emit(Add(), inputs, convolved(layer, states[0], recurrent, (), inner))
        return _lstm_step(layer, units, gates, states[1])

    frame = window_of(layer, x.shape[2:-1], kernel.shape[:rank], strides, dilations)
    axes = zip(
        x.shape[2:-1], frame.taps, strides, dilations, frame.before, frame.after, strict=True
    )
    sizes = (
        (size + b + a - (tap - 1) * dilation - 1) // stride + 1
        for size, tap, stride, dilation, b, a in axes
    )
    shape = (*sizes, units)
    return Cell((shape, shape), project, step)


def _stacked_cells(layer: KerasLayer) -> Cell:
    """Return cells as one: the output of each is the input of the next."""
    entries = layer.setting("cells")
    if not isinstance(entries, list) or not 1 <= len(entries) <= 64:
        raise layer.malformed("it has no cells", "1 to 64")
    counts: dict[str, int] = {}
    cells = []
    for entry in entries:
        record = parse_layer(entry, layer.node.where)
        title = snake_case(record.kind)
        number = counts[title] = counts.get(title, -1) + 1
        place = f"cells/{title}_{number}" if number else f"cells/{title}"
        cells.append(_cell(layer, record, layer.weights.child(place, record.name)))
    starts = [sum(len(cell.states) for cell in cells[:at]) for at in range(len(cells))]
    outputs = [start + cell.output for start, cell in zip(starts, cells, strict=True)]

    def step(inputs: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        new: list[Tensor] = []
        for at, (cell, start) in enumerate(zip(cells, starts, strict=True)):
            summands = inputs if at == 0 else cell.project(new[outputs[at - 1]])
            new += cell.step(summands, states[start : start + len(cell.states)])
        return tuple(new)

    shapes = tuple(shape for cell in cells for shape in cell.states)
    return Cell(shapes, cells[0].project, step, output=outputs[-1])


_CELLS: dict[str, Callable[[KerasLayer], Cell]] = {
    "SimpleRNNCell": _simple_cell,
    "GRUCell": _gru_cell,
    "LSTMCell": _lstm_cell,
    "StackedRNNCells": _stacked_cells,
}


def _cell(layer: KerasLayer, record: LayerRecord, weights: Weights) -> Cell:
    read = _CELLS.get(record.kind)
    if read is None or record.is_of_user:
        raise unknown_layer(record, layer.node.where)
    return read(replace(layer, record=record, weights=weights))


# --- loops ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sequence:
    """A layer over a sequence.

    Args:
        layer: which is read.
        cell: of it.
        x: (T, N, …).
        mask: which steps count, (T, N); None if all do.
        first: the states before the first step.
    """

    layer: KerasLayer
    cell: Cell
    x: Tensor
    mask: Tensor | None
    first: tuple[Tensor, ...]

    def run(self) -> tuple[Tensor | None, Tensor, tuple[Tensor, ...]]:
        """Return the outputs of all steps, the last one, and the states in the end."""
        if self.cell.lstm is not None and self.mask is None:
            return self._as_lstm(*self.cell.lstm)
        inputs = self.cell.project(self.x)
        steps, is_back = self.x.shape[0], self.layer.flag("go_backwards")
        node = self.layer.node

        def turn(number: Tensor, old: tuple[Tensor, ...]) -> Turn:
            place = number
            if is_back:
                place = arithmetic.sub(node, node.scalar_like(steps - 1, number), number)
            return self._turn(place, inputs, old)

        results = node.emitter.repeat(Loop(self.first, turn, steps))
        if results is not None:
            lists, states = results.lists, results.states
        else:
            lists, states = self._written_out(turn, steps)
        sequence = None
        if lists:
            n = self.x.shape[1]
            sequence = reshaped(node, lists[0], steps, n, *self.cell.states[self.cell.output])
        last = states[self.cell.output]
        if sequence is not None and self.zeroes_output:
            last = reshaped(node, along(node, sequence, 0, steps - 1, 1), *sequence.shape[1:])
        return sequence, last, states

    @property
    def zeroes_output(self) -> bool:
        """Return whether steps that do not count give zeros."""
        return self.mask is not None and self.layer.flag("zero_output_for_mask")

    def _turn(self, place: Tensor, inputs: Tensor, old: tuple[Tensor, ...]) -> Turn:
        layer, node = self.layer, self.layer.node
        new = self.cell.step(layer.emit(Gather(), inputs, place), old)
        output = new[self.cell.output]
        if self.mask is not None:
            flags = layer.emit(Gather(), self.mask, place)
            new = tuple(
                arithmetic.choose(node, _spread(node, flags, s), s, before)
                for s, before in zip(new, old, strict=True)
            )
            output = new[self.cell.output]
            if self.zeroes_output:
                output = arithmetic.choose(node, _spread(node, flags, output), output, 0.0)
        is_listed = layer.flag("return_sequences") or self.zeroes_output
        return Turn(new, (output,) if is_listed else ())

    def _written_out(
        self, turn: Callable[[Tensor, tuple[Tensor, ...]], Turn], steps: int
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        node = self.layer.node
        if steps > _MOST_STEPS:
            raise self.layer.unsupported(
                f"{steps} steps that have to be unrolled", f"up to {_MOST_STEPS}",
                "give the model shorter sequences",
            )  # fmt: skip
        states: tuple[Tensor, ...] = self.first
        items: list[Tensor] = []
        for number in range(steps):
            done = turn(node.constant(np.array(number, np.int32)), states)
            states = done.states
            items += done.items
        return ((stacked(node, items, 0),) if items else ()), states

    def _as_lstm(
        self, kernel: Tensor, recurrent: Tensor, *bias: Tensor
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Return the same by the LSTM of the graph, whose gates ONNX has in another order."""
        node, units = self.layer.node, recurrent.shape[0]
        n = self.x.shape[1]

        def laid(weights: Tensor) -> Tensor:
            axis = len(weights.shape) - 1
            gates = [along(node, weights, axis, g * units, units) for g in (0, 3, 1, 2)]
            whole = joined(node, gates, axis)
            rows = whole if axis == 0 else transposed(node, whole, (1, 0))
            return reshaped(node, rows, 1, *rows.shape)

        zeros = node.constant(np.zeros((1, 4 * units), np.float32))
        both = joined(node, [laid(bias[0]) if bias else zeros, zeros], 1)
        x = backwards(node, self.x, 0) if self.layer.flag("go_backwards") else self.x
        h, c = (reshaped(node, state, 1, n, units) for state in self.first)
        sequence, *last = self.layer.onnx_results(
            "LSTM", (x, laid(kernel), laid(recurrent), both, None, h, c), 3, {"hidden_size": units}
        )
        hidden, cell = (reshaped(node, state, n, units) for state in last)
        return reshaped(node, sequence, x.shape[0], n, units), hidden, (hidden, cell)


def _spread(node: OnnxNode, flags: Tensor, like: Tensor) -> Tensor:
    """Return flags of a batch for each element of a state."""
    return reshaped(node, flags, flags.shape[0], *(1,) * (len(like.shape) - 1))


def _run(layer: KerasLayer, cell: Cell, x: Tensor) -> tuple[Tensor, ...]:
    """Return the results of a layer over (T, N, …): outputs by batch, perhaps states."""
    node, n = layer.node, x.shape[1]
    first = _first_states(layer, cell, n)
    mask = layer.mask_of(layer.inputs[0])
    by_step = None if mask is None else transposed(node, mask, (1, 0))
    sequence, last, states = _Sequence(layer, cell, x, by_step, first).run()
    if layer.flag("stateful"):
        for before, after in zip(first, states, strict=True):
            layer.inner.set_state(before, after)
    result = last
    if layer.flag("return_sequences"):
        assert sequence is not None
        result = transposed(node, sequence, (1, 0, *range(2, len(sequence.shape))))
        if mask is not None:
            layer.inner.set_mask(result, mask)
    return (result, *states) if layer.flag("return_state") else (result,)


def _first_states(layer: KerasLayer, cell: Cell, n: int) -> tuple[Tensor, ...]:
    """Return the states before the first step: arguments, those of the last run, or zeros."""
    shapes = [(n, *shape) for shape in cell.states]
    stated = tensors_of(layer.argument(1, "initial_state")) or layer.inputs[1:]
    if layer.flag("stateful"):
        if stated:
            raise layer.unsupported(
                "it is stateful, and is called with an initial state",
                "a stateful layer or an initial state", "build the layer with stateful=False",
            )  # fmt: skip
        return tuple(
            layer.inner.state(f"{layer.record.name}_state{number}", np.zeros(shape, np.float32))
            for number, shape in enumerate(shapes)
        )
    if not stated:
        return tuple(layer.node.constant(np.zeros(shape, np.float32)) for shape in shapes)
    if [state.shape for state in stated] != shapes:
        raise layer.malformed(f"states of {[s.shape for s in stated]}", f"{shapes}")
    return stated


def _by_step(layer: KerasLayer, rank: int = 0) -> Tensor:
    """Return the sequence of a layer as (T, N, …), with channels last."""
    x = layer.inputs[0]
    if len(x.shape) != 3 + rank:
        raise layer.malformed(f"its input has the shape {x.shape}", f"{3 + rank} dimensions")
    axes = list(range(2, len(x.shape)))
    if rank and is_channels_first(layer):
        axes = [*axes[1:], axes[0]]
    return transposed(layer.node, x, (1, 0, *axes))


def _recurrent(kind: str) -> Callable[[KerasLayer], tuple[Tensor, ...]]:
    """Return what reads a layer that is a loop over one cell, whose settings it has."""

    def read(layer: KerasLayer) -> tuple[Tensor, ...]:
        if layer.flag("time_major"):
            raise layer.unsupported(
                "the first axis of its input is time (time_major=True)",
                "the batch as the first axis", "build the layer with time_major=False",
            )  # fmt: skip
        within = replace(layer, weights=layer.weights.child("cell", ""))
        return _run(layer, _CELLS[kind](within), _by_step(layer))

    return read


def _rnn(layer: KerasLayer) -> tuple[Tensor, ...]:
    record = parse_layer(layer.setting("cell"), layer.node.where)
    cell = _cell(layer, record, layer.weights.child("cell", ""))
    return _run(layer, cell, _by_step(layer))


def _conv_lstm(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> tuple[Tensor, ...]:
        x = _by_step(layer, rank)
        within = replace(layer, weights=layer.weights.child("cell", ""))
        results = _run(layer, _conv_lstm_cell(within, rank, x), x)
        if not is_channels_first(layer):
            return results
        is_listed = layer.flag("return_sequences")
        ahead = [2 if is_listed and number == 0 else 1 for number in range(len(results))]
        return tuple(
            transposed(layer.node, y, (*range(n), len(y.shape) - 1, *range(n, len(y.shape) - 1)))
            for y, n in zip(results, ahead, strict=True)
        )

    return KerasReader(f"ConvLSTM{rank}D", read, (*FIELDS, "recurrent_activation", *_RNN_FIELDS))


# --- layers that run others -----------------------------------------------------------------------


def _bidirectional(layer: KerasLayer) -> tuple[Tensor, ...]:
    forward = parse_layer(layer.setting("layer"), layer.node.where)
    name = forward.name.removeprefix("forward_")
    backward = _turned(forward, f"backward_{name}")
    if layer.setting("backward_layer") is not None:
        backward = parse_layer(layer.setting("backward_layer"), layer.node.where)
    states = tensors_of(layer.argument(1, "initial_state")) or layer.inputs[1:]
    half = len(states) // 2
    results = []
    for record, attribute, own in (
        (replace(forward, name=f"forward_{name}"), "forward_layer", states[:half]),
        (backward, "backward_layer", states[half:]),
    ):
        weights = layer.weights.child(attribute, record.name)
        named = {"initial_state": own or None, "mask": layer.mask_of(layer.inputs[0])}
        results.append(layer.inner.call(record, weights, (layer.inputs[0],), named))
    (y, *ahead), (z, *behind) = results
    if forward.config.get("return_sequences"):
        z = backwards(layer.node, z, 1)
    merged = _merged(layer, y, z)
    mask = layer.mask_of(layer.inputs[0])
    if mask is not None and forward.config.get("return_sequences"):
        for tensor in merged:
            layer.inner.set_mask(tensor, mask)
    return (*merged, *ahead, *behind)


def _turned(record: LayerRecord, name: str) -> LayerRecord:
    """Return a layer that goes the other way."""
    config: dict[str, Json] = dict(record.config)
    config["go_backwards"] = not config.get("go_backwards")
    return replace(record, name=name, config=config)


def _merged(layer: KerasLayer, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """Return the outputs of both directions as one, or as two."""
    mode = layer.setting("merge_mode", "concat")
    if mode is None:
        return y, z
    node = layer.node
    layer.word("merge_mode", "concat", "sum", "ave", "mul", default="concat")
    if mode == "concat":
        return (joined(node, [y, z], len(y.shape) - 1),)
    if mode == "mul":
        return (arithmetic.mul(node, y, z),)
    total = arithmetic.add(node, y, z)
    return (total if mode == "sum" else arithmetic.mul(node, total, 0.5),)


def _time_distributed(layer: KerasLayer) -> tuple[Tensor, ...]:
    """Read TimeDistributed: steps are entries of a larger batch."""
    record = parse_layer(layer.setting("layer"), layer.node.where)
    x, node = layer.x, layer.node
    if len(x.shape) < 3:
        raise layer.malformed(f"its input has the shape {x.shape}", "3 dimensions or more")
    n, steps = x.shape[:2]
    if record.config.get("stateful"):
        raise layer.unsupported("a layer inside it is stateful", "layers that are not stateful",
                                "build the layer with stateful=False")  # fmt: skip
    flat = reshaped(node, x, n * steps, *x.shape[2:])
    weights = layer.weights.child(WRAPPED, record.name)
    results = layer.inner.call(record, weights, (flat,), {})
    return tuple(reshaped(node, y, n, steps, *y.shape[1:]) for y in results)


def _inner_layer(layer: KerasLayer) -> tuple[Tensor, ...]:
    """Read a wrapper that changes the weights of its layer while a model is trained."""
    record = parse_layer(layer.setting("layer"), layer.node.where)
    weights = layer.weights.child(WRAPPED, record.name)
    return layer.inner.call(record, weights, layer.positional, layer.named)


_RNN_FIELDS = ("return_sequences", "return_state", "go_backwards", "stateful",
               "zero_output_for_mask")  # fmt: skip
_CELL_FIELDS = ("units", "activation", "use_bias", *_RNN_FIELDS)

KERAS_READERS = (
    KerasReader("SimpleRNN", _recurrent("SimpleRNNCell"), _CELL_FIELDS),
    KerasReader(
        "GRU", _recurrent("GRUCell"), (*_CELL_FIELDS, "recurrent_activation", "reset_after")
    ),
    KerasReader("LSTM", _recurrent("LSTMCell"), (*_CELL_FIELDS, "recurrent_activation")),
    KerasReader("RNN", _rnn, ("cell", *_RNN_FIELDS)),
    *map(_conv_lstm, (1, 2, 3)),
    KerasReader("Bidirectional", _bidirectional, ("layer", "backward_layer", "merge_mode")),
    KerasReader("TimeDistributed", _time_distributed, ("layer",), keeps_mask=True),
    KerasReader("SpectralNormalization", _inner_layer, ("layer",)),
)
