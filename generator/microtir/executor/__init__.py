"""The entry function as TIR."""
