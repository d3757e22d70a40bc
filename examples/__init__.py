"""Worked examples of microtir."""
