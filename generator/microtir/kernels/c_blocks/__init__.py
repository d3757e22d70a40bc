"""Kernels for any CPU that keep a block of sums in registers.

The register blocks are micro-kernels without assembly: loops of TIR, shaped so that a
compiler keeps every sum in a register and each load feeds several products.  Rows, pixels and
borders are loops around them, which is why these kernels stream row by row like all others.  int8
and float32 share everything but what turns a sum into an output (`finish`).
"""
