"""CMSIS-NN as an external library: against a stand-in of the tests' own with its prototypes.

With the folder of the real library in MICROTIR_CMSIS_NN the same tests run on that, too.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.config import External, ExternalLibrary
from microtir.errors import ConfigError, RunError, ToolError
from microtir.frontend import from_tflite
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import RelativeTolerance
from microtir.host.verify import verify
from microtir.module.ir_module import IRModule
from microtir.profiling.profile import Profile, profile
from microtir.projects import generate
from microtir.projects.remote import run_samples
from microtir.rewrite import reference
from microtir.search.external import choose_external
from microtir.support import code_templates
from tests.support.c_compilers import HOST_COMPILERS, strict_problems
from tests.support.command import Command
from tests.support.operator_cases import generate as generate_case
from tests.support.pages import follow
from tests.support.program_text import program_text
from tests.support.small_models import quantised_graph

STAND_IN = Path(__file__).parents[1] / "support" / "cmsis_nn_stand_in"
REAL = os.environ.get("MICROTIR_CMSIS_NN")
FOLDERS = [STAND_IN, *([Path(REAL)] if REAL else [])]


def config(
    folder: Path = STAND_IN, cpu: str = "cortex-m4", choice: str = ",all"
) -> CompilationConfig:
    """A configuration that uses the library."""
    target = Target(f"c -mcpu={cpu}")
    return CompilationConfig(targets=target, external=f"cmsis-nn={folder}{choice}")


def externs(artifact: Artifact) -> list[bool]:
    """For each layer, whether the library computes it."""
    return [bool(layer.externs) for layer in artifact.metadata.layers]


OPERATORS = (
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    "ADD",
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_bit_exact(operator: str, folder: Path) -> None:
    """Random shapes, strides, paddings and quantisation, against the numpy reference."""
    used = 0
    for seed in range(5):
        case = generate_case(operator, seed, "int8")
        module = from_tflite(case.model)
        assert module.graph is not None
        artifact = microtir.build(module, config(folder))
        names = [t.name for t in module.graph.inputs]
        inputs = dict(zip(names, case.inputs, strict=True))
        expected = reference.execute(module.graph, inputs)
        got = microtir.host.load(artifact).run(inputs)
        for name, array in expected.items():
            assert np.array_equal(got[name], array), f"seed {seed}"
        used += any(externs(artifact))
    assert used


def samples(module: IRModule) -> tuple[SampleBatch, SampleBatch]:
    """Some inputs of a model, and what they mean."""
    assert module.graph is not None
    generator = np.random.default_rng(3)
    given = [
        {
            t.name: generator.integers(-128, 128, t.shape).astype(np.int8)
            for t in module.graph.inputs
        }
        for _ in range(3)
    ]
    outputs = [reference.execute(module.graph, sample) for sample in given]
    return SampleBatch(tuple(given)), SampleBatch(tuple(outputs))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_a_model_under_sanitizers_layer_by_layer(folder: Path) -> None:
    """What a layer given away means stays known: verify compares each."""
    module = IRModule(graph=quantised_graph())
    seen: dict[str, object] = {}
    artifact = microtir.build(module, config(folder), observe=seen.__setitem__)
    assert externs(artifact) == [True, True]
    given, expected = samples(module)
    planned = seen["graph"]
    assert isinstance(planned, type(module.graph)) and planned is not None
    result = verify(
        artifact, planned, given, expected, RelativeTolerance(0.0), sanitize=True, every_layer=True
    )
    assert result.equal
    assert [layer.operator for layer in artifact.metadata.layers] == [
        "CONV_2D", "FULLY_CONNECTED",
    ]  # fmt: skip
    assert [layer.macs for layer in artifact.metadata.layers] == [324, 180]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    ("board", "cpu"), [("mps2_an386", "cortex-m4"), ("mps3_an547", "cortex-m55")]
)
def test_on_an_emulated_board(folder: Path, board: str, cpu: str) -> None:
    """The project of a board takes the sources as they lie, and computes the same."""
    module = IRModule(graph=quantised_graph())
    given, expected = samples(module)
    artifact = microtir.build(module, config(folder, cpu))
    assert externs(artifact) == [True, True]
    found = run_samples(artifact, load_board(board), list(given.values))
    for got, wanted in zip(found, expected.values, strict=True):
        assert np.array_equal(got["scores"], wanted["scores"])


@pytest.mark.parametrize("compiler", HOST_COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_no_warnings(compiler: str, standard: str, tmp_path: Path) -> None:
    """What microtir generates around the library passes the project's own flags."""
    artifact = microtir.build(IRModule(graph=quantised_graph()), config())
    folder = artifact.export(tmp_path / "out")
    for file in (folder / "cmsis_nn").glob("*.c"):
        file.unlink()
    assert strict_problems(folder, compiler, standard) == ""


def test_only_needed_files_are_copied() -> None:
    """Headers, and the files of functions that are called, directly or not."""
    artifact = microtir.build(IRModule(graph=quantised_graph()), config())
    copied = {f.path for f in artifact.sources if f.path.startswith("cmsis_nn/")}
    assert copied == {
        "cmsis_nn/arm_nnfunctions.h", "cmsis_nn/arm_nn_types.h", "cmsis_nn/arm_convolve.c",
        "cmsis_nn/arm_fully_connected.c", "cmsis_nn/arm_nn_stand_in.c",
    }  # fmt: skip
    assert (STAND_IN / "Source" / "arm_convolve.c").read_text() == artifact.source(
        "cmsis_nn/arm_convolve.c"
    )


def test_calls_are_printed_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes over the graph and lowering render no template: a call is data until codegen."""
    module = IRModule(graph=quantised_graph()).with_configuration(config())
    with monkeypatch.context() as patched:
        patched.setattr(code_templates, "make_environment", None)
        code_templates._installed.cache_clear()
        lowered = microtir.lower(module)
    artifact = microtir.build(lowered)
    assert externs(artifact) == [True, True]
    assert artifact.sources == microtir.build(module).sources


def test_output_does_not_name_the_folder() -> None:
    """The same library elsewhere gives the same bytes."""
    artifact = microtir.build(IRModule(graph=quantised_graph()), config())
    assert artifact.metadata.config["external"] == ["cmsis-nn=cmsis_nn_stand_in,all"]
    assert not any(str(STAND_IN) in source.text for source in artifact.sources)


def test_a_refusal_of_the_library_is_not_lost(tmp_path: Path) -> None:
    """Its status ends the run; what asks for more scratch than was planned is refused, too."""
    for place, change in (
        ("filter_dims->h > 7", "filter_dims->h > 0"),
        ("return filter_dims->h *", "return 1000 * filter_dims->h *"),
    ):
        folder = tmp_path / str(len(change))
        shutil.copytree(STAND_IN, folder)
        file = folder / "Source" / "arm_convolve.c"
        assert place in file.read_text()
        file.write_text(file.read_text().replace(place, change))
        module = IRModule(graph=quantised_graph())
        model = microtir.host.load(microtir.build(module, config(folder)))
        with pytest.raises(RunError, match="a C function outside the model reported a failure"):
            model.run(samples(module)[0].values[0])


def test_layers_by_position_and_by_cost() -> None:
    """Some operators, all of them, or those where the estimate is lower: none of them on an M4."""
    module = IRModule(graph=quantised_graph())
    assert module.graph is not None
    assert externs(microtir.build(module, config(choice=",all"))) == [True, True]
    assert externs(microtir.build(module, config(choice=""))) == [False, False]
    # The nodes of this graph have one position: number them.
    graph = module.graph
    numbered = [
        type(n)(n.op, n.inputs, n.outputs, n.name, type(n.source)("m", i, n.source.operator))
        for i, n in enumerate(graph.nodes)
    ]
    placed = IRModule(graph=type(graph)("m", graph.inputs, graph.outputs, tuple(numbered)))
    assert externs(microtir.build(placed, config(choice=",2"))) == [False, True]
    assert externs(microtir.build(placed, config(choice=",0,1"))) == [True, False]


def test_an_older_library_has_fewer_functions(tmp_path: Path) -> None:
    """A function that the folder does not define is not called."""
    folder = tmp_path / "old"
    shutil.copytree(STAND_IN, folder)
    (folder / "Source" / "arm_convolve.c").unlink()
    artifact = microtir.build(IRModule(graph=quantised_graph()), config(folder))
    assert externs(artifact) == [False, True]


def test_measured_choice() -> None:
    """Each layer is measured either way on the board; the slow stand-in gets none of them."""
    board = load_board("mps2_an386")
    module = IRModule(graph=quantised_graph())
    choice = choose_external(module, config(), board)
    assert choice.config.external == ()
    measured = [layer for layer in choice.layers if layer.external is not None]
    assert measured and not any(layer.is_external for layer in choice.layers)
    for layer in measured:
        assert layer.external is not None and layer.external > layer.own > 0


def test_choice_by_measured_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --measure cycles layers are compared by cycles, whatever they take in instructions."""
    board = load_board("mps2_an386")
    module = IRModule(graph=quantised_graph())
    known: dict[str, Profile] = {}

    def measured(artifact: Artifact, *arguments: Any, **options: Any) -> Profile:
        """What is compared by instructions and by cycles is measured once."""
        text = repr(sorted(program_text(artifact).items()))
        if text not in known:
            known[text] = profile(artifact, *arguments, **options)
        return known[text]

    monkeypatch.setattr("microtir.search.external.profile", measured)
    by_instructions = choose_external(module, config(), board)
    by_cycles = choose_external(module, config().with_(measure="cycles"), board)
    for one, other in zip(by_instructions.layers, by_cycles.layers, strict=True):
        assert one.operator == other.operator
        assert other.own > one.own  # no instruction takes less than a cycle, and some take more

    def cheap_in_cycles(artifact: Artifact, *arguments: Any, **options: Any) -> Profile:
        found = measured(artifact, *arguments, **options)
        calls = {row.function for row in artifact.metadata.layers if row.externs}
        layers = (replace(x, cycles=1) if x.function in calls else x for x in found.layers)
        return replace(found, layers=tuple(layers))

    monkeypatch.setattr("microtir.search.external.profile", cheap_in_cycles)
    assert choose_external(module, config(), board).config.external == ()
    chosen = choose_external(module, config().with_(measure="cycles"), board)
    numbers = tuple(layer.operator for layer in chosen.layers if layer.external is not None)
    assert numbers and chosen.config.external[0].operators == numbers


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    """A folder that is not there, or not the library's, is named."""
    module = IRModule(graph=quantised_graph())
    with pytest.raises(ToolError, match="there is no such folder"):
        microtir.build(module, config(tmp_path / "nowhere"))
    with pytest.raises(ToolError, match="is not a folder of CMSIS-NN"):
        microtir.build(module, config(tmp_path))


def test_text_of_the_option() -> None:
    """One text for the flag, the JSON and the report; a folder may have commas."""
    for text, external in {
        "cmsis-nn=a": External(ExternalLibrary.CMSIS_NN, "a"),
        "cmsis-nn=a,b/c,all": External(ExternalLibrary.CMSIS_NN, "a,b/c", everything=True),
        "cmsis-nn=a,3,0": External(ExternalLibrary.CMSIS_NN, "a", (0, 3)),
    }.items():
        assert External.parse(text) == external
        assert External.parse(str(external)) == external
        whole = CompilationConfig(targets="c", external=[text])
        assert CompilationConfig.from_json(whole.to_json()) == whole
        assert str(external) in whole.explain()
    assert External.parse("cmsis-nn=a,cost") == External(ExternalLibrary.CMSIS_NN, "a")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("cmsis-nn", "has no '='"),
        ("cmsisnn=x", "names no library"),
        ("cmsis-nn=", "has the path '' instead of a folder"),
        ("cmsis-nn=x,all,3", "names positions of operators as well as"),
        (["cmsis-nn=x", "cmsis-nn=y"], "is listed twice"),
        (5, "is not a sequence of libraries"),
        ([5], "is not a library"),
    ],
)
def test_wrong_options(given: object, problem: str) -> None:
    """Every mistake is found by the constructor."""
    with pytest.raises(ConfigError, match=problem) as caught:
        CompilationConfig(targets="c", external=given)  # type: ignore[arg-type]
    assert caught.value.where == "external"
    with pytest.raises(ConfigError, match="names no operator"):
        External(ExternalLibrary.CMSIS_NN, "x", ())


def test_command_line(microtir: Command) -> None:
    """The flag works with every verb; profile measures the choice."""
    flags = ("--external", f"cmsis-nn={STAND_IN},all", "--target", "c -mcpu=cortex-m4")
    assert "every int8 output byte identical" in microtir("verify", "example:digits", *flags).out
    refused = microtir("profile", "example:digits", "--board", "mps2_an386", "--choose-external")
    assert (refused.status, "names 0" in refused.err) == (2, True)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/external-kernels.md does what it says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "CMSIS-NN").symlink_to(STAND_IN)
    follow("external-kernels.md", tmp_path)


def named(name: str) -> Artifact:
    """A model of another name with the same library."""
    return microtir.build(IRModule(graph=quantised_graph()), config().with_(module_name=name))


def test_two_models_share_the_library(tmp_path: Path) -> None:
    """A program has each of its functions once."""
    project = generate(
        [named("one"), named("two")], "mps2_an386", ProjectType.BAREMETAL, tmp_path / "p"
    )
    assert project.build().is_file()


def test_archives_keep_its_files_together(tmp_path: Path) -> None:
    """Model Library Format: what the library's files include is where they look for it."""
    archive = tmp_path / "models.tar"
    microtir.export_model_library_format([named("one"), named("two")], archive)
    with tarfile.open(archive) as tar:
        names = [name for name in tar.getnames() if "cmsis_nn/arm_nn" in name]
    assert sorted(names) == [
        f"./codegen/host/src/cmsis_nn/{file}"
        for file in ("arm_nn_stand_in.c", "arm_nn_types.h", "arm_nnfunctions.h")
    ]
    for artifact, again in zip(
        (named("one"), named("two")),
        microtir.import_model_library_format(archive), strict=True,
    ):  # fmt: skip
        assert {f.path for f in artifact.sources} == {f.path for f in again.sources}
