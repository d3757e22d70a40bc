"""Everything that makes a graph from a graph, and the facts that this takes."""
