"""A keyword spotter from raw samples to decisions: one C file, one plan, tflite-micro's results."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.graph.ir import Array
from microtir.rewrite.reference import execute_steps
from scripts.models import audio
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.tflm import run_tflm_sequence

HOPS = 60
MODEL = audio.spotter()


@lru_cache(maxsize=1)
def hops() -> tuple[Array, ...]:
    """Sound by the hop: a rising tone that comes and goes, over some noise; silence at the end."""
    seconds = np.arange(HOPS * audio.HOP) / audio.RATE
    is_on = np.sin(2 * np.pi * 1.5 * seconds) > 0
    tone = 8000 * np.sin(2 * np.pi * (300 + 900 * seconds) * seconds) * is_on
    noise = np.random.default_rng(0).normal(0, 60, len(seconds))
    sound = ((tone + noise) * (seconds < seconds[-1] * 0.9)).astype(np.int16)
    return tuple(sound.reshape(HOPS, 1, audio.HOP))


@lru_cache(maxsize=1)
def artifact() -> Artifact:
    """The model, compiled."""
    return microtir.build(microtir.frontend.from_tflite(MODEL))


@lru_cache(maxsize=1)
def expected() -> tuple[Array, ...]:
    """What the meaning gives for each hop."""
    graph = microtir.frontend.from_tflite(MODEL).graph
    assert graph is not None
    runs = execute_steps(graph, [{"samples": hop} for hop in hops()])
    return tuple(outputs["y"] for outputs in runs)


@pytest.mark.tools
def test_every_hop_equals_tflite_micro() -> None:
    """Decisions change with the sound, and each of them is equal."""
    want = [outputs[0] for outputs in run_tflm_sequence(MODEL, [[hop] for hop in hops()])]
    np.testing.assert_array_equal(expected(), want)
    assert len({bytes(y) for y in expected()}) > 10


@pytest.mark.tools
def test_every_hop_in_c() -> None:
    """Under sanitizers; a model that was reset hears the same again."""
    model = microtir.host.load(artifact(), sanitize=True)
    for _ in range(2):
        got = [model.run({"samples": hop})["y"] for hop in hops()]
        np.testing.assert_array_equal(got, expected())
        model.reset()


def test_one_plan() -> None:
    """Samples and features share one workspace; what is kept is the state's."""
    memory = artifact().metadata.memory
    assert memory is not None
    (workspace,) = memory.pools
    spectrum, energies = 2 * (audio.LENGTH + 2), 4 * (audio.LENGTH // 2 + 1)
    assert workspace.size < spectrum + energies + 64
    header = next(f.text for f in artifact().sources if f.path == "model.h")
    (line,) = (line for line in header.splitlines() if "MODEL_STATE_SIZE " in line)
    held, stacked = 2 * (audio.FRAME - audio.HOP), 2 * audio.CONTEXT * audio.CHANNELS
    assert 0 <= int(line.split()[2]) - (held + stacked + 4 * audio.CHANNELS) <= 16


@pytest.mark.tools
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warnings(compiler: str, tmp_path: Path) -> None:
    """Of the strict set."""
    artifact().export(tmp_path)
    command = [compiler, "-std=c99", *STRICT, "-O2", "-c", "model.c", "-o", "model.o"]
    assert not compiler_output(command, tmp_path)


def test_bands_are_triangles() -> None:
    """What a frequency counts for two channels is 1 in all; widths follow each other."""
    weights, starts, firsts, widths = audio.bands()
    assert weights.min() >= 0 and weights.max() <= 1 << 12
    np.testing.assert_array_equal(firsts[1:], np.cumsum(widths)[:-1])
    full = np.flatnonzero(widths)
    np.testing.assert_array_equal((starts + widths)[full][:-1], starts[full][1:])


def test_gains_fall() -> None:
    """The louder the noise, the smaller the gain; the polynomials meet."""
    table = audio.gains().astype(int)
    values = table[2::4]
    assert (np.diff(values) <= 0).all() and values[-1] >= 0
    ends = values + table[3::4] + table[4::4]
    np.testing.assert_array_equal(ends[:-1], values[1:])


def test_script_writes_the_file(tmp_path: Path) -> None:
    """The same bytes each time."""
    audio.main([str(tmp_path / "spotter.tflite")])
    assert (tmp_path / "spotter.tflite").read_bytes() == MODEL
