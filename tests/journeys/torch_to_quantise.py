"""Random modules that PT2E is to quantise: layers, blocks, recurrent ones, attention, state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from tests.journeys.keras_cases import Rng, extents, number
from tests.journeys.torch_layers import flip, floats

Drawn: TypeAlias = "tuple[Any, Callable[[], tuple[Any, ...]], Any]"
"""A module, what draws its inputs, and which of their sizes are open."""

Draw: TypeAlias = Callable[[Any, Rng], Drawn]


def _with_inputs(torch: Any, rng: Rng, module: Any, *shapes: tuple[int, ...]) -> Drawn:
    return module, lambda: tuple(floats(torch, rng, *shape) for shape in shapes), None


def _chain(torch: Any, *steps: Callable[[Any], Any]) -> Any:
    """Return modules and functions as a module that calls one after the other."""

    class Chain(torch.nn.Module):  # type: ignore[misc]
        """Calls its steps."""

        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(s for s in steps if isinstance(s, torch.nn.Module))

        def forward(self, x: Any) -> Any:
            for step in steps:
                x = step(x)
            return x

    return Chain()


def _made(torch: Any, parts: Mapping[str, Any], call: Callable[..., Any]) -> Any:
    """Return a module of named parts whose forward is a function of itself and inputs."""

    class Made(torch.nn.Module):  # type: ignore[misc]
        """Holds its parts, and calls the function."""

        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: Any) -> Any:
            return call(self, x)

    return Made()


def _two(torch: Any, call: Callable[[Any, Any], Any]) -> Any:
    """Return a function of two tensors as a module."""

    class Two(torch.nn.Module):  # type: ignore[misc]
        """Calls the function."""

        def forward(self, x: Any, y: Any) -> Any:
            return call(x, y)

    return Two()


def _after_convolution(steps: Callable[[Any, int], list[Any]]) -> Draw:
    """Return what draws a convolution of images with steps behind it, given its channels."""

    def draw(torch: Any, rng: Rng) -> Drawn:
        i, o = number(rng, 1, 4), 2 * number(rng, 1, 4)
        layer = torch.nn.Conv2d(
            i, o, extents(rng, 2, 1, 3), stride=number(rng, 1, 2), padding=number(rng, 0, 1),
            dilation=number(rng, 1, 2), bias=flip(rng),
        )  # fmt: skip
        shape = (1, i, *extents(rng, 2, 9, 12))
        return _with_inputs(torch, rng, _chain(torch, layer, *steps(torch, o)), shape)

    return draw


def _grouped(torch: Any, rng: Rng, *, is_depthwise: bool) -> Drawn:
    channels = 2 * number(rng, 1, 4)
    layer = torch.nn.Conv2d(
        channels, channels * number(rng, 1, 2), 3, padding=1, stride=number(rng, 1, 2),
        groups=channels if is_depthwise else 2,
    )  # fmt: skip
    shape = (1, channels, *extents(rng, 2, 6, 10))
    return _with_inputs(torch, rng, _chain(torch, layer, torch.nn.ReLU6()), shape)


def _convolution_1d(torch: Any, rng: Rng) -> Drawn:
    i, o = number(rng, 1, 4), number(rng, 1, 6)
    layer = torch.nn.Conv1d(i, o, number(rng, 1, 4), stride=number(rng, 1, 2), padding=1)
    return _with_inputs(
        torch, rng, _chain(torch, layer, torch.nn.ReLU()), (1, i, number(rng, 8, 16))
    )


def _transposed(torch: Any, rng: Rng) -> Drawn:
    i, o = number(rng, 1, 4), number(rng, 1, 4)
    layer = torch.nn.ConvTranspose2d(i, o, number(rng, 2, 3), stride=2, padding=number(rng, 0, 1))
    return _with_inputs(
        torch, rng, _chain(torch, layer, torch.nn.ReLU()), (1, i, *extents(rng, 2, 4, 6))
    )


def _transposed_in_groups(torch: Any, rng: Rng) -> Drawn:
    i, o = 2 * number(rng, 1, 3), 2 * number(rng, 1, 3)
    layer = torch.nn.ConvTranspose2d(i, o, 3, stride=number(rng, 1, 2), groups=2, padding=1)
    return _with_inputs(torch, rng, _chain(torch, layer), (1, i, *extents(rng, 2, 3, 6)))


def _transposed_1d(torch: Any, rng: Rng) -> Drawn:
    i, o = number(rng, 1, 4), number(rng, 1, 4)
    layer = torch.nn.ConvTranspose1d(i, o, number(rng, 2, 4), stride=number(rng, 1, 3))
    return _with_inputs(torch, rng, _chain(torch, layer), (1, i, number(rng, 4, 9)))


def _matrices(call: Callable[[Any, Any, Any], Any], lead: int) -> Draw:
    """Return what draws the product of two stacks of matrices, (..., M, K) and (..., N, K)."""

    def draw(torch: Any, rng: Rng) -> Drawn:
        stacks, (m, k, n) = extents(rng, lead, 1, 3), extents(rng, 3, 2, 8)
        module = _two(torch, lambda x, y: call(torch, x, y.transpose(-1, -2)))
        return _with_inputs(torch, rng, module, (*stacks, m, k), (*stacks, n, k))

    return draw


def _linear(steps: Callable[[Any], list[Any]], rank: int = 2) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        i, o = number(rng, 2, 12), number(rng, 2, 8)
        layer = torch.nn.Linear(i, o, bias=flip(rng))
        lead = (1, *extents(rng, rank - 2, 2, 5))
        return _with_inputs(torch, rng, _chain(torch, layer, *steps(torch)), (*lead, i))

    return draw


def _perceptron(torch: Any, rng: Rng) -> Drawn:
    i, h, o = number(rng, 2, 12), number(rng, 4, 16), number(rng, 2, 6)
    steps = torch.nn.Linear(i, h), torch.nn.ReLU(), torch.nn.Linear(h, o), torch.nn.Softmax(-1)
    return _with_inputs(torch, rng, _chain(torch, *steps), (1, i))


def _of_two(call: Callable[[Any, Any, Any], Any]) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = (1, *extents(rng, number(rng, 1, 3), 2, 6))
        return _with_inputs(torch, rng, _two(torch, lambda x, y: call(torch, x, y)), shape, shape)

    return draw


def _residual(torch: Any, rng: Rng) -> Drawn:
    channels = 2 * number(rng, 1, 4)
    parts = {
        "first": torch.nn.Conv2d(channels, channels, 3, padding=1),
        "norm": torch.nn.BatchNorm2d(channels),
        "second": torch.nn.Conv2d(channels, channels, 1),
    }

    def call(net: Any, x: Any) -> Any:
        return torch.relu(x + net.second(torch.relu(net.norm(net.first(x)))))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, channels, 6, 7))


def _inverted(torch: Any, rng: Rng) -> Drawn:
    channels = 2 * number(rng, 1, 3)
    wide = channels * 3
    parts = {
        "expand": torch.nn.Conv2d(channels, wide, 1),
        "depthwise": torch.nn.Conv2d(wide, wide, 3, padding=1, groups=wide),
        "project": torch.nn.Conv2d(wide, channels, 1),
        "clamp": torch.nn.ReLU6(),
    }

    def call(net: Any, x: Any) -> Any:
        return x + net.project(net.clamp(net.depthwise(net.clamp(net.expand(x)))))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, channels, 6, 5))


def _excited(torch: Any, rng: Rng) -> Drawn:
    channels = 2 * number(rng, 1, 4)
    parts = {
        "layer": torch.nn.Conv2d(channels, channels, 3, padding=1),
        "down": torch.nn.Conv2d(channels, 2, 1),
        "up": torch.nn.Conv2d(2, channels, 1),
    }

    def call(net: Any, x: Any) -> Any:
        x = net.layer(x)
        means = torch.nn.functional.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(net.up(torch.relu(net.down(means))))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, channels, 6, 6))


def _skipped(torch: Any, rng: Rng) -> Drawn:
    i, wide = number(rng, 1, 3), 2 * number(rng, 1, 3)
    parts = {
        "down": torch.nn.Conv2d(i, wide, 3, stride=2, padding=1),
        "up": torch.nn.ConvTranspose2d(wide, wide, 2, stride=2),
        "last": torch.nn.Conv2d(wide + i, 2, 3, padding=1),
    }

    def call(net: Any, x: Any) -> Any:
        below = torch.nn.functional.leaky_relu(net.down(x), 0.1)
        return net.last(torch.cat([torch.nn.functional.elu(net.up(below)), x], 1))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, i, 8, 8))


def _temporal(torch: Any, rng: Rng) -> Drawn:
    channels, spread = 2 * number(rng, 1, 4), number(rng, 1, 3)
    parts = {"layer": torch.nn.Conv1d(channels, channels, 3, dilation=spread)}

    def call(net: Any, x: Any) -> Any:
        padded = torch.nn.functional.pad(x, (2 * spread, 0))
        return torch.relu(x + torch.relu(net.layer(padded)))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, channels, number(rng, 8, 14)))


def _recurrent(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        i, h = number(rng, 2, 4), number(rng, 2, 6)
        parts = {
            "before": torch.nn.Linear(i, i),
            "cells": getattr(torch.nn, name)(i, h, batch_first=True, bidirectional=flip(rng)),
        }
        parts["after"] = torch.nn.Linear(h * (2 if parts["cells"].bidirectional else 1), 3)

        def call(net: Any, x: Any) -> Any:
            return net.after(net.cells(torch.relu(net.before(x)))[0])

        return _with_inputs(torch, rng, _made(torch, parts, call), (1, number(rng, 3, 6), i))

    return draw


def _cell(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        i, h = number(rng, 2, 4), number(rng, 2, 6)
        parts = {"cell": getattr(torch.nn, f"{name}Cell")(i, h), "after": torch.nn.Linear(h, 3)}

        def call(net: Any, x: Any) -> Any:
            state = net.cell(x)
            return net.after(state[0] if isinstance(state, tuple) else state)

        return _with_inputs(torch, rng, _made(torch, parts, call), (1, i))

    return draw


def _attention(torch: Any, rng: Rng) -> Drawn:
    size = 2 * number(rng, 2, 4)
    parts = {"heads": torch.nn.MultiheadAttention(size, 2, batch_first=True)}

    def call(net: Any, x: Any) -> Any:
        return net.heads(x, x, x, need_weights=False)[0]

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, number(rng, 3, 5), size))


def _head(torch: Any, rng: Rng) -> Drawn:
    i, size = number(rng, 3, 6), number(rng, 2, 5)
    parts = {name: torch.nn.Linear(i, size) for name in ("query", "key", "value")}

    def call(net: Any, x: Any) -> Any:
        weights = torch.matmul(net.query(x), net.key(x).transpose(-1, -2)) * size**-0.5
        return torch.matmul(torch.softmax(weights, -1), net.value(x))

    return _with_inputs(torch, rng, _made(torch, parts, call), (1, number(rng, 3, 6), i))


def _encoder(torch: Any, rng: Rng) -> Drawn:
    size = 2 * number(rng, 2, 4)
    activation = str(rng.choice(["relu", "gelu"]))
    layer = torch.nn.TransformerEncoderLayer(
        size, 2, 2 * size, activation=activation, batch_first=True
    )
    return _with_inputs(torch, rng, layer, (1, number(rng, 3, 5), size))


def _stateful(torch: Any, rng: Rng, *, ring: bool) -> Drawn:
    i, length = number(rng, 2, 4), number(rng, 3, 5)

    class Stateful(torch.nn.Module):  # type: ignore[misc]
        """Writes to a buffer: a window that moves by a row, or a sum."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(i, 4), torch.nn.Linear(length * 4, 3)
            self.register_buffer("past", torch.zeros(1, length, 4))

        def forward(self, x: Any) -> Any:
            row = torch.relu(self.first(x)).unsqueeze(1)
            moved = torch.cat([self.past[:, 1:], row], 1) if ring else self.past * 0.5 + row
            self.past.copy_(moved)
            return self.last(moved.flatten(1))

    return _with_inputs(torch, rng, Stateful(), (1, i))


def _open(torch: Any, rng: Rng, *, of_images: bool) -> Drawn:
    i, o, extent = number(rng, 2, 4), number(rng, 2, 4), number(rng, 2, 4)
    if of_images:
        steps = torch.nn.Conv2d(i, o, 3), torch.nn.ReLU(), torch.nn.Conv2d(o, 2, 1)
        shape: tuple[int, ...] = (extent, i, 5, 6)
    else:
        steps = torch.nn.Linear(i, o), torch.nn.ReLU(), torch.nn.Linear(o, 2)
        shape = (extent, i)
    sizes = ({0: torch.export.Dim("batch", min=2, max=9)},)
    return _chain(torch, *steps), lambda: (floats(torch, rng, *shape),), sizes


def _embedded(torch: Any, rng: Rng) -> Drawn:
    rows, size, length = number(rng, 3, 9), number(rng, 2, 5), number(rng, 2, 5)
    parts = {"rows": torch.nn.Embedding(rows, size), "after": torch.nn.Linear(size, 3)}
    module = _made(torch, parts, lambda net, x: net.after(net.rows(x)))
    return module, lambda: (torch.from_numpy(rng.integers(0, rows, (1, length))),), None


def _activation(name: str) -> Draw:
    return _linear(lambda torch: [getattr(torch.nn, name)()], 3)


def _fixed(draw: Callable[..., Drawn], **chosen: bool) -> Draw:
    return lambda torch, rng: draw(torch, rng, **chosen)


MODULES: Mapping[str, Draw] = MappingProxyType(
    {
        "Conv2d": _after_convolution(lambda _torch, _o: []),
        "Conv2dReLU": _after_convolution(lambda torch, _o: [torch.nn.ReLU()]),
        "Conv2dReLU6": _after_convolution(lambda torch, _o: [torch.nn.ReLU6()]),
        "Conv2dHardtanh": _after_convolution(lambda torch, _o: [torch.nn.Hardtanh()]),
        "Conv2dNorm": _after_convolution(lambda torch, o: [torch.nn.BatchNorm2d(o)]),
        "Conv2dNormReLU": _after_convolution(
            lambda torch, o: [torch.nn.BatchNorm2d(o), torch.nn.ReLU()]
        ),
        "Conv2dMaxPool": _after_convolution(lambda torch, _o: [torch.nn.MaxPool2d(2)]),
        "Conv2dAvgPool": _after_convolution(
            lambda torch, o: [torch.nn.AvgPool2d(3, 1, 1), torch.nn.Conv2d(o, 2, 1)]
        ),
        "Conv2dMean": _after_convolution(
            lambda torch, o: [lambda x: x.mean((2, 3)), torch.nn.Linear(o, 3)]
        ),
        "Conv2dAdaptive": _after_convolution(
            lambda torch, o: [
                torch.nn.AdaptiveAvgPool2d(1),
                torch.nn.Flatten(),
                torch.nn.Linear(o, 3),
            ]
        ),
        "Conv2dHardswish": _after_convolution(lambda torch, _o: [torch.nn.Hardswish()]),
        "Conv2dSiLU": _after_convolution(lambda torch, _o: [torch.nn.SiLU()]),
        "DepthwiseConv2d": _fixed(_grouped, is_depthwise=True),
        "GroupedConv2d": _fixed(_grouped, is_depthwise=False),
        "Conv1d": _convolution_1d,
        "ConvTranspose2d": _transposed,
        "ConvTranspose2dGroups": _transposed_in_groups,
        "ConvTranspose1d": _transposed_1d,
        "Matmul": _matrices(lambda torch, x, y: torch.matmul(x, y), 2),
        "Bmm": _matrices(lambda torch, x, y: torch.bmm(x, y), 1),
        "Linear": _linear(lambda _torch: []),
        "LinearReLU": _linear(lambda torch: [torch.nn.ReLU()]),
        "LinearOfRows": _linear(lambda _torch: [], 3),
        "Perceptron": _perceptron,
        **{
            f"Linear{name}": _activation(name)
            for name in (
                "Sigmoid",
                "Tanh",
                "ELU",
                "LeakyReLU",
                "GELU",
                "Hardswish",
                "Softplus",
                "Mish",
            )
        },
        "LinearSoftmax": _linear(lambda torch: [torch.nn.Softmax(-1)], 3),
        "LinearLayerNorm": _linear(lambda _torch: [lambda x: x - x.mean(-1, keepdim=True)], 3),
        "Add": _of_two(lambda _torch, x, y: x + y),
        "AddReLU": _of_two(lambda torch, x, y: torch.relu(x + y)),
        "Mul": _of_two(lambda _torch, x, y: x * y),
        "Sub": _of_two(lambda _torch, x, y: (x - y) + x * y),
        "Cat": _of_two(lambda torch, x, y: torch.cat([x, y], -1) + 1.0),
        "Residual": _residual,
        "InvertedResidual": _inverted,
        "SqueezeExcite": _excited,
        "UNet": _skipped,
        "TemporalConv": _temporal,
        "Embedding": _embedded,
        **{name: _recurrent(name) for name in ("RNN", "GRU", "LSTM")},
        **{f"{name}Cell": _cell(name) for name in ("RNN", "GRU", "LSTM")},
        "MultiheadAttention": _attention,
        "AttentionHead": _head,
        "TransformerEncoderLayer": _encoder,
        "RingState": _fixed(_stateful, ring=True),
        "DecayState": _fixed(_stateful, ring=False),
        "OpenLinear": _fixed(_open, of_images=False),
        "OpenConv2d": _fixed(_open, of_images=True),
    }
)
