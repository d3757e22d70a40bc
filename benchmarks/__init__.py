"""Benchmarks: scripts with recorded results, never assertions on time."""
