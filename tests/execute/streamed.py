"""`python -m tests.execute.streamed FOLDER`: pushes of frames, under sanitizers.

What `<module>_push` gives is what the C of the whole network gives for the sliding window.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.config import Measure, Optimize
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Array, Graph
from microtir.host.model import Model
from microtir.rewrite.requests.streaming import windows
from tests.support.batch import load_batch
from tests.support.networks_over_time import (
    NETWORKS,
    frames_of,
    named_network,
    random_network,
)
from tests.support.sanitizers import FLAGS
from tests.support.small_models import module_of

PUSHES = 56
HOPS = (1, 2, 3)
DTYPES = (DType.INT8, DType.FLOAT32)
_GOALS = ("balanced", "ram-least", "speed", "flash")


@dataclass(frozen=True)
class Case:
    """A network over time: compiled for pushes and for whole windows, and what it is given."""

    name: str
    graph: Graph
    axis: int
    push: Artifact
    whole: Artifact
    given: Sequence[Array]

    @property
    def input(self) -> str:
        return self.graph.arguments[0].name

    def expected(self, model: Model) -> list[bytes]:
        """Return what the whole network gives for the window after each push."""
        (x,) = self.graph.arguments
        return [_bytes(model.run({x.name: window})) for window in windows(x, self.axis, self.given)]

    def got(self, model: Model, first: int = 0, last: int = PUSHES) -> list[bytes]:
        """Return what some of the pushes give."""
        return [_bytes(model.run({self.input: values})) for values in self.given[first:last]]


def case_of(
    network: str, dtype: DType, hop: int, *, axis: int = 1, target: str = "c", goal: str = ""
) -> Case:
    """Return a network of `NETWORKS`, compiled for another goal by its name and hop.

    Args:
        network: its name.
        dtype: of its layers.
        hop: frames of a push.
        axis: of its input along which it is streamed.
        target: what both programs are compiled for.
        goal: of the compilation.
    """
    graph = named_network(network, dtype, axis=axis)
    goal = goal or _GOALS[(len(network) + hop) % len(_GOALS)]
    config = CompilationConfig(
        targets=target,
        module_name=f"{network}_{dtype.value}_{hop}_{axis}",
        optimize=goal,
        measure=Measure.INSTRUCTIONS,  # all kernels of floats fuse alike, as pages say
        stream_axis=str(axis),
        stream_hop=hop,
    )
    return _case(graph, axis, config)


def random_case(seed: int, dtype: DType, hop: int, goal: Optimize) -> Case | None:
    """Return a random network; None for one of which nothing stays."""
    graph, axis = random_network(seed, dtype)
    config = CompilationConfig(
        targets="c",
        module_name=f"random_{dtype.value}_{hop}_{seed}",
        optimize=goal,
        stream_axis=str(axis),
        stream_hop=hop,
    )
    try:
        return _case(graph, axis, config)
    except ConfigError as error:
        if "no value stays" not in str(error):
            raise
        return None


def _case(graph: Graph, axis: int, config: CompilationConfig) -> Case:
    """Return a network, compiled for pushes and for whole windows, and random frames."""
    hop, name = config.stream_hop, config.module_name
    push = microtir.build(module_of(graph), config)
    whole = config.without_stream().with_(module_name=f"{name}_whole")
    frames = frames_of(graph.arguments[0], axis, PUSHES * hop, seed=hop)
    given = [np.concatenate(frames[n : n + hop], axis) for n in range(0, len(frames), hop)]
    return Case(name, graph, axis, push, microtir.build(module_of(graph), whole), given)


def load_all(
    cases: Sequence[Case], folder: Path, flags: Sequence[str] = ()
) -> list[tuple[Case, Model, Model]]:
    """Compile cases together; of each the model of pushes and that of whole windows."""
    level = 0 if flags else 1
    places = [folder / name for name in ("pushes", "wholes")]
    for place in places:
        place.mkdir()
    pushes = load_batch(
        [case.push for case in cases], places[0], flags=flags, opt_level=level, entry="push"
    )
    wholes = load_batch([case.whole for case in cases], places[1], flags=flags, opt_level=level)
    return list(zip(cases, pushes, wholes, strict=True))


def check_all(loaded: Iterable[tuple[Case, Model, Model]], *, vary: bool = True) -> None:
    """Compare every push with the window, and see that windows differ if they have to `vary`."""
    for case, push, whole in loaded:
        expected = case.expected(whole)
        for number, (got, wanted) in enumerate(zip(case.got(push), expected, strict=True)):
            assert got == wanted, f"{case.name}, push {number}"
        assert not vary or len(set(expected)) > PUSHES // 2, (
            f"{case.name}: the frames do not matter"
        )


def _bytes(outputs: dict[str, Array]) -> bytes:
    return b"".join(array.tobytes() for array in outputs.values())


def main() -> int:
    """Run networks of all kinds; a finding ends the process with its report."""
    cases = [
        case_of(network, DTYPES[number // 2 % 2], 1 + number % 2)
        for number, network in enumerate(NETWORKS)
    ]
    check_all(load_all(cases, Path(sys.argv[1]), FLAGS))
    sys.stdout.write(f"{len(cases)} models clean\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
