"""Read attention: ONNX's as functions of other operators, onnxruntime's over a cache."""

from __future__ import annotations

from microtir.operators.attention import onnx_cache, onnx_rotary
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxReader, by_definition

ONNX_READERS = (
    OnnxReader(
        "Attention",
        onnx_cache.attention,
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
        onnx_rotary.rotary_embedding,
        (3, 4),
        ("interleaved", "num_heads", "rotary_embedding_dim"),
    ),
    OnnxReader(
        "RotaryEmbedding",
        onnx_rotary.microsoft_rotary_embedding,
        (4, 4),
        ("interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"),
        domain=MICROSOFT,
    ),
    OnnxReader(
        "GroupQueryAttention",
        onnx_cache.grouped_query_attention,
        (7, 17),
        (
            "causal", "do_rotary", "k_norm_epsilon", "k_quant_type", "kv_cache_bit_width",
            "kv_num_heads", "local_window_size", "num_heads", "q_norm_epsilon", "qk_norm_epsilon",
            "qk_output", "rotary_interleaved", "scale", "sliding_window_cache", "smooth_softmax",
            "softcap", "v_quant_type",
        ),
        outputs=3,
        domain=MICROSOFT,
    ),
    OnnxReader("CausalConvWithState", by_definition, (2, 4), ("activation",), outputs=2),
    OnnxReader("SwiGLU", by_definition, (2, 2), ("alpha",)),
)  # fmt: skip
