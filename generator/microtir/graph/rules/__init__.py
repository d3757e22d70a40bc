"""Rules about single nodes, for `graph.verify`."""
