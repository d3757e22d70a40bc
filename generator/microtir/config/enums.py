"""Legal values of the options that are a choice: one enum each, spelt as users write them."""

from __future__ import annotations

from microtir.support.spelled import Spelled


class TargetKind(Spelled):
    """The kind of code generated for a target. Every kind that exists can also be the host."""

    C = "c"


class ExecutorKind(Spelled):
    """The way in which the operators of a model are called, one after the other."""

    AOT = "aot"
    GRAPH = "graph"
    DEBUG = "debug"  # graph, with names and hooks


class RuntimeKind(Spelled):
    """The C runtime that the generated code belongs to."""

    CRT = "crt"


class InterfaceApi(Spelled):
    """The C interface an application calls the model through."""

    C = "c"
    PACKED = "packed"


class CallingConvention(Spelled):
    """The way in which arguments reach the entry function of the generated code."""

    UNPACKED = "unpacked"  # one C parameter per tensor
    PACKED = "packed"  # arrays of values and type codes


class Compatibility(Spelled):
    """The C interface of others that is generated beside microtir's own."""

    NONE = "none"
    MICROTVM = "microtvm"


class Annotations(Spelled):
    """The language in which comments of the generated C state what was proven."""

    NONE = "none"
    ACSL = "acsl"


class FaultChecks(Spelled):
    """The damage by which memory a program notices while it runs."""

    NONE = "none"
    START = "start"  # of weights when the application asks, of a state in each run
    LAYERS = "layers"  # also of the weights that a layer reads, in each run before it
    TENSORS = "tensors"  # also of the tensors in the workspace, between layers


class Numerics(Spelled):
    """The reference whose results the generated code reproduces."""

    MODEL = "model"  # what the model was made for: tflite-micro, onnxruntime or PT2E
    TFLM = "tflm"
    TFLITE_REF = "tflite_ref"
    TFLITE_OPT = "tflite_opt"
    ONNXRUNTIME = "onnxruntime"
    PT2E = "pt2e"
    FLOAT = "float"


class Optimize(Spelled):
    """The goal that candidates are ranked by."""

    SPEED = "speed"
    RAM = "ram"
    RAM_LEAST = "ram-least"
    FLASH = "flash"
    BALANCED = "balanced"


class Measure(Spelled):
    """The unit in which the price of a kernel is counted."""

    MODEL = "model"
    INSTRUCTIONS = "instructions"
    CYCLES = "cycles"


class FloatFunctions(Spelled):
    """The form of functions of floats such as exp in the generated code."""

    POLYNOMIALS = "polynomials"
    LIBM = "libm"


class BlockActivations(Spelled):
    """The type of activations that meet weights with a scale for each block."""

    MODEL = "model"  # int8 where the file allows it
    FLOAT32 = "float32"
    INT8 = "int8"


class AttentionCache(Spelled):
    """The type of the keys and values that a model keeps from run to run."""

    MODEL = "model"
    INT8 = "int8"  # with a scale for each head and place


class Placement(Spelled):
    """The way in which buffers are placed in the workspace."""

    GREEDY = "greedy"
    EXACT = "exact"
    OPTIMAL = "optimal"
    GUARDED = "guarded"


class ExternalLibrary(Spelled):
    """Libraries of kernels that microtir knows how to call."""

    CMSIS_NN = "cmsis-nn"  # Arm's, for Cortex-M


class EthosUInvoke(Spelled):
    """The function of Arm's driver that runs a command stream, by its name in C."""

    V3 = "ethosu_invoke_v3"  # from 22.02 on
    V2 = "ethosu_invoke_v2"  # from 21.02 on; it reserves a driver by itself
    PLAIN = "ethosu_invoke"  # from 21.05 on


class FastScratch(Spelled):
    """The owner of the memory for the fast scratch of an NPU."""

    WORKSPACE = "workspace"
    DRIVER = "driver"  # what the application gave to ethosu_init()
