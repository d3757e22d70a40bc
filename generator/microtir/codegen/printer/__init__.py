"""Prints TIR as C: expressions, statements, functions, and the templates that they stand in."""
