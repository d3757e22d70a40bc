"""Formal tools over generated C: Frama-C's Eva for whole programs, WP for single functions."""
