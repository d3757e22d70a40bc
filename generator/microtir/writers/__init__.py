"""Graphs into model files that other tools read."""

from microtir.writers.tflite import TfliteBuilder

__all__ = ["TfliteBuilder"]
