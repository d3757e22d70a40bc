"""Model files into the graph IR, and what can be said about them."""

from microtir.frontend.causes import Cause, causes
from microtir.frontend.inspect import inspect
from microtir.frontend.tflite import check, from_tflite

__all__ = ["Cause", "causes", "check", "from_tflite", "inspect"]
