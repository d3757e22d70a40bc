"""Passes of the user: where they run, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, ExtraPasses, IRModule, te
from microtir.dtype import DType
from microtir.errors import GraphError, MicrotirError, TirError, UsageError
from microtir.graph.ir import Graph
from microtir.lowering.graph_lowering import graph_pass_names
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.movement.definition import Reshape
from microtir.rewrite.facts.sums import fits
from microtir.rewrite.optimise import BoundSums
from microtir.tir.ir import Buffer, IntImm, PrimFunc, Seq, Store
from tests.support.command import INT8
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.pages import follow, shown
from tests.support.small_models import quantised_graph

POINTS = ("graph_first", "graph_last", "tir_first", "tir_last", "main")


def model() -> IRModule:
    """Two layers that need code, and a reshape that needs none."""
    return IRModule(graph=quantised_graph())


def test_points_are_passed_in_order() -> None:
    """Every point is passed, graph first and main last, and the functions in between."""
    seen: list[tuple[str, str]] = []

    def spy(point: str) -> Callable[[Graph | PrimFunc], Graph | PrimFunc]:
        def look(subject: Graph | PrimFunc) -> Graph | PrimFunc:
            seen.append((point, subject.name))
            return subject

        return look

    passes = ExtraPasses(**{point: [spy(point)] for point in POINTS})  # type: ignore[arg-type]
    lowered = microtir.lower(model(), passes=passes)
    layers = [f.name for f in lowered.functions[:-1]]
    assert seen == [
        ("graph_first", "test"),
        ("graph_last", "test"),
        *((point, name) for name in layers for point in ("tir_first", "tir_last")),
        ("main", "main"),
    ]


def test_functions_run_behind_every_pass() -> None:
    """They run in the order of the pipeline, whether a pass changes something or not."""
    config, seen = microtir.config.host(), []

    def spy(name: str) -> Callable[[Graph], Graph]:
        def look(subject: Graph) -> Graph:
            seen.append(name)
            return subject

        return look

    names = graph_pass_names(config)
    passes = ExtraPasses(after={name: [spy(name)] for name in names})
    changed = microtir.build(model().with_configuration(config), passes=passes)
    assert seen == list(names)
    plain = microtir.build(model().with_configuration(config))
    assert changed.sources == plain.sources


def test_functions_run_behind_what_reads_a_file() -> None:
    """Behind the readers, and behind each pass of the format."""
    seen: list[str] = []

    def spy(subject: Graph) -> Graph:
        seen.append(subject.name)
        return subject

    behind = {name: [spy] for name in ("read_operators", "older_quantization", "fuse_quantised")}
    microtir.frontend.read_model(INT8, name="digits", after=behind)
    assert seen == ["digits"] * 2, "the pass of ONNX does not run"
    with pytest.raises(UsageError, match="no pass 'fuse_quantised' runs at this point"):
        microtir.frontend.from_tflite(INT8, after=behind)
    broken = {"older_quantization": [lambda graph: replace(graph, nodes=graph.nodes[1:])]}
    with pytest.raises(GraphError, match=r"after\['older_quantization'\]: '<lambda>'"):
        microtir.frontend.from_tflite(INT8, after=broken)


def test_an_unknown_pass_is_refused() -> None:
    """No function waits for a pass that does not run."""
    with pytest.raises(UsageError, match="did you mean 'fold_pad'") as refused:
        microtir.lower(model(), passes=ExtraPasses(after={"fold_pads": [_without_activation]}))
    assert refused.value.where == "passes.after"


def _without_activation(subject: Graph) -> Graph:
    nodes = [
        replace(n, op=replace(n.op, activation=Activation.NONE))
        if isinstance(n.op, Conv2D) else n
        for n in subject.nodes
    ]  # fmt: skip
    return replace(subject, nodes=tuple(nodes))


@pytest.mark.parametrize(
    "passes",
    [
        ExtraPasses(graph_first=(_without_activation,)),
        ExtraPasses(graph_last=(_without_activation,)),
        *(ExtraPasses(after={name: (_without_activation,)})
          for name in ("choose_numerics", "fold_pad", "update_in_place", "partition",
                       "reorder", "cut_columns")),
    ],
)  # fmt: skip
def test_what_a_graph_pass_gives_is_compiled(passes: ExtraPasses) -> None:
    """The C computes the graph as the pass left it."""
    image = np.random.default_rng(0).integers(-128, 128, (1, 3, 4, 1)).astype(np.int8)
    changed = microtir.host.load(microtir.build(model(), passes=passes)).run({"image": image})
    other = IRModule(graph=_without_activation(quantised_graph()))
    expected = microtir.host.load(microtir.build(other)).run({"image": image})
    assert np.array_equal(changed["scores"], expected["scores"])
    plain = microtir.host.load(microtir.build(model())).run({"image": image})
    assert not np.array_equal(changed["scores"], plain["scores"])


def _large_bias(subject: Graph) -> Graph:
    nodes = [
        replace(n, inputs=(*n.inputs[:2], constant("large", np.full(3, 2**31 - 1, np.int32))))
        if isinstance(n.op, Conv2D) else n
        for n in subject.nodes
    ]  # fmt: skip
    return replace(subject, nodes=tuple(nodes))


@pytest.mark.parametrize("name", ["fold_pad", "update_in_place", "row_ports", "cut_columns"])
def test_sums_are_bounded_anew_behind_a_pass_of_the_user(name: str) -> None:
    """What is known of sums is that of the constants which the user's pass left."""
    passes = ExtraPasses(after={name: (_large_bias,)})
    lowered = microtir.lower(model().with_configuration(microtir.config.host()), passes=passes)
    assert lowered.program is not None
    planned = lowered.program.graph
    assert BoundSums()(planned) is planned
    assert not fits(planned.nodes[0])


def _doubled() -> te.Tensor:
    x = te.placeholder((8,), DType.INT32, "x")
    return te.compute((8,), lambda i: x[i] * 2, "y")


def _last_element_zero(func: PrimFunc) -> PrimFunc:
    y = func.params[-1]
    assert isinstance(y, Buffer)
    return replace(func, body=Seq((func.body, Store(y, (IntImm(7),), IntImm(0)))))


def _behind_the_end(func: PrimFunc) -> PrimFunc:
    y = func.params[-1]
    assert isinstance(y, Buffer)
    return replace(func, body=Seq((func.body, Store(y, (IntImm(8),), IntImm(0)))))


@pytest.mark.parametrize("point", ["tir_first", "tir_last"])
def test_functions_without_a_model_have_tir_points(point: str) -> None:
    """A Schedule goes by the TIR points, and what the pass wrote is what runs."""
    passes = ExtraPasses(**{point: (_last_element_zero,)})  # type: ignore[arg-type]
    artifact = microtir.build(te.create_schedule(_doubled()), name="twice", passes=passes)
    y = np.ones(8, np.int32)
    microtir.host.load(artifact)["twice"](np.arange(8, dtype=np.int32), y)
    assert y.tolist() == [0, 2, 4, 6, 8, 10, 12, 0]


@pytest.mark.parametrize("point", ["tir_first", "tir_last"])
def test_an_access_outside_names_the_pass(point: str) -> None:
    """A store that cannot be proven in bounds is the fault of the pass that made it."""
    passes = ExtraPasses(**{point: (_behind_the_end,)})  # type: ignore[arg-type]
    with pytest.raises(TirError, match=rf"^passes\.{point}: '_behind_the_end': ") as caught:
        microtir.lower(te.create_schedule(_doubled()), passes=passes)
    assert caught.value.fix == "correct the pass"


class _Declared:
    """A pass that gives what it is given, with conditions that it declares."""

    __name__ = "declared"

    def __init__(self, asked: list[object], *answers: object) -> None:
        self.asked = asked
        self.answers = answers
        self.requires, self.ensures = [self.before], [self.after]

    def before(self, subject: Graph | PrimFunc) -> object:
        self.asked.append(subject)
        return self.answers[0]

    def after(self, before: Graph | PrimFunc, after: Graph | PrimFunc) -> object:
        self.asked.append((before, after))
        return self.answers[1]

    def __call__(self, subject: Graph | PrimFunc) -> Graph | PrimFunc:
        self.asked.append("run")
        return subject


@pytest.mark.parametrize("point", POINTS)
def test_conditions_are_asked_before_and_after(point: str) -> None:
    """At every point, with what the pass was given and gave; one that does not hold is named."""
    asked: list[object] = []
    passes = ExtraPasses(**{point: [_Declared(asked, True, True)]})  # type: ignore[arg-type]
    microtir.lower(model(), passes=passes)
    first, ran, pair = asked[:3]
    assert (ran, pair) == ("run", (first, first))
    assert isinstance(first, Graph | PrimFunc)
    for answers, when in {
        (False, True): "before",
        (True, False): "after",
        (True, 1): "after",
    }.items():
        asked.clear()
        wrong = ExtraPasses(**{point: [_Declared(asked, *answers)]})  # type: ignore[arg-type]
        text = f"the condition '{when}' does not hold {when} the pass, for '{first.name}'"
        with pytest.raises(UsageError, match=text) as caught:
            microtir.lower(model(), passes=wrong)
        assert caught.value.where == f"passes.{point}: 'declared'"
        assert asked.count("run") == (when == "after")


def test_conditions_are_functions() -> None:
    """What cannot be asked is refused, and not passed over."""

    def declared(subject: Graph) -> Graph:
        return subject

    setattr(declared, "requires", ["has_relu6"])  # noqa: B010  # a function's own attribute
    with pytest.raises(UsageError, match="'requires' of the pass is not a sequence of functions"):
        microtir.lower(model(), passes=ExtraPasses(graph_first=[declared]))


def test_replay_names_a_pass_that_changes_a_result() -> None:
    """With the option on, TIR passes of the user are replayed as the compiler's own are."""
    config = CompilationConfig.from_target("c")
    config = replace(config, pass_config={"tir.replay_each_pass": True})  # type: ignore[arg-type]
    with pytest.raises(TirError, match="'_last_element_zero' changed a result"):
        microtir.build(
            te.create_schedule(_doubled()), config,
            passes=ExtraPasses(tir_last=[_last_element_zero]),
        )  # fmt: skip


def test_a_broken_graph_names_the_pass() -> None:
    """The verifier's words, and whose graph it was."""

    def forget(subject: Graph) -> Graph:
        return replace(subject, nodes=subject.nodes[:-1])

    with pytest.raises(GraphError, match=r"^passes\.graph_last: 'forget': .*never computed"):
        microtir.lower(model(), passes=ExtraPasses(graph_last=[forget]))


def test_main_is_checked_against_the_functions_it_calls() -> None:
    """A call of a function that does not exist is found at once."""

    def rename(func: PrimFunc) -> PrimFunc:
        return replace(func, body=Seq((func.body, microtir.tir.ir.Invoke("nobody", ()))))

    with pytest.raises(TirError, match=r"^passes\.main: 'rename': .*nobody"):
        microtir.lower(model(), passes=ExtraPasses(main=[rename]))


def _nothing(subject: Graph) -> Graph:
    return None  # type: ignore[return-value]


def _renamed(func: PrimFunc) -> PrimFunc:
    return replace(func, name=f"{func.name}_2")


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "nothing returned": (
        lambda: microtir.lower(model(), passes=ExtraPasses(graph_first=[_nothing])),
        "passes.graph_first: '_nothing': the pass returned nothing",
    ),
    "function renamed": (
        lambda: microtir.lower(model(), passes=ExtraPasses(tir_last=[_renamed])),
        "passes.tir_last: '_renamed': the pass changed the name or the parameters",
    ),
    "no graph": (
        lambda: microtir.lower(
            te.create_schedule(_doubled()), passes=ExtraPasses(graph_last=[_without_activation])
        ),
        "passes.graph_last: the pass would never run: the module has no graph",
    ),
    "lowered": (
        lambda: microtir.build(
            microtir.lower(model()), passes=ExtraPasses(tir_last=[_last_element_zero])
        ),
        "passes.tir_last: the pass would never run: the module is already lowered",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """What cannot be honoured is refused, with the point in the message."""
    call, message = REFUSED[case]
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


def test_a_crash_of_a_pass_stays_a_crash() -> None:
    """An exception of the user's own function is not dressed up as a diagnostic."""

    def crash(_subject: Graph) -> Graph:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        microtir.lower(model(), passes=ExtraPasses(graph_first=[crash]))
    assert not isinstance(caught.value, MicrotirError)


def test_passes_survive_a_graph_without_layers() -> None:
    """A model whose only operator is folded away still goes by every point."""
    x = tensor("x", (1, 4), DType.INT8, quant(0.1))
    y = tensor("y", (4,), DType.INT8, quant(0.1))
    named: list[str] = []

    def note(func: PrimFunc) -> PrimFunc:
        named.append(func.name)
        return func

    only = IRModule(graph=graph([node(Reshape(), (x,), y)], [x], [y]))
    microtir.lower(only, passes=ExtraPasses(main=[note]))
    assert named == ["main"]


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/extra-passes.md does what it says."""
    monkeypatch.chdir(tmp_path)
    assert follow("extra-passes.md", tmp_path).splitlines() == shown("extra-passes.md")
