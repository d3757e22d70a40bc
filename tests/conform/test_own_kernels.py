"""The C that microtir generates passes the kit, as kernels of a user's specification."""

from __future__ import annotations

from pathlib import Path

import microtir
from microtir import IRModule
from microtir.config import CompilationConfig, Target
from microtir.conform import Case, draw_cases, load_spec
from microtir.graph.ir import Graph
from tests.support.command import Command

KINDS = (
    "convolution", "depthwise", "fully_connected", "average_pool", "max_pool",
    "add", "mul", "softmax",
)  # fmt: skip
CASES = 5  # one of each style

HEAD = 'name = "own"\nheaders = ["own.h"]\nincludes = ["."]\nsources = ["*.c"]\n'
FUNCTION = """
[[function]]
name = "own_{kind}"
kind = "{kind}"
scratch = "own_{kind}_scratch(c)"
ranges = {ranges}
call = "    return own_{kind}(c);"
"""


def generate(case: Case, name: str, folder: Path) -> tuple[str, str]:
    """Write the C of a case's layer; return the C of its scratch bytes and of its call."""
    node = case.layer.node
    inputs = tuple(tensor for tensor in node.inputs if not tensor.is_constant)
    graph = Graph("layer", inputs, node.outputs, (node,))
    config = CompilationConfig(targets=Target("c"), module_name=name)
    for source in microtir.build(IRModule(graph=graph), config).sources:
        (folder / Path(source.path).name).write_text(source.text)
    pointers = ", ".join(("c->input", "c->input2")[: len(inputs)])
    call = (
        f"{{ const struct {name}_inputs in = {{{pointers}}};"
        f" const struct {name}_outputs out = {{c->output}};"
        f" return {name}_run(&in, &out, c->scratch); }}"
    )
    return f"return {name.upper()}_WORKSPACE_SIZE;", call


def test_generated_c_conforms(microtir: Command, tmp_path: Path) -> None:
    """A layer of each kind, compiled for each case, gives what the numpy meaning expects."""
    ranges = '{ batches = "1" }'
    spec = tmp_path / "own.toml"
    texts = [
        FUNCTION.format(kind=kind, ranges="{}" if kind in ("add", "mul") else ranges)
        for kind in KINDS
    ]
    spec.write_text(HEAD + "".join(texts))
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    declared, defined = ['#include "conform.h"'], ['#include "own.h"']
    for function in load_spec(str(spec)).functions:
        bodies: dict[str, list[str]] = {f"{function.name}_scratch": [], function.name: []}
        for number, case in enumerate(draw_cases(function, CASES, 0)):
            name = f"{function.name}_{number}"
            defined.insert(0, f'#include "{name}.h"')
            for rows, text in zip(bodies.values(), generate(case, name, kernels), strict=True):
                rows.append(f"case {number}: {text}")
        for name, rows in bodies.items():
            declared.append(f"int32_t {name}(const struct conform_case *c);")
            defined += [f"int32_t {name}(const struct conform_case *c)", "{ switch (c->number) {"]
            defined += [*rows, "} return -1; }"]
    (kernels / "own.h").write_text("\n".join([*declared, ""]))
    (kernels / "own.c").write_text("\n".join([*defined, ""]))
    result = microtir("conform", str(kernels), "--spec", str(spec), "--cases", str(CASES))
    assert result.status == 0, result.out
    assert "8 of 8 functions conform" in result.out
