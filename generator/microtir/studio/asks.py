"""Checks what the page asks for, and makes jobs of it: everything that comes from it is hostile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from microtir.errors import UsageError, nearest
from microtir.quantise import Width
from microtir.studio.events import Job
from microtir.studio.jobs.boards import Boards
from microtir.studio.jobs.code import Code
from microtir.studio.jobs.comparison import Comparison
from microtir.studio.jobs.download import Download, DownloadKind
from microtir.studio.jobs.frontier import FrontierSearch
from microtir.studio.jobs.inspection import Inspection
from microtir.studio.jobs.planning import Planning
from microtir.studio.jobs.quantisation import Quantisation
from microtir.studio.models import ModelStore, Origin
from microtir.studio.plan import Plan
from microtir.support.reading import check, parse_json


class Ask(Protocol):
    """A question that the page asks."""

    def job(self, models: ModelStore) -> Job:
        """Return the work; UsageError if the model is not there."""


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """A plan, whose model is named by its number; either a board or a target is named."""

    model: int
    optimize: str
    board: str | None = None
    target: str | None = None
    ram_budget: int | None = None

    def plan(self, models: ModelStore) -> Plan:
        """Return the plan; UsageError if the model is not there."""
        file = models.file(self.model)
        return Plan(file, self.board, self.target, self.optimize, self.ram_budget)


@dataclass(frozen=True, slots=True)
class InspectAsk:
    model: int

    def job(self, models: ModelStore) -> Job:
        return Inspection(models.file(self.model))


@dataclass(frozen=True, slots=True)
class QuantiseAsk:
    """A model and samples by their numbers, and the integers of all layers."""

    model: int
    samples: int
    width: Width

    def job(self, models: ModelStore) -> Quantisation:
        """Return the work, and keep a place for the file that comes of it."""
        model, samples = models.file(self.model), models.samples(self.samples)
        words = (*model.words, "--quantise", samples.label, *_FLAGS[self.width])
        origin = Origin(self.model, model.path.stem, words)
        number = models.add_made(f"{model.path.stem}_{self.width.value}.tflite", origin)
        return Quantisation(model, samples, self.width, number, models.file(number))


_FLAGS: Mapping[Width, tuple[str, ...]] = MappingProxyType({
    Width.INT8: (),
    Width.INT16: ("--16x8",),
    Width.WEIGHTS4: ("--weights", "4"),
    Width.FLOAT: ("--layer", "*=float"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardsAsk:
    model: int
    optimize: str

    def job(self, models: ModelStore) -> Job:
        return Boards(models.file(self.model), self.optimize)


@dataclass(frozen=True, slots=True)
class ShowAsk:
    """A plan to be shown; `least` is what an answer before this one gave as `workspace`."""

    plan: PlanAsk
    least: int | None = None

    def job(self, models: ModelStore) -> Job:
        return Planning(self.plan.plan(models), self.least)


@dataclass(frozen=True, slots=True)
class CodeAsk:
    plan: PlanAsk

    def job(self, models: ModelStore) -> Job:
        return Code(self.plan.plan(models))


@dataclass(frozen=True, slots=True)
class FrontierAsk:
    plan: PlanAsk

    def job(self, models: ModelStore) -> Job:
        return FrontierSearch(self.plan.plan(models))


@dataclass(frozen=True, slots=True)
class CompareAsk:
    before: PlanAsk
    after: PlanAsk

    def job(self, models: ModelStore) -> Job:
        return Comparison(self.before.plan(models), self.after.plan(models))


@dataclass(frozen=True, slots=True)
class DownloadAsk:
    plan: PlanAsk
    kind: DownloadKind
    project_type: str | None = None
    package_format: str | None = None

    def job(self, models: ModelStore) -> Job:
        plan = self.plan.plan(models)
        return Download(plan, self.kind, self.project_type, self.package_format)


ASKS: Mapping[str, type[Ask]] = MappingProxyType({
    "inspect": InspectAsk,
    "quantise": QuantiseAsk,
    "boards": BoardsAsk,
    "plan": ShowAsk,
    "code": CodeAsk,
    "frontier": FrontierAsk,
    "compare": CompareAsk,
    "download": DownloadAsk,
})  # fmt: skip
"""Questions that the page can ask, by the last part of their address."""


def read_ask(name: str, body: bytes) -> Ask:
    """Return what is asked for.

    Raises:
        UsageError: nothing of this name can be asked.
        WrongDataError: the body is something else.
    """
    if name not in ASKS:
        raise UsageError(
            f"'{name}' is not a request of the studio: {nearest(name, ASKS)}".removesuffix(": "),
            where="studio",
            legal=", ".join(ASKS),
        )
    ask: Ask = check(parse_json(body), ASKS[name])
    return ask
