"""Kernels for Arm cores with the DSP extension (Cortex-M4, M7, M33 and later).

Each file is one operator family: which nodes it accepts, what it costs, its loops.  The loops are
TIR; what they call are micro-kernels (`kernels/`), whose meaning is TIR, too, and whose assembly is
a template.
"""
