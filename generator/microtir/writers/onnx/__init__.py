"""Graphs into ONNX files, with QuantizeLinear and DequantizeLinear around operators of floats."""

from microtir.writers.onnx.model import floats_instead, onnx_bytes, write_onnx

__all__ = ["floats_instead", "onnx_bytes", "write_onnx"]
