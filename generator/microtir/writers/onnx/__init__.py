"""Graphs into ONNX files, with QuantizeLinear and DequantizeLinear around operators of floats."""

from microtir.writers.onnx.model import onnx_bytes, write_onnx

__all__ = ["onnx_bytes", "write_onnx"]
