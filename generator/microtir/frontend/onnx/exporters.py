"""Exporters to ONNX, and which of their options keeps a problem of a model from coming about."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.errors import ExportProblem, Fix, MicrotirError, UnsupportedModelError

_FIXED = "an example input of the extents that are wanted, without dynamic_axes and dynamic_shapes"
_EIGHT_BITS = "activation_type=QuantType.QInt8, weight_type=QuantType.QInt8"
_EVERY_EXTENT = "[1,16] after each name in --inputs, with every extent of it"


@dataclass(frozen=True, slots=True)
class Exporter:
    """A program that writes models in ONNX.

    Attributes:
        again: what is done once more, the beginning of a fix.
        options: by the problem that each removes; {value} is what the problem says of it.
    """

    again: str
    options: Mapping[ExportProblem, str]


EXPORTERS: Mapping[str, Exporter] = MappingProxyType({
    "pytorch": Exporter("export again with torch.onnx.export", MappingProxyType({
        ExportProblem.OLD_OPERATOR_SET: "opset_version={value} or later",
        ExportProblem.OPEN_EXTENT: _FIXED,
        ExportProblem.COMPUTED_SHAPE: f"dynamo=True, and {_FIXED}",
        ExportProblem.TRAINING_MODE: "model.eval() before it, and no argument `training`",
        ExportProblem.OTHER_FLOATS: "model.float() before it",
        ExportProblem.OWN_DOMAIN: "dynamo=True, and no custom operators in the model",
    })),
    "tf2onnx": Exporter("export again with tf2onnx", MappingProxyType({
        ExportProblem.OLD_OPERATOR_SET: "--opset {value} or later",
        ExportProblem.OPEN_EXTENT: _EVERY_EXTENT,
        ExportProblem.COMPUTED_SHAPE: _EVERY_EXTENT,
        ExportProblem.TRAINING_MODE: "the model called with training=False",
        ExportProblem.OWN_DOMAIN: "neither --custom-ops nor --extra_opset",
    })),
    "skl2onnx": Exporter("export again with skl2onnx", MappingProxyType({
        ExportProblem.OLD_OPERATOR_SET: "target_opset={value} or later",
        ExportProblem.OPEN_EXTENT:
            'initial_types=[("{value}", FloatTensorType([1, 16]))], with every extent',
        ExportProblem.STRINGS:
            "a model trained on integers: classes by sklearn.preprocessing.LabelEncoder, categories"
            " by OrdinalEncoder; the application has their names",
        ExportProblem.MAPS: 'options={"zipmap": False}',
        ExportProblem.TREES_OF_DOUBLES:
            'initial_types=[("x", FloatTensorType([1, 16]))], with every extent',
    })),
    "onnx.quantize": Exporter("quantise again with onnxruntime.quantization", MappingProxyType({
        ExportProblem.OLD_OPERATOR_SET:
            "a model in floats that was exported with operator set {value} or later",
        ExportProblem.OPEN_EXTENT:
            "a model in floats of fixed extents"
            " (python -m onnxruntime.tools.make_dynamic_shape_fixed)",
        ExportProblem.OTHER_FLOATS: _EIGHT_BITS,
        ExportProblem.FUSED_OPERATOR: "quant_format=QuantFormat.QDQ",
        ExportProblem.DYNAMIC_QUANTISATION:
            "quantize_static with quant_format=QuantFormat.QDQ, instead of quantize_dynamic",
        ExportProblem.FEW_BITS: _EIGHT_BITS,
    })),
})  # fmt: skip
"""Exporters by the name of the producer that a file states."""


def with_exporters_option(problem: MicrotirError, producer: str) -> MicrotirError:
    """Return a problem whose fix names the option of the exporter that wrote the file.

    Where microtir has a flag of its own against the problem, the option is the second choice.
    """
    exporter = EXPORTERS.get(producer)
    if exporter is None or not isinstance(problem, UnsupportedModelError):
        return problem
    option = None if problem.export is None else exporter.options.get(problem.export)
    if option is None:
        return problem
    text = f"{exporter.again}: {option.replace('{value}', problem.export_value)}"
    named, own = copy.copy(problem), problem.fix
    if isinstance(own, Fix):
        named.fix = Fix(f"{own}; or {text}", f"{own.command}; or {text}")
    else:
        named.fix = text
    return named
