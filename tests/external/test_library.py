"""A library of the user: patterns, constraints, cost, constants, scratch, hooks, sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtir
from microtir.errors import RunError, UsageError
from microtir.external import Code, Hooks, Library, Match, Pattern, Rule
from microtir.graph.ir import Array
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import LeakyRelu
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.rewrite import reference
from microtir.tir.ir import ExternSource
from tests.support.graphs import constant, graph, node, tensor

NPU = """
#include "npu.h"
static int32_t awake;
int32_t npu_calls;
int32_t npu_open(void) { awake++; return awake == 1 ? 0 : 3; }
int32_t npu_close(void) { awake--; return awake == 0 ? 0 : 4; }
int32_t npu_scale_leaky(const float *x, const float *factor, float *y, float *room, int32_t count)
{
    if (awake != 1 || x[0] == 99.0f) {
        return 5;
    }
    for (int32_t i = 0; i < count; i++) {
        room[i] = x[i] * factor[0];
        y[i] = room[i] > 0.0f ? room[i] : room[i] * 0.5f;
    }
    npu_calls++;
    return 0;
}
"""
HEADER = """
#include <stdint.h>
extern int32_t npu_calls;
int32_t npu_open(void);
int32_t npu_close(void);
int32_t npu_scale_leaky(const float *x, const float *factor, float *y, float *room, int32_t count);
"""


def factor_of(match: Match) -> Array | None:
    """The constant that the first node multiplies by."""
    return match.first.inputs[1].data


def emit(match: Match) -> Code:
    """One call for MUL by a constant and LEAKY_RELU."""
    factor = factor_of(match)
    assert factor is not None
    count = match.output.type.elements
    return Code(
        body=f"    status = npu_scale_leaky(x, factor, y, (float *)(void *)scratch, {count});",
        constants={"factor": factor},
        scratch_bytes=4 * count,
        includes=("npu/npu.h",),
        sources=(ExternSource("npu/npu.c", NPU), ExternSource("npu/npu.h", HEADER)),
    )


def npu(cost: int = 1, hooks: Hooks | None = None) -> Library:
    """The library with one rule."""
    rule = Rule(
        (Mul, LeakyRelu),
        emit,
        cost=lambda _match: cost,
        accepts=lambda match: factor_of(match) is not None,
    )
    return Library("my-npu", (rule,), hooks or Hooks("npu_open", "npu_close"))


def model(factor: float = 3.0, shared: bool = False) -> IRModule:
    """Twice MUL by a constant and LEAKY_RELU; if `shared`, the first product is an output, too."""
    x, a, b, c, y = (tensor(name, (2, 3)) for name in "xabcy")
    factors = [constant(n, np.array([v], np.float32)) for n, v in (("f", factor), ("g", -0.5))]
    nodes = [
        node(Mul(), (x, factors[0]), a), node(LeakyRelu(0.5), (a,), b),
        node(Mul(), (b, factors[1]), c), node(LeakyRelu(0.5), (c,), y),
    ]  # fmt: skip
    return IRModule(graph=graph(nodes, [x], [y, a] if shared else [y]))


TWO = ["default_layer1_leaky_relu_my_npu", "default_layer3_leaky_relu_my_npu"]
X = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)


def layers(module: IRModule, library: Library) -> list[str]:
    """Names of the layers' functions."""
    artifact = microtir.build(module, libraries=[library])
    return [layer.function for layer in artifact.metadata.layers]


def test_chains_are_called_as_one() -> None:
    """Two nodes become one call, between the hooks of the device, under sanitizers."""
    module = model()
    assert module.graph is not None
    assert layers(module, npu()) == [
        "default_layer1_leaky_relu_my_npu",
        "default_layer3_leaky_relu_my_npu",
    ]
    artifact = microtir.build(module, libraries=[npu()])
    got = microtir.host.load(artifact, sanitize=True).run({"x": X})
    assert np.array_equal(got["y"], reference.execute(module.graph, {"x": X})["y"])
    text = artifact.source("default_my_npu.c")
    assert '#include "npu/npu.h"\n' in text
    assert text.count("npu_close()") == 2


def test_a_value_that_somebody_else_reads_is_not_swallowed() -> None:
    """A chain whose inside is an output of the model is left alone."""
    assert layers(model(shared=True), npu()) == [
        "default_layer0_mul", "default_layer1_leaky_relu", "default_layer3_leaky_relu_my_npu",
    ]  # fmt: skip


def test_cost_and_constraints_decide() -> None:
    """A library that says it is dearer, or that it cannot, is not asked."""
    own = ["default_layer3_chain"]  # all of them in one loop
    assert layers(model(), npu(cost=10**9)) == own
    (rule,) = npu().rules
    never = replace(npu(), rules=(replace(rule, accepts=lambda _match: False),))
    assert layers(model(), never) == own


def test_the_device_sleeps_after_a_failure() -> None:
    """An error comes back, and the device is closed: otherwise the next run could not open it."""
    model_ = microtir.host.load(microtir.build(model(), libraries=[npu()]))
    with pytest.raises(RunError, match="a C function outside the model"):
        model_.run({"x": np.full((2, 3), 99, np.float32)})
    assert model_.run({"x": X})["y"].shape == (2, 3)


def test_hooks_that_fail_end_the_run() -> None:
    """Neither a device that does not wake nor one that does not go to sleep is passed over."""
    for hooks in (Hooks("npu_open", "npu_open"), Hooks("npu_close", "npu_close")):
        broken = microtir.host.load(microtir.build(model(), libraries=[npu(hooks=hooks)]))
        with pytest.raises(RunError, match="a C function outside the model"):
            broken.run({"x": X})


def test_preferred_rules_come_first() -> None:
    """The first rule of the first library that fits gets the nodes."""
    (rule,) = npu().rules
    single = Rule((LeakyRelu,), lambda _m: Code("    y[0] = x[0];"), cost=lambda _m: 0)
    both = Library("npu", (rule, single))
    assert layers(model(), both) == [
        "default_layer1_leaky_relu_npu",
        "default_layer3_leaky_relu_npu",
    ]
    reverse = Library("npu", (single, rule))
    assert layers(model(), reverse)[:2] == ["default_layer0_mul", "default_layer1_leaky_relu_npu"]


def test_libraries_are_for_models() -> None:
    """What has no layers to give away refuses a library, instead of ignoring it."""
    lowered = microtir.lower(model())
    with pytest.raises(UsageError, match="no model whose layers a library could compute"):
        microtir.build(lowered, libraries=[npu()])


def residual(shared: bool = False, swapped: bool = False) -> IRModule:
    """LEAKY_RELU of a product, and another product, added to what they were made from."""
    x, a, b, c, s, y = (tensor(name, (2, 3)) for name in "xabcsy")
    f, g = (constant(n, np.array([v], np.float32)) for n, v in (("f", 3.0), ("g", -0.5)))
    sides = (c, b) if swapped else (b, c)
    nodes = [
        node(Mul(), (x, f), a), node(LeakyRelu(0.5), (a,), b), node(Mul(), (x, g), c),
        node(Add(), sides, s), node(Add(), (s, x), y),
    ]  # fmt: skip
    return IRModule(graph=graph(nodes, [x], [y, c] if shared else [y]))


def joined() -> Library:
    """A library that computes both branches, their sum and the residual in one call."""
    left = Pattern(LeakyRelu, (Pattern(Mul),))
    pattern = Pattern(Add, (Pattern(Add, (left, Pattern(Mul))), None))
    body = """    for (int32_t i = 0; i < 6; i++) {
        const float a = x[i] * 3.0f;
        y[i] = (a > 0.0f ? a : a * 0.5f) + x[i] * -0.5f + x[i];
    }"""
    return Library("npu", (Rule(pattern, lambda _m: Code(body), cost=lambda _m: 1),))


@pytest.mark.parametrize("swapped", [False, True])
def test_branches_that_come_together_are_one_call(swapped: bool) -> None:
    """Operators of two branches, and an input that each of them reads: one call, one input."""
    module = residual(swapped=swapped)
    assert module.graph is not None
    artifact = microtir.build(module, libraries=[joined()])
    assert [layer.function for layer in artifact.metadata.layers] == ["default_layer4_add_npu"]
    got = microtir.host.load(artifact).run({"x": X})
    assert np.array_equal(got["y"], reference.execute(module.graph, {"x": X})["y"])


def test_a_branch_that_somebody_else_reads_is_no_part_of_a_pattern() -> None:
    """One of the products is an output of the model: nothing is given away."""
    assert not any("npu" in name for name in layers(residual(shared=True), joined()))
