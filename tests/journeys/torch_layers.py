"""Random layers of torch.nn with their inputs, by class; PyTorch is handed over, not imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tests.journeys.keras_cases import Rng, extents, number

Drawn: TypeAlias = "tuple[Any, tuple[Any, ...]]"
"""What is exported, a module or function, and its inputs."""

Draw: TypeAlias = Callable[[Any, Rng], Drawn]


def floats(torch: Any, rng: Rng, *shape: int) -> Any:
    """Return random floats of a shape, most between -3 and 3."""
    return torch.from_numpy(np.array(rng.normal(0.0, 1.5, shape), np.float32))


def whole(torch: Any, rng: Rng, low: int, high: int, *shape: int) -> Any:
    """Return random int64 of a shape, from `low` up to below `high`."""
    return torch.from_numpy(np.array(rng.integers(low, high, shape), np.int64))


def flip(rng: Rng) -> bool:
    """Return true or false."""
    return bool(rng.integers(2))


def any_shape(rng: Rng, low: int = 1, high: int = 4) -> tuple[int, ...]:
    """Return a shape of some rank."""
    return extents(rng, number(rng, low, high), 2, 5)


def _activation(name: str, **arguments: Callable[[Rng], Any]) -> Draw:
    """Return what draws an activation on a tensor of any shape."""

    def draw(torch: Any, rng: Rng) -> Drawn:
        drawn = {key: value(rng) for key, value in arguments.items()}
        return getattr(torch.nn, name)(**drawn), (floats(torch, rng, *any_shape(rng)),)

    return draw


def _about(low: float, high: float) -> Callable[[Rng], float]:
    return lambda rng: float(rng.uniform(low, high))


def _axis(torch: Any, rng: Rng, name: str) -> Drawn:
    shape = any_shape(rng)
    return getattr(torch.nn, name)(dim=number(rng, -len(shape), len(shape) - 1)), (
        floats(torch, rng, *shape),
    )


def _image(torch: Any, rng: Rng, channels: int, axes: int, low: int = 5, high: int = 9) -> Any:
    batch = () if rng.integers(5) == 0 else (number(rng, 1, 2),)
    return floats(torch, rng, *batch, channels, *extents(rng, axes, low, high))


def _convolution(axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        group = number(rng, 1, 2)
        i, o = (group * number(rng, 1, 3) for _ in range(2))
        taps = extents(rng, axes, 1, 3)
        is_same = rng.integers(4) == 0
        mode = str(rng.choice(["zeros", "zeros", "reflect", "replicate", "circular"]))
        layer = getattr(torch.nn, f"Conv{axes}d")(
            i, o, taps, stride=1 if is_same else extents(rng, axes, 1, 2),
            padding="same" if is_same else extents(rng, axes, 0, 2),
            dilation=extents(rng, axes, 1, 2), groups=group, bias=flip(rng), padding_mode=mode,
        )  # fmt: skip
        return layer, (_image(torch, rng, i, axes),)

    return draw


def _transposed(axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        group = number(rng, 1, 2)
        i, o = (group * number(rng, 1, 3) for _ in range(2))
        strides = extents(rng, axes, 1, 3)
        dilations = extents(rng, axes, 1, 2)
        pairs = zip(strides, dilations, strict=True)
        extra = tuple(number(rng, 0, max(pair) - 1) for pair in pairs)
        layer = getattr(torch.nn, f"ConvTranspose{axes}d")(
            i, o, extents(rng, axes, 2, 3), stride=strides, padding=extents(rng, axes, 0, 1),
            output_padding=extra, dilation=dilations, groups=group, bias=flip(rng),
        )  # fmt: skip
        return layer, (_image(torch, rng, i, axes, 3, 5),)

    return draw


def _pool(kind: str, axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        taps = extents(rng, axes, 2, 4)
        arguments: dict[str, Any] = {
            "stride": extents(rng, axes, 1, 3), "ceil_mode": flip(rng),
            "padding": tuple(number(rng, 0, tap // 2) for tap in taps),
        }  # fmt: skip
        if kind == "Max":
            arguments["dilation"] = extents(rng, axes, 1, 2)
            arguments["return_indices"] = flip(rng)
        else:
            arguments["count_include_pad"] = flip(rng)
        if axes == 1:
            arguments = {k: v[0] if isinstance(v, tuple) else v for k, v in arguments.items()}
        if kind == "Avg" and axes > 1 and not arguments["ceil_mode"] and flip(rng):
            arguments["divisor_override"] = number(rng, 1, 9)
        layer = getattr(torch.nn, f"{kind}Pool{axes}d")(taps if axes > 1 else taps[0], **arguments)
        return layer, (_image(torch, rng, number(rng, 1, 3), axes, 8, 11),)

    return draw


def _adaptive(kind: str, axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        sizes = extents(rng, axes, 1, 5)
        more = {"return_indices": True} if kind == "Max" and flip(rng) else {}
        size = sizes if axes > 1 else sizes[0]
        layer = getattr(torch.nn, f"Adaptive{kind}Pool{axes}d")(size, **more)
        return layer, (_image(torch, rng, number(rng, 1, 3), axes, 5, 10),)

    return draw


def _power_pool(axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        layer = getattr(torch.nn, f"LPPool{axes}d")(number(rng, 1, 3), 2, ceil_mode=False)
        return layer, (floats(torch, rng, 1, 2, *extents(rng, axes, 4, 7)).abs(),)

    return draw


def _recurrent(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        i, h = number(rng, 1, 4), number(rng, 2, 4)
        more: dict[str, Any] = {}
        if name == "RNN":
            more["nonlinearity"] = str(rng.choice(["tanh", "relu"]))
        if name == "LSTM" and flip(rng):
            more["proj_size"] = number(rng, 1, h - 1)
        layer = getattr(torch.nn, name)(
            i, h, number(rng, 1, 2), bias=flip(rng), batch_first=flip(rng), bidirectional=flip(rng),
            **more,
        )  # fmt: skip
        shape = extents(rng, 2, 1, 6) if flip(rng) else extents(rng, 1, 2, 6)
        x = floats(torch, rng, *shape, i)
        if flip(rng):
            return layer, (x,)
        batch = () if len(shape) == 1 else (shape[0 if layer.batch_first else 1],)
        lead = (layer.num_layers * (2 if layer.bidirectional else 1), *batch)
        start = floats(torch, rng, *lead, more.get("proj_size", h))
        return layer, (x, (start, floats(torch, rng, *lead, h)) if name == "LSTM" else start)

    return draw


def _cell(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        i, h = number(rng, 1, 4), number(rng, 1, 4)
        layer = getattr(torch.nn, f"{name}Cell")(i, h, bias=flip(rng))
        batch = (number(rng, 1, 3),) if flip(rng) else ()
        states = [floats(torch, rng, *batch, h) for _ in range(2)]
        return layer, (
            floats(torch, rng, *batch, i),
            tuple(states) if name == "LSTM" else states[0],
        )

    return draw


def _batch_norm(torch: Any, rng: Rng, axes: int) -> Drawn:
    channels = number(rng, 1, 4)
    layer = getattr(torch.nn, f"BatchNorm{axes}d")(
        channels, eps=float(rng.choice([1e-5, 1e-3])), affine=flip(rng),
        track_running_stats=rng.integers(4) > 0,
    )  # fmt: skip
    if layer.running_mean is not None:
        layer.running_mean = floats(torch, rng, channels)
        layer.running_var = floats(torch, rng, channels).abs() + 0.2
    return layer, (floats(torch, rng, number(rng, 1, 2), channels, *extents(rng, axes, 2, 5)),)


def _instance_norm(torch: Any, rng: Rng, axes: int) -> Drawn:
    channels = number(rng, 1, 4)
    layer = getattr(torch.nn, f"InstanceNorm{axes}d")(
        channels, affine=flip(rng), track_running_stats=flip(rng)
    )
    return layer, (floats(torch, rng, number(rng, 1, 2), channels, *extents(rng, axes, 3, 5)),)


def _group_norm(torch: Any, rng: Rng) -> Drawn:
    groups = number(rng, 1, 3)
    channels = groups * number(rng, 1, 3)
    x = floats(torch, rng, number(rng, 1, 2), channels, *extents(rng, number(rng, 1, 2), 2, 4))
    return torch.nn.GroupNorm(groups, channels, affine=flip(rng)), (x,)


def _layer_norm(torch: Any, rng: Rng, name: str) -> Drawn:
    shape = any_shape(rng, 2)
    count = number(rng, 1, len(shape) - 1)
    layer = getattr(torch.nn, name)(shape[-count:], elementwise_affine=flip(rng))
    return layer, (floats(torch, rng, *shape),)


def _response_norm(torch: Any, rng: Rng) -> Drawn:
    layer = torch.nn.LocalResponseNorm(number(rng, 1, 4), alpha=0.1, beta=0.6, k=1.5)
    return layer, (
        floats(torch, rng, 1, number(rng, 2, 6), *extents(rng, number(rng, 1, 2), 2, 4)),
    )


def _padding(name: str, axes: int) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        pads = tuple(extents(rng, 2 * axes, 0, 3))
        more = (float(rng.normal()),) if name == "ConstantPad" else ()
        layer = getattr(torch.nn, f"{name}{axes}d")(pads, *more)
        return layer, (_image(torch, rng, number(rng, 1, 2), axes, 4, 6),)

    return draw


def _upsample(torch: Any, rng: Rng) -> Drawn:
    mode = str(
        rng.choice(
            ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"]
        )
    )
    axes = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, number(rng, 1, 3))
    more: dict[str, Any] = {}
    if "linear" in mode or mode == "bicubic":
        more["align_corners"] = flip(rng)
    if flip(rng):
        # PyTorch 2.13 smooths rows wrongly where the result has one column (antialias).
        more["size"] = extents(rng, axes, 2, 9) if axes > 1 else number(rng, 1, 9)
    else:
        scales = tuple(float(rng.choice([0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 3.0])) for _ in range(axes))
        more["scale_factor"] = scales if axes > 1 else scales[0]
        if flip(rng):
            more["recompute_scale_factor"] = True
    if mode in ("bilinear", "bicubic") and rng.integers(3) == 0:
        more["antialias"] = True
    x = floats(torch, rng, number(rng, 1, 2), number(rng, 1, 2), *extents(rng, axes, 3, 7))
    return (lambda y: torch.nn.functional.interpolate(y, mode=mode, **more)), (x,)


def _linear(torch: Any, rng: Rng) -> Drawn:
    i, o = number(rng, 1, 6), number(rng, 1, 6)
    lead = extents(rng, number(rng, 0, 3), 1, 3)
    return torch.nn.Linear(i, o, bias=flip(rng)), (floats(torch, rng, *lead, i),)


def _bilinear(torch: Any, rng: Rng) -> Drawn:
    a, b, o = extents(rng, 3, 1, 4)
    lead = extents(rng, number(rng, 1, 2), 1, 3)
    inputs = floats(torch, rng, *lead, a), floats(torch, rng, *lead, b)
    return torch.nn.Bilinear(a, b, o, bias=flip(rng)), inputs


def _embedding(torch: Any, rng: Rng) -> Drawn:
    rows = number(rng, 2, 9)
    x = whole(torch, rng, 0, rows, *any_shape(rng, 1, 2))
    return torch.nn.Embedding(rows, number(rng, 1, 4)), (x,)


def _embedding_bag(torch: Any, rng: Rng) -> Drawn:
    rows = number(rng, 2, 9)
    mode = str(rng.choice(["sum", "mean", "max"]))
    x = whole(torch, rng, 0, rows, *extents(rng, 2, 1, 4))
    return torch.nn.EmbeddingBag(rows, number(rng, 1, 4), mode=mode), (x,)


def _attention(torch: Any, rng: Rng) -> Drawn:
    heads = number(rng, 1, 3)
    size = heads * number(rng, 1, 3)
    layer = torch.nn.MultiheadAttention(size, heads, bias=flip(rng), batch_first=flip(rng))
    x = floats(torch, rng, *extents(rng, 2, 2, 4), size)
    weights = flip(rng)
    if flip(rng):
        mask = torch.from_numpy(
            np.triu(np.ones((x.shape[1 if layer.batch_first else 0],) * 2, bool), 1)
        )
        return (lambda y: layer(y, y, y, attn_mask=mask, need_weights=weights)[0]), (x,)
    return (lambda y: layer(y, y, y, need_weights=weights)[0]), (x,)


def _transformer(torch: Any, rng: Rng) -> Drawn:
    heads = number(rng, 1, 2)
    size = heads * number(rng, 1, 3)
    more = {"batch_first": flip(rng), "norm_first": flip(rng)}
    activation = str(rng.choice(["relu", "gelu"]))
    kind = "TransformerEncoderLayer" if flip(rng) else "TransformerDecoderLayer"
    layer = getattr(torch.nn, kind)(size, heads, number(rng, 2, 6), activation=activation, **more)
    x = floats(torch, rng, *extents(rng, 2, 2, 4), size)
    return layer, (x,) if "Encoder" in kind else (x, x + 1)


def _unfold(torch: Any, rng: Rng) -> Drawn:
    layer = torch.nn.Unfold(
        extents(rng, 2, 1, 3), dilation=extents(rng, 2, 1, 2), padding=extents(rng, 2, 0, 1),
        stride=extents(rng, 2, 1, 2),
    )  # fmt: skip
    return layer, (
        floats(torch, rng, number(rng, 1, 2), number(rng, 1, 3), *extents(rng, 2, 5, 8)),
    )


def _fold(torch: Any, rng: Rng) -> Drawn:
    sizes = extents(rng, 2, 5, 7)
    arguments = {
        "dilation": extents(rng, 2, 1, 2),
        "padding": extents(rng, 2, 0, 1),
        "stride": extents(rng, 2, 1, 2),
    }
    taps = extents(rng, 2, 1, 3)
    image = floats(torch, rng, number(rng, 1, 2), number(rng, 1, 2), *sizes)
    return torch.nn.Fold(sizes, taps, **arguments), (torch.nn.Unfold(taps, **arguments)(image),)


def _shuffle(torch: Any, rng: Rng) -> Drawn:
    block, channels = number(rng, 1, 3), number(rng, 1, 2)
    rows, columns = extents(rng, 2, 1, 3)
    if flip(rng):
        layer, shape = torch.nn.PixelShuffle(block), (channels * block**2, rows, columns)
    else:
        layer, shape = torch.nn.PixelUnshuffle(block), (channels, rows * block, columns * block)
    return layer, (floats(torch, rng, number(rng, 1, 2), *shape),)


def _channel_shuffle(torch: Any, rng: Rng) -> Drawn:
    groups = number(rng, 1, 3)
    x = floats(torch, rng, 1, groups * number(rng, 1, 3), *extents(rng, 2, 1, 3))
    return torch.nn.ChannelShuffle(groups), (x,)


def _max_unpool(torch: Any, rng: Rng) -> Drawn:
    pool, back = torch.nn.MaxPool2d(2, return_indices=True), torch.nn.MaxUnpool2d(2)
    x = floats(torch, rng, 1, number(rng, 1, 2), *(2 * n for n in extents(rng, 2, 2, 4)))
    return (lambda y: back(*pool(y))), (x,)


def _distance(torch: Any, rng: Rng) -> Drawn:
    a, b = (floats(torch, rng, *shape) for shape in [extents(rng, 2, 2, 4)] * 2)
    if flip(rng):
        return torch.nn.CosineSimilarity(dim=number(rng, 0, 1)), (a, b)
    return torch.nn.PairwiseDistance(p=float(rng.choice([1.0, 2.0, 3.0]))), (a, b)


def _prelu(torch: Any, rng: Rng) -> Drawn:
    shape = any_shape(rng, 2)
    count = shape[1] if flip(rng) else 1
    return torch.nn.PReLU(count, init=0.3), (floats(torch, rng, *shape),)


def _normed(torch: Any, rng: Rng) -> Drawn:
    x = floats(torch, rng, number(rng, 1, 2), 3, *extents(rng, 2, 4, 6))
    layer = torch.nn.Conv2d(3, 2, 3, padding=1)
    kinds = torch.nn.utils.parametrizations
    return kinds.weight_norm(layer) if flip(rng) else kinds.spectral_norm(layer), (x,)


def _flatten(torch: Any, rng: Rng) -> Drawn:
    shape = any_shape(rng, 3, 5)
    first = number(rng, 0, len(shape) - 2)
    last = number(rng, first, len(shape) - 1)
    return torch.nn.Flatten(first, last), (floats(torch, rng, *shape),)


def _unflatten(torch: Any, rng: Rng) -> Drawn:
    a, b = extents(rng, 2, 1, 4)
    return torch.nn.Unflatten(1, (a, b)), (floats(torch, rng, 2, a * b, 3),)


_PLAIN = (
    "ReLU", "ReLU6", "Hardsigmoid", "Hardswish", "Mish", "SELU", "Sigmoid", "LogSigmoid", "SiLU",
    "Softsign", "Tanh", "Tanhshrink", "Identity", "Dropout", "AlphaDropout", "RReLU",
)  # fmt: skip


def _with(draw: Callable[..., Drawn], value: object) -> Draw:
    """Return what draws a layer of one kind of several."""
    return lambda torch, rng: draw(torch, rng, value)


def _gated(torch: Any, rng: Rng) -> Drawn:
    return torch.nn.GLU(1), (floats(torch, rng, 2, 2 * number(rng, 1, 3), 3),)


LAYERS: Mapping[str, Draw] = MappingProxyType(
    {
        **{name: _activation(name) for name in _PLAIN},
        "ELU": _activation("ELU", alpha=_about(0.3, 2)),
        "CELU": _activation("CELU", alpha=_about(0.3, 2)),
        "LeakyReLU": _activation("LeakyReLU", negative_slope=_about(0, 0.5)),
        "Hardtanh": _activation("Hardtanh", min_val=_about(-2, 0), max_val=_about(0.1, 2)),
        "Softplus": _activation("Softplus", beta=_about(0.3, 3), threshold=_about(1, 25)),
        "Softshrink": _activation("Softshrink", lambd=_about(0.1, 1)),
        "Hardshrink": _activation("Hardshrink", lambd=_about(0.1, 1)),
        "Threshold": _activation("Threshold", threshold=_about(-1, 1), value=_about(-2, 2)),
        "GELU": _activation("GELU", approximate=lambda rng: str(rng.choice(["none", "tanh"]))),
        **{
            name: _with(_axis, name)
            for name in ("Softmax", "Softmin", "LogSoftmax")
        },
        "GLU": _gated,
        "PReLU": _prelu,
        **{f"Conv{axes}d": _convolution(axes) for axes in (1, 2, 3)},
        **{f"ConvTranspose{axes}d": _transposed(axes) for axes in (1, 2, 3)},
        **{
            f"{kind}Pool{axes}d": _pool(kind, axes) for kind in ("Max", "Avg") for axes in (1, 2, 3)
        },
        **{
            f"Adaptive{kind}Pool{axes}d": _adaptive(kind, axes)
            for kind in ("Max", "Avg")
            for axes in (1, 2, 3)
        },
        **{f"LPPool{axes}d": _power_pool(axes) for axes in (1, 2, 3)},
        **{name: _recurrent(name) for name in ("RNN", "GRU", "LSTM")},
        **{f"{name}Cell": _cell(name) for name in ("RNN", "GRU", "LSTM")},
        **{
            f"BatchNorm{axes}d": _with(_batch_norm, axes)
            for axes in (1, 2, 3)
        },
        **{
            f"InstanceNorm{axes}d": _with(_instance_norm, axes)
            for axes in (1, 2, 3)
        },
        "GroupNorm": _group_norm,
        "LayerNorm": lambda torch, rng: _layer_norm(torch, rng, "LayerNorm"),
        "RMSNorm": lambda torch, rng: _layer_norm(torch, rng, "RMSNorm"),
        "LocalResponseNorm": _response_norm,
        **{
            f"{name}{axes}d": _padding(name, axes)
            for name in ("ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad")
            for axes in (1, 2, 3)
        },
        "Upsample": _upsample, "Linear": _linear, "Bilinear": _bilinear, "Embedding": _embedding,
        "EmbeddingBag": _embedding_bag, "MultiheadAttention": _attention,
        "TransformerLayer": _transformer, "Unfold": _unfold, "Fold": _fold,
        "PixelShuffle": _shuffle, "ChannelShuffle": _channel_shuffle, "MaxUnpool2d": _max_unpool,
        "Distance": _distance, "NormedWeights": _normed, "Flatten": _flatten,
        "Unflatten": _unflatten,
    }
)  # fmt: skip
