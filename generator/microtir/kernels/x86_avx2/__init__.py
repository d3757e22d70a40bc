"""Kernels for CPUs with wide vectors: channels in lanes, weights in panels of eight channels.

The bodies are intrinsics for AVX2 and, where the compiler has it, VNNI; every other compiler and
CPU gets the portable twin of the same kernel.
"""
