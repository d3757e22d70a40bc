"""Quantisers of PT2E that the journeys draw: XNNPACK's, that for x86, one that takes it all."""

from __future__ import annotations

from typing import Any

from tests.journeys.keras_cases import Rng
from tests.journeys.torch_layers import flip

_EVERYWHERE = (
    "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "linear", "matmul", "bmm", "add",
    "mul", "sub", "relu", "sigmoid", "tanh", "elu", "leaky_relu", "gelu", "silu", "hardswish",
    "softplus", "mish", "softmax", "mean", "cat", "avg_pool2d", "adaptive_avg_pool2d", "max_pool2d",
)  # fmt: skip


def quantiser(torch: Any, rng: Rng) -> Any:
    """Return a drawn quantiser."""
    kind = int(rng.integers(4))
    if kind < 2:
        from torchao.testing.pt2e._xnnpack_quantizer import (  # type: ignore[import-not-found,unused-ignore]
            XNNPACKQuantizer,
            get_symmetric_quantization_config,
        )

        settings = get_symmetric_quantization_config(is_per_channel=kind == 0)
        return XNNPACKQuantizer().set_global(settings)
    if kind == 2:
        from torchao.quantization.pt2e.quantizer import (  # type: ignore[import-not-found,unused-ignore]
            x86_inductor_quantizer as x86,
        )

        settings = x86.get_default_x86_inductor_quantization_config()
        return x86.X86InductorQuantizer().set_global(settings)
    return _everywhere(torch, is_unsigned=flip(rng))


def _everywhere(torch: Any, *, is_unsigned: bool) -> Any:
    """Return a quantiser of all inputs and outputs of all operators that it knows."""
    from torchao.quantization.pt2e import (  # type: ignore[import-not-found,unused-ignore]
        HistogramObserver,
        MinMaxObserver,
    )
    from torchao.quantization.pt2e.quantizer import (
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
    )

    low = 0 if is_unsigned else -128
    of_data = QuantizationSpec(
        dtype=torch.uint8 if is_unsigned else torch.int8, quant_min=low, quant_max=low + 255,
        qscheme=torch.per_tensor_affine, is_dynamic=False,
        observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12),
    )  # fmt: skip
    of_weights = QuantizationSpec(
        dtype=torch.int8, quant_min=-127, quant_max=127, qscheme=torch.per_tensor_symmetric,
        is_dynamic=False, observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-12),
    )  # fmt: skip

    class Everywhere(Quantizer):  # type: ignore[misc,unused-ignore]
        """Annotates each operator by itself."""

        def annotate(self, model: Any) -> Any:
            for node in model.graph.nodes:
                name = str(getattr(node.target, "__name__", "")).partition(".")[0]
                if node.op != "call_function" or name not in _EVERYWHERE:
                    continue
                operands = [x for x in node.all_input_nodes if _is_float(torch, x)]
                specs = {x: of_weights if x.op == "get_attr" else of_data for x in operands}
                if name.startswith("conv") or name == "linear":
                    specs = {x: specs[x] for x in operands[:2]}
                node.meta["quantization_annotation"] = QuantizationAnnotation(
                    input_qspec_map=specs, output_qspec=of_data, _annotated=True
                )
            return model

        def validate(self, model: Any) -> None:
            """Take every model."""

    return Everywhere()


def _is_float(torch: Any, node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype is torch.float32
