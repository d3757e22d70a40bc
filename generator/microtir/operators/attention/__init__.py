"""Attention in ONNX: it has no operators of the graph of its own."""
