"""Random arguments and shapes for the layer classes of Keras, by class; Keras is not imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

Rng: TypeAlias = np.random.Generator
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A layer to be made.

    Args:
        shapes: of its inputs, without the batch.
        arguments: of the class, by name.
        most: inputs are integers below it; 0 if they are floats.
    """

    shapes: tuple[Shape, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    most: int = 0


Draw: TypeAlias = Callable[[Rng], Drawn]

ACTIVATIONS = (
    "linear", "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "exponential",
    "sigmoid", "hard_sigmoid", "silu", "hard_silu", "tanh", "hard_tanh", "tanh_shrink",
    "soft_shrink", "hard_shrink", "softplus", "softsign", "squareplus", "mish", "softmax",
    "log_softmax", "log_sigmoid", "sparse_plus", "sparse_sigmoid",
)  # fmt: skip


def number(rng: Rng, low: int, high: int) -> int:
    """Return a whole number, both ends included."""
    return int(rng.integers(low, high + 1))


def extents(rng: Rng, rank: int, low: int, high: int) -> Shape:
    """Return a number for each axis."""
    return tuple(number(rng, low, high) for _ in range(rank))


def flag(rng: Rng) -> bool:
    """Return true or false."""
    return bool(rng.integers(2))


def pick(rng: Rng, *values: Any) -> Any:
    """Return one of some values."""
    return values[int(rng.integers(len(values)))]


def any_shape(rng: Rng) -> Shape:
    """Return a shape of one to three axes."""
    return extents(rng, number(rng, 1, 3), 1, 6)


def _plain(rng: Rng) -> Drawn:
    return Drawn((any_shape(rng),))


def _with(**arguments: Callable[[Rng], Any]) -> Draw:
    """Return what draws one input of any shape, and arguments."""
    return lambda rng: Drawn(
        (any_shape(rng),), {name: draw(rng) for name, draw in arguments.items()}
    )


def _real(rng: Rng) -> float:
    return float(np.round(rng.uniform(0.05, 1.5), 3))


def _dense(rng: Rng) -> Drawn:
    return Drawn(
        (any_shape(rng),),
        {"units": number(rng, 1, 6), "use_bias": flag(rng), "activation": pick(rng, *ACTIVATIONS)},
    )


def _spatial(rng: Rng, rank: int, *, low: int = 5) -> tuple[Shape, str]:
    """Return an input of spatial axes and channels, and where the channels are."""
    sizes, channels = extents(rng, rank, low, 9), number(rng, 1, 3) * 2
    is_last = bool(rng.integers(4))
    shape = (*sizes, channels) if is_last else (channels, *sizes)
    return shape, "channels_last" if is_last else "channels_first"


def _steps(rng: Rng, rank: int) -> dict[str, Any]:
    """Return strides, dilations and a padding that go with each other."""
    is_dilated = not rng.integers(3)
    return {
        "kernel_size": extents(rng, rank, 1, 3),
        "strides": (1,) * rank if is_dilated else (number(rng, 1, 3),) * rank,
        "dilation_rate": (number(rng, 1, 2),) * rank if is_dilated else (1,) * rank,
        "padding": pick(rng, "valid", "same"),
        "use_bias": flag(rng),
        "activation": pick(rng, None, *ACTIVATIONS),
    }


def _convolution(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        arguments = _steps(rng, rank)
        if rank == 1 and data_format == "channels_last" and flag(rng):
            arguments["padding"] = "causal"
        groups = number(rng, 1, 2)
        arguments |= {"filters": groups * number(rng, 1, 3), "groups": groups}
        return Drawn((shape,), {**arguments, "data_format": data_format})

    return draw


def _depthwise(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        multiplier = {"depth_multiplier": number(rng, 1, 3)}
        return Drawn((shape,), {**_steps(rng, rank), **multiplier, "data_format": data_format})

    return draw


def _separable(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        drawn = _depthwise(rank)(rng)
        return Drawn(drawn.shapes, {**drawn.arguments, "filters": number(rng, 1, 4)})

    return draw


def _transposed(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank, low=2)
        steps = _steps(rng, rank)
        stride = steps["strides"][0]
        if stride > 1 and flag(rng):
            steps["output_padding"] = number(rng, 0, stride - 1)
            steps["kernel_size"] = (3,) * rank
        return Drawn((shape,), {**steps, "filters": number(rng, 1, 4), "data_format": data_format})

    return draw


def _pool(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        strides = pick(rng, None, (number(rng, 1, 3),) * rank)
        return Drawn((shape,), {
            "pool_size": extents(rng, rank, 1, 3), "strides": strides,
            "padding": pick(rng, "valid", "same"), "data_format": data_format,
        })  # fmt: skip

    return draw


def _global(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        return Drawn((shape,), {"keepdims": flag(rng), "data_format": data_format})

    return draw


def _adaptive(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        sizes = extents(rng, rank, 1, 5)
        return Drawn(
            (shape,), {"output_size": sizes[0] if rank == 1 else sizes, "data_format": data_format}
        )

    return draw


def _sides(name: str, rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank)
        if rank == 1:  # which has channels last alone
            return Drawn(((number(rng, 5, 9), 2),), {name: extents(rng, 2, 0, 2)})
        value = pick(
            rng, number(rng, 0, 2), extents(rng, rank, 0, 2),
            tuple(extents(rng, 2, 0, 2) for _ in range(rank)),
        )  # fmt: skip
        return Drawn((shape,), {name: value, "data_format": data_format})

    return draw


def _merged(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    return Drawn((shape,) * number(rng, 2, 4))


def _pair(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    return Drawn((shape, shape))


def _concatenated(rng: Rng) -> Drawn:
    shape = list(any_shape(rng))
    axis = number(rng, 0, len(shape) - 1)
    shapes = []
    for _ in range(number(rng, 2, 3)):
        shape[axis] = number(rng, 1, 5)
        shapes.append(tuple(shape))
    return Drawn(tuple(shapes), {"axis": axis + 1})


def _dotted(rng: Rng) -> Drawn:
    shapes = [list(extents(rng, number(rng, 1, 2), 1, 5)) for _ in range(2)]
    axes = [number(rng, 0, len(shape) - 1) for shape in shapes]
    shapes[1][axes[1]] = shapes[0][axes[0]]
    first, second = map(tuple, shapes)
    return Drawn(
        (first, second), {"axes": tuple(axis + 1 for axis in axes), "normalize": flag(rng)}
    )


def _normalised(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    return Drawn(
        (shape,),
        {"axis": number(rng, 1, len(shape)), "epsilon": 1e-3, "center": flag(rng),
         "scale": flag(rng)},
    )  # fmt: skip


def _layer_normalised(rng: Rng) -> Drawn:
    shape = extents(rng, number(rng, 1, 3), 2, 6)
    axes = [axis for axis in range(1, len(shape) + 1) if flag(rng)] or [len(shape)]
    return Drawn((shape,), {"axis": axes, "center": flag(rng), "scale": flag(rng)})


def _grouped(rng: Rng) -> Drawn:
    shape = (*extents(rng, number(rng, 1, 2), 2, 5), 6)
    return Drawn((shape,), {"groups": pick(rng, -1, 1, 2, 3), "center": flag(rng)})


def _one_axis(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    return Drawn((shape,), {"axis": number(rng, 1, len(shape))})


def _softmax(rng: Rng) -> Drawn:
    shape = extents(rng, 3, 1, 5)
    return Drawn((shape,), {"axis": pick(rng, -1, 1, 2, (1, 3), (2, 3))})


def _permuted(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    return Drawn((shape,), {"dims": tuple(int(n) + 1 for n in rng.permutation(len(shape)))})


def _reshaped(rng: Rng) -> Drawn:
    a, b, c = extents(rng, 3, 1, 4)
    return Drawn(((a, b * c),), {"target_shape": pick(rng, (a * b, c), (-1, b), (a, b, -1))})


def _rectified(rng: Rng) -> Drawn:
    arguments = {
        "max_value": pick(rng, None, 6.0, _real(rng)),
        "negative_slope": pick(rng, 0.0, _real(rng)),
        "threshold": pick(rng, 0.0, _real(rng)),
    }
    return Drawn((any_shape(rng),), arguments)


def _prelu(rng: Rng) -> Drawn:
    return Drawn((extents(rng, 2, 2, 5),), {"shared_axes": pick(rng, None, [1])})


def _embedding(rng: Rng) -> Drawn:
    most = number(rng, 2, 9)
    return Drawn(((number(rng, 1, 6),),), {"input_dim": most, "output_dim": 3}, most)


def _einsum(rng: Rng) -> Drawn:
    a, b, out = extents(rng, 3, 1, 5)
    drawn: Drawn = pick(
        rng,
        Drawn(
            ((a, b),), {"equation": "abc,cd->abd", "output_shape": (None, out), "bias_axes": "d"}
        ),
        Drawn(((b,),), {"equation": "ab,bcd->acd", "output_shape": (out, 3)}),
        Drawn(((a, b),), {"equation": "...x,xy->...y", "output_shape": (a, out)}),
    )
    return drawn


def _recurrent(rng: Rng) -> Drawn:
    arguments = {
        "units": number(rng, 1, 5),
        "activation": pick(rng, "tanh", "relu", "sigmoid"),
        "use_bias": flag(rng),
        "return_sequences": flag(rng),
        "return_state": flag(rng),
        "go_backwards": flag(rng),
        "unroll": flag(rng),
    }
    return Drawn(((number(rng, 1, 8), number(rng, 1, 4)),), arguments)


def _gated(rng: Rng) -> Drawn:
    drawn = _recurrent(rng)
    more = {
        "activation": pick(rng, "tanh", "tanh", "softsign"),
        "recurrent_activation": pick(rng, "sigmoid", "hard_sigmoid"),
    }
    return Drawn(drawn.shapes, {**drawn.arguments, **more})


def _gru(rng: Rng) -> Drawn:
    drawn = _gated(rng)
    return Drawn(drawn.shapes, {**drawn.arguments, "reset_after": flag(rng)})


def _conv_lstm(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank, low=3)
        arguments = {
            "filters": number(rng, 1, 3),
            "kernel_size": extents(rng, rank, 1, 3),
            "padding": pick(rng, "valid", "same"),
            "strides": number(rng, 1, 2),
            "data_format": data_format,
            "return_sequences": flag(rng),
            "return_state": flag(rng),
            "go_backwards": flag(rng),
        }
        return Drawn(((number(rng, 1, 6), *shape),), arguments)

    return draw


def _attention(rng: Rng) -> Drawn:
    size, keys = number(rng, 1, 5), number(rng, 1, 5)
    shapes = ((number(rng, 1, 5), size), *((keys, size),) * number(rng, 1, 2))
    mode = pick(rng, "dot", "concat")
    return Drawn(shapes, {"use_scale": flag(rng), "score_mode": mode})


def _additive(rng: Rng) -> Drawn:
    return Drawn(_attention(rng).shapes, {"use_scale": flag(rng)})


def _up_sampled(rank: int) -> Draw:
    def draw(rng: Rng) -> Drawn:
        shape, data_format = _spatial(rng, rank, low=2)
        factors = extents(rng, rank, 1, 3)
        if rank == 1:
            return Drawn(((number(rng, 2, 6), 2),), {"size": factors[0]})
        arguments = {"size": factors, "data_format": data_format}
        if rank == 2:
            arguments["interpolation"] = pick(rng, "nearest", "bilinear", "bicubic")
        return Drawn((shape,), arguments)

    return draw


def _resized(rng: Rng) -> Drawn:
    shape, data_format = _spatial(rng, 2, low=3)
    return Drawn((shape,), {
        "height": number(rng, 2, 12), "width": number(rng, 2, 12), "data_format": data_format,
        "interpolation": pick(rng, "nearest", "bilinear", "bicubic"),
    })  # fmt: skip


def _cropped(rng: Rng) -> Drawn:
    shape, data_format = _spatial(rng, 2)
    height, width = extents(rng, 2, 1, 5)
    return Drawn((shape,), {"height": height, "width": width, "data_format": data_format})


def _prepared(rng: Rng) -> Drawn:
    shape = any_shape(rng)
    size = shape[-1]
    mean = [float(x) for x in np.round(rng.normal(size=size), 3)]
    variance = [float(x) for x in np.round(rng.uniform(0.2, 2.0, size), 3)]
    return Drawn((shape,), {"mean": mean, "variance": variance, "invert": flag(rng)})


def _encoded(rng: Rng) -> Drawn:
    most = number(rng, 2, 9)
    mode = pick(rng, "one_hot", "multi_hot", "count")
    shape = (1,) if mode == "one_hot" else (number(rng, 1, 5),)
    return Drawn((shape,), {"num_tokens": most, "output_mode": mode}, most)


def _discrete(rng: Rng) -> Drawn:
    boundaries = sorted(float(x) for x in np.round(rng.normal(size=number(rng, 1, 5)), 3))
    return Drawn((any_shape(rng),), {"bin_boundaries": boundaries})


def _image(rng: Rng) -> Drawn:
    return Drawn(((*extents(rng, 2, 3, 8), 3),))


def _spatial_dropout(rank: int) -> Draw:
    return lambda rng: Drawn((extents(rng, rank + 1, 1, 4),), {"rate": 0.3})


def _ranked(name: str, of_rank: Callable[[int], Draw], *ranks: int) -> dict[str, Draw]:
    return {name.format(rank): of_rank(rank) for rank in ranks}


_EVERY = (1, 2, 3)

CASES: Mapping[str, Draw] = MappingProxyType({
    "Activation": _with(activation=lambda rng: pick(rng, *ACTIVATIONS)),
    "ActivityRegularization": _plain,
    "Add": _merged,
    "AdditiveAttention": _additive,
    "Attention": _attention,
    "CategoryEncoding": _encoded,
    "CenterCrop": _cropped,
    "Discretization": _discrete,
    "GRU": _gru,
    "LSTM": _gated,
    "Normalization": _prepared,
    "RandomFlip": _image,
    "RandomGrayscale": _image,
    "Rescaling": _with(scale=_real, offset=_real),
    "Resizing": _resized,
    "SimpleRNN": _recurrent,
    "AlphaDropout": _with(rate=lambda _: 0.3),
    "Average": _merged,
    "BatchNormalization": _normalised,
    "Concatenate": _concatenated,
    "Dense": _dense,
    "Dot": _dotted,
    "Dropout": _with(rate=lambda _: 0.3),
    "ELU": _with(alpha=_real),
    "EinsumDense": _einsum,
    "Embedding": _embedding,
    "Flatten": _plain,
    "GaussianDropout": _with(rate=lambda _: 0.3),
    "GaussianNoise": _with(stddev=lambda _: 0.3),
    "GroupNormalization": _grouped,
    "Identity": _plain,
    "LayerNormalization": _layer_normalised,
    "LeakyReLU": _with(negative_slope=_real),
    "Maximum": _merged,
    "Minimum": _merged,
    "Multiply": _merged,
    "PReLU": _prelu,
    "Permute": _permuted,
    "RMSNormalization": _one_axis,
    "ReLU": _rectified,
    "RepeatVector": lambda rng: Drawn(((number(rng, 1, 5),),), {"n": number(rng, 1, 4)}),
    "Reshape": _reshaped,
    "Softmax": _softmax,
    "Subtract": _pair,
    "UnitNormalization": _one_axis,
    **_ranked("Conv{}D", _convolution, *_EVERY),
    **_ranked("DepthwiseConv{}D", _depthwise, 1, 2),
    **_ranked("SeparableConv{}D", _separable, 1, 2),
    **_ranked("Conv{}DTranspose", _transposed, *_EVERY),
    **_ranked("MaxPooling{}D", _pool, *_EVERY),
    **_ranked("AveragePooling{}D", _pool, *_EVERY),
    **_ranked("GlobalMaxPooling{}D", _global, *_EVERY),
    **_ranked("GlobalAveragePooling{}D", _global, *_EVERY),
    **_ranked("AdaptiveMaxPooling{}D", _adaptive, *_EVERY),
    **_ranked("AdaptiveAveragePooling{}D", _adaptive, *_EVERY),
    **_ranked("ConvLSTM{}D", _conv_lstm, *_EVERY),
    **_ranked("UpSampling{}D", _up_sampled, *_EVERY),
    **_ranked("SpatialDropout{}D", _spatial_dropout, *_EVERY),
    **_ranked("ZeroPadding{}D", lambda rank: _sides("padding", rank), *_EVERY),
    **_ranked("Cropping{}D", lambda rank: _sides("cropping", rank), *_EVERY),
})  # fmt: skip
"""What draws a layer of each class."""
