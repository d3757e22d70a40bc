"""The table of readers, from the records of the operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.operators.common.onnx_operands import OnnxReader
from microtir.operators.onnx_readers import ONNX_READERS

READERS: Mapping[tuple[str, str], OnnxReader] = MappingProxyType(
    {(reader.domain, reader.name): reader for reader in ONNX_READERS}
)
"""Readers by domain and name of the operator; ONNX's own domain is empty."""
