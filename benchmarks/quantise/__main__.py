"""`python -m benchmarks.quantise [NETWORK ...] [--record]`: losses beside other quantisers.

Each network is quantised once for each seed by each quantiser that is installed, or those that
`--quantisers` names; all answer the same test samples.  Files are compiled for an emulated
Cortex-M4, once each.  Weights of the first seed are part of the repository; `--weights FOLDER` are
those of all seeds, which `benchmarks.quantise.training` wrote.  `--record` writes the figures to
`benchmarks/quantise.json`, beside those of other networks, and to `docs/quantise.md`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.quantise import page
from benchmarks.quantise.networks import NETWORKS, Network
from benchmarks.quantise.own import OWN
from benchmarks.quantise.price import Price, price_of
from benchmarks.quantise.rivals import RIVALS, Answer, Rival, answers_in_floats
from benchmarks.quantise.tasks import Array, Split
from benchmarks.quantise.training import SEEDS, weights_file

WEIGHTS = Path(__file__).parent / "weights"
_NEEDED: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "onnxruntime": ("onnxruntime", "sympy"),
        "ai-edge-quantizer": ("ai_edge_quantizer", "ai_edge_litert"),
        "TensorFlow": ("tensorflow", "ai_edge_litert"),
        "BakeNN": ("bakenn", "torch"),
    }
)
"""The packages of quantisers, by the first word of their names."""

_PACKAGES = (
    "onnxruntime", "ai-edge-quantizer", "bakenn", "tensorflow", "tensorflow-cpu", "torch",
    "scikit-learn",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loss:
    """What a quantiser costs a network.

    Args:
        score: percent of the test samples that are classified right, or the mean squared error; a
            mean over the seeds.
        losses: of each seed: points of percent below the float network, or percent of error above.
        price: of the network of the first seed on a Cortex-M4.
        weights: bytes of weights as a share of those of int8; None where no bits were chosen.
    """

    score: float
    losses: tuple[float, ...]
    price: Price
    weights: float | None = None


def score(network: Network, outputs: Array, split: Split) -> float:
    """Return the percent of test samples that are classified right, or the mean squared error."""
    if network.task.classes:
        return float(np.mean(outputs.argmax(1) == split.test_y) * 100)
    return float(np.mean((outputs[:, 0] - split.test_y) ** 2))


def loss(network: Network, floats: Array, quantised: Array) -> Array:
    """Return the loss of each seed; see `Loss`."""
    return floats - quantised if network.task.classes else (quantised / floats - 1) * 100


def measured(
    network: Network, folder: Path, seeds: Iterable[int], quantisers: Mapping[str, Rival]
) -> dict[str, Loss]:
    """Quantise a network with each quantiser, and return the figures by the quantiser's name."""
    scores: dict[str, list[float]] = {}
    prices: dict[str, Price] = {}
    shares: dict[str, list[float]] = {}
    for seed in seeds:
        with np.load(weights_file(folder, network.name, seed)) as file:
            weights = [file[name] for name in file.files]
        split = network.task.split(seed)
        floats = answers_in_floats(network, weights, split.test_x)
        scores.setdefault("float", []).append(score(network, floats, split))
        for name, quantiser in quantisers.items():
            answer: Answer = quantiser(network, weights, split)
            scores.setdefault(name, []).append(score(network, answer.outputs, split))
            if answer.weights is not None:
                shares.setdefault(name, []).append(answer.weights)
            if name not in prices:
                prices[name] = price_of(answer)
    return {
        name: _loss(
            network, np.array(scores["float"]), np.array(own), prices.get(name, Price()),
            round(float(np.mean(shares[name])), 4) if name in shares else None,
        )
        for name, own in scores.items()
    }  # fmt: skip


def _loss(network: Network, floats: Array, own: Array, price: Price, weights: float | None) -> Loss:
    losses = (round(float(one), 4) for one in loss(network, floats, own))
    return Loss(round(float(own.mean()), 4), tuple(losses), price, weights)


def shown(network: str, losses: Mapping[str, Loss]) -> str:
    """Return the figures of a network as lines of text."""
    lines = [f"{network:<34}{'score':>9}{'loss':>9}{'instructions':>14}{'flash':>9}"]
    for name, one in losses.items():
        figures = f"{one.score:9.3f}{np.mean(one.losses):9.3f}"
        lines.append(f"  {name:<32}{figures}{one.price.instructions:14,}{one.price.flash:9,}")
    return "\n".join(lines)


def _record(losses: Mapping[str, Mapping[str, Loss]]) -> None:
    """Write figures beside those that are recorded, unless these are of more seeds."""
    there = _installed()
    installed = {name: metadata.version(name) for name in _PACKAGES if name in there}
    content = dict(page.read_recorded()) if page.RECORDED.exists() else {}
    networks = dict(content.get("networks", {}))
    for network, own in losses.items():
        known = networks.setdefault(network, {})
        known.update(
            (name, asdict(one))
            for name, one in own.items()
            if len(one.losses) >= len(known.get(name, {}).get("losses", ()))
        )
    versions = {**content.get("versions", {}), **installed}
    content = {"seeds": SEEDS, "versions": versions, "networks": networks}
    page.RECORDED.write_text(_as_text(content) + "\n", "utf-8")
    page.write()


def _as_text(content: object) -> str:
    """Return JSON whose lists of numbers are lines."""
    lines = re.compile(r"\[\s+([^][]*?)\s+\]")
    return lines.sub(lambda one: f"[{' '.join(one[1].split())}]", json.dumps(content, indent=1))


def _installed() -> frozenset[str]:
    """Return the names of the distributions that are there."""
    return frozenset(one.name.lower().replace("_", "-") for one in metadata.distributions())


def _available() -> list[str]:
    """Return the quantisers whose packages are installed."""

    def is_there(rival: str) -> bool:
        name, *_ = rival.split()
        return all(util.find_spec(package) is not None for package in _NEEDED[name])

    return [*OWN, *filter(is_there, RIVALS)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure networks, and print or record the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantise")
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--weights", type=Path, default=WEIGHTS, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quantisers", nargs="+", default=_available(), metavar="NAME")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    losses = {}
    chosen = {name: {**OWN, **RIVALS}[name] for name in options.quantisers}
    for name in options.networks:
        files = (weights_file(options.weights, name, seed) for seed in range(options.seeds))
        seeds = range(sum(file.exists() for file in files))
        if not seeds:
            parser.error(f"{options.weights} has no weights of {name}")
        losses[name] = measured(NETWORKS[name], options.weights, seeds, chosen)
        print(shown(name, losses[name]), flush=True)
        if options.record:
            _record(losses)


if __name__ == "__main__":
    main()
