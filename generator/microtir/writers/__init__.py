"""Graphs into model files that other tools read."""

from microtir.writers.tflite import TfliteBuilder, tflite_bytes, write_tflite

__all__ = ["TfliteBuilder", "tflite_bytes", "write_tflite"]
