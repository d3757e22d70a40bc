"""Runs passes of the user, plain functions, at named points of `lower`, and checks after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from microtir.errors import GraphError, MicrotirError, TirError, UsageError, nearest
from microtir.graph.ir import Graph
from microtir.tir.ir import PrimFunc

GraphFunction: TypeAlias = Callable[[Graph], Graph]
"""A rewrite of the graph. It may change what the model computes; that is the user's affair."""

PrimFuncFunction: TypeAlias = Callable[[PrimFunc], PrimFunc]
"""A rewrite of one function, which keeps its name and its parameters."""

_Subject = TypeVar("_Subject", Graph, PrimFunc)


@dataclass(frozen=True, slots=True)
class ExtraPasses:
    """Functions of the user; each field is a point of the road, each is run in the order given.

    A pass may declare conditions, as attributes that hold functions: each of `requires` is asked of
    what the pass is given, each of `ensures` of what it was given and what it gave. One that does
    not return True ends the compilation.

    Args:
        graph_first: on the graph that the configuration asks for, behind the passes of `request`.
        graph_last: on the optimised graph, before a kernel is chosen for anything.
        tir_first: on every function as lowering wrote it, or as it was given to `lower`.
        tir_last: on every lowered function, before main is made.
        main: on the model's main, before its buffers are placed.
        after: on the graph as the pass of this name leaves it, whether it changed something or not;
            `microtir explain pipeline` lists the names. Those of `plan` run once for each graph
            that planning compares.
    """

    graph_first: Sequence[GraphFunction] = ()
    graph_last: Sequence[GraphFunction] = ()
    tir_first: Sequence[PrimFuncFunction] = ()
    tir_last: Sequence[PrimFuncFunction] = ()
    main: Sequence[PrimFuncFunction] = ()
    after: Mapping[str, Sequence[GraphFunction]] = field(default_factory=dict)

    def refuse_points_off_the_road(self, *, has_graph: bool, ends: bool) -> None:
        """Refuse passes that would never run.

        Args:
            has_graph: the program is a model; functions in TIR pass two points only.
            ends: the program is lowered already.

        Raises:
            UsageError: names the points.
        """
        legal = () if ends else _TIR_POINTS if not has_graph else tuple(self.__slots__)
        lost = [name for name in self.__slots__ if getattr(self, name) and name not in legal]
        if lost:
            raise UsageError(
                "the pass would never run: "
                + ("the module is already lowered" if ends else "the module has no graph"),
                where=f"passes.{lost[0]}",
                legal=", ".join(legal) or "none",
            )


def refuse_unknown_passes(after: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse functions of the user behind passes that do not run.

    Args:
        after: names of passes.
        known: those that run.
        where: the argument that names them.

    Raises:
        UsageError: names the first one that does not.
    """
    names = list(dict.fromkeys(known))
    for name in after:
        if name not in names:
            raise UsageError(
                f"no pass '{name}' runs at this point{nearest(name, names)}", where=where,
                legal=", ".join(names),
            )  # fmt: skip


_TIR_POINTS = ("tir_first", "tir_last")


def applied(
    passes: Sequence[Callable[[_Subject], _Subject]],
    point: str,
    subject: _Subject,
    check: Callable[[_Subject, _Subject, str], None],
) -> _Subject:
    """Run the passes of one point.

    Args:
        passes: functions of the user.
        point: argument that holds them, such as `passes.main`.
        subject: what the first of them is given.
        check: is called after each with what it was given, what it gave, and its name; raises.

    Raises:
        UsageError: a pass gave something else than it was given, or another signature; a condition
            that it declares does not hold.
        GraphError: the graph that a pass gave breaks a rule.
        TirError: the function that a pass gave does, or an access of it cannot be proven.
    """
    for function in passes:
        name = getattr(function, "__name__", type(function).__name__)
        where = f"{point}: '{name}'"
        _require_conditions(function, "requires", (subject,), where)
        after = function(subject)
        _require_kind(subject, after, where)
        _require_conditions(function, "ensures", (subject, after), where)
        if after is subject:
            continue
        try:
            check(subject, after, name)
        except (GraphError, TirError) as error:
            raise _blamed(error, where) from error
        subject = after
    return subject


def _require_conditions(
    function: Callable[[_Subject], _Subject],
    kind: str,
    subjects: tuple[_Subject, ...],
    where: str,
) -> None:
    """Ask the conditions of one kind that a pass declares; it need not declare any."""
    conditions = getattr(function, kind, ())
    if not isinstance(conditions, Sequence) or not all(map(callable, conditions)):
        raise UsageError(
            f"'{kind}' of the pass is not a sequence of functions",
            where=where,
            legal="a sequence of functions that return True if the condition holds",
        )
    for condition in conditions:
        if condition(*subjects) is not True:
            name = getattr(condition, "__name__", type(condition).__name__)
            is_before = kind == "requires"
            raise UsageError(
                f"the condition '{name}' does not hold {'before' if is_before else 'after'} the "
                f"pass, for '{subjects[-1].name}'",
                where=where,
                fix="run the pass where the condition holds" if is_before else "correct the pass",
            )


def _require_kind(before: Graph | PrimFunc, after: object, where: str) -> None:
    kind = type(before).__name__
    if type(after) is not type(before):
        result = "nothing" if after is None else f"a {type(after).__name__}"
        raise UsageError(
            f"the pass returned {result}",
            where=where,
            legal=f"a {kind}; if nothing changes, the argument of the pass",
        )
    if (
        isinstance(before, PrimFunc)
        and isinstance(after, PrimFunc)
        and ((after.name, after.params) != (before.name, before.params))
    ):
        raise UsageError(
            f"the pass changed the name or the parameters of '{before.name}'",
            where=where,
            legal="a change of the body only, because main calls the function as planned",
        )


def _blamed(error: MicrotirError, where: str) -> MicrotirError:
    what = f"{error.where}: {error.what}" if error.where else error.what
    return type(error)(what, where=where, legal=error.legal, fix="correct the pass")
