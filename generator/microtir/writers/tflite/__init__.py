"""Graphs into TFLite files."""

from microtir.writers.tflite.builder import OPTIONAL_INPUT, TfliteBuilder

__all__ = ["OPTIONAL_INPUT", "TfliteBuilder"]
