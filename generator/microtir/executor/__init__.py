"""Stage 8: the entry function as TIR."""
