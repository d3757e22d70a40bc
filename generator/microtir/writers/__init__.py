"""Graphs into model files that other tools read."""

from microtir.writers.onnx import onnx_bytes, write_onnx
from microtir.writers.tflite import TfliteBuilder, tflite_bytes, write_tflite

__all__ = ["TfliteBuilder", "onnx_bytes", "tflite_bytes", "write_onnx", "write_tflite"]
