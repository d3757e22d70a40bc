"""Compares modules and functions of PyTorch with what microtir reads of their exported programs.

    python -m tests.journeys.torch_modules --seeds 20
    python -m tests.journeys.torch_modules --only LSTM GRU --seeds 100
    python -m tests.journeys.torch_modules --record

It runs where PyTorch is installed. Each is exported as it is, and as Core ATen. The last form
writes what the tests without PyTorch compare: one program of each kind, with what PyTorch computes.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from microtir.errors import MicrotirError
from microtir.frontend import from_torch
from microtir.graph.ir import Array, Graph
from microtir.rewrite.reference import execute
from tests.journeys.torch_functions import FUNCTIONS
from tests.journeys.torch_layers import LAYERS, Draw

NEAR = 3e-5
"""Largest difference to PyTorch, which adds in float32, as a part of the largest output."""

RECORDED = Path(__file__).parents[1] / "frontend" / "torch" / "recorded.tar.xz"

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
    try:
        core = exported.run_decompositions()
    except AssertionError:  # PyTorch itself fails where a function makes constants
        return
    yield core


def drawn(torch: Any, draw: Draw, name: str, seed: int) -> tuple[Any, tuple[Any, ...], list[Array]]:
    """Return a module or function, inputs, and what PyTorch computes of them."""
    torch.manual_seed(seed)
    module, inputs = draw(torch, np.random.default_rng([seed, *name.encode()]))
    if isinstance(module, torch.nn.Module):
        module.eval()
    return module, inputs, arrays(torch, module(*inputs))


def outcome(torch: Any, draw: Draw, name: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yield for each form of a drawn case "equal", "wrong" or "refused", and why."""
    with torch.no_grad():
        module, inputs, expected = drawn(torch, draw, name, seed)
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


def bare_archive(torch: Any, program: Any) -> bytes:
    """Return an archive without sample inputs, and without where in the sources nodes come from."""
    saved, bare = io.BytesIO(), io.BytesIO()
    torch.export.save(program, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(bare, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if "/sample_inputs/" in name or name.endswith(".data/serialization_id"):
                continue
            if name.endswith("models/model.json"):
                model = json.loads(data)
                for node in model["graph_module"]["graph"]["nodes"]:
                    node["metadata"] = {}
                data = json.dumps(model, separators=(",", ":")).encode()
            target.writestr(zipfile.ZipInfo(name), data)
    return bare.getvalue()


def record(torch: Any) -> None:
    """Write one program of each kind, in one of both forms, with inputs and outputs."""
    with tarfile.open(RECORDED, "w:xz", preset=9) as archive, torch.no_grad():
        for number, name in enumerate(CASES):
            module, inputs, expected = drawn(torch, CASES[name], name, 0)
            forms = list(programs(torch, module, inputs))
            program = forms[number % len(forms)]
            values = io.BytesIO()
            sides = {"inputs": arrays(torch, inputs), "outputs": expected}
            stored: dict[str, Any] = {
                f"{side}.{at}": x for side, xs in sides.items() for at, x in enumerate(xs)
            }
            np.savez(values, **stored)
            for suffix, data in (
                (".pt2", bare_archive(torch, program)),
                (".npz", values.getvalue()),
            ):
                member = tarfile.TarInfo(f"{name}{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def main(arguments: Sequence[str] | None = None, cases: Mapping[str, Draw] = CASES) -> int:
    """Compare cases, print what differs, and return 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(cases))
    options = parser.parse_args(arguments)
    import torch  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")
    if options.record:
        record(torch)
        return 0
    counts: Counter[str] = Counter()
    for name in options.only:
        for seed in range(options.first, options.first + options.seeds):
            for form, (verdict, why) in zip(
                ("export", "core"), outcome(torch, cases[name], name, seed), strict=False
            ):
                counts[verdict] += 1
                if verdict != "equal":
                    sys.stdout.write(f"{verdict}: {name} {form} seed {seed}: {why}\n")
                    sys.stdout.flush()
    sys.stdout.write(f"torch {torch.__version__}: {len(options.only)} kinds, {dict(counts)}\n")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
