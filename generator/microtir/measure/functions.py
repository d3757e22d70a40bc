"""The functions that a program consists of: those of its module, and the micro-kernels of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from microtir.tir.analysis.code import Arguments
from microtir.tir.function import NativeForm
from microtir.tir.ir import ExternCall, IntImm, Invoke, KernelCall, PrimFunc, Var
from microtir.tir.text import to_text
from microtir.tir.visitor import calls_of


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Every function of a program.

    Args:
        own: those of the module, in printing order; the last one of a model is its main.
        is_model: whether main calls the others; a program of a user offers some of its functions.
        everything: the same with the micro-kernels that they call, callees first.
        originals: for each of these the first one that is equal to it, itself if none is before it.
        assembly: template of each micro-kernel that has one.
        arguments: of the functions of a model: the values that all calls state.
    """

    own: tuple[PrimFunc, ...]
    is_model: bool
    everything: tuple[PrimFunc, ...]
    originals: Mapping[PrimFunc, PrimFunc]
    assembly: Mapping[PrimFunc, str]
    arguments: Mapping[PrimFunc, Arguments]

    @staticmethod
    def of(functions: tuple[PrimFunc, ...], *, is_model: bool) -> Functions:
        everything = tuple(_with_kernels(functions))
        assembly = _assembly(everything)
        originals = _originals(everything, frozenset(functions), assembly)
        arguments = _arguments(functions, originals) if is_model else {}
        return Functions(functions, is_model, everything, originals, assembly, arguments)

    @property
    def distinct(self) -> tuple[PrimFunc, ...]:
        """Return all functions but micro-kernels that are equal to an earlier one."""
        return tuple(f for f in self.everything if self.originals[f] is f)

    @property
    def main(self) -> PrimFunc | None:
        return self.own[-1] if self.is_model else None

    @property
    def layers(self) -> tuple[PrimFunc, ...]:
        return self.own[:-1] if self.is_model else ()

    @property
    def roots(self) -> tuple[PrimFunc, ...]:
        """Return the functions that an application may call."""
        return self.own[-1:] if self.is_model else tuple(f for f in self.own if f.exported)


def has_intrinsics(kernel: PrimFunc) -> bool:
    """Return whether a micro-kernel's template is a body in C, not assembly."""
    native = None if kernel.kernel is None else kernel.kernel.native
    return native is not None and native.form is NativeForm.INTRINSICS


def native_values(kernel: PrimFunc) -> Mapping[str, Any]:
    """Return what the template of a micro-kernel is given."""
    assert kernel.kernel is not None and kernel.kernel.native is not None, "a template is given it"
    return kernel.kernel.native.values


def kernels_of(function: PrimFunc) -> Iterator[PrimFunc]:
    """Yield meanings of the micro-kernels that a function calls, innermost first, each once."""
    return _kernels_of(function, set())


def _kernels_of(function: PrimFunc, seen: set[PrimFunc]) -> Iterator[PrimFunc]:
    for call in calls_of(function):
        if isinstance(call, KernelCall) and call.meaning not in seen:
            yield from _kernels_of(call.meaning, seen)
            seen.add(call.meaning)
            yield call.meaning


def _with_kernels(functions: Iterable[PrimFunc]) -> Iterator[PrimFunc]:
    seen: set[PrimFunc] = set()
    for function in functions:
        yield from _kernels_of(function, seen)
        if function not in seen:
            seen.add(function)
            yield function


def _arguments(
    own: Sequence[PrimFunc], originals: Mapping[PrimFunc, PrimFunc]
) -> dict[PrimFunc, Arguments]:
    """Return the values that the calls of each function state, from main to what layers share."""
    calls = defaultdict[PrimFunc, list[dict[Any, int]]](list, {own[-1]: [{}]})
    named = {f.name: f for f in own}
    for caller in reversed(tuple(originals)):
        for call in _calls_of(caller):
            if isinstance(call, ExternCall):
                continue
            callee = named[call.function] if isinstance(call, Invoke) else originals[call.meaning]
            pairs = tuple(zip(callee.params, call.args, strict=True))
            written = {a: a.value for _, a in pairs if isinstance(a, IntImm)}
            for known in calls[caller]:
                stated = {**known, **written}
                calls[callee].append({p: stated[a] for p, a in pairs if a in stated})
    return {f: _stated_by_all(f, of) for f, of in calls.items() if of}


def _stated_by_all(function: PrimFunc, calls: Sequence[Mapping[Any, int]]) -> Arguments:
    known = (p for p in function.params if isinstance(p, Var) and all(p in c for c in calls))
    return tuple((p, tuple(call[p] for call in calls)) for p in known)


def _assembly(functions: Iterable[PrimFunc]) -> dict[PrimFunc, str]:
    """Return the assembly template of every micro-kernel that has one."""
    return {
        call.meaning: call.template
        for function in functions
        for call in calls_of(function)
        if isinstance(call, KernelCall) and call.template is not None
    }


_calls_of = lru_cache(maxsize=1024)(calls_of)
# Of micro-kernels, which are made once for all layers of equal shapes.
_text_of = lru_cache(maxsize=512)(to_text)


def _originals(
    everything: Iterable[PrimFunc], own: frozenset[PrimFunc], assembly: Mapping[PrimFunc, str]
) -> dict[PrimFunc, PrimFunc]:
    """Return for each function the first one that is equal to it; `own` ones are no micro-kernels.

    Layers of equal shapes make equal kernels, each for itself: a program needs one of them.
    """
    seen: dict[tuple[str, str | None], PrimFunc] = {}
    originals: dict[PrimFunc, PrimFunc] = {}
    for function in everything:
        originals[function] = function
        if function not in own:
            key = _text_of(function), assembly.get(function)
            originals[function] = seen.setdefault(key, function)
    return originals
