"""The same networks through the quantisers of others.

Each is given the float file and the calibration samples of a split, and gives the file that it
makes and that file's answers to the test samples.
"""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.quantise.converter import channels_last, converted
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


def _ai_edge(update: str, network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise the float network as a TFLite file with ai-edge-quantizer, and run it in LiteRT.

    Args:
        update: the function of its `qsv_utils` that joins the extremes of one sample with those of
            the samples before it.
        network: of which the file is.
        weights: of the network.
        split: whose samples calibrate and test.
    """
    calibrators: Any = importlib.import_module("ai_edge_quantizer.calibrator")
    quantizer: Any = importlib.import_module("ai_edge_quantizer.quantizer")
    managers: Any = importlib.import_module("ai_edge_quantizer.recipe_manager")
    recipes: Any = importlib.import_module("ai_edge_quantizer.recipe")
    utils: Any = importlib.import_module("ai_edge_quantizer.utils.qsv_utils")

    graph = frontend.read_model(onnx_file(network, weights)).graph
    assert graph is not None
    # Normalisations are folded and activations fused, as TensorFlow's converter would do it.
    floats = tflite_bytes(prepared(graph))
    ((signature, ports),) = _reader(floats).get_signature_list().items()
    (port,) = ports["inputs"]
    shape = graph.arguments[0].shape
    samples = [{port: sample.reshape(shape)} for sample in split.calibration]
    recipe = [*recipes.static_wi8_ai8(), *_FLOAT_PORTS]
    manager = managers.RecipeManager()
    manager.load_quantization_recipe(recipe)
    calibrator = calibrators.Calibrator(floats, qsv_update_func=getattr(utils, update))
    calibrator.calibrate({signature: samples}, manager)
    tool = quantizer.Quantizer(floats, recipe)
    file = bytes(tool.quantize(calibrator.get_model_qsvs()).quantized_model)
    return Answer(_answers_of(file, split.test_x), file)


_FLOAT_PORTS: tuple[dict[str, Any], ...] = tuple(
    {"regex": ".*", "operation": port, "algorithm_key": "no_quantize", "op_config": {}}
    for port in ("INPUT", "OUTPUT")
)
"""Rows of a recipe of ai-edge-quantizer: the files of all quantisers take and give floats."""


def _reader(file: bytes) -> Any:
    """Return LiteRT's interpreter of a file; XNNPACK, which it would use, refuses some."""
    litert: Any = importlib.import_module("ai_edge_litert.interpreter")
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return litert.Interpreter(model_content=file, experimental_op_resolver_type=plain)


def _answers_of(file: bytes, x: Array) -> Array:
    """Return the outputs of a file with float ports, sample by sample."""
    reader = _reader(file)
    reader.allocate_tensors()
    (port,), (result,) = reader.get_input_details(), reader.get_output_details()
    outputs = []
    for sample in x:
        reader.set_tensor(port["index"], sample.reshape(port["shape"]))
        reader.invoke()
        outputs.append(reader.get_tensor(result["index"]).reshape(-1))
    return np.stack(outputs)


def _tensorflow(network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise with TensorFlow's converter, and run the file in LiteRT."""
    file = converted(network, weights, split.calibration)
    return Answer(_answers_of(file, channels_last(split.test_x)), file)


def _bakenn(network: Network, weights: Sequence[Array], split: Split) -> Answer:
    """Quantise with BakeNN, which takes a module of PyTorch, and run its C on this machine."""
    bakenn: Any = importlib.import_module("bakenn")
    torch: Any = importlib.import_module("torch")

    samples = [torch.tensor(sample[None]) for sample in split.calibration]
    x = channels_last(split.test_x)
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
        "ai-edge-quantizer": partial(_ai_edge, "moving_average_update"),
        "ai-edge-quantizer MinMax": partial(_ai_edge, "min_max_update"),
        "TensorFlow": _tensorflow,
        "BakeNN": _bakenn,
    }
)
"""The quantisers by name."""
