"""Makes model files: for tests, examples and benchmarks, and for who tries an operator out."""
