"""Words for layers that are not read, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.errors import UnsupportedModelError
from microtir.frontend.keras.config import LayerRecord
from microtir.graph.names import brief

_CODE = (
    "write it with layers of Keras (Rescaling, Reshape, Permute, Activation, Add, Multiply, …) or"
    " functions of keras.ops, or compute it in the application"
)
_TEXT = "look up texts in the application, and pass their numbers to the model"
_IMAGE = "adjust images in the application"
_SIGNAL = "compute the spectrum in the application, and pass its frames to the model"
_CROP = "use CenterCrop"
_REVERSIBLE = "use two layers: Embedding, and Dense for the projection to the vocabulary"
_OTHER = "replace the layer, or compute it in the application"

_CODE_LAYERS = ("Lambda", "TFSMLayer", "JaxLayer", "FlaxLayer", "TorchModuleWrapper",
                "TFOpLambda", "SlicingOpLambda")  # fmt: skip
_TEXT_LAYERS = ("StringLookup", "TextVectorization", "Hashing", "HashedCrossing", "IntegerLookup")
_IMAGE_LAYERS = ("AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization", "Equalization",
                 "Solarization")  # fmt: skip
_SIGNAL_LAYERS = ("MelSpectrogram", "STFTSpectrogram")

REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({
    **dict.fromkeys(_CODE_LAYERS, ("it holds code, which is never run", _CODE)),
    **dict.fromkeys(_TEXT_LAYERS, ("it looks up values in a table, or hashes them", _TEXT)),
    **dict.fromkeys(_IMAGE_LAYERS, ("it depends on the whole range of each image", _IMAGE)),
    **dict.fromkeys(_SIGNAL_LAYERS, ("it computes a spectrum", _SIGNAL)),
    "RandomCrop": ("it changes the size of images while training, and not at inference", _CROP),
    "MaxNumBoundingBoxes": ("it works on boxes, which are not tensors of a model", _OTHER),
    "ReversibleEmbedding": ("it computes one of two functions, depending on the call", _REVERSIBLE),
})  # fmt: skip
"""Reasons for which layers of Keras are refused, and what to do, by their classes."""

_FLOATS = ("float32", "float16", "bfloat16", "float64", "mixed_float16", "mixed_bfloat16")


def unknown_layer(record: LayerRecord, where: str) -> UnsupportedModelError:
    """Return the error for a layer that is not read."""
    if record.is_of_user:
        title = record.registered or record.kind
        return UnsupportedModelError(
            f"the class {brief(title)!r} is not a layer of Keras: it is code, which is never run",
            where=where, legal="layers of Keras", fix=_CODE,
        )  # fmt: skip
    reason, fix = REFUSED.get(record.kind, ("it is not supported", _OTHER))
    what = "the function" if record.is_operation else "the layer"
    return UnsupportedModelError(
        f"{what} {brief(record.kind)}: {reason}", where=where,
        legal="the layers that docs/from-keras.md lists", fix=fix,
    )  # fmt: skip


_AT_TRAINING = ("dropout", "recurrent_dropout", "momentum", "renorm", "renorm_clipping",
                "renorm_momentum", "synchronized", "l1", "l2", "seed", "trainable",
                "unit_forget_bias")  # fmt: skip
_OF_SHAPES = ("batch_input_shape", "batch_shape", "input_dim", "input_length", "output_dim",
              "output_shape", "query_shape", "key_shape", "value_shape", "num_bins")  # fmt: skip
_OF_FORM = ("name", "dtype", "unroll", "implementation", "epsilon", "fill_mode", "fill_value",
            "softmax_robust_masking", "quantization_config")  # fmt: skip
_WITHOUT_EFFECT = frozenset({*_AT_TRAINING, *_OF_SHAPES, *_OF_FORM})
"""Fields that change nothing at inference, follow from others, or are checked elsewhere."""

_OF_WEIGHTS = ("_initializer", "_regularizer", "_constraint")


def check_fields(record: LayerRecord, fields: Sequence[str] | None, where: str) -> None:
    """Refuse a configuration that asks for what no reader looks at.

    Args:
        record: of the layer.
        fields: that its reader looks at; None if it computes the same whatever they are.
        where: the layer in words.

    Raises:
        UnsupportedModelError: a field that nothing is known of is set.
    """
    if fields is None:
        return
    known = _WITHOUT_EFFECT.union(fields)
    unknown = [
        name
        for name, value in record.config.items()
        if name not in known and not name.endswith(_OF_WEIGHTS) and value not in (None, False)
    ]
    for name in unknown[:1]:
        raise UnsupportedModelError(
            f"its field {brief(repr(name))} is {brief(repr(record.config[name]))}",
            where=where,
            legal=f"{record.kind} with {', '.join(fields) or 'no fields'}",
            fix="build the layer without it, or replace the layer",
        )


def check_policy(record: LayerRecord, where: str) -> None:
    """Refuse layers whose weights Keras has quantised.

    Raises:
        UnsupportedModelError: the policy of a layer is none of floats.
    """
    policy = record.config.get("dtype")
    name = policy
    if isinstance(policy, dict):
        config = policy.get("config")
        name = config.get("name") if isinstance(config, dict) else policy.get("class_name")
    is_other = isinstance(name, str) and ("_from_" in name or "float8" in name)
    if is_other or record.config.get("quantization_config") is not None:
        raise UnsupportedModelError(
            f"its weights are quantised by Keras (dtype policy {brief(str(name))!r})", where=where,
            legal=", ".join(_FLOATS),
            fix="save the model as it was before model.quantize, and quantise it with microtir",
        )  # fmt: skip
