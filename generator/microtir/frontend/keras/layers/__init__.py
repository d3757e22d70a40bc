"""Readers of layers, by family."""
