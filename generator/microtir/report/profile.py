"""Reads what `microtir profile --json` wrote, and adds it to a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from microtir.errors import DataFileError
from microtir.report.data import FINISH, Report, ReportedLayer, ReportedProfile, WholeRun
from microtir.support.reading import NATURAL, WrongDataError, check, parse_json
from microtir.support.texts import TEXT

_FIX = "run `microtir profile` for this model, with the options of the report"


@dataclass(frozen=True, slots=True)
class MeasuredProfile:
    """A profile that was read: totals, and per row name, operator, instructions, estimated cycles.

    `targets` are those of the C that was measured, none if the file does not say.
    """

    file: str
    model: str
    targets: tuple[str, ...]
    totals: ReportedProfile
    rows: tuple[tuple[str, str, int, int], ...]


def read_profile(path: Path) -> MeasuredProfile:
    """Read a profile.

    Raises:
        DataFileError: the file cannot be read, or is no profile.
    """
    try:
        data = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataFileError(
            f"the profile cannot be read: {reason or error}", where=str(path)
        ) from None
    except WrongDataError as error:
        raise _no_profile(path, error.what) from None
    try:
        return _measured(path.name, data)
    except WrongDataError as error:
        raise _no_profile(path, f"{error.what}, not {error.legal}") from None
    except KeyError as error:
        raise _no_profile(path, f"it lacks {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise _no_profile(path, f"a value is of the wrong type: {error}") from None


def _no_profile(path: Path, why: str) -> DataFileError:
    return DataFileError(
        f"the file is not a profile: {why}",
        where=str(path),
        legal="what `microtir profile MODEL --json FILE` writes",
    )


def _measured(file: str, data: Mapping[str, Any]) -> MeasuredProfile:
    totals = ReportedProfile(
        board=_text(data, "board"),
        compiler=_text(data, "compiler"),
        instructions=_count(data, "instructions"),
        cycles=_count(data, "cycles_estimate"),
        flash=_sizes(data["flash"]),
        ram=_sizes(data["ram"]),
        elsewhere=(),
        whole=_whole(data),
    )
    rows = tuple(
        (
            _text(row, "name"),
            _text(row, "operator"),
            _count(row, "instructions"),
            _count(row, "cycles_estimate"),
        )
        for row in data["layers"]
    )
    targets = data.get("targets", [])
    check(targets, list[Annotated[str, TEXT]], "targets")
    return MeasuredProfile(file, _text(data, "model"), tuple(targets), totals, rows)


def _whole(data: Mapping[str, Any]) -> WholeRun | None:
    """Return the run of the whole window that stands beside pushes, if there is one."""
    whole = data.get("whole")
    if whole is None:
        return None
    ram = dict(_sizes(whole["ram"]))
    rest = ram["total"] - ram.get("stack", 0) - ram.get("reserve", 0)
    return WholeRun(_count(whole, "instructions"), max(rest, 0), is_measured=True)


def _sizes(sizes: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((str(name), _count(sizes, name)) for name in sizes)


def _text(row: Mapping[str, Any], name: str) -> str:
    check(row[name], Annotated[str, TEXT], name)
    return str(row[name])


def _count(row: Mapping[str, Any], name: str) -> int:
    check(row[name], Annotated[int, NATURAL], name)
    return int(row[name])


def with_profile(report: Report, profile: MeasuredProfile) -> Report:
    """Return the report with the figures of a profile.

    Rows and layers meet by name and operator; of equal ones the first meets the first. Rows that
    are no layer (main's own) are kept beside them.

    Raises:
        DataFileError: the profile is of another model, or of other options.
    """
    _check_same(report, profile)
    labels = frozenset(step.label for step in report.steps)
    waiting = list(profile.rows)
    layers: list[ReportedLayer] = []
    for layer in report.layers:
        # An operator with two functions has a row for each.
        count = layer.has_code + (layer.number + FINISH in labels)
        rows = [r for r in waiting if r[:2] == (layer.name, layer.operator)][:count]
        if layer.has_code and not rows:
            raise DataFileError(
                f"the profile has no row for the layer '{layer.name}'",
                where=profile.file,
                fix=_FIX,
            )
        for row in rows:
            waiting.remove(row)
            layer = replace(
                layer,
                instructions=(layer.instructions or 0) + row[2],
                cycles=(layer.cycles or 0) + row[3],
            )
        layers.append(layer)
    elsewhere = tuple((name, instructions, cycles) for name, _, instructions, cycles in waiting)
    return replace(
        report, layers=tuple(layers), profile=replace(profile.totals, elsewhere=elsewhere)
    )


def _check_same(report: Report, profile: MeasuredProfile) -> None:
    """Refuse figures of another model, or of another plan of the same model."""
    ram = dict(profile.totals.ram)
    workspace = ram.get("workspace", 0) + ram.get("scratch", 0)
    if profile.model != report.file:
        difference = f"'{profile.model}', but the report is for '{report.file}'"
    elif profile.targets and profile.targets != report.targets:
        measured, described = (
            " and ".join(targets) for targets in (profile.targets, report.targets)
        )
        difference = f"'{measured}', but the report is for '{described}'"
    elif workspace != report.workspace:
        difference = f"a workspace of {workspace} bytes, but the report is for {report.workspace}"
    else:
        return
    raise DataFileError(f"the profile was measured for {difference}", where=profile.file, fix=_FIX)
