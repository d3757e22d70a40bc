"""Compares modules and functions of PyTorch with what microtir reads of their exported programs.

    python -m tests.journeys.torch_modules --seeds 20
    python -m tests.journeys.torch_modules --only LSTM GRU --seeds 100

It runs where PyTorch is installed. Each is exported as it is, and as Core ATen.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from microtir.errors import MicrotirError
from microtir.frontend import from_torch
from microtir.graph.ir import Array, Graph
from microtir.rewrite.reference import execute
from tests.journeys.torch_functions import FUNCTIONS
from tests.journeys.torch_layers import LAYERS

NEAR = 3e-5
"""Largest difference to PyTorch, which adds in float32, as a part of the largest output."""

CASES = {**LAYERS, **FUNCTIONS}


def arrays(torch: Any, values: Any) -> list[Array]:
    """Return the tensors of nested values in order."""
    flat, _ = torch.utils._pytree.tree_flatten(values)
    return [np.array(x.detach().numpy()) for x in flat if isinstance(x, torch.Tensor)]


def difference(graph: Graph, inputs: Sequence[Array], expected: Sequence[Array]) -> str:
    """Return how outputs differ from what PyTorch gives; empty if they do not."""
    ports = zip(graph.arguments, inputs, strict=True)
    got = execute(graph, {port.name: x for port, x in ports})
    if len(graph.results) != len(expected):
        return f"{len(graph.results)} outputs, PyTorch has {len(expected)}"
    for port, right in zip(graph.results, expected, strict=True):
        own = got[port.name]
        if own.shape != right.shape or own.dtype != right.dtype:
            return f"{own.dtype} {own.shape}, PyTorch has {right.dtype} {right.shape}"
        if right.dtype.kind != "f":
            if not np.array_equal(own, right):
                return f"{own.reshape(-1)[:6]}, PyTorch has {right.reshape(-1)[:6]}"
            continue
        near = NEAR * max(1.0, float(np.abs(right[np.isfinite(right)]).max(initial=0.0)))
        if not np.allclose(own, right, rtol=NEAR, atol=near, equal_nan=True):
            with np.errstate(invalid="ignore"):
                return f"differs by {np.nanmax(np.abs(own - right))}"
    return ""


def programs(torch: Any, module: Any, inputs: tuple[Any, ...]) -> Iterator[Any]:
    """Yield a module as an exported program, and as one of Core ATen."""

    class Call(torch.nn.Module):  # type: ignore[misc]
        """A function as a module."""

        def forward(self, *values: Any) -> Any:
            result = module(*values)
            return tuple(result) if isinstance(result, tuple) else result

    whole = module if isinstance(module, torch.nn.Module) else Call().eval()
    exported = torch.export.export(whole, inputs)
    yield exported
    yield exported.run_decompositions()


def outcome(torch: Any, name: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yield for each form of a drawn case "equal", "wrong" or "refused", and why."""
    rng = np.random.default_rng([seed, *name.encode()])
    torch.manual_seed(seed)
    with torch.no_grad():
        module, inputs = CASES[name](torch, rng)
        if isinstance(module, torch.nn.Module):
            module.eval()
        expected = arrays(torch, module(*inputs))
        for program in programs(torch, module, inputs):
            try:
                graph = from_torch(program).graph
            except MicrotirError as error:
                problems = getattr(error, "problems", ()) or (error,)
                yield "refused", str(problems[0]).replace("\n", " ")
                continue
            assert graph is not None
            problem = difference(graph, arrays(torch, inputs), expected)
            yield ("wrong", problem) if problem else ("equal", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare cases, print what differs, and return 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    options = parser.parse_args(arguments)
    import torch  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name in options.only:
        for seed in range(options.first, options.first + options.seeds):
            for form, (verdict, why) in zip(
                ("export", "core"), outcome(torch, name, seed), strict=True
            ):
                counts[verdict] += 1
                if verdict != "equal":
                    sys.stdout.write(f"{verdict}: {name} {form} seed {seed}: {why}\n")
                    sys.stdout.flush()
    sys.stdout.write(f"torch {torch.__version__}: {len(options.only)} kinds, {dict(counts)}\n")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
