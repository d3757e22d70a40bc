"""Kernels for Arm cores with Helium, the M-profile vector extension (Cortex-M52, M55, M85).

As in `arm_dsp`, each file is one operator family whose loops are TIR around micro-kernels.  What a
family here does not accept falls to that of `arm_dsp`, since no core has vectors without DSP.
"""
