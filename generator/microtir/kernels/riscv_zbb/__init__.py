"""RISC-V with Zbb: the blocks in plain C, in the form that its clamps without branches need."""
