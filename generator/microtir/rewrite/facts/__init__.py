"""Facts of a graph that have one derivation for all who ask."""
