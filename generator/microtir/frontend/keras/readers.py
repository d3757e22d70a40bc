"""The table of readers of layers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.frontend.keras.layer import KerasReader
from microtir.frontend.keras.layers.activations import KERAS_READERS as ACTIVATIONS
from microtir.frontend.keras.layers.attention import KERAS_READERS as ATTENTION
from microtir.frontend.keras.layers.convolution import KERAS_READERS as CONVOLUTION
from microtir.frontend.keras.layers.core import KERAS_READERS as CORE
from microtir.frontend.keras.layers.merging import KERAS_READERS as MERGING
from microtir.frontend.keras.layers.normalization import KERAS_READERS as NORMALIZATION
from microtir.frontend.keras.layers.pooling import KERAS_READERS as POOLING
from microtir.frontend.keras.layers.preprocessing import KERAS_READERS as PREPROCESSING
from microtir.frontend.keras.layers.recurrent import KERAS_READERS as RECURRENT
from microtir.frontend.keras.layers.resampling import KERAS_READERS as RESAMPLING

KERAS_READERS: Mapping[str, KerasReader] = MappingProxyType({
    reader.name: reader
    for family in (
        CORE, ACTIVATIONS, CONVOLUTION, POOLING, NORMALIZATION, MERGING, RECURRENT, ATTENTION,
        RESAMPLING, PREPROCESSING,
    )
    for reader in family
})  # fmt: skip
"""Readers by the name of the class."""
