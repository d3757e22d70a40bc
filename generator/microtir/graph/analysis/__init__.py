"""Facts about a graph that hold for every input."""
