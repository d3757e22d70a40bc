"""Lowers the functions of layers: emission, passes and proofs, merging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from microtir.config import CompilationConfig, Feature
from microtir.config.enums import FloatFunctions, Optimize
from microtir.kernels import emit, emit_finish, function_names
from microtir.plan.ir import Plan, PlanConstraints, PlannedOperator
from microtir.rewrite.extra_passes import ExtraPasses, applied
from microtir.tir import passes as tir_passes
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.contraction import contracted
from microtir.tir.ir import Buffer, PrimFunc
from microtir.tir.replay import check_pass
from microtir.tir.structural_hash import StructuralKey, rebind, structural_key
from microtir.tir.verify import verify, verify_after


def tir_passes_of(config: CompilationConfig, *, simple_mode: bool) -> tuple[tir_passes.Pass, ...]:
    """Return the passes that a configuration asks for, in order."""
    options = config.pass_config
    return tir_passes.pipeline(options.unroll_max_extent, simple_mode, options.disable_unroll)


def emitted(plan: Plan) -> dict[PlannedOperator, tuple[PrimFunc, ...]]:
    """Return the functions of each operator that needs code, as its kernel writes them."""
    computed = [op for op in plan.operators if not op.candidate.is_view]
    layers: dict[PlannedOperator, tuple[PrimFunc, ...]] = {}
    for op, name in zip(computed, function_names([op.node for op in computed]), strict=True):
        layers[op] = (emit(op, plan.layouts, name),)
        if op.candidate.accumulates:
            layers[op] += (emit_finish(op, plan.layouts, name.with_work("finish")),)
    return layers


def merged(
    layers: tuple[PrimFunc, ...], config: CompilationConfig, *, limits: PlanConstraints
) -> tuple[PrimFunc, ...]:
    """Return the layers, those with equal bodies as calls of one where the least code is wanted."""
    is_wanted = limits.ranking_of(config.optimize) is Optimize.FLASH
    # An AVR's constants cannot be given by pointer.
    by_pointer = not config.primary_target().has(Feature.AVR_PROGMEM)
    return tir_passes.merge_functions(layers) if is_wanted and by_pointer else layers


_KEPT = 256  # functions of earlier compilations
_LARGEST = 1 << 16  # bytes of constants of one of them: no process keeps the weights of models


@dataclass(frozen=True, slots=True)
class _Task:
    """The passes and tokens that decide a function's lowering, with the means that it takes."""

    passes: tuple[tir_passes.Pass, ...]
    tokens: tuple[object, ...]
    key: StructuralKey = field(compare=False)
    function: PrimFunc = field(compare=False)
    lower: Callable[[PrimFunc], PrimFunc] = field(compare=False)


# One model is compiled for board after board, or for one goal after another, in one process.
@lru_cache(maxsize=_KEPT)
def _done(task: _Task) -> tuple[StructuralKey, PrimFunc]:
    return task.key, task.lower(task.function)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionLowering:
    """Runs the TIR passes over functions and proves their memory accesses.

    Functions that differ in the data of constants only become what the first of them became, as
    it was proven.  Passes of the user may look at anything, and a replay computes with the data:
    with these every function goes its own way.

    Args:
        config: what is compiled for, and which passes are wanted.
        simple_mode: as for `lower`.
        extra: passes of the user.
        remembers: functions of earlier compilations count, too.
    """

    config: CompilationConfig
    simple_mode: bool
    extra: ExtraPasses
    remembers: bool = False
    _known: dict[tuple[object, ...], tuple[StructuralKey, PrimFunc]] = field(default_factory=dict)

    def __call__(self, function: PrimFunc) -> PrimFunc:
        """Return the lowered function.

        Raises:
            TirError: it breaks a rule, or an access could not be proven.
        """
        function = contracted(
            function,
            fuses=self.config.primary_target().fuses_floats,
            libm=self.config.pass_config.float_functions is FloatFunctions.LIBM,
        )
        if self.extra.tir_first or self.extra.tir_last or self.config.pass_config.replay_each_pass:
            return self._lowered(function)
        key = structural_key(function)
        known = self._known.get(key.tokens)
        if known is None:
            known = self._known[key.tokens] = self._lower_once(function, key)
        other, results = known
        return results if other is key else rebind(function, key, other, results)

    def _lower_once(self, function: PrimFunc, key: StructuralKey) -> tuple[StructuralKey, PrimFunc]:
        """Return what became of a function, or of one like it in an earlier compilation."""
        is_checked = self.config.pass_config.verify_each_pass
        if not self.remembers or is_checked or _constant_bytes(key) > _LARGEST:
            return key, self._lowered(function)
        passes = tir_passes_of(self.config, simple_mode=self.simple_mode)
        alone = replace(self, extra=ExtraPasses(), _known={})  # without what this model consists of
        return _done(_Task(passes, key.tokens, key, function, alone._lowered))

    def _lowered(self, function: PrimFunc) -> PrimFunc:
        options = self.config.pass_config

        def check(before: PrimFunc, after: PrimFunc, pass_name: str) -> None:
            verify(after)
            prove_accesses(after)
            if options.replay_each_pass:
                check_pass(before, after, pass_name)

        verify(function)
        function = applied(self.extra.tir_first, "passes.tir_first", function, check)
        results: dict[tir_passes.Pass, PrimFunc] = {}
        for tir_pass in tir_passes_of(self.config, simple_mode=self.simple_mode):
            if results.get(tir_pass) is function:
                continue  # nothing has changed what it made, and to that it does nothing
            after = results[tir_pass] = tir_pass(function)
            if options.verify_each_pass:
                verify_after(tir_pass.name, after)
            if options.replay_each_pass:
                check_pass(function, after, tir_pass.name)
            function = after
        verify(function)
        prove_accesses(function)
        return applied(self.extra.tir_last, "passes.tir_last", function, check)


def _constant_bytes(key: StructuralKey) -> int:
    """Return the bytes of the constants that a function reads."""
    buffers = (item for item in key.items if isinstance(item, Buffer))
    return sum(buffer.data.nbytes for buffer in buffers if buffer.data is not None)
