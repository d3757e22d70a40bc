"""Words for operators and arguments of PyTorch that are not supported, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.frontend.support import Advice
from microtir.graph.names import brief

_FLOATS = "convert the model to float32 before it is exported: model.float()"

TORCH_ADVICE = Advice(
    scales="quantise the model again with PT2E, symmetric weights and one scale for each tensor",
    sixteen_bits=_FLOATS,
    unsigned_bytes=_FLOATS,
    types=_FLOATS,
)

_RANDOM = "a compiled model gives the same result every time: call model.eval() before the export"
_DATA = "compute it in the application: the number of elements of its result depends on data"

_PADDED = (
    "pass padded sequences to the layer: leave out pack_padded_sequence and pad_packed_sequence"
)
_BOXES = "end the model before torchvision's operator, and compute it in the application"
_WINDOWS = "use MaxPool2d or AdaptiveMaxPool2d: its windows are random"
_STATIC = "quantise the model statically: is_dynamic=False in the quantiser's configuration"

_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "_pack_padded_sequence": _PADDED,
        "_pad_packed_sequence": _PADDED,
        "bernoulli": _RANDOM,
        "multinomial": _RANDOM,
        "native_dropout": _RANDOM,
        "normal": _RANDOM,
        "rand": _RANDOM,
        "rand_like": _RANDOM,
        "randint": _RANDOM,
        "randn": _RANDOM,
        "randn_like": _RANDOM,
        "randperm": _RANDOM,
        "choose_qparams": _STATIC,
        "choose_qparams_affine": _STATIC,
        "choose_qparams_per_token": _STATIC,
        "choose_qparams_per_token_asymmetric": _STATIC,
        "choose_qparams_symmetric": _STATIC,
        "deform_conv2d": _BOXES,
        "dequantize_per_channel_group": _STATIC,
        "dequantize_per_token": _STATIC,
        "fractional_max_pool2d": _WINDOWS,
        "fractional_max_pool3d": _WINDOWS,
        "item": _DATA,
        "lgamma": "compute it in the application, or look it up in a table",
        "masked_select": "multiply by the mask, or " + _DATA,
        "nms": _BOXES,
        "nonzero": _DATA,
        "quantize_per_channel_group": _STATIC,
        "quantize_per_token": _STATIC,
        "roi_align": _BOXES,
        "unique": _DATA,
    }
)


def unknown_operator(target: str, where: str) -> UnsupportedModelError:
    """Return the error for an operator that microtir does not read."""
    domain, _, rest = target.partition(".")
    name = rest.partition(".")[0].rstrip("_")
    fix = _ADVICE.get(name, "replace the layer, or compute it in the application")
    is_own = name not in _ADVICE and domain not in (
        "aten",
        "quantized_decomposed",
        "torchao",
        "higher_order",
    )
    if is_own:
        fix = "replace the operator with operators of torch before the export"
    return UnsupportedModelError(
        f"the operator {brief(target)} is not supported",
        where=where,
        legal="the operators that `microtir operators --torch` lists",
        fix=fix,
        export=ExportProblem.TRAINING_MODE if fix is _RANDOM else None,
    )
