"""Graphs into TFLite files."""

from microtir.writers.tflite.builder import OPTIONAL_INPUT, TfliteBuilder
from microtir.writers.tflite.model import int8_instead, tflite_bytes, write_tflite

__all__ = ["OPTIONAL_INPUT", "TfliteBuilder", "int8_instead", "tflite_bytes", "write_tflite"]
