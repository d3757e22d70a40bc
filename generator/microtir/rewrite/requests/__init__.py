"""The graph that a configuration asks for: with more around it, one step of it, or streamed."""
