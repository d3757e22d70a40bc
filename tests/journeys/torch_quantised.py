"""Compares programs that PT2E quantises anew with what microtir reads of them.

    python -m tests.journeys.torch_quantised --seeds 3
    python -m tests.journeys.torch_quantised --only Conv2d GRU --seeds 20

It runs where PyTorch and torchao are installed.  A module is calibrated and converted with a drawn
quantiser.  Each part of the program between integers is exported by itself and fed with the
integers that PyTorch has there: every result is PyTorch's, or one step off where the exact value of
the formula lies within 1e-4 of the middle of two integers.  The whole is compared in reals.
"""

from __future__ import annotations

import argparse
import copy
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microtir.errors import MicrotirError
from microtir.frontend import from_torch
from microtir.graph.ir import Array, Graph
from microtir.rewrite.reference import execute
from tests.journeys.torch_modules import arrays
from tests.journeys.torch_quantisers import quantiser
from tests.journeys.torch_to_quantise import MODULES

NEAR_HALF = 1e-4
"""Distance of an exact value from the middle of two integers, in steps."""

LARGEST_PART = 0.05
"""Largest difference of a whole program, as a part of its largest output: steps add up."""

_QUANTISES = "quantize_per_tensor"
_SHAPES = (
    "view", "reshape", "flatten", "permute", "transpose", "unsqueeze", "squeeze", "slice", "select",
    "contiguous", "clone", "pad", "dropout", "unflatten", "max_pool2d", "expand", "chunk", "relu",
)  # fmt: skip
_WEIGHTED = (
    "linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "conv3d", "convolution",
)  # fmt: skip


@dataclass
class Counts:
    """Integers that were compared, those beside the middle of two, and those that differ."""

    parts: int = 0
    integers: int = 0
    near: int = 0
    off: int = 0
    by_bias: int = 0


def named(node: Any) -> str:
    """Return the name of the operator of a node, without its overload."""
    target = getattr(node.target, "__name__", str(node.target))
    return str(target).partition(".")[0]


def is_quantised(node: Any) -> bool:
    """Return whether a node gives integers of a tensor that has one scale."""
    return node.op == "call_function" and named(node) == _QUANTISES


def part_before(torch: Any, module: Any, last: Any) -> tuple[Any, list[Any]]:
    """Return what computes a node from integers and inputs, and the nodes that it is fed with."""
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    region, waiting, fed = {last}, list(last.all_input_nodes), set()
    while waiting:
        node = waiting.pop()
        if node.op == "placeholder" or is_quantised(node):
            fed.add(node)
        elif node not in region:
            region.add(node)
            waiting += node.all_input_nodes
    graph, values, inputs = torch.fx.Graph(), {}, sorted(fed, key=order.__getitem__)
    for number, node in enumerate(inputs):
        values[node] = graph.placeholder(f"part_{number}")
    for node in sorted(region, key=order.__getitem__):
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output((values[last],))
    return torch.fx.GraphModule(module, graph), inputs


def interpreter(torch: Any, module: Any, *, rounds_biases: bool) -> Any:
    """Return what runs a part in doubles, with biases as floats or at the scale of the sums."""

    class Exact(torch.fx.Interpreter):  # type: ignore[misc]
        """Reals without a rounding to float32; the last node gives the quotient, not an integer."""

        def __init__(self) -> None:
            super().__init__(module)
            self.scales: dict[Any, Any] = {}
            self.at: Any = None

        def run_node(self, node: Any) -> Any:
            self.at = node
            name = named(node) if node.op == "call_function" else ""
            if name in _SHAPES and node.args[0] in self.scales:
                self.scales[node] = self.scales[node.args[0]]
            if rounds_biases and name in _WEIGHTED and node.args[2:3] not in ((), (None,)):
                scales = [self.scales.get(argument) for argument in node.args[:2]]
                if scales[0] is not None and scales[1] is not None:
                    step, bias = scales[0] * scales[1], self.env[node.args[2]]
                    if step.numel() in (1, bias.numel()):  # scales are those of outputs
                        self.env[node.args[2]] = torch.round(bias / step) * step
            result = super().run_node(node)
            is_float = isinstance(result, torch.Tensor) and result.dtype is torch.float32
            return result.double() if is_float else result

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            name = str(getattr(target, "__name__", target)).partition(".")[0]
            if name.startswith("dequantize_per_"):
                return self.real(name, *args)
            if name == _QUANTISES:
                inverse = torch.tensor(1.0 / args[1], dtype=torch.float32).double()
                return args[0].double() * inverse
            if any(isinstance(x, torch.Tensor) and x.dtype.is_floating_point for x in args):
                kwargs = {k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()}
            return super().call_function(target, args, kwargs)

        def real(self, name: str, stored: Any, scale: Any, zero: Any, *rest: Any) -> Any:
            scale = torch.as_tensor(scale, dtype=torch.float32).double()
            zero = torch.as_tensor(zero)
            if name == "dequantize_per_channel":
                axis = rest[0]
                shape = [-1 if at == axis else 1 for at in range(stored.ndim)]
                self.scales[self.at] = scale
                return (stored.double() - zero.reshape(shape)) * scale.reshape(shape)
            self.scales[self.at] = scale
            return (stored.double() - zero) * scale

    return Exact()


def values_of(torch: Any, module: Any, inputs: Sequence[Any]) -> dict[Any, Any]:
    """Return what each node of a program gives in its first run, by nodes of the program."""
    values: dict[str, Any] = {}

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]
        """Keeps all results."""

        def run_node(self, node: Any) -> Any:
            result = super().run_node(node)
            # What is written to later is kept as it is now.
            values[node.name] = result.clone() if isinstance(result, torch.Tensor) else result
            return result

    Recorder(copy.deepcopy(module)).run(*inputs)
    return {node: values[node.name] for node in module.graph.nodes}


def run(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of a graph for inputs in order."""
    given = dict(zip((port.name for port in graph.arguments), inputs, strict=True))
    results = execute(graph, given)
    return [results[port.name] for port in graph.results]


def read(program: Any) -> Graph:
    """Return the graph of a program."""
    graph = from_torch(program).graph
    assert graph is not None
    return graph


def part_differs(
    torch: Any, module: Any, last: Any, values: Mapping[Any, Any], counts: Counts
) -> str:
    """Return how a part differs from PyTorch, fed with the same integers; empty if it does not."""
    part, fed = part_before(torch, module, last)
    inputs = tuple(values[node] for node in fed)
    (made,) = run(read(torch.export.export(part, inputs)), arrays(torch, inputs))
    wanted = np.array(values[last])
    if made.shape != wanted.shape or made.dtype != wanted.dtype:
        return f"{last}: {made.dtype} {made.shape}, PyTorch has {wanted.dtype} {wanted.shape}"
    with_floats, exact = (
        np.array(
            interpreter(torch, copy.deepcopy(part), rounds_biases=rounds).run(*inputs)[0].detach()
        )
        for rounds in (False, True)
    )
    is_near = np.abs(exact - np.floor(exact) - 0.5) < NEAR_HALF
    # PyTorch has biases in floats: a half may lie between both values.
    low, high = np.minimum(exact, with_floats), np.maximum(exact, with_floats)
    may_differ = np.rint(low - NEAR_HALF) != np.rint(high + NEAR_HALF)
    steps = np.abs(made.astype(np.int64) - wanted.astype(np.int64))
    counts.parts += 1
    counts.integers += made.size
    counts.near += int(is_near.sum())
    counts.off += int((steps > 0).sum())
    counts.by_bias += int(((steps > 0) & ~is_near).sum())
    wrong = (steps > 1) | ((steps > 0) & ~may_differ)
    if wrong.any():
        many = f"{wrong.sum()} of {made.size}"
        return f"{last} differs by {steps.max()} at {exact[wrong][:3]}, {many}"
    return ""


def whole_differs(got: Sequence[Array], expected: Sequence[Array]) -> str:
    """Return how outputs of a whole program differ by more than some steps; else nothing."""
    if [x.shape for x in got] != [x.shape for x in expected]:
        return f"shapes {[x.shape for x in got]}, PyTorch has {[x.shape for x in expected]}"
    for own, right in zip(got, expected, strict=True):
        distance = np.abs(own.astype(np.float64) - right).max(initial=0.0)
        if distance > LARGEST_PART * np.abs(right).max(initial=1e-6):
            return f"the whole differs by {distance}"
    return ""


def outcome(torch: Any, name: str, seed: int, counts: Counts) -> Iterator[tuple[str, str]]:
    """Yield "equal", "wrong" or "refused" for a drawn module, and why."""
    from torchao.quantization.pt2e.quantize_pt2e import (  # type: ignore[import-not-found,unused-ignore]
        convert_pt2e,
        prepare_pt2e,
    )

    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, *name.encode()])
    module, draw, sizes = MODULES[name](torch, rng)
    module.eval()
    with torch.no_grad():
        exported = torch.export.export(module, draw(), dynamic_shapes=sizes).module()
        flat = None
        while flat is None or not any(map(is_quantised, flat.graph.nodes)):
            prepared = prepare_pt2e(copy.deepcopy(exported), quantiser(torch, rng))
            for _ in range(3):
                prepared(*draw())
            inputs = draw()
            converted = convert_pt2e(prepared)
            program = torch.export.export(converted, inputs, dynamic_shapes=sizes)
            flat = program.module()
        try:
            yield from compared(torch, flat, program, inputs, counts)
        except MicrotirError as error:
            problems = getattr(error, "problems", ()) or (error,)
            yield "refused", str(problems[0]).replace("\n", " ")


def compared(
    torch: Any, flat: Any, program: Any, inputs: tuple[Any, ...], counts: Counts
) -> Iterator[tuple[str, str]]:
    """Yield what each part and the whole of a program say."""
    graph = _whole(program, inputs)
    expected = arrays(torch, copy.deepcopy(flat)(*inputs))
    values = values_of(torch, flat, inputs)
    last = [node for node in flat.graph.nodes if is_quantised(node)]
    problems = [part_differs(torch, flat, node, values, counts) for node in last]
    problems.append(whole_differs(run(graph, arrays(torch, inputs)), expected))
    found = "; ".join(problem for problem in problems if problem)
    yield ("wrong", found) if found else ("equal", "")


def _whole(program: Any, inputs: tuple[Any, ...]) -> Graph:
    """Return the graph of a program whose open sizes are those of inputs."""
    symbols: dict[str, int] = {}
    for node, value in zip(
        [n for n in program.graph.nodes if n.op == "placeholder"][-len(inputs) :],
        inputs,
        strict=True,
    ):
        for size, extent in zip(node.meta["val"].shape, value.shape, strict=True):
            if not isinstance(size, int):
                symbols[str(size)] = extent
    graph = from_torch(program, dims=symbols).graph if symbols else from_torch(program).graph
    assert graph is not None
    return graph


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare modules, print what differs, and return 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(MODULES))
    options = parser.parse_args(arguments)
    import torch  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")
    verdicts: Counter[str] = Counter()
    counts = Counts()
    for name in options.only:
        for seed in range(options.first, options.first + options.seeds):
            for verdict, why in outcome(torch, name, seed, counts):
                verdicts[verdict] += 1
                if verdict != "equal":
                    sys.stdout.write(f"{verdict}: {name} seed {seed}: {why}\n")
                    sys.stdout.flush()
    sys.stdout.write(
        f"torch {torch.__version__}: {len(options.only)} quantised kinds, {dict(verdicts)};"
        f" {counts.parts} parts, {counts.integers} integers, {counts.near} within 1e-4 of a half;"
        f" {counts.off} one step off, of them {counts.by_bias} by a bias that is a float there\n"
    )
    return 1 if verdicts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
