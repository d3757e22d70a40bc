"""Model files into the graph IR."""

from microtir.frontend.tflite import check, from_tflite

__all__ = ["check", "from_tflite"]
