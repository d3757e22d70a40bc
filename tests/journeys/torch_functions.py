"""Random calls of PyTorch's functions, by name; PyTorch is handed over, not imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.journeys.keras_cases import Rng, extents, number
from tests.journeys.torch_layers import Draw, Drawn, any_shape, flip, floats, whole

_FLOAT_FUNCTIONS = (
    "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "sigmoid",
    "erf", "erfc", "abs", "neg", "sign", "floor", "ceil", "round", "trunc", "frac", "square",
    "deg2rad", "rad2deg", "isnan", "isinf", "isfinite", "logical_not", "nan_to_num", "sinc",
    "isposinf", "isneginf", "positive",
)  # fmt: skip

_OF_POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")
_OF_UNIT = ("asin", "acos", "atanh", "logit")
_OF_INTEGERS = ("abs", "neg", "sign", "exp", "sqrt", "sin", "logical_not", "bitwise_not", "floor")

_BINARY = (
    "add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "floor_divide", "eq",
    "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "atan2", "fmax",
    "fmin", "rsub", "true_divide",
)  # fmt: skip

_RANKED = ("topk", "sort", "argsort", "kthvalue", "median", "max", "min")
_OF_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _unary(name: str, make: Callable[[Any, Rng, tuple[int, ...]], Any]) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        return getattr(torch, name), (make(torch, rng, any_shape(rng)),)

    return draw


def _positive(torch: Any, rng: Rng, shape: tuple[int, ...]) -> Any:
    return floats(torch, rng, *shape).abs() + 0.05


def _unit(torch: Any, rng: Rng, shape: tuple[int, ...]) -> Any:
    return floats(torch, rng, *shape).clamp(-0.95, 0.95) if shape else floats(torch, rng)


def _typed(torch: Any, rng: Rng, shape: tuple[int, ...]) -> Any:
    """Return a tensor without zeros, of one of the types that PyTorch promotes."""
    kind = str(rng.choice(["float32", "float32", "int64", "int32"]))
    if kind == "float32":
        return floats(torch, rng, *shape) + 0.01
    signs = whole(torch, rng, 0, 2, *shape) * 2 - 1
    return (whole(torch, rng, 1, 7, *shape) * signs).to(getattr(torch, kind))


def _sides(torch: Any, rng: Rng) -> tuple[Any, Any]:
    """Return two operands that broadcast; the second may be a number."""
    shape = any_shape(rng)
    other = tuple(1 if rng.integers(3) == 0 else n for n in shape)[number(rng, 0, len(shape)) :]
    first = _typed(torch, rng, shape)
    if rng.integers(3) == 0:
        return first, number(rng, 1, 4) if flip(rng) else float(rng.uniform(0.5, 3))
    return first, _typed(torch, rng, other)


def _binary(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        a, b = _sides(torch, rng)
        takes_numbers = name not in (
            "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "atan2", "fmax",
            "fmin",
        )  # fmt: skip
        function = getattr(torch, name)
        if not isinstance(b, torch.Tensor):
            if takes_numbers:
                return (lambda x: function(x, b)), (a,)
            b = torch.tensor(b)
        return function, (a, b)

    return draw


def _bits(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = any_shape(rng)
        if flip(rng):
            return getattr(torch, name), (
                floats(torch, rng, *shape) > 0,
                floats(torch, rng, *shape) > 0,
            )
        return getattr(torch, name), tuple(whole(torch, rng, -9, 9, *shape) for _ in range(2))

    return draw


def _division(torch: Any, rng: Rng) -> Drawn:
    mode = str(rng.choice(["floor", "trunc"]))
    a, b = _sides(torch, rng)
    if not isinstance(b, torch.Tensor):
        return (lambda x: torch.div(x, b, rounding_mode=mode)), (a,)
    return (lambda x, y: torch.div(x, y, rounding_mode=mode)), (a, b)


def _reduction(
    name: str, *, integers: bool = True, all_axes: bool = True, many: bool = True
) -> Draw:
    """Return what draws a reduction along all axes, one, or several."""

    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = any_shape(rng)
        x = floats(torch, rng, *shape)
        if integers and rng.integers(3) == 0:
            x = whole(torch, rng, -5, 6, *shape)
        function = getattr(torch, name)
        if all_axes and rng.integers(3) == 0:
            return function, (x,)
        axes: Any = number(rng, -len(shape), len(shape) - 1)
        if many and flip(rng):
            axes = tuple(int(n) for n in rng.permutation(len(shape))[: number(rng, 1, len(shape))])
        keep = flip(rng)
        return (lambda y: function(y, dim=axes, keepdim=keep)), (x,)

    return draw


def _tie_free(torch: Any, rng: Rng, shape: tuple[int, ...]) -> Any:
    values = rng.permutation(int(np.prod(shape))).reshape(shape)
    return torch.from_numpy(np.asarray(values, np.float32)) - 5


def _ranked(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = any_shape(rng)
        x, axis = _tie_free(torch, rng, shape), number(rng, -len(shape), len(shape) - 1)
        count, flag = number(rng, 1, shape[axis]), flip(rng)
        if name == "topk":
            return (lambda y: torch.topk(y, count, axis, flag)), (x,)
        if name == "kthvalue":
            return (lambda y: torch.kthvalue(y, count, axis, flag)), (x,)
        if name in ("median", "max", "min"):
            return (lambda y: getattr(torch, name)(y, axis, flag)), (x,)
        return (lambda y: getattr(torch, name)(y, axis, flag)), (x,)

    return draw


def _along(name: str, **more: Any) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = any_shape(rng)
        axis = number(rng, -len(shape), len(shape) - 1)
        x = floats(torch, rng, *shape) if flip(rng) else whole(torch, rng, -3, 4, *shape)
        return (lambda y: getattr(torch, name)(y, axis, **more)), (x,)

    return draw


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a function of one tensor.

    Args:
        torch: the module.
        y: the tensor.
        axis: of it, counted from either end.
        count: 1 to 3.
        order: of its axes.
    """

    torch: Any
    y: Any
    axis: int
    count: int
    order: tuple[int, ...]


def _on(call: Callable[[Given], Any], low: int = 1, high: int = 4) -> Draw:
    """Return what draws a function of one tensor, of a rank between both numbers."""

    def draw(torch: Any, rng: Rng) -> Drawn:
        x = floats(torch, rng, *any_shape(rng, low, high))
        order = tuple(int(n) for n in rng.permutation(x.dim()))
        drawn = Given(torch, x, _axis_of(rng, x), number(rng, 1, 3), order)
        return (lambda y: call(replace(drawn, y=y))), (x,)

    return draw


def _axis_of(rng: Rng, x: Any) -> int:
    return number(rng, -x.dim(), x.dim() - 1)


def _gathered(torch: Any, rng: Rng) -> Drawn:
    shape = any_shape(rng)
    axis = number(rng, 0, len(shape) - 1)
    places = whole(torch, rng, 0, shape[axis], *(number(rng, 1, n) for n in shape))
    return (lambda x, at: torch.gather(x, axis, at)), (floats(torch, rng, *shape), places)


def _scattered(torch: Any, rng: Rng) -> Drawn:
    shape = any_shape(rng, 1, 3)
    axis = number(rng, 0, len(shape) - 1)
    small = [number(rng, 1, n) for n in shape]
    lines = np.argsort(
        rng.random([shape[axis] if n == axis else e for n, e in enumerate(small)]), axis
    )
    places = torch.from_numpy(np.ascontiguousarray(np.take(lines, range(small[axis]), axis)))
    x, source = floats(torch, rng, *shape), floats(torch, rng, *small)
    kind = int(rng.integers(3))
    if kind == 0:
        return (lambda y, s: torch.scatter(y, axis, places, s)), (x, source)
    if kind == 1:
        return (lambda y, at, s: torch.scatter_add(y, axis, at, s)), (x, places, source)
    return (lambda y, at: torch.scatter(y, axis, at, 2.5)), (x, places)


def _indexed(torch: Any, rng: Rng) -> Drawn:
    shape = extents(rng, number(rng, 2, 4), 2, 5)
    common = extents(rng, number(rng, 1, 2), 1, 3)
    chosen: list[Any] = [slice(None)] * len(shape)
    count = number(rng, 1, min(3, len(shape)))
    at = sorted(int(n) for n in rng.permutation(len(shape))[:count])
    places = [whole(torch, rng, -shape[axis], shape[axis], *common) for axis in at]
    for axis, place in zip(at, places, strict=True):
        chosen[axis] = place

    def call(x: Any, *given: Any) -> Any:
        own = list(chosen)
        for axis, place in zip(at, given, strict=True):
            own[axis] = place
        return x[tuple(own)]

    return call, (floats(torch, rng, *shape), *places)


def _put(torch: Any, rng: Rng) -> Drawn:
    rows, columns, depth = extents(rng, 3, 2, 4)
    x = floats(torch, rng, rows, columns, depth)
    kind = int(rng.integers(4))
    at = torch.from_numpy(rng.permutation(columns)[: number(rng, 1, columns)].copy())

    def call(y: Any, value: Any) -> Any:
        z = y.clone()
        if kind == 0:
            z[:, at] = value
        elif kind == 1:
            z[1:, :, 0] = value
        elif kind == 2:
            z[0] = z[1] * value
        else:
            z[:, ::2].mul_(value)
        return z

    return call, (x, floats(torch, rng))


def _index_put(torch: Any, rng: Rng) -> Drawn:
    rows, columns = extents(rng, 2, 2, 5)
    count = number(rng, 1, rows)
    at = torch.from_numpy(rng.permutation(rows)[:count].copy())
    adds = flip(rng)
    x, values = floats(torch, rng, rows, columns), floats(torch, rng, count, columns)
    return (lambda y, p, v: y.index_put((p,), v, accumulate=adds)), (x, at, values)


def _products(torch: Any, rng: Rng) -> Drawn:
    a, b, c, n = extents(rng, 4, 1, 4)
    kind = int(rng.integers(6))
    left, right = floats(torch, rng, a, b), floats(torch, rng, b, c)
    if kind == 0:
        return torch.mm, (left, right)
    if kind == 1:
        return torch.bmm, (floats(torch, rng, n, a, b), floats(torch, rng, n, b, c))
    if kind == 2:
        return (lambda s, x, y: torch.addmm(s, x, y, beta=0.5, alpha=1.5)), (
            floats(torch, rng, c), left, right,
        )  # fmt: skip
    if kind == 3:
        batch = floats(torch, rng, n, a, b), floats(torch, rng, n, b, c)
        return (lambda s, x, y: torch.baddbmm(s, x, y, beta=0.5, alpha=2)), (
            floats(torch, rng, n, a, c), *batch,
        )  # fmt: skip
    if kind == 4:
        return torch.mv, (left, floats(torch, rng, b))
    return torch.outer, (floats(torch, rng, a), floats(torch, rng, c))


def _matmul(torch: Any, rng: Rng) -> Drawn:
    lead = extents(rng, number(rng, 0, 2), 1, 3)
    inner = number(rng, 1, 4)
    left = (*lead, number(rng, 1, 4), inner) if rng.integers(4) else (inner,)
    right = (
        (*lead[number(rng, 0, len(lead)) :], inner, number(rng, 1, 4))
        if rng.integers(4)
        else (inner,)
    )
    return torch.matmul, (floats(torch, rng, *left), floats(torch, rng, *right))


def _einsum(torch: Any, rng: Rng) -> Drawn:
    sizes = dict(zip("bijk", extents(rng, 4, 1, 4), strict=True))
    equation = str(
        rng.choice(["bij,bjk->bik", "ij,jk", "bij,bij->bi", "ij,k->ijk", "ii->i", "bij->jb"])
    )
    terms = equation.partition("->")[0].split(",")
    tensors = [floats(torch, rng, *(sizes[letter] for letter in term)) for term in terms]
    return (lambda *x: torch.einsum(equation, *x)), tuple(tensors)


def _attention(torch: Any, rng: Rng) -> Drawn:
    lead = extents(rng, number(rng, 1, 2), 1, 3)
    size, steps, s, v = extents(rng, 4, 1, 4)
    kind = int(rng.integers(4))
    q, k = floats(torch, rng, *lead, steps, size), floats(torch, rng, *lead, s, size)
    values = floats(torch, rng, *lead, s, v)
    run = torch.nn.functional.scaled_dot_product_attention
    if kind == 0:
        return run, (q, k, values)
    if kind == 1:
        return (lambda *x: run(*x, is_causal=True)), (q, k, values)
    if kind == 2:
        return (lambda *x: run(*x, scale=0.3)), (q, k, values, floats(torch, rng, steps, s))
    mask = floats(torch, rng, steps, s) > 0
    mask[:, 0] = True
    return run, (q, k, values, mask)


def _grid(torch: Any, rng: Rng) -> Drawn:
    n, c = extents(rng, 2, 1, 2)
    x = floats(torch, rng, n, c, *extents(rng, 2, 3, 5))
    grid = floats(torch, rng, n, *extents(rng, 2, 2, 4), 2) * 0.6
    mode = str(rng.choice(["bilinear", "nearest", "bicubic"]))
    padding, corners = str(rng.choice(["zeros", "border", "reflection"])), flip(rng)
    run = torch.nn.functional.grid_sample
    return (lambda y, g: run(y, g, mode, padding, corners)), (x, grid)


def _affine(torch: Any, rng: Rng) -> Drawn:
    n, corners = number(rng, 1, 2), flip(rng)
    size = (n, 2, *extents(rng, 2, 1, 4))
    run = torch.nn.functional.affine_grid
    return (lambda t: run(t, size, corners)), (floats(torch, rng, n, 2, 3),)


def _spectrum(torch: Any, rng: Rng) -> Drawn:
    x, kind = floats(torch, rng, number(rng, 1, 3), number(rng, 4, 9)), int(rng.integers(5))
    norm = str(rng.choice(["backward", "ortho", "forward"]))
    if kind == 0:
        return (lambda y: torch.fft.rfft(y, norm=norm).abs()), (x,)
    if kind == 1:
        return (lambda y: torch.fft.irfft(torch.fft.rfft(y, norm=norm), n=y.shape[1], norm=norm)), (
            x,
        )
    if kind == 2:
        return (lambda y: torch.view_as_real(torch.fft.fft(y, norm=norm))), (x,)
    if kind == 3:
        return (lambda y: torch.fft.rfft(y, n=6).real + torch.fft.rfft(y, n=6).imag), (x,)
    window = torch.hann_window(8)
    line = floats(torch, rng, 1, 24)
    return (lambda y: torch.stft(y, 8, 4, window=window, return_complex=True).abs()), (line,)


def _joined(torch: Any, rng: Rng) -> Drawn:
    shape = list(any_shape(rng))
    axis = number(rng, -len(shape), len(shape) - 1)
    parts = []
    for _ in range(number(rng, 1, 3)):
        shape[axis] = number(rng, 1, 4)
        parts.append(_typed(torch, rng, tuple(shape)))
    return (lambda *x: torch.cat(x, axis)), tuple(parts)


def _stacked(torch: Any, rng: Rng) -> Drawn:
    shape = any_shape(rng)
    axis = number(rng, -len(shape) - 1, len(shape))
    parts = tuple(floats(torch, rng, *shape) for _ in range(number(rng, 1, 3)))
    return (lambda *x: torch.stack(x, axis)), parts


def _where(torch: Any, rng: Rng) -> Drawn:
    a, b = _sides(torch, rng)
    if not isinstance(b, torch.Tensor):
        return (lambda x: torch.where(x > 0, x, b)), (a,)
    return (lambda x, y: torch.where(x > 0, x, y)), (a, b)


def _clamped(torch: Any, rng: Rng) -> Drawn:
    x = _typed(torch, rng, any_shape(rng))
    kind = int(rng.integers(4))
    if kind == 0:
        return (lambda y: torch.clamp(y, -1, 2)), (x,)
    if kind == 1:
        return (lambda y: torch.clamp(y, min=0.5)), (x,)
    if kind == 2:
        return (lambda y: y.clamp_max(1)), (x,)
    return (lambda y, low: torch.clamp(y, min=low)), (x, x * 0 + 1)


def _made(torch: Any, rng: Rng) -> Drawn:
    x, (a, b) = floats(torch, rng, *any_shape(rng)), extents(rng, 2, 1, 4)

    def call(y: Any) -> Any:
        return (
            torch.arange(a, a + 2 * b, 2), torch.arange(0.0, 1.0, 0.25), torch.zeros(a, b),
            torch.ones_like(y), torch.full((a, b), 2.5), torch.full_like(y, 3), torch.eye(a, b),
            torch.linspace(0, 1, b + 1), torch.zeros_like(y, dtype=torch.int64), y.new_ones(b),
            torch.tril(torch.ones(a, b)), torch.scalar_tensor(a),
        )  # fmt: skip

    return (lambda y: tuple(y.sum() * z for z in call(y))), (x,)


def _written(torch: Any, rng: Rng) -> Drawn:
    x = floats(torch, rng, *any_shape(rng))

    def call(y: Any) -> Any:
        z = y.clone()
        z.add_(1.5).mul_(2)
        z = torch.nn.functional.relu(z, inplace=True)
        z.clamp_(max=3).sub_(y)
        return torch.nn.functional.leaky_relu_(z, 0.2)

    return call, (x,)


def _cast(torch: Any, rng: Rng) -> Drawn:
    kinds = [torch.int32, torch.int64, torch.float32, torch.bool, torch.uint8, torch.int8]
    kind = kinds[int(rng.integers(len(kinds)))]
    x = floats(torch, rng, *any_shape(rng)).abs() * 5
    return (lambda y: (y.to(kind), y.type_as(y.to(torch.int32)), y.long() + 1)), (x,)


def _one_hot(torch: Any, rng: Rng) -> Drawn:
    count = number(rng, 2, 5)
    x = whole(torch, rng, 0, count, *any_shape(rng, 1, 2))
    return (lambda y: torch.nn.functional.one_hot(y, count)), (x,)


def _meshed(torch: Any, rng: Rng) -> Drawn:
    way = str(rng.choice(["ij", "xy"]))
    lines = tuple(floats(torch, rng, number(rng, 1, 4)) for _ in range(number(rng, 2, 3)))
    return (lambda *x: torch.meshgrid(*x, indexing=way)), lines


def _powers(torch: Any, rng: Rng) -> Drawn:
    x = _positive(torch, rng, any_shape(rng))
    kind, exponent = int(rng.integers(4)), float(rng.choice([0.5, 2, 3, -1, 1.7]))
    if kind == 0:
        return (lambda y: torch.pow(y, exponent)), (x,)
    if kind == 1:
        return torch.pow, (x, x * 0.5)
    if kind == 2:
        return (lambda y: 2**y), (x,)
    return (lambda y: y**3), (whole(torch, rng, -4, 5, *x.shape),)


def _three(name: str) -> Draw:
    def draw(torch: Any, rng: Rng) -> Drawn:
        shape = any_shape(rng)
        x = tuple(_positive(torch, rng, shape) for _ in range(3))
        if name == "lerp":
            return torch.lerp, x
        return (lambda a, b, c: getattr(torch, name)(a, b, c, value=0.7)), x

    return draw


def _distances(torch: Any, rng: Rng) -> Drawn:
    a, b, c = extents(rng, 3, 1, 4)
    power = float(rng.choice([1.0, 2.0]))
    return (lambda x, y: torch.cdist(x, y, power)), (
        floats(torch, rng, a, c),
        floats(torch, rng, b, c),
    )


def _normalised(torch: Any, rng: Rng) -> Drawn:
    x = floats(torch, rng, *any_shape(rng, 2))
    power, axis = float(rng.choice([1.0, 2.0, 3.0])), _axis_of(rng, x)
    return (lambda y: torch.nn.functional.normalize(y, power, axis)), (x,)


def _norm(torch: Any, rng: Rng) -> Drawn:
    x = floats(torch, rng, *any_shape(rng))
    power, axis = float(rng.choice([0.0, 1.0, 2.0, 3.0, np.inf, -np.inf])), _axis_of(rng, x)
    return (lambda y: torch.linalg.vector_norm(y, power, axis)), (x,)


_SHAPES: Mapping[str, Draw] = MappingProxyType(
    {
        "permute": _on(lambda d: d.y.permute(d.order)),
        "transpose": _on(lambda d: d.y.transpose(d.axis, d.order[0])),
        "movedim": _on(lambda d: d.torch.movedim(d.y, d.axis, d.order[0])),
        "unsqueeze": _on(lambda d: d.y.unsqueeze(d.axis).squeeze(d.axis)),
        "select": _on(lambda d: d.y.select(d.axis, -1)),
        "slice": _on(lambda d: (d.y[d.count - 3 :: 2], d.y[..., : d.count - 4], d.y[..., 1:])),
        "narrow": _on(lambda d: d.y.narrow(d.axis, 1, 1)),
        "split": _on(lambda d: d.torch.split(d.y, d.count, d.axis)),
        "chunk": _on(lambda d: d.torch.chunk(d.y, d.count, d.axis)),
        "tensor_split": _on(lambda d: d.torch.tensor_split(d.y, 2, d.axis)),
        "unbind": _on(lambda d: d.torch.unbind(d.y, d.axis)),
        "flip": _on(lambda d: d.torch.flip(d.y, d.order[:2])),
        "roll": _on(lambda d: d.torch.roll(d.y, d.count - 2, d.axis)),
        "roll_all": _on(lambda d: d.torch.roll(d.y, d.count - 2)),
        "expand": _on(lambda d: d.y.unsqueeze(1).expand(-1, 3, *d.y.shape[1:])),
        "repeat": _on(lambda d: d.y.repeat(d.count, *(n % 2 + 1 for n in d.order))),
        "tile": _on(lambda d: d.torch.tile(d.y, (d.count,))),
        "repeat_interleave": _on(lambda d: d.torch.repeat_interleave(d.y, d.count, d.axis)),
        "diagonal": _on(lambda d: d.torch.diagonal(d.y, d.count - 2), 2, 3),
        "tril": _on(lambda d: (d.torch.tril(d.y, d.count - 2), d.torch.triu(d.y, d.count)), 2),
        "unfold": _on(lambda d: d.y.unfold(d.axis, 2, d.count)),
        "softmax": _on(lambda d: d.torch.softmax(d.y, d.axis)),
        "masked_fill": _on(lambda d: d.y.masked_fill(d.y > 0.2, -7)),
        "index_select": _on(lambda d: d.torch.index_select(d.y, d.axis, d.torch.arange(2))),
        "pad": _on(lambda d: d.torch.nn.functional.pad(d.y, (d.count - 2, 1), value=1.5)),
        "std": _on(lambda d: d.torch.std(d.y, d.axis)),
        "var_mean": _on(lambda d: d.torch.var_mean(d.y, d.axis, correction=0, keepdim=True)),
        "aminmax": _on(lambda d: d.torch.aminmax(d.y, dim=d.axis)),
        "take_along_dim": _on(
            lambda d: d.torch.take_along_dim(d.y, d.torch.argsort(d.y, d.axis), d.axis)
        ),
        "view": _on(lambda d: (d.y.view(-1), d.y.reshape(1, -1), d.y.mT), 2),
        "quantile": _on(lambda d: d.torch.quantile(d.y, 0.4, d.axis)),
        "cummax": _on(
            lambda d: (*d.torch.cummax(d.y.round(), d.axis), *d.torch.cummin(d.y, d.axis))
        ),
        "searchsorted": _on(
            lambda d: d.torch.searchsorted(d.torch.sort(d.y, -1)[0], d.y, right=d.axis == 0)
        ),
        "bucketize": _on(
            lambda d: d.torch.bucketize(d.y, d.torch.arange(-2, 3, 2), out_int32=True)
        ),
        "select_scatter": _on(
            lambda d: d.torch.select_scatter(d.y, d.y.select(d.axis, 0), d.axis, 1)
        ),
        "slice_scatter": _on(
            lambda d: d.torch.slice_scatter(d.y, d.y.narrow(d.axis, 0, 1), d.axis, 1, 2)
        ),
        "swapaxes": _on(lambda d: d.torch.swapaxes(d.y, axis0=d.axis, axis1=d.order[0])),
        "pdist": _on(lambda d: d.torch.pdist(d.y, float(d.count)), 2, 2),
    }
)

FUNCTIONS: Mapping[str, Draw] = MappingProxyType(
    {
        **{
            f"unary_{name}": _unary(name, lambda torch, rng, shape: floats(torch, rng, *shape))
            for name in _FLOAT_FUNCTIONS
        },
        **{f"unary_{name}": _unary(name, _positive) for name in _OF_POSITIVE},
        "unary_acosh": _unary("acosh", lambda t, r, shape: _positive(t, r, shape) + 1),
        **{f"unary_{name}": _unary(name, _unit) for name in _OF_UNIT if name != "logit"},
        "unary_logit": _unary("logit", lambda t, r, shape: _unit(t, r, shape).abs() * 0.9 + 0.05),
        **{
            f"integer_{name}": _unary(name, lambda t, r, shape: whole(t, r, 1, 9, *shape))
            for name in _OF_INTEGERS
        },
        **{f"binary_{name}": _binary(name) for name in _BINARY},
        **{f"bits_{name}": _bits(name) for name in _OF_BITS},
        "division": _division,
        "sum": _reduction("sum"),
        "mean": _reduction("mean", integers=False),
        "amax": _reduction("amax"),
        "amin": _reduction("amin"),
        "prod": _reduction("prod", many=False),
        "any": _reduction("any", many=False),
        "all": _reduction("all", many=False),
        "argmax": _reduction("argmax", integers=False, many=False),
        "argmin": _reduction("argmin", integers=False, many=False),
        "logsumexp": _reduction("logsumexp", integers=False, all_axes=False),
        "count_nonzero": lambda t, r: (t.count_nonzero, (whole(t, r, -1, 2, *any_shape(r)),)),
        **{name: _ranked(name) for name in _RANKED},
        "cumsum": _along("cumsum"), "cumprod": _along("cumprod"),
        "gather": _gathered, "scatter": _scattered, "index": _indexed, "put": _put,
        "index_put": _index_put, "products": _products, "matmul": _matmul, "einsum": _einsum,
        "attention": _attention, "grid_sample": _grid, "affine_grid": _affine,
        "spectrum": _spectrum, "cat": _joined, "stack": _stacked, "where": _where,
        "clamp": _clamped, "made": _made, "in_place": _written, "cast": _cast,
        "one_hot": _one_hot, "meshgrid": _meshed, "pow": _powers, "lerp": _three("lerp"),
        "addcmul": _three("addcmul"), "addcdiv": _three("addcdiv"), "cdist": _distances,
        "normalize": _normalised, "norm": _norm,
        **_SHAPES,
    }
)  # fmt: skip
