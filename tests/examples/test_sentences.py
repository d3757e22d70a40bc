"""The language model of the examples: its files, and the tokens that the C gives."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import microtir
from benchmarks import tokens
from benchmarks.boards import TOLERANCE
from examples.sentences import corpus, export
from examples.sentences.demo import compile_model, continued, step_of
from examples.sentences.network import Shape, Value, loss_of
from microtir.boards import ProjectType, load_board
from microtir.config import Optimize
from microtir.host import Session
from microtir.projects import ProjectOptions, generate
from tests.support.pages import ROOT, follow, shown

FOLDER = Path(export.__file__).parent
TEXTS = [first for first, _ in corpus.split()[1][:5]]


@lru_cache
def compiled(bits: int) -> microtir.Artifact:
    """The C for the board, which runs on this machine, too."""
    return compile_model(bits, str(load_board(tokens.BOARD).target))


def stored(bits: int) -> bytes:
    """The model of the repository."""
    return (FOLDER / export.model_name(bits)).read_bytes()


def test_lines_fit_and_the_test_is_held_out() -> None:
    """Each line has its two ends, and none is in both parts."""
    train, test = corpus.split()
    assert {*train, *test} == set(corpus.lines())
    assert not set(train) & set(test)
    rows = corpus.batch_of([*train, *test])
    assert (rows[:, 0] == 0).all()
    assert (rows[:, -1] == 0).all()
    assert corpus.text_of(corpus.tokens_of("ben.")) == "ben."


@pytest.mark.parametrize("bits", export.BITS)
def test_models_come_from_the_weights(bits: int) -> None:
    """The stored weights give the stored models, byte for byte."""
    assert export.step_model(export.load_weights(), bits) == stored(bits)


def test_figures_are_those_of_the_models() -> None:
    """Of lines that training did not see, nearly all are continued as the rules have it."""
    recorded = json.loads((FOLDER / export.METRICS).read_text(encoding="utf-8"))
    legal, (_, test) = set(corpus.lines()), corpus.split()
    for bits in export.BITS:
        assert recorded[f"int{bits}_bytes"] == len(stored(bits))
        assert recorded[f"int{bits}_right"] >= 0.97 * recorded["lines"]
        step = export.Reference(stored(bits)).step
        assert all((first, continued(step, first)) in legal for first, _ in test[:5])


def test_slopes_are_those_of_the_loss() -> None:
    """Each parameter's slope is the difference quotient of the loss."""
    rng = np.random.default_rng(0)
    shape = Shape(tokens=32, width=8, heads=4, groups=2, hidden=6, blocks=1)
    given = {n: rng.normal(size=extents) for n, extents in shape.parameters().items()}
    rows = corpus.batch_of(corpus.lines()[::700])
    values = {name: Value(value) for name, value in given.items()}
    loss_of(values, rows, shape).backward()
    for name, value in given.items():
        direction = rng.normal(size=value.shape)

        def loss(by: float, name: str = name, direction: object = direction) -> float:
            moved = {**given, name: given[name] + by * np.asarray(direction)}
            return float(loss_of({n: Value(v) for n, v in moved.items()}, rows, shape).data)

        quotient = (loss(1e-5) - loss(-1e-5)) / 2e-5
        assert quotient == pytest.approx((values[name].slope * direction).sum(), rel=1e-4), name


@pytest.mark.parametrize("bits", export.BITS)
def test_the_c_gives_onnxruntimes_tokens(bits: int) -> None:
    """Sentence after sentence; a place of 0 begins anew, whatever the cache holds."""
    step = step_of(microtir.host.load(compiled(bits)))
    for text in TEXTS:
        assert continued(step, text) == continued(export.Reference(stored(bits)).step, text)


@pytest.mark.parametrize("bits", [pytest.param(8, marks=pytest.mark.soak_only), 4])
def test_a_board_gives_onnxruntimes_tokens(bits: int, tmp_path: Path) -> None:
    """On an emulated Cortex-M4, by the C for one."""
    options = ProjectOptions(server=True)
    folder = tmp_path / "p"
    made = generate(compiled(bits), tokens.BOARD, ProjectType.BAREMETAL, folder, options=options)
    made.build()
    with Session(made.transport()) as session:

        def step(token: int, place: int) -> int:
            session.set_inputs({"token": np.array([[token]], np.int64),
                                "place": np.array([place], np.int32)})  # fmt: skip
            session.run()
            return int(session.get_output("next").item())

        got = continued(step, TEXTS[0])
    assert got == continued(export.Reference(stored(bits)).step, TEXTS[0])


@pytest.mark.compiler_version
def test_a_token_takes_no_more_than_recorded() -> None:
    """RAM holds the cache once, and flash a weight of 4 bits in half a byte."""
    recorded = tokens.read_recorded()
    assert set(recorded) == {f"int{bits}" for bits in export.BITS}
    for ways in recorded.values():
        assert tuple(ways) == tuple(tokens.WAYS)
        for price in ways.values():
            assert price.ram < price.state + 2300
    board = load_board(tokens.BOARD)
    for way in ("last token", "last token, int8", "last token, int8 and cache"):
        before, (place, goal, options) = recorded["int4"][way], tokens.WAYS[way]
        now = tokens.price(tokens.compiled(4, board, goal, options), place, board)
        assert now.ram <= before.ram, "python -m benchmarks tokens --record"
        assert now.instructions <= before.instructions * (1 + TOLERANCE)


@pytest.mark.parametrize(
    ("bits", "least"), [(4, 274), pytest.param(8, 277, marks=pytest.mark.soak_only)]
)
@pytest.mark.parametrize(
    "options", [pytest.param((tokens.INT8,), marks=pytest.mark.soak_only), tokens.BOTH]
)
def test_rounded_models_continue_as_many_lines(
    bits: int, least: int, options: tuple[str, ...]
) -> None:
    """All lines of the test by the C whose layers read rows of int8, with a cache of int8."""
    made = tokens.compiled(bits, load_board(tokens.BOARD), Optimize.BALANCED, options)
    step, legal = step_of(microtir.host.load(made)), set(corpus.lines())
    right = sum((first, continued(step, first)) in legal for first, _ in corpus.split()[1])
    assert right >= least


def test_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/language-models.md prints what it shows, and its figures are those recorded."""
    monkeypatch.chdir(tmp_path)
    assert follow("language-models.md", tmp_path).splitlines() == shown("language-models.md")
    text = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    for ways in tokens.read_recorded().values():
        for price in ways.values():
            assert f"{price.instructions:,}" in text
            memory = f"{price.ram:,} | {price.state - 4:,} | {price.code:,} + {price.weights:,}"
            assert memory in text
