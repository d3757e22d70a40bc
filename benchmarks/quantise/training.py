"""`python -m benchmarks.quantise.training FOLDER [NETWORK ...]`: trains the networks with PyTorch.

Needs torch, in an environment of its own.  Each network is trained once for each seed; its weights
go to FOLDER/NETWORK-SEED.npz.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quantise.networks import (
    NETWORKS,
    NORM_EPSILON,
    Conv,
    Dense,
    GlobalAverage,
    Layer,
    Network,
    Residual,
)
from benchmarks.quantise.tasks import Array

SEEDS = 20
_BATCH, _RATE = 32, 3e-3


def trained(network: Network, seed: int) -> list[Array]:
    """Return the weights of a network, trained on the split of a seed.

    Raises:
        ImportError: torch is not installed.
    """
    torch: Any = importlib.import_module("torch")

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    split = network.task.split(seed)
    model, _ = _module(network.layers, network.task.shape[0])
    model.train()
    labels = split.train_y if network.task.classes else split.train_y[:, None]
    x, y = torch.tensor(split.train_x), torch.tensor(labels)
    classifies = network.task.classes > 0
    loss_of: Any = torch.nn.CrossEntropyLoss() if classifies else torch.nn.MSELoss()
    steps = network.epochs * -(-len(x) // _BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    for _ in range(network.epochs):
        for chosen in torch.randperm(len(x)).split(_BATCH):
            # A batch normalisation learns nothing from a single sample.
            if len(chosen) > 1:
                optimiser.zero_grad()
                loss_of(model(x[chosen]), y[chosen]).backward()
                optimiser.step()
            schedule.step()
    return _weights(model)


def _module(layers: Sequence[Layer], channels: int) -> tuple[Any, int]:
    """Return layers as a module of torch, and the channels of its result."""
    torch: Any = importlib.import_module("torch")
    nn = torch.nn

    class Sum(nn.Module):  # type: ignore[name-defined, misc]  # torch is imported late
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Any) -> Any:
            return torch.relu(self.inner(x) + x)

    parts: list[Any] = []
    for layer in layers:
        match layer:
            case Conv():
                groups = channels if layer.is_depthwise else 1
                parts.append(
                    nn.Conv2d(
                        channels, layer.channels, layer.kernel, layer.stride, layer.kernel // 2,
                        groups=groups, bias=False,
                    )
                )  # fmt: skip
                parts.append(nn.BatchNorm2d(layer.channels, eps=NORM_EPSILON))
                parts += [nn.ReLU()] if layer.has_relu else []
                channels = layer.channels
            case Residual(layers=inner):
                parts.append(Sum(_module(inner, channels)[0]))
            case GlobalAverage():
                parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            case Dense():
                parts.append(nn.Linear(channels, layer.units))
                parts += [nn.ReLU()] if layer.has_relu else []
                channels = layer.units
    return nn.Sequential(*parts), channels


def module_of(network: Network, weights: Sequence[Array]) -> Any:
    """Return a network as a module of torch for inference."""
    torch: Any = importlib.import_module("torch")

    model, _ = _module(network.layers, network.task.shape[0])
    names = (n for n in model.state_dict() if not n.endswith("num_batches_tracked"))
    model.load_state_dict(
        {name: torch.tensor(array) for name, array in zip(names, weights, strict=True)},
        strict=False,
    )
    return model.eval()


def _weights(model: Any) -> list[Array]:
    """Return the weights in the order of `networks`."""
    state = model.state_dict()
    return [v.numpy() for name, v in state.items() if not name.endswith("num_batches_tracked")]


def weights_file(folder: Path, network: str, seed: int) -> Path:
    """Return where the weights of a network for a seed lie."""
    return folder / f"{network}-{seed}.npz"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train networks, and write their weights."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantise.training")
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.networks:
        for seed in range(SEEDS):
            np.savez(weights_file(options.folder, name, seed), *trained(NETWORKS[name], seed))


if __name__ == "__main__":
    main()
