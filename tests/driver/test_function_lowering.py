"""Layers that are alike go through the passes once, and become what each becomes by itself."""

from __future__ import annotations

import pytest

from benchmarks.long_model import long_model
from microtir import driver
from microtir.config import CompilationConfig, Target
from microtir.lowering import function_lowering
from microtir.lowering.function_lowering import FunctionLowering
from microtir.module.ir_module import IRModule
from microtir.rewrite.extra_passes import ExtraPasses
from microtir.tir.ir import PrimFunc
from microtir.tir.passes import Simplify
from microtir.tir.text import to_text
from tests.support.small_models import mixed_graph, module_of

SHORT = 68  # operators: of each stage some layers are alike


class Written(Exception):  # noqa: N818 - no error
    """Layers are written, and what comes later is not of interest."""


def layers(module: IRModule, config: CompilationConfig) -> tuple[PrimFunc, ...]:
    """The layers of a model as lowering wrote them."""

    def see(stage: str, made: object) -> None:
        if stage == "lowering":
            assert isinstance(made, tuple)
            raise Written(made)

    with pytest.raises(Written) as caught:
        driver.lower(module.with_configuration(config), observe=see)
    made: tuple[PrimFunc, ...] = caught.value.args[0]
    return made


@pytest.mark.parametrize("target", ["c -mcpu=cortex-m4", "c"])
def test_layers_become_what_they_become_alone(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, and with fewer proofs than there are layers."""
    config = CompilationConfig.from_target(Target(target))
    naive = layers(long_model(SHORT), config)
    proven: list[PrimFunc] = []
    monkeypatch.setattr(function_lowering, "prove_accesses", proven.append)
    together = FunctionLowering(config, simple_mode=False, extra=ExtraPasses())
    made = [together(f) for f in naive]
    assert len(proven) < len(naive) * 3 // 4
    for before, after in list(zip(naive, made, strict=True))[1::6]:
        alone = FunctionLowering(config, simple_mode=False, extra=ExtraPasses())
        assert to_text([after]) == to_text([alone(before)])
        assert (after.name, after.params) == (before.name, before.params)
        assert after.origin is before.origin


def test_passes_of_the_user_see_every_function() -> None:
    """What they do may depend on anything, so nothing is taken over from a like function."""
    config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
    seen: list[str] = []

    def note(function: PrimFunc) -> PrimFunc:
        seen.append(function.name)
        return function

    naive = layers(module_of(mixed_graph()), config)
    lowering = FunctionLowering(config, simple_mode=False, extra=ExtraPasses(tir_last=(note,)))
    for function in naive:
        lowering(function)
    assert seen == [f.name for f in naive]


def test_functions_of_earlier_compilations_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are proven once in a process, for the same passes; the text is the same."""
    config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
    naive = layers(module_of(mixed_graph()), config)
    function_lowering._done.cache_clear()
    proven: list[PrimFunc] = []
    monkeypatch.setattr(function_lowering, "prove_accesses", proven.append)

    def lowered(given: CompilationConfig = config, *, remembers: bool = True) -> list[str]:
        lowering = FunctionLowering(given, False, ExtraPasses(), remembers)
        return [to_text([lowering(function)]) for function in naive]

    first, count = lowered(), len(proven)
    assert lowered() == first and len(proven) == count
    unrolled = config.with_(pass_config={"tir.unroll_max_extent": 8})
    assert lowered(unrolled) == lowered(unrolled, remembers=False) != first
    monkeypatch.setattr(function_lowering, "_LARGEST", -1)
    count = len(proven)
    assert lowered() == first and len(proven) > count
    function_lowering._done.cache_clear()  # nothing was proven in fact


def test_a_pass_does_not_see_what_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simplification comes three times; what nothing changes in between is left alone."""
    config = CompilationConfig.from_target(Target("c"))
    seen: list[PrimFunc] = []
    simplify = Simplify.__call__

    def noted(own: Simplify, function: PrimFunc) -> PrimFunc:
        seen.append(function)
        made = simplify(own, function)
        assert simplify(own, made) is made
        return made

    monkeypatch.setattr(Simplify, "__call__", noted)
    naive = layers(module_of(mixed_graph()), config)
    seen.clear()
    for function in naive:
        FunctionLowering(config, simple_mode=False, extra=ExtraPasses())(function)
    assert len(naive) <= len(seen) < 3 * len(naive)
