"""com.microsoft's attention over a cache and rotary positions against onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir import build, host
from microtir.config import CompilationConfig, microcontroller
from microtir.errors import ConfigError, MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.operators.attention.definition import CachedAttention
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

DOMAINS = {"com.microsoft": 1}
DEPTH, LENGTH = 16, 20  # onnxruntime wants heads of multiples of 16 elements
Rng = np.random.Generator


def normal(rng: Rng, *shape: int) -> Array:
    """Return floats."""
    return rng.normal(size=shape).astype(np.float32)


def tables(places: int, angles: int) -> dict[str, Array]:
    """Return cosines and sines of rising angles."""
    turns = np.outer(np.arange(places), 100.0 ** (-np.arange(angles) / angles))
    return {"cos": np.cos(turns).astype(np.float32), "sin": np.sin(turns).astype(np.float32)}


@dataclass
class Attention:
    """A GroupQueryAttention with its inputs; the cache holds `total` tokens afterwards."""

    rng: Rng
    tokens: int = 1
    total: int = 5
    heads: int = 4
    groups: int = 2
    is_packed: bool = False
    has_past: bool = True
    attributes: dict[str, Any] = field(default_factory=dict)
    more: dict[int, Array] = field(default_factory=dict)

    def inputs(self) -> dict[str, Array]:
        """Return what a run is given."""
        kept = self.groups * DEPTH
        sizes = {"q": self.heads * DEPTH, "k": kept, "v": kept}
        new = {name: normal(self.rng, 1, self.tokens, size) for name, size in sizes.items()}
        if self.is_packed:
            new = {"q": np.concatenate(list(new.values()), 2)}
        caches = {n: normal(self.rng, 1, self.groups, LENGTH, DEPTH) for n in ("past_k", "past_v")}
        last = np.array([self.total - 1], np.int32)
        caches = caches if self.has_past else {}
        return {**new, **caches, "last": last, "total": np.array(self.total, np.int32)}

    def model(self, inputs: dict[str, Array]) -> bytes:
        """Return the model that is given these."""
        constants = tables(LENGTH, DEPTH // 2) if self.attributes.get("do_rotary") else {}
        names = ["q", "", ""] if self.is_packed else ["q", "k", "v"]
        names += ["past_k", "past_v"] if self.has_past else ["", ""]
        names += ["last", "total", *constants]
        names += [""] * (max(self.more, default=0) + 1 - len(names))
        for index, array in self.more.items():
            names[index] = f"more{index}"
            constants[names[index]] = array
        node = helper.make_node(
            "GroupQueryAttention", names, ["y", "new_k", "new_v"], domain="com.microsoft",
            num_heads=self.heads, kv_num_heads=self.groups, **self.attributes,
        )  # fmt: skip
        given = [typed(name, array) for name, array in inputs.items()]
        return model_of([node], given, ["y", "new_k", "new_v"], constants, domains=DOMAINS)


def check(case: Attention, *, compiles: bool = False) -> None:
    """The graph, and perhaps the C, compute what onnxruntime does of tokens that are there."""
    inputs = case.inputs()
    made = case.model(inputs)
    want = run_onnxruntime(made, inputs)
    module = from_onnx(made)
    assert module.graph is not None
    got = execute(module.graph, inputs)
    results = [got]
    if compiles:
        results.append(host.load(build(module, microcontroller()), sanitize=True).run(inputs))
    rows = min(case.tokens, case.total)
    for found in results:
        y, keys, values = (found[name] for name in ("y", "new_k", "new_v"))
        assert [a.shape for a in (y, keys, values)] == [a.shape for a in want]
        np.testing.assert_allclose(y[:, :rows], want[0][:, :rows], rtol=1e-5, atol=2e-6)
        for cache, expected in ((keys, want[1]), (values, want[2])):
            kept = cache[:, :, : case.total], expected[:, :, : case.total]
            np.testing.assert_allclose(*kept, rtol=1e-5, atol=2e-6)


def drawn(rng: Rng) -> Attention:
    """Return any attention."""
    groups, tokens = int(rng.choice([1, 2, 4])), int(rng.choice([1, 1, 3]))
    is_causal = rng.integers(4) > 0
    attributes: dict[str, Any] = {
        "do_rotary": int(rng.integers(2)),
        "rotary_interleaved": int(rng.integers(2)),
        "causal": int(is_causal),
        "local_window_size": int(rng.choice([-1, 1, 4])) if is_causal else -1,
        "softcap": float(rng.choice([0.0, 2.0])),
        "scale": float(rng.choice([0.0, 0.5])),
    }
    total = int(rng.integers(tokens, LENGTH - 1))
    return Attention(
        rng, tokens, total, 4, groups, is_packed=bool(rng.integers(2)), attributes=attributes
    )


def test_attention_equals_onnxruntimes() -> None:
    """Any heads, windows and tokens at once, with and without rotary positions."""
    for seed in seeds(0, 40):
        check(drawn(np.random.default_rng(seed)))


def test_a_prompt_begins_a_cache() -> None:
    """Without one that comes in, the new tokens are the cache."""
    rng = np.random.default_rng(4)
    check(Attention(rng, 5, 5, has_past=False, attributes={"do_rotary": 1}))


@pytest.mark.parametrize("tokens", [1, 3])
def test_c_equals_onnxruntime(tokens: int) -> None:
    """One token, and several; a cache that is full, and a window."""
    rng = np.random.default_rng(1)
    attributes = {"do_rotary": 1, "local_window_size": 4, "softcap": 3.0}
    check(Attention(rng, tokens, LENGTH, attributes=attributes), compiles=True)


def test_places_outside_of_the_cache_are_the_nearest() -> None:
    """A number of tokens that the cache has no room for reads and writes nothing else."""
    case = Attention(np.random.default_rng(2), tokens=3, attributes={"do_rotary": 1})
    inputs = case.inputs()
    module = from_onnx(case.model(inputs))
    model = host.load(build(module, microcontroller()), sanitize=True)
    for last, nearest in ((99, LENGTH - 1), (-99, 0), (2**31 - 1, LENGTH - 1), (-(2**31), 0)):
        got, want = (
            model.run({**inputs, "last": np.array([place], np.int32)}) for place in (last, nearest)
        )
        np.testing.assert_array_equal(got["new_k"][0, :, :3], want["new_k"][0, :, :3])
        assert np.isfinite(got["y"]).all()


@pytest.mark.parametrize(
    ("is_causal", "opset", "is_cached"), [(0, 24, True), (1, 25, True), (1, 24, False)]
)
def test_a_token_sees_what_a_cache_is_filled_with(
    *, is_causal: int, opset: int, is_cached: bool
) -> None:
    """One token costs what is in the cache; with another mask all that it has room for."""
    rng = np.random.default_rng(6)
    caches = {"k": normal(rng, 1, 2, 9, 8), "v": normal(rng, 1, 2, 9, 6)}
    inputs = {"q": normal(rng, 1, 4, 1, 8), **caches, "filled": np.array([0], np.int64)}
    names = ["q", "k", "v", "", "", "", "filled"]
    node = helper.make_node("Attention", names, ["y"], is_causal=is_causal, softcap=2.0)
    made = model_of([node], [typed(n, a) for n, a in inputs.items()], ["y"], opset=opset)
    module = from_onnx(made)
    assert module.graph is not None
    used = [type(node.op) for node in module.graph.nodes]
    assert (CachedAttention in used) == is_cached
    model = host.load(build(module, microcontroller()), sanitize=True)
    for filled in (1, 5, 9, 0) if is_cached else (1, 9):
        given = {**inputs, "filled": np.array([filled], np.int64)}
        (want,) = run_onnxruntime(made, given)
        np.testing.assert_allclose(model.run(given)["y"], want, rtol=1e-5, atol=2e-6)
        got = execute(module.graph, given)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


def rotary(x: Array, positions: Array, angles: int, **attributes: Any) -> bytes:
    """Return a RotaryEmbedding of com.microsoft."""
    names = ["x", "at", "cos", "sin"]
    node = helper.make_node("RotaryEmbedding", names, ["y"], domain="com.microsoft", **attributes)
    given = [typed("x", x), typed("at", positions)]
    return model_of([node], given, ["y"], tables(LENGTH, angles), domains=DOMAINS)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 64), (2, 4, 3, 16)])
def test_rotary_positions(shape: tuple[int, ...], *, interleaved: int, is_partial: bool) -> None:
    """Rows of three or four dimensions; a position of each row, or of the first."""
    rng = np.random.default_rng(3)
    attributes = {"interleaved": interleaved}
    if is_partial:
        attributes |= {"num_heads": 4, "rotary_embedding_dim": 8}
    for at in (np.array([5], np.int64), rng.integers(0, LENGTH, (2, 3))):
        x = normal(rng, *shape)
        made = rotary(x, at, 4 if is_partial else 8, **attributes)
        (want,) = run_onnxruntime(made, {"x": x, "at": at})
        graph = from_onnx(made).graph
        assert graph is not None
        got = execute(graph, {"x": x, "at": at})["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"attributes": {"smooth_softmax": 1}}, UnsupportedModelError, "'smooth_softmax' is 1"),
        ({"attributes": {"k_quant_type": "PER_TENSOR"}}, UnsupportedModelError, "k_quant_type"),
        ({"more": {11: np.zeros(4, np.float32)}}, UnsupportedModelError, "'head_sink'"),
        ({"groups": 3}, ModelFileError, "4 heads of 3 groups"),
        ({"heads": 6}, ModelFileError, "6 heads"),
        ({"tokens": LENGTH + 1}, ModelFileError, "a cache of shape"),
    ],
)
def test_attention_that_is_refused(
    changes: dict[str, Any], error: type[MicrotirError], text: str
) -> None:
    """Each says what does not fit, or what is not done."""
    plain = Attention(np.random.default_rng(0)).inputs()
    case = Attention(np.random.default_rng(0), **changes)
    inputs = case.inputs() if "tokens" in changes else plain
    with pytest.raises(error, match=text):
        from_onnx(case.model(inputs))


@pytest.mark.parametrize("name", ["q", "k", "past_k", "last"])
def test_inputs_without_elements_are_refused(name: str) -> None:
    """What holds nothing has no heads, no places and no last token."""
    case = Attention(np.random.default_rng(0))
    inputs = case.inputs()
    inputs[name] = inputs[name][..., :0]
    with pytest.raises(ModelFileError):
        from_onnx(case.model(inputs))


def test_a_cache_that_grows_is_refused() -> None:
    """A number of tokens that is known has to fit the cache that comes in."""
    case = Attention(np.random.default_rng(0))
    inputs = case.inputs()
    del inputs["total"]
    case.more[6] = np.array(LENGTH + 1, np.int32)
    with pytest.raises(UnsupportedModelError, match="grows from 20 to 21 tokens"):
        from_onnx(case.model(inputs))


@pytest.mark.parametrize(
    ("attributes", "text"), [({"scale": 2.0}, "'scale'"), ({"is_packed_batching": 1}, "packed")]
)
def test_rotary_positions_that_are_refused(attributes: dict[str, Any], text: str) -> None:
    """What onnxruntime's CPU leaves out, or does for rows of several lengths."""
    made = rotary(np.zeros((1, 1, 16), np.float32), np.zeros((1, 1), np.int64), 8, **attributes)
    with pytest.raises(UnsupportedModelError, match=text):
        from_onnx(made)


def exported() -> bytes:
    """Return an attention as exporters of language models write it: all lengths are open."""
    nodes = [
        helper.make_node("ReduceSum", ["attention_mask", "axis"], ["sum"], keepdims=1),
        helper.make_node("Sub", ["sum", "one"], ["last64"]),
        helper.make_node("Cast", ["last64"], ["last"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "second"], ["total64"], axis=0),
        helper.make_node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past.0.key", "past.0.value", "last", "total", "cos", "sin"],
            ["y", "present.0.key", "present.0.value"], domain="com.microsoft",
            num_heads=2, kv_num_heads=1, do_rotary=1,
        ),
    ]  # fmt: skip
    cache, one = ("batch", 1, "past", DEPTH), np.array([1])
    inputs = [typed(n, ("batch", "sequence", s)) for n, s in (("q", 32), ("k", 16), ("v", 16))]
    inputs += [typed("attention_mask", ("batch", "total"), np.int64)]
    inputs += [typed(f"past.0.{part}", cache) for part in ("key", "value")]
    constants = {"axis": one, "one": one, "second": np.array(1), **tables(LENGTH, DEPTH // 2)}
    outputs = ["y", "present.0.key", "present.0.value"]
    return model_of(nodes, inputs, outputs, constants, domains=DOMAINS)


def test_a_cache_that_exporters_let_grow_is_given_its_room() -> None:
    """With a mask as long as the cache, a token gives what onnxruntime's growing cache does."""
    module = from_onnx(exported(), dims={"sequence": 1, "total": LENGTH, "past": LENGTH})
    config = CompilationConfig(targets="c", states="past.*=present.*")
    model = host.load(build(module, config), sanitize=True)
    assert [tensor.name for tensor in model.inputs] == ["q", "k", "v", "attention_mask"]
    rng = np.random.default_rng(8)
    grown = {f"past.0.{part}": np.zeros((1, 1, 0, DEPTH), np.float32) for part in ("key", "value")}
    for count in range(1, 6):
        new = {n: normal(rng, 1, 1, size) for n, size in (("q", 32), ("k", 16), ("v", 16))}
        mask = np.ones((1, count), np.int64)
        want, *caches = run_onnxruntime(exported(), {**new, "attention_mask": mask, **grown})
        grown = dict(zip(grown, caches, strict=True))
        wide = np.pad(mask, ((0, 0), (0, LENGTH - count)))
        got = model.run({**new, "attention_mask": wide})["y"]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


INT8 = {"graph.attention_cache": "int8"}


def rounded(rows: Array, groups: int) -> Array:
    """Return what the vectors of heads stand for once they are integers of 8 bits."""
    heads = rows.reshape(*rows.shape[:-1], groups, DEPTH)
    largest = np.maximum(np.abs(heads).max(axis=-1, keepdims=True), np.float32(2.0**-120))
    stored: Array = np.rint(heads * (127 / largest)) * (largest / 127)
    return stored.reshape(rows.shape)


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_rounded_cache_gives_what_onnxruntime_does_with_its_values(tokens: int) -> None:
    """Keys and values are integers of the state; one vector of them is zeros."""
    case = Attention(np.random.default_rng(9), tokens, attributes={"softcap": 2.0})
    inputs = case.inputs()
    made = case.model(inputs)
    config = CompilationConfig(targets="c", states="past_*=new_*", pass_config=INT8)
    artifact = build(from_onnx(made), config)
    assert artifact.metadata.state is not None
    assert artifact.metadata.state.size == 2 * case.groups * LENGTH * (DEPTH + 4) + 4
    model = host.load(artifact, sanitize=True)
    caches = {name: np.zeros_like(inputs[name]) for name in ("past_k", "past_v")}
    for total in range(tokens, 6 * tokens, tokens):
        case.total = total
        new = {name: x for name, x in case.inputs().items() if name not in caches}
        if total == 3 * tokens:
            new["k"] = np.zeros_like(new["k"])
        stored = {name: rounded(new[name], case.groups) for name in ("k", "v")}
        want, *kept = run_onnxruntime(made, {**new, **caches, **stored})
        caches = dict(zip(caches, kept, strict=True))
        np.testing.assert_allclose(model.run(new)["y"], want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("states", ["", "past_k=new_k"])
def test_a_cache_that_is_no_state_is_not_rounded(states: str) -> None:
    """Callers give and take floats: keys and values have to be states, both of them."""
    case = Attention(np.random.default_rng(10))
    config = CompilationConfig(targets="c", states=states, pass_config=INT8)
    with pytest.raises(ConfigError, match="needs attention whose keys and values are states"):
        build(from_onnx(case.model(case.inputs())), config)
