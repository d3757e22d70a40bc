"""Compares torchvision's networks of classification with what microtir reads of their programs.

    python -m tests.journeys.torch_networks --seeds 1
    python -m tests.journeys.torch_networks --only mobilenet_v2 swin_t

It runs where PyTorch and torchvision are installed.  Weights are random, images are small, and
statistics of normalisations are drawn, so that no layer is an identity.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from tests.journeys.keras_cases import Rng
from tests.journeys.torch_layers import Drawn, floats
from tests.journeys.torch_modules import main as main_of_modules

_SIZES: Mapping[str, int] = MappingProxyType({
    "alexnet": 64, "convnext_tiny": 32, "densenet121": 32, "efficientnet_b0": 32,
    "efficientnet_v2_s": 32, "googlenet": 32, "inception_v3": 80, "maxvit": 64, "mnasnet0_5": 32,
    "mobilenet_v2": 32, "mobilenet_v3_large": 32, "mobilenet_v3_small": 32, "regnet_x_400mf": 32,
    "regnet_y_400mf": 32, "resnet18": 32, "resnext50_32x4d": 32, "shufflenet_v2_x0_5": 32,
    "shufflenet_v2_x1_0": 32, "squeezenet1_0": 32, "squeezenet1_1": 32, "swin": 64, "swin_v2": 64,
    "vgg11_bn": 32, "vit": 32,
})  # fmt: skip
"""Rows and columns of the image that each network classifies."""

_OPERATORS = ("nms", "qnms")


@lru_cache(maxsize=1)
def _declared(torch: Any) -> Any:
    """Return the library that declares operators without code, as long as it lives."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _OPERATORS:
        library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    return library


def vision(torch: Any) -> Any:
    """Return torchvision's networks, which call no operator of its binary.

    A binary for CUDA does not load beside a PyTorch without it.  Two operators that the package
    refers to when it is imported are then declared, without code.
    """
    try:
        import torchvision  # type: ignore[import-not-found,unused-ignore]
    except RuntimeError:
        _declared(torch)
        import torchvision
    return torchvision.models


def _network(models: Any, name: str) -> Any:
    """Return a network; of the large kinds one with few blocks and channels."""
    if name == "vit":
        return models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=10)
    if name == "maxvit":
        return models.MaxVit((64, 64), 8, 4, [8, 16], [1, 1], 8, 0.1, num_classes=10)
    if name.startswith("swin"):
        of_swin = models.swin_transformer
        second = {
            "block": of_swin.SwinTransformerBlockV2, "downsample_layer": of_swin.PatchMergingV2,
        }  # fmt: skip
        chosen = second if name == "swin_v2" else {}
        return models.SwinTransformer([4, 4], 12, [2, 2], [2, 4], [4, 4], num_classes=10, **chosen)
    has_heads = name in ("googlenet", "inception_v3")
    more = {"init_weights": False, "aux_logits": False} if has_heads else {}
    return models.get_model(name, num_classes=10, **more)


def _drawn(name: str, torch: Any, rng: Rng) -> Drawn:
    network, size = _network(vision(torch), name), _SIZES[name]
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, 0, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
            torch.nn.init.normal_(module.bias, 0, 0.2)
    return network, (floats(torch, rng, 1, 3, size, size),)


def main() -> int:
    """Compare networks as other modules are, and return 1 if one differs."""
    return main_of_modules(cases={name: partial(_drawn, name) for name in _SIZES})


if __name__ == "__main__":
    sys.exit(main())
