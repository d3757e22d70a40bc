"""Read ONNX's attention, and what goes with it, as the functions by which ONNX defines them."""

from __future__ import annotations

from microtir.operators.common.onnx_operands import OnnxReader, by_definition

ONNX_READERS = (
    OnnxReader(
        "Attention",
        by_definition,
        (3, 7),
        (
            "is_causal", "kv_num_heads", "left_window_size", "q_num_heads",
            "qk_matmul_output_mode", "right_window_size", "scale", "softcap", "softmax_precision",
        ),
        outputs=4,
    ),
    OnnxReader(
        "LinearAttention",
        by_definition,
        (3, 6),
        ("chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"),
        outputs=2,
    ),
    OnnxReader(
        "FlexAttention",
        by_definition,
        (3, 3),
        ("prob_mod", "scale", "score_mod", "softmax_precision"),
        domain="ai.onnx.preview",
    ),
    OnnxReader(
        "RotaryEmbedding",
        by_definition,
        (3, 4),
        ("interleaved", "num_heads", "rotary_embedding_dim"),
    ),
    OnnxReader("CausalConvWithState", by_definition, (2, 4), ("activation",), outputs=2),
    OnnxReader("SwiGLU", by_definition, (2, 2), ("alpha",)),
)  # fmt: skip
