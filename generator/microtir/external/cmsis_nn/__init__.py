"""CMSIS-NN, Arm's kernels for Cortex-M: int8 layers, bit-exact with TFLite's reference."""

from microtir.external.cmsis_nn.library import cmsis_nn

__all__ = ["cmsis_nn"]
