"""The same networks through the quantisers of others.

Each is given the float file and the calibration samples of a split, and gives the file that it
makes and that file's answers to the test samples.
"""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.quantise.networks import Network, onnx_file
from benchmarks.quantise.tasks import Array, Split
from benchmarks.quantise.training import module_of
from microtir import frontend
from microtir.quantise.prepare import prepared
from microtir.writers import tflite_bytes

_MOST_ARENA = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs (samples, units) of a quantised network, and its file.

    What makes no file but C says how many bytes of flash that takes, and what chooses the bits of
    layers which share of the weight bytes of int8 is left.
    """

    outputs: Array
    file: bytes | None
    flash: int = 0
    weights: float | None = None


def answers_in_floats(network: Network, weights: Sequence[Array], x: Array) -> Array:
    """Return what onnxruntime computes of a float network."""
    import onnxruntime

    session = onnxruntime.InferenceSession(onnx_file(network, weights))
    return np.asarray(session.run(None, {"x": x})[0])


def _onnxruntime(method: str, network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise with onnxruntime's static quantiser and one of its calibrators."""
    import onnxruntime
    from onnxruntime import quantization as ort
    from onnxruntime.quantization import shape_inference

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "float.onnx").write_bytes(onnx_file(network, weights))
        # Its documentation asks for this step first: it folds normalisations.
        shape_inference.quant_pre_process(folder / "float.onnx", folder / "prepared.onnx")
        ort.quantize_static(
            folder / "prepared.onnx",
            folder / "int8.onnx",
            _Samples(split.calibration),
            quant_format=ort.QuantFormat.QDQ,
            per_channel=True,
            activation_type=ort.QuantType.QInt8,
            weight_type=ort.QuantType.QInt8,
            calibrate_method=ort.CalibrationMethod[method],
        )
        file = (folder / "int8.onnx").read_bytes()
    session = onnxruntime.InferenceSession(file)
    return Answer(np.asarray(session.run(None, {"x": split.test_x})[0]), file)


class _Samples:
    """The samples one by one, as onnxruntime's calibrators ask for them."""

    def __init__(self, x: Array) -> None:
        self._rest = iter(x[:, None])

    def get_next(self) -> dict[str, Array] | None:
        """Return the next sample; None behind the last one."""
        sample = next(self._rest, None)
        return None if sample is None else {"x": sample}


def _ai_edge(network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise the float network as a TFLite file with ai-edge-quantizer, and run it in LiteRT."""
    litert: Any = importlib.import_module("ai_edge_litert.interpreter")
    quantizer: Any = importlib.import_module("ai_edge_quantizer.quantizer")
    recipe: Any = importlib.import_module("ai_edge_quantizer.recipe")

    graph = frontend.read_model(onnx_file(network, weights)).graph
    assert graph is not None
    # Normalisations are folded and activations fused, as TensorFlow's converter would do it.
    given = tflite_bytes(prepared(graph))
    reader = litert.Interpreter(model_content=given)
    (signature, ports), *_ = reader.get_signature_list().items()
    (port,) = ports["inputs"]
    shape = graph.arguments[0].shape

    def samples(x: Array) -> Iterator[dict[str, Array]]:
        yield from ({port: sample.reshape(shape)} for sample in x)

    tool = quantizer.Quantizer(given, recipe.static_wi8_ai8())
    file = bytes(
        tool.quantize(tool.calibrate({signature: list(samples(split.calibration))})).quantized_model
    )
    # XNNPACK, which LiteRT would use, refuses some of these files.
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    reader = litert.Interpreter(model_content=file, experimental_op_resolver_type=plain)
    runner = reader.get_signature_runner(signature)
    ((_, before),) = runner.get_input_details().items()
    ((result, after),) = runner.get_output_details().items()
    outputs = []
    for sample in samples(split.test_x):
        stored = runner(**{port: _stored(sample[port], *before["quantization"])})[result]
        scale, zero_point = after["quantization"]
        outputs.append((stored.reshape(-1).astype(np.float32) - zero_point) * scale)
    return Answer(np.stack(outputs), file)


def _stored(x: Array, scale: float, zero_point: int) -> Array:
    return np.asarray(np.clip(np.round(x / scale) + zero_point, -128, 127).astype(np.int8))


def _bakenn(network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise with BakeNN, which takes a module of PyTorch, and run its C on this machine."""
    bakenn: Any = importlib.import_module("bakenn")
    torch: Any = importlib.import_module("torch")

    samples = [torch.tensor(sample[None]) for sample in split.calibration]
    is_image = len(network.task.shape) > 1
    x = split.test_x.transpose(0, 2, 3, 1) if is_image else split.test_x
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = module_of(network, weights)
        plan = bakenn.compile_torch_ptq(model, samples[0], samples, folder, name="net").plan
        library = folder / "net.so"
        subprocess.run(
            ["gcc", "-O2", "-shared", "-fPIC", "-o", library, *folder.glob("*.c"), "-lm"],
            check=True,
        )
        infer = ctypes.CDLL(str(library)).bknn_net_infer
        stored = [bakenn.quantize_input(plan, sample[None]) for sample in x]
        arena = np.zeros(_MOST_ARENA, np.uint8)
        aligned = arena.ctypes.data + -arena.ctypes.data % 16
        outputs = []
        for sample in stored:
            result = np.zeros((1, network.units), np.int8)
            pointers = aligned, sample.ctypes.data, result.ctypes.data
            infer(*map(ctypes.c_void_p, pointers))
            outputs.append(bakenn.dequantize_output(plan, result))
        flash = _flash_of(tuple(folder.glob("*.c")))
    return Answer(np.concatenate(outputs), None, flash)


def _flash_of(sources: Sequence[Path]) -> int:
    """Return the bytes of code and constants that sources become on a Cortex-M4."""
    objects = [path.with_suffix(".o") for path in sources]
    for path, made in zip(sources, objects, strict=True):
        flags = "-mcpu=cortex-m4", "-mthumb", "-O2", "-ffunction-sections"
        subprocess.run(["arm-none-eabi-gcc", *flags, "-c", path, "-o", made], check=True)
    command = ["arm-none-eabi-size", "-t", *map(str, objects)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(listed.splitlines()[-1].split()[0])


Rival = Callable[[Network, Sequence[Array], Split], Answer]

RIVALS: Mapping[str, Rival] = MappingProxyType(
    {
        **{
            f"onnxruntime {m}": partial(_onnxruntime, m)
            for m in ("MinMax", "Entropy", "Percentile")
        },
        "ai-edge-quantizer": _ai_edge,
        "BakeNN": _bakenn,
    }
)
"""The quantisers by name."""
