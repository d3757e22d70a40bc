from __future__ import annotations

import json
import re
from typing import Any

import pytest

import microtir as package
from microtir import frontend
from microtir.config import OPTIONS, CompilationConfig
from microtir.frontend.operator_table import operator_rows
from microtir.instruction_sets import ARCHITECTURES, CPUS
from microtir.lowering import graph_lowering
from microtir.rewrite.optimise import graph_passes_of
from microtir.tir import passes as tir_passes
from tests.support.command import INT8, Command

PIPELINE = [
    ("import", ["read_operators", "older_quantization", "settle_layout", "settle_loops",
                "caller_scales", "signed_integers", "fuse_quantised", "forget_scales",
                "transpose_inputs_first", "fold_affine"]),
    ("request", ["bind_states", "add_outputs", "rename_ports", "prepend", "append",
                 "choose_numerics", "choose_activations", "round_caches", "declare_ranges"]),
    ("graph", ["fold_constants", "remove_identities", "matmul_to_dense", "tree_thresholds",
               "fuse_lstm_loops", "transposed_to_convolution", "groups_to_depthwise", "fold_pad",
               "fuse_activation", "tabulate", "gather_constant_channels", "fold_constant_channels",
               "push_rows", "view_parts", "place_rows", "remove_dead_nodes", "count_turns",
               "drop_redundant_clamps", "split_images", "bound_sums", "order_assigns",
               "update_in_place"]),
    ("offload", ["partition", "driver_calls", "fuse_chains", "row_ports"]),
    ("plan", ["reorder", "cut_columns"]),
    ("lowering", []),
    ("tir", ["simplify", "partition_loops", "simplify", "unroll_loops", "lower_vectorized",
             "simplify", "scalar_arrays"]),
    ("executor", []),
    ("memory", []),
    ("merge", []),
    ("measure", []),
    ("codegen", []),
]  # fmt: skip


def test_s0_3_pipeline_is_pinned(microtir: Command) -> None:
    """`explain pipeline` lists these stages and passes in this order."""
    facts = json.loads(microtir("explain", "pipeline", "--json").out)
    assert facts["executor"] == "aot"
    found = [(s["name"], [p["name"] for p in s["passes"]]) for s in facts["stages"]]
    assert found == PIPELINE


@pytest.mark.parametrize("executor", ["graph", "debug"])
def test_s0_3_pipeline_of_graph_executors(microtir: Command, executor: str) -> None:
    """The same road; what needs pointers to whole tensors is left out, and main is a table.

    It runs each operator once, so that turns of loops are written out.
    """
    facts = json.loads(microtir("explain", "pipeline", "--executor", executor, "--json").out)
    assert facts["executor"] == executor
    found = [(s["name"], [p["name"] for p in s["passes"]]) for s in facts["stages"]]
    wanted = dict(PIPELINE)
    wanted["graph"] = [name for name in wanted["graph"] if name != "split_images"]
    wanted["graph"].insert(wanted["graph"].index("fuse_lstm_loops") + 1, "unroll_turns")
    assert found == list(wanted.items())
    summaries = {stage["name"]: stage["summary"] for stage in facts["stages"]}
    assert "a table of calls" in summaries["codegen"] and "as in the model" in summaries["plan"]
    assert ("hooks" in summaries["codegen"]) == (executor == "debug")
    assert microtir("explain", "--executor", executor).status == 0
    assert "did you mean 'graph'?" in microtir("explain", "--executor", "grap").err


def test_s0_3_pipeline_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build takes exactly the steps that `explain pipeline` lists, and runs those passes."""
    ran: list[str] = []
    plain = tir_passes.pipeline

    class Watched:
        def __init__(self, inner: object) -> None:
            self.inner = inner
            self.name = inner.name  # type: ignore[attr-defined]

        def __call__(self, value: object) -> object:
            ran.append(self.name)
            return self.inner(value)  # type: ignore[operator]

    def watched(*args: Any) -> tuple[Watched, ...]:
        return tuple(Watched(p) for p in plain(*args))

    stages: list[str] = []
    monkeypatch.setattr(tir_passes, "pipeline", watched)
    watched_passes = tuple(Watched(p) for p in graph_passes_of(CompilationConfig(targets="c")))
    monkeypatch.setattr(graph_lowering, "graph_passes_of", lambda _config: watched_passes)
    built = package.build(
        frontend.from_tflite(INT8),
        CompilationConfig(targets="c", optimize="ram-least"),
        observe=lambda stage, _: stages.append(stage),
    )
    assert stages == [name for name, _ in PIPELINE[1:]]
    passes = dict(PIPELINE)
    count = len(passes["graph"])
    assert ran[:count] == passes["graph"]
    layers = len(built.module.functions) - 1  # no two are alike; the last one is main
    assert layers >= 10
    assert ran[count:] == passes["tir"] * layers


def test_pipeline_as_a_table(microtir: Command) -> None:
    """The table has a row for each stage and each pass, with a sentence."""
    result = microtir("explain", "pipeline")
    assert result.status == 0
    assert microtir("explain").out == result.out
    for stage, passes in PIPELINE:
        assert f"\n{stage} " in result.out
        for name in passes:
            row = next(line for line in result.out.splitlines() if line.split()[:1] == [name])
            assert len(row.split()) > 3


def test_options(microtir: Command) -> None:
    """Every option of the table is listed, as text and as JSON."""
    text = microtir("options").out
    rows = json.loads(microtir("options", "--json").out)
    assert [row["option"] for row in rows] == [option.name for option in OPTIONS]
    for option in OPTIONS:
        assert f"\n{option.name} " in text


def test_operators(microtir: Command) -> None:
    """Every operator that the reader takes is listed, as text and as JSON."""
    names = [row.name for row in operator_rows()]
    rows = json.loads(microtir("operators", "--json").out)
    assert [row["name"] for row in rows] == names
    listed = [line.split()[1] for line in microtir("operators").out.splitlines()[2:]]
    assert listed == names


def test_targets(microtir: Command) -> None:
    """Every CPU and architecture is listed with its features; each line works as --target."""
    rows = json.loads(microtir("targets", "--json").out)
    assert [row["name"] for row in rows] == [*CPUS, *ARCHITECTURES]
    m4 = next(row for row in rows if row["name"] == "cortex-m4")
    assert "dsp" in m4["features"] and "mve" not in m4["features"]
    text = microtir("targets").out
    for row in rows:
        assert f"\nc {row['option']} " in text
        assert microtir("run", "x", "--target", f"c {row['option']}", "--dump-config").status == 0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_boards_fit_a_terminal(
    is_terminal: bool, microtir: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names can be copied and nothing is wider than 80 columns, where COLUMNS is exported, too."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", microtir("boards").out).splitlines()
    names = {line.split()[0] for line in lines if line.strip()}
    assert {board.name for board in package.boards.all_boards()} <= names
    assert max(map(len, lines)) <= 80
