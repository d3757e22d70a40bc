"""The table of readers, from the records of the operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.operators.common.torch_operands import TorchReader
from microtir.operators.torch_readers import TORCH_READERS

READERS: Mapping[str, TorchReader] = MappingProxyType(
    {reader.name: reader for reader in TORCH_READERS}
)
"""Readers by the name of the operator and its overload."""
