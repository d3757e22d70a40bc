"""`lower` and `build`: one definition each, every option honoured or refused (S0.1, S1.1)."""

from __future__ import annotations

import inspect
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, IRModule, Target, te
from microtir.dtype import DType
from microtir.errors import TirError, UsageError
from microtir.module.ir_module import ConfigMissing
from microtir.schedule import Schedule
from microtir.support import resources
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Buffer, For, LoopKind, PrimFunc
from microtir.tir.visitor import walk
from tests.support.small_models import module_of, quantised_graph

F32 = DType.FLOAT32


def doubled(n: int = 8) -> tuple[te.Tensor, te.Tensor, Schedule]:
    """Twice x, with its schedule."""
    x = te.placeholder((n,), F32, "x")
    y = te.compute((n,), lambda i: x[i] * 2.0, "y")
    return x, y, te.create_schedule(y)


def function(name: str) -> PrimFunc:
    """A small function of the given name."""
    _, _, schedule = doubled()
    return schedule.primfunc(name=name)


def test_s1_1_signature_is_the_contract() -> None:
    """Names, order and defaults of lower's parameters are those of the design."""
    parameters = inspect.signature(microtir.lower).parameters
    positional = {n: p.default for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert list(positional.items())[1:] == [
        ("args", None), ("name", "main"), ("binds", None), ("simple_mode", False),
    ]  # fmt: skip


def test_a_schedule_takes_every_option() -> None:
    """Args order the parameters, name names the function, binds replaces storage."""
    x, y, schedule = doubled()
    storage = Buffer("elsewhere", (8,), F32)
    module = microtir.lower(schedule, args=[y, x], name="twice", binds={x: storage})
    (lowered,) = module.functions
    assert lowered.name == "twice"
    assert [p.name for p in lowered.params] == ["y", "elsewhere"]
    assert lowered.params[1] is storage


def test_a_primfunc_is_renamed() -> None:
    """`name` applies to a PrimFunc, by default `main`."""
    assert [f.name for f in microtir.lower(function("f"), name="g").functions] == ["g"]
    assert [f.name for f in microtir.lower(function("f")).functions] == ["main"]


@pytest.mark.parametrize("option", ["args", "binds"])
@pytest.mark.parametrize("kind", ["PrimFunc", "IRModule"])
def test_options_that_do_not_apply_are_refused(option: str, kind: str) -> None:
    """Args and binds with anything but a Schedule name the option and the reason."""
    f = function("f")
    given: PrimFunc | IRModule = f if kind == "PrimFunc" else IRModule(functions=(f,))
    call = partial(microtir.lower, given, args=[])
    if option == "binds":
        call = partial(microtir.lower, given, binds={})
    with pytest.raises(
        UsageError, match=rf"lower\({option}\): lower\(\) takes no {option} with a {kind}"
    ):
        call()


def test_a_name_for_several_functions_is_refused() -> None:
    """With one function it renames; with two it would be ambiguous."""
    one, two = function("one"), function("two")
    renamed = microtir.lower(IRModule(functions=(one,)), name="other")
    assert [f.name for f in renamed.functions] == ["other"]
    with pytest.raises(UsageError, match="for a module with 2 functions"):
        microtir.lower(IRModule(functions=(one, two)), name="other")


def test_a_module_keeps_the_names_of_its_functions() -> None:
    """Without a name, an IRModule's functions are called what they were called."""
    module = microtir.lower(IRModule(functions=(function("one"), function("two"))))
    assert [f.name for f in module.functions] == ["one", "two"]


def loops(f: PrimFunc) -> list[For]:
    """Every loop of a function."""
    return [node for node in walk(f.body) if isinstance(node, For)]


def test_simple_mode_skips_partition_and_unrolling_only() -> None:
    """A loop marked for unrolling stays a loop in simple mode and is gone otherwise."""
    x = te.placeholder((4,), F32, "x")
    y = te.compute((4,), lambda i: x[i] * 2.0, "y", axes=("i",))
    schedule = te.create_schedule(y)
    schedule.unroll(schedule.loop(y, "i"))
    (plain,) = microtir.lower(schedule).functions
    (simple,) = microtir.lower(schedule, simple_mode=True).functions
    assert not loops(plain)
    assert len(loops(simple)) == 1
    for f in (plain, simple):
        data, result = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
        Interpreter([f]).run("main", [data, result])
        np.testing.assert_array_equal(result, data * 2)


def test_simple_mode_keeps_the_tail_guard_of_a_split() -> None:
    """Loop partition removes the guard of a split's tail; simple mode leaves it."""
    x = te.placeholder((10,), F32, "x")
    y = te.compute((10,), lambda i: x[i] * 2.0, "y", axes=("i",))
    schedule = te.create_schedule(y)
    schedule.split(schedule.loop(y, "i"), 4)
    simple = microtir.lower(schedule, simple_mode=True).functions[0]
    full = microtir.lower(schedule).functions[0]
    guards = [sum(type(n).__name__ == "If" for n in walk(f.body)) for f in (simple, full)]
    assert guards == [1, 0]


def test_lowering_twice_changes_nothing() -> None:
    """A lowered module comes back as it is, so build(lower(x)) is build(x)."""
    module = microtir.lower(function("f"))
    assert microtir.lower(module) is module


def test_s2_4_a_target_stands_for_its_config() -> None:
    """build(x, target) and build(x, CompilationConfig.from_target(target)) give the same bytes."""
    target = Target("c -mcpu=cortex-m4")
    by_target = microtir.build(function("f"), target)
    by_config = microtir.build(function("f"), CompilationConfig.from_target(target))
    assert by_target.sources == by_config.sources


def test_build_is_the_emission_of_lower() -> None:
    """Sources of build(x) and of build(lower(x)) are equal."""
    module = IRModule(functions=(function("f"),))
    assert microtir.build(module).sources == microtir.build(microtir.lower(module)).sources


def test_a_lowered_module_refuses_another_config() -> None:
    """What was lowered for one target is not silently printed for another."""
    module = microtir.lower(function("f"))
    with pytest.raises(UsageError, match="lowered for another configuration"):
        microtir.build(module, Target("c -mcpu=cortex-m0"))


def test_files_are_named_after_that_of_the_model(tmp_path: Path) -> None:
    """Without a name from the user; microTVM's applications include theirs, as ever."""
    data = resources.example("digits/digits_int8.tflite").read_bytes()
    (tmp_path / "my net-2.tflite").write_bytes(data)
    for source, fields, expected in (
        (tmp_path / "my net-2.tflite", {}, "my_net_2"),
        (tmp_path / "my net-2.tflite", {"module_name": "kws"}, "kws"),
        (tmp_path / "my net-2.tflite", {"compatibility": "microtvm"}, "default"),
        (data, {}, "model"),
    ):
        module = microtir.frontend.from_tflite(source).with_configuration(
            CompilationConfig(targets="c", **fields)  # type: ignore[arg-type]
        )
        lowered = microtir.lower(module)
        artifact = microtir.build(lowered, module.config)
        assert artifact.metadata.module_name == expected
        assert lowered.require_config("test").module_name == expected
        assert f"{expected}.c" in [file.path for file in artifact.sources]
    assert microtir.lower(function("f")).require_config("test").module_name == "default"


def test_s2_5_a_stage_without_config_names_itself() -> None:
    """ConfigMissing says which stage asked."""
    with pytest.raises(ConfigMissing, match="stage 'codegen' needs a CompilationConfig"):
        IRModule().require_config("codegen")


def test_s2_6_with_configuration_leaves_the_original_alone() -> None:
    """A new module has the configuration; the old one has none."""
    config = CompilationConfig.from_target(Target("c"))
    module = IRModule(functions=(function("f"),))
    assert module.with_configuration(config).config == config
    assert module.config is None


def test_s2_7_attributes_survive_lowering() -> None:
    """What a user attaches comes out of the other end."""
    module = IRModule(functions=(function("f"),)).with_attr("woof", "woof")
    assert microtir.lower(module).attrs["woof"] == "woof"
    assert microtir.build(module).module.attrs["woof"] == "woof"


def test_s2_11_two_threads_do_not_influence_each_other() -> None:
    """Two compilations with different configs at the same time give what each gives alone."""
    module = IRModule(functions=(function("f"),))
    configs = [
        replace_name(CompilationConfig.from_target(Target(t)), f"m{i}")
        for i, t in enumerate(("c -mcpu=cortex-m0", "c -mcpu=cortex-m4"))
    ]
    alone = [microtir.build(module, config).sources for config in configs]
    together: dict[int, list[object]] = {0: [], 1: []}

    def work(number: int) -> None:
        for _ in range(5):
            together[number].append(microtir.build(module, configs[number]).sources)

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (0, 1):
        assert all(sources == alone[number] for sources in together[number])


def replace_name(config: CompilationConfig, name: str) -> CompilationConfig:
    """The config with another module name."""
    return config.with_(module_name=name)


def test_a_primfunc_is_not_changed_by_lowering() -> None:
    """Nodes are immutable: the caller's function is as it was."""
    f = function("f")
    before = replace(f)
    microtir.lower(f)
    assert f.body is before.body and f.name == "f"


def test_loop_kinds_are_gone_after_lowering() -> None:
    """A vectorised loop becomes a serial one where the target has no vectors."""
    x = te.placeholder((8,), F32, "x")
    y = te.compute((8,), lambda i: x[i] * 2.0, "y", axes=("i",))
    schedule = te.create_schedule(y)
    schedule.vectorize(schedule.loop(y, "i"))
    (lowered,) = microtir.lower(schedule).functions
    assert all(loop.kind is LoopKind.SERIAL for loop in loops(lowered))


def test_two_functions_of_one_name_are_refused() -> None:
    """Names are what functions call each other by, and what C knows them by."""
    with pytest.raises(TirError, match="two functions are called 'twin'"):
        microtir.lower(IRModule(functions=(function("twin"), function("twin"))))


def test_build_takes_a_host_beside_a_target() -> None:
    """The same as a configuration with both; without a target it is refused."""
    module, target, host = module_of(quantised_graph()), Target("c -mcpu=cortex-m4"), Target("c")
    config = CompilationConfig(targets=target, target_host=host)
    given = microtir.build(module, target, target_host=host)
    assert given.sources == microtir.build(module, config).sources
    for other in (config, None):
        with pytest.raises(UsageError, match="target_host"):
            microtir.build(module, other, target_host=host)
