"""What `lower` does with the functions of layers: emission, passes and proofs, merging."""

from __future__ import annotations

from dataclasses import dataclass, field

from microtir.config import CompilationConfig, Feature
from microtir.config.enums import Optimize
from microtir.extra_passes import ExtraPasses, applied
from microtir.kernels import emit, emit_finish, function_names
from microtir.plan.ir import Plan, PlanConstraints, PlannedOperator
from microtir.tir import passes as tir_passes
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import PrimFunc
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
    """

    config: CompilationConfig
    simple_mode: bool
    extra: ExtraPasses
    _known: dict[tuple[object, ...], tuple[StructuralKey, PrimFunc]] = field(default_factory=dict)

    def __call__(self, function: PrimFunc) -> PrimFunc:
        """Return the lowered function.

        Raises:
            TirError: it breaks a rule, or an access could not be proven.
        """
        if self.extra.tir_first or self.extra.tir_last or self.config.pass_config.replay_each_pass:
            return self._lowered(function)
        key = structural_key(function)
        if key.tokens in self._known:
            return rebind(function, key, *self._known[key.tokens])
        made = self._lowered(function)
        self._known[key.tokens] = key, made
        return made

    def _lowered(self, function: PrimFunc) -> PrimFunc:
        options = self.config.pass_config

        def check(before: PrimFunc, after: PrimFunc, pass_name: str) -> None:
            verify(after)
            prove_accesses(after)
            if options.replay_each_pass:
                check_pass(before, after, pass_name)

        verify(function)
        function = applied(self.extra.tir_first, "tir_first", function, check)
        for tir_pass in tir_passes_of(self.config, simple_mode=self.simple_mode):
            after = tir_pass(function)
            if options.verify_each_pass:
                verify_after(tir_pass.name, after)
            if options.replay_each_pass:
                check_pass(function, after, tir_pass.name)
            function = after
        verify(function)
        prove_accesses(function)
        return applied(self.extra.tir_last, "tir_last", function, check)
