"""Steps from what a sensor gives to what a model takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microtir.config.processing import ELEMENTWISE, GIVEN, Processing, ProcessingStep, StepKind
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Graph, Quantization, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite, named_apart, substitute
from microtir.operators.conversion.definition import CastTo, Quantize
from microtir.operators.movement.definition import Transpose
from microtir.operators.resize.definition import ResizeBilinear
from microtir.rewrite.requests.processing.chain import PIXELS, Chain, each_processing, file_of
from microtir.rewrite.requests.processing.spectra import before_spectrum, mel, power, weigh

_WHERE = "prepend"
_IMAGE = 4  # axes


@dataclass(frozen=True, slots=True)
class Prepend(Rewrite):
    """Puts steps before inputs, which are then what sensors give.

    Args:
        asked: steps of inputs.

    Raises:
        ConfigError: there is no such input, or a step cannot be computed for it.
    """

    asked: Sequence[Processing]
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        for wanted, processing in each_processing(graph, self.asked, graph.arguments, _WHERE):
            inside = replace(wanted, name=f"{wanted.name}/prepended")
            chain = _chain(graph, wanted, processing)
            nodes = [substitute(node, {wanted: inside}) for node in graph.nodes]
            steps = (*chain.nodes[:-1], replace(chain.nodes[-1], outputs=(inside,)))
            first_input = chain.nodes[0].inputs[0]
            graph = replace(
                graph,
                inputs=tuple(first_input if t is wanted else t for t in graph.inputs),
                outputs=tuple(inside if t is wanted else t for t in graph.outputs),
                nodes=(*steps, *nodes),
            )
        return named_apart(graph) if self.asked else graph


def _chain(graph: Graph, wanted: Tensor, processing: Processing) -> Chain:
    """Return the nodes that make what a model takes of what a sensor gives."""
    steps = list(processing.steps)
    first_kind = steps.pop(0).kind if steps[0].kind in GIVEN else None
    is_nhwc = bool(steps) and steps[-1].kind is StepKind.NHWC
    shape = _turned(wanted) if is_nhwc else wanted.shape
    dtype = DType(first_kind.value) if first_kind else DType.FLOAT32
    sensor = Tensor(wanted.name, TensorType(_sensed(shape, steps), dtype, _stored(first_kind)))
    chain = Chain(_WHERE, file_of(graph), f"{wanted.name}_prepended", sensor)
    # Pixels of uint8 become int8 that stand for the same numbers: kernels have these.
    if first_kind is StepKind.UINT8:
        chain.emit(Quantize(), "uint8", TensorType(sensor.shape, DType.INT8, PIXELS))
    begin = len(chain.nodes)
    for step in steps:
        _step(chain, step, shape)
        if step.extents is not None:
            begin = len(chain.nodes)
    _finish(chain, replace(wanted.type, shape=shape), begin)
    if is_nhwc:
        last = len(shape) - 1
        chain.emit(Transpose((0, last, *range(1, last))), "nhwc", wanted.type)
    if not chain.nodes:
        raise ConfigError(
            f"the steps do not change the type or shape of '{wanted.name}'",
            where=_WHERE, legal="steps that change the type or the shape",
        )  # fmt: skip
    return chain


def _step(chain: Chain, step: ProcessingStep, shape: tuple[int, ...]) -> None:
    """Add the nodes of a step; `shape` is what the model takes, with channels behind."""
    if step.extents is not None:
        resize = ResizeBilinear(half_pixel_centers=True)
        chain.emit(resize, str(step), replace(chain.value.type, shape=shape))
    elif step.window is not None:
        weigh(chain, step)
    elif step.kind is StepKind.POWER:
        power(chain, step)
    elif step.kind is StepKind.MEL:
        mel(chain, step, shape[-1])
    elif step.kind in ELEMENTWISE:
        chain.elementwise(step)


def _stored(kind: StepKind | None) -> Quantization | None:
    """Return what the integers of a sensor stand for: themselves."""
    return None if kind is None else Quantization((1.0,), (0,))


def _turned(wanted: Tensor) -> tuple[int, ...]:
    """Return the shape of an input with its channels behind."""
    if len(wanted.shape) < 3:
        raise ConfigError(
            f"'{wanted.name}' has the shape {wanted.shape}, which is not an image",
            where=_WHERE, legal="'nhwc' for inputs (N, C, H, W) or (N, C, W)",
        )  # fmt: skip
    batch, channels, *rest = wanted.shape
    return (batch, *rest, channels)


def _sensed(shape: tuple[int, ...], steps: Sequence[ProcessingStep]) -> tuple[int, ...]:
    """Return the shape of what a sensor gives, of that which the model takes."""
    resize = next((step for step in steps if step.extents), None)
    if resize is None or resize.extents is None:
        length: int | None = shape[-1] if shape else None
        for step in reversed(steps):
            length = before_spectrum(step, length, _WHERE)
        return shape if length is None else (*shape[:-1], length)
    if len(shape) != _IMAGE:
        raise ConfigError(
            f"the step '{resize}' is for images, and the shape is {shape}",
            where=_WHERE, legal="an input (N, H, W, C), or (N, C, H, W) with 'nhwc'",
        )  # fmt: skip
    return (shape[0], *resize.extents, shape[-1])


def _finish(chain: Chain, wanted: TensorType, begin: int) -> None:
    """Make what a model takes of the numbers, by a table where they follow from one int8 value."""
    value = chain.value.type
    if value == wanted:
        return
    if wanted.dtype.is_float:
        chain.as_float(wanted.dtype.value)
    elif wanted.quantization is None:
        chain.emit(CastTo(), wanted.dtype.value, wanted)
    else:
        chain.emit(Quantize(), "quantize", wanted)
        changed = chain.nodes[begin:]
        is_scalar = all(t.type.elements == 1 for n in changed for t in n.inputs[1:])
        is_byte = bool(changed) and changed[0].inputs[0].dtype is wanted.dtype is DType.INT8
        if is_byte and is_scalar:
            chain.tabulated(len(changed), wanted, "table")
