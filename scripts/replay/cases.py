"""What is compiled: models, the example and odd graphs, for CPUs of every kind, at every goal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GOALS = ("speed", "balanced", "ram", "flash")
EXECUTORS = ("aot", "aot packed", "graph", "debug")
_TARGETS = {
    "m0": "c -mcpu=cortex-m0",
    "m3": "c -mcpu=cortex-m3",
    "m4": "c -mcpu=cortex-m4",
    "m7": "c -mcpu=cortex-m7",
    "m33": "c -mcpu=cortex-m33",
    "m55": "c -mcpu=cortex-m55",
    "rv32": "c -march=rv32imac",
    "avr": "c -mcpu=atmega2560",
    "x86": "c -mcpu=x86-64",
    "c": "c",
}
_ALL_EXECUTORS = ("m4", "c")  # the CPUs with every executor; aot elsewhere
_LARGE_ON_AVR = ("balanced", "ram")  # no AVR holds these models: two goals show what there is
_SMALL = 20_000  # bytes of a model file up to which AVR gets every goal
_ODD_GRAPHS = 20
_EXAMPLE = "examples/digits/digits_int8.tflite"


@dataclass(frozen=True, slots=True)
class Case:
    """One compilation.

    `model` is the path of a file, relative to the tree if it belongs to the project, or
    `odd:SEED`, a random graph of the tests.
    """

    model: str
    target: str
    goal: str
    executor: str = "aot"

    @property
    def key(self) -> str:
        """Return a name that a person can read, and that stays the same between commits."""
        return f"{Path(self.model).stem} | {self.target} | {self.goal} | {self.executor}"

    @property
    def batch(self) -> tuple[str, str]:
        """Return a key that is equal for cases that share a reading of the model."""
        return self.model, self.target


def full_cases(models: Path) -> list[Case]:
    """Return every case: the models of a folder, the example, odd graphs.

    Args:
        models: the folder of the reference models.
    """
    cases = []
    for model in (_EXAMPLE, *map(str, sorted(models.glob("*.tflite")))):
        small = model == _EXAMPLE or Path(model).stat().st_size <= _SMALL
        cases += list(_of_model(model, small=small))
    for seed in range(_ODD_GRAPHS):
        cases += list(_of_model(f"odd:{seed}", small=True))
    return cases


def quick_cases(models: Path) -> list[Case]:
    """Return a sample of `full_cases` with every model, target, goal and executor.

    Args:
        models: the folder of the reference models.
    """
    every = full_cases(models)
    kept = [c for c in every if c.model == _EXAMPLE]
    for index, case in enumerate(c for c in every if c.model != _EXAMPLE):
        # Steps that share no factor with the number of goals or targets visit all of both.
        if index % (37 if case.model.startswith("odd:") else 11) == 0:
            kept.append(case)
    return kept


def _of_model(model: str, *, small: bool) -> Iterator[Case]:
    for name, target in _TARGETS.items():
        goals = GOALS if small or name != "avr" else _LARGE_ON_AVR
        executors = EXECUTORS if name in _ALL_EXECUTORS else EXECUTORS[:1]
        for goal in goals:
            for executor in executors:
                yield Case(model, target, goal, executor)
