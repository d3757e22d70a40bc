"""Write the trained sentences model as ONNX: a token a run, with weights of 8 or of 4 bits.

    python -m examples.sentences.export

Products are com.microsoft's MatMulNBits, with a scale for each 32 weights; attention is its
GroupQueryAttention, whose cache comes in as `past.N.key` and `past.N.value` and goes out as
`present.N.key` and `present.N.value`; the embedding is a table of int8.  The figures are measured
with onnxruntime on lines that training did not see.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from examples.sentences.corpus import lines, split
from examples.sentences.network import EPSILON, SHAPE, Array, Shape, rotary_tables
from examples.sentences.train import WEIGHTS_FILE

FOLDER = Path(__file__).parent
METRICS = "metrics.json"
BITS = (8, 4)
BLOCK = 32
OPSET = 23
IR_VERSION = 10
MICROSOFT = "com.microsoft"


def model_name(bits: int) -> str:
    """Return the name of the file of a model."""
    return f"sentences_int{bits}.onnx"


def load_weights(path: Path = WEIGHTS_FILE) -> dict[str, Array]:
    """Return the trained parameters as float32."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


def in_blocks(weights: Array, bits: int) -> tuple[npt.NDArray[np.uint8], Array]:
    """Return weights (N, K) as packed integers (N, blocks, bytes), and a scale for each block.

    The zero point is the middle of the range; of some scales that clip the largest weights more or
    less, that with the least sum of squared errors is taken.
    """
    middle, top = 1 << (bits - 1), (1 << bits) - 1
    blocks = weights.reshape(len(weights), -1, BLOCK)
    largest = np.abs(blocks).max(axis=-1, keepdims=True) + 1e-9
    best = np.full((*blocks.shape[:2], 1), np.inf)
    stored, scales = np.zeros(blocks.shape, np.uint8), np.ones((*blocks.shape[:2], 1), np.float32)
    for clipped in np.linspace(0.7, 1.0, 13):
        scale = (largest * clipped / (middle - 1)).astype(np.float32)
        tried = np.clip(np.round(blocks / scale) + middle, 0, top)
        error = np.square((tried - middle) * scale - blocks).sum(axis=-1, keepdims=True)
        is_better = error < best
        best = np.where(is_better, error, best)
        stored = np.where(is_better, tried, stored).astype(np.uint8)
        scales = np.where(is_better, scale, scales)
    if bits == 4:
        return np.asarray(stored[..., 0::2] | stored[..., 1::2] << 4, np.uint8), scales[..., 0]
    return stored, scales[..., 0]


@dataclass
class _Writer:
    """Collects the nodes and constants of a model."""

    bits: int
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def node(self, operator: str, *inputs: str, to: str, domain: str = "", **more: Any) -> str:
        """Add a node with one output, and return that."""
        self.nodes.append(helper.make_node(operator, inputs, [to], name=to, domain=domain, **more))
        return to

    def constant(self, name: str, values: npt.NDArray[Any]) -> str:
        """Add a constant, and return its name."""
        self.constants[name] = values
        return name

    def norm(self, x: str, name: str, gain: Array, to: str) -> str:
        """Add a normalisation by the root of the mean square."""
        given = self.constant(name, gain)
        return self.node("RMSNormalization", x, given, to=to, axis=-1, epsilon=EPSILON)

    def product(self, x: str, name: str, weights: Array, to: str) -> str:
        """Add a product with the transpose of weights."""
        stored, scales = in_blocks(weights, self.bits)
        channels, depth = weights.shape
        given = (self.constant(name, stored), self.constant(f"{name}/scales", scales))
        return self.node(
            "MatMulNBits", x, *given, to=to, domain=MICROSOFT,
            K=depth, N=channels, bits=self.bits, block_size=BLOCK,
        )  # fmt: skip


def _embedded(writer: _Writer, table: Array) -> str:
    """Add the row of the token, which a table of int8 holds."""
    scale = np.float32(np.abs(table).max() / 127)
    writer.constant("embedding", np.round(table / scale).astype(np.int8))
    writer.constant("embedding/scale", np.array(scale))
    stored = writer.node("Gather", "embedding", "token", to="stored")
    return writer.node("DequantizeLinear", stored, "embedding/scale", to="embedded")


def _block(writer: _Writer, x: str, block: int, weights: Mapping[str, Array], shape: Shape) -> str:
    """Add a block: an attention and a SwiGLU."""

    def product(x: str, name: str) -> str:
        return writer.product(x, f"{block}/{name}", weights[f"{block}/{name}"], f"{name}.{block}")

    name = f"{block}/attention_norm"
    rows = writer.norm(x, name, weights[name], f"attention_norm.{block}")
    attended = f"attended.{block}"
    writer.nodes.append(
        helper.make_node(
            "GroupQueryAttention",
            [
                *(product(rows, name) for name in ("query", "key", "value")),
                f"past.{block}.key",
                f"past.{block}.value",
                "place",
                "length",
                "cosines",
                "sines",
            ],
            [attended, f"present.{block}.key", f"present.{block}.value"],
            name=attended,
            domain=MICROSOFT,
            num_heads=shape.heads,
            kv_num_heads=shape.groups,
            do_rotary=1,
        )
    )
    x = writer.node("Add", x, product(attended, "output"), to=f"with_attention.{block}")
    name = f"{block}/swiglu_norm"
    rows = writer.norm(x, name, weights[name], f"swiglu_norm.{block}")
    gate, up = product(rows, "gate"), product(rows, "up")
    share = writer.node("Sigmoid", gate, to=f"share.{block}")
    silu = writer.node("Mul", gate, share, to=f"silu.{block}")
    inner = writer.node("Mul", silu, up, to=f"inner.{block}")
    return writer.node("Add", x, product(inner, "down"), to=f"with_swiglu.{block}")


def step_model(weights: Mapping[str, Array], bits: int, shape: Shape = SHAPE) -> bytes:
    """Return the model of one token: `token` at `place` gives `scores`, and the best one `next`."""
    writer = _Writer(bits)
    cosines, sines = rotary_tables(shape)
    writer.constant("cosines", cosines.astype(np.float32))
    writer.constant("sines", sines.astype(np.float32))
    writer.constant("length", np.array(shape.length, np.int32))
    x = _embedded(writer, weights["embedding"])
    for block in range(shape.blocks):
        x = _block(writer, x, block, weights, shape)
    rows = writer.norm(x, "norm", weights["norm"], "normalised")
    scores = writer.product(rows, "head", weights["head"], "scores")
    writer.node("ArgMax", scores, to="next", axis=-1, keepdims=0)

    def port(name: str, kind: int, extents: tuple[int, ...]) -> Any:
        return helper.make_tensor_value_info(name, kind, extents)

    def caches(prefix: str) -> Iterator[Any]:
        kept = (1, shape.groups, shape.length, shape.depth)
        for block in range(shape.blocks):
            for part in ("key", "value"):
                yield port(f"{prefix}.{block}.{part}", TensorProto.FLOAT, kept)

    graph = helper.make_graph(
        writer.nodes, "sentences",
        [port("token", TensorProto.INT64, (1, 1)), port("place", TensorProto.INT32, (1,)),
         *caches("past")],
        [port("scores", TensorProto.FLOAT, (1, 1, shape.tokens)),
         port("next", TensorProto.INT64, (1, 1)), *caches("present")],
        initializer=[numpy_helper.from_array(v, name) for name, v in writer.constants.items()],
    )  # fmt: skip
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(
        graph, opset_imports=sets, ir_version=IR_VERSION, producer_name="microtir examples"
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


class Reference:
    """The model in onnxruntime, with what it keeps from token to token."""

    def __init__(self, model: bytes, shape: Shape = SHAPE) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        kept = (1, shape.groups, shape.length, shape.depth)
        self._names = [p.name for p in self._session.get_inputs() if p.name.startswith("past")]
        self._caches = {name: np.zeros(kept, np.float32) for name in self._names}

    def step(self, token: int, place: int) -> int:
        """Return the best next token."""
        given = {"token": np.array([[token]], np.int64), "place": np.array([place], np.int32)}
        _scores, best, *caches = self._session.run(None, {**given, **self._caches})
        self._caches = dict(zip(self._names, caches, strict=True))
        return int(best[0, 0])


def metrics_of(models: Mapping[int, bytes], weights: Mapping[str, Array]) -> dict[str, Any]:
    """Measure how many first sentences of the test are continued as the rules have it."""
    from examples.sentences.demo import continued

    _, test = split()
    legal = set(lines())
    figures: dict[str, Any] = {
        "parameters": sum(value.size for value in weights.values()),
        "lines": len(test),
    }
    for bits, model in models.items():
        reference = Reference(model)
        right = sum((first, continued(reference.step, first)) in legal for first, _ in test)
        figures[f"int{bits}_right"] = right
        figures[f"int{bits}_bytes"] = len(model)
    return figures


def main() -> None:
    """Write both models and the figures."""
    parser = argparse.ArgumentParser(description="Write the sentences models.")
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--output", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    weights = load_weights(arguments.weights)
    models = {bits: step_model(weights, bits) for bits in BITS}
    for bits, model in models.items():
        (arguments.output / model_name(bits)).write_bytes(model)
    figures = metrics_of(models, weights)
    print(json.dumps(figures, indent=2))
    text = json.dumps(figures, indent=2) + "\n"
    (arguments.output / METRICS).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
