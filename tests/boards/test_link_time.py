"""Link time optimisation: a compiler that sees the application's memory and the layers at once."""

from __future__ import annotations

from itertools import combinations, starmap
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.boards import ProjectType, load_board
from microtir.codegen.metadata import PlacementData
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.operators.activations.definition import HardSwish
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.projects import ProjectOptions, Samples, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.graphs import graph, node, quant, tensor
from tests.support.small_models import module_of, reference_outputs, sample_inputs


def narrowed() -> Graph:
    """Floats, and bytes that take their place: one address is read and written by one layer."""
    shape = (1, 6, 6, 2)
    x, a = (tensor(name, shape, DType.INT8, quant(0.05, 99)) for name in "xa")
    b, c, y = (tensor(name, shape) for name in "bcy")
    nodes = [
        node(Dequantize(), [x], b),
        node(HardSwish(), [b], c),
        node(Quantize(), [c], a),
        node(Dequantize(), [a], y),
    ]
    return graph(nodes, [x], [y, b])  # the floats are kept: else the bytes are a table of x


def _share(p: PlacementData, q: PlacementData) -> bool:
    """Whether two buffers have bytes in common while a layer runs that uses both."""
    in_one_step = p.first_step <= q.last_step and q.first_step <= p.last_step
    return in_one_step and p.offset < q.offset + q.size and q.offset < p.offset + p.size


@pytest.mark.parametrize(
    ("name", "workspace_io"), [("host", True), ("mps2_an385", False), ("riscv32", False)]
)
def test_results_are_those_of_separate_files(name: str, workspace_io: bool, tmp_path: Path) -> None:
    """Stores into memory whose address a layer knows are not dropped (bug 110702 of GCC)."""
    target, model = load_board(name).target, narrowed()
    config = CompilationConfig(targets=target, module_name="narrowed", optimize="speed")
    io = {"memory.use_workspace_io": workspace_io}
    artifact = microtir.build(module_of(model), config.with_(pass_config=io))
    memory = artifact.metadata.memory
    assert memory is not None
    is_shared = any(starmap(_share, combinations(memory.placements, 2)))
    assert is_shared or workspace_io
    inputs = sample_inputs(model)
    expected = Samples(
        {key: values[None] for key, values in inputs.items()},
        {key: values[None] for key, values in reference_outputs(model, inputs).items()},
    )
    project = generate(
        [artifact, digits(str(target), "digits")], name, ProjectType.BAREMETAL, tmp_path / "p",
        options=ProjectOptions(samples={"narrowed": expected, "digits": digits_samples(1)}),
    )  # fmt: skip
    # GNU ld 2.40 gives up some layouts of RISC-V code: "can't relax section: bad value".
    relaxing = "-Wl,--no-relax" if name == "riscv32" else ""
    project.build([f"CFLAGS=-O2 -flto -Werror {relaxing}"])
    result = project.run()
    assert result.status == 0 and result.output.count(" equal\n") == 3, result.output


def test_no_layer_is_told_where_memory_lies() -> None:
    """Every address in a pool goes through a function that a compiler cannot see through."""
    artifact = microtir.build(module_of(narrowed()), CompilationConfig(targets="c"))
    source = artifact.source("default.c")
    assert "uint8_t *const memory = default_pool(workspace);" in source
    assert '__asm__("" : "+r"(memory));' in source
