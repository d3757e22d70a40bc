"""Losses in ONNX: they have no operators of the graph of their own."""
