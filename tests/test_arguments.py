"""Arguments of public functions that are nothing of what is legal."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

import microtir
from microtir import CompilationConfig, Executor, MicrotirError, Runtime, Target, te
from microtir.config import (
    Budget,
    ConstantPoolInfo,
    External,
    ExternalLibrary,
    Feature,
    PassConfig,
    PoolInfoProperties,
    WorkspacePoolInfo,
)
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import TensorType
from microtir.support.arguments import ArgumentRule, checked_arguments, resolved
from microtir.tir.ir import Intrinsic
from tests.frontend.keras.test_hostile_files import archive as keras_archive
from tests.frontend.torch.test_hostile import layer as torch_layer
from tests.support.onnx_models import model_of, typed
from tests.support.small_models import module_of, quantised_graph

WRONG: tuple[object, ...] = (None, 42, "text", [])
DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits" / "digits_int8.tflite"
ONNX = model_of([onnx.helper.make_node("Relu", ["x"], ["y"])], [typed("x", (1, 4))], ["y"])
FIELDS = {
    "Executor.name": "executor",
    "Runtime.name": "runtime",
    "Target.spec": "target",
}  # arguments that diagnostics call by the name of the field
CONFIG = CompilationConfig(targets="c")
Case = tuple[Callable[..., Any], Mapping[str, Any]]


def program() -> tuple[te.Tensor, te.Tensor]:
    """Return an input and what is computed of it."""
    x = te.placeholder((8,), DType.INT32, "x")
    return x, te.compute((8,), lambda i: x[i] + 1, "y", axes=("i",))


@cache
def artifact() -> microtir.Artifact:
    """Return a compiled model."""
    return microtir.build(module_of(quantised_graph()), Target("c"))


@cache
def model() -> microtir.host.Model:
    """Return the model, loaded."""
    return microtir.host.load(artifact(), debug=True)


def of_programs(folder: Path) -> dict[str, Case]:
    """Functions and methods on models, programs and what is made of them, with legal arguments."""
    module, made = module_of(quantised_graph()), artifact()
    inputs = {port.name: np.zeros(port.shape, port.dtype) for port in model().inputs}
    return {
        "build": (microtir.build, {"inputs": module, "config": CONFIG}),
        "lower": (microtir.lower, {"inputs": module}),
        "export_model_library_format": (
            microtir.export_model_library_format,
            {"artifacts": made, "path": folder / "a.tar", "force": True},
        ),
        "import_model_library_format": (
            microtir.import_model_library_format, {"path": folder / "a.tar"}
        ),
        "Artifact.source": (made.source, {"path": "default.c"}),
        "Artifact.flash": (made.flash, {}),
        "Artifact.export": (made.export, {"path": folder / "out", "force": True}),
        "IRModule.function": (microtir.lower(module).function, {"name": "main"}),
        "IRModule.with_configuration": (module.with_configuration, {"config": CONFIG}),
        "IRModule.with_attr": (module.with_attr, {"key": "a", "value": 1}),
        "IRModule.with_functions": (module.with_functions, {"functions": ()}),
        "IRModule.require_config": (module.require_config, {"stage": "x"}),
        "from_tflite": (microtir.frontend.from_tflite, {"source": DIGITS}),
        "from_onnx": (microtir.frontend.from_onnx, {"source": ONNX}),
        "from_torch": (microtir.frontend.from_torch, {"source": torch_layer().archive()}),
        "from_keras": (microtir.frontend.from_keras, {"source": keras_archive()}),
        "read_model": (microtir.frontend.read_model, {"source": DIGITS}),
        "frontend.check": (microtir.frontend.check, {"source": DIGITS}),
        "float_layers": (microtir.frontend.float_layers, {"source": ONNX}),
        "signatures": (microtir.frontend.signatures, {"source": DIGITS}),
        "causes": (microtir.frontend.causes, {"problems": ()}),
        "inspect": (microtir.frontend.inspect, {"module": module}),
        "load": (microtir.host.load, {"artifact": made}),
        "run_sanitized": (microtir.host.run_sanitized, {"artifact": made, "inputs": inputs}),
        "Model.run": (model().run, {"inputs": inputs}),
        "Model.run_layers": (model().run_layers, {"inputs": inputs}),
        "Model.run_nodes": (model().run_nodes, {"inputs": inputs}),
    }  # fmt: skip


def of_configurations() -> dict[str, Case]:
    """Functions and classes of the configuration."""
    config = microtir.config
    return {
        "CompilationConfig": (CompilationConfig, {"targets": "c"}),
        "CompilationConfig.from_target": (CompilationConfig.from_target, {"target": "c"}),
        "CompilationConfig.from_dict": (CompilationConfig.from_dict, {"data": CONFIG.to_dict()}),
        "CompilationConfig.from_json": (CompilationConfig.from_json, {"text": CONFIG.to_json()}),
        "Executor": (Executor, {"name": "aot"}),
        "Executor.with_options": (Executor("aot").with_options, {"options": {}}),
        "Executor.list_registered_options": (Executor.list_registered_options, {"name": "aot"}),
        "Runtime": (Runtime, {"name": "crt"}),
        "Runtime.with_options": (Runtime("crt").with_options, {"options": {}}),
        "Runtime.list_registered_options": (Runtime.list_registered_options, {"name": "crt"}),
        "Target": (Target, {"spec": "c"}),
        "Target.has": (Target("c").has, {"feature": Feature.VECTOR}),
        "Budget": (Budget, {}),
        "PassConfig": (PassConfig, {}),
        "WorkspacePoolInfo": (WorkspacePoolInfo, {"pool_name": "x"}),
        "ConstantPoolInfo": (ConstantPoolInfo, {"pool_name": "x"}),
        "PoolInfoProperties": (PoolInfoProperties, {}),
        "External": (External, {"library": ExternalLibrary.CMSIS_NN, "path": "x"}),
        "External.parse": (External.parse, {"text": "cmsis-nn=x"}),
        "config_from_file": (config.config_from_file, {"path": "/nothing"}),
        "config_from_flags": (config.config_from_flags, {"typed": {}}),
        "micro": (config.micro, {}),
    }


def of_operators() -> dict[str, Case]:
    """Functions on arrays that users write in C, in te and in TIR."""
    kind = TensorType((4,), DType.INT32)

    def doubled(_: Any, x: Any) -> Any:
        return x * 2

    custom = microtir.custom
    function = custom.from_te(
        "double", lambda _, x: te.compute((4,), lambda i: x[i] * 2, "y"), doubled
    )
    used = {"operator": function, "inputs": [kind], "outputs": [kind]}
    return {
        "as_model": (custom.as_model, used),
        "check": (custom.check, {**used, "samples": 1}),
        "from_te": (custom.from_te, {"name": "f", "compute": doubled, "reference": doubled}),
        "from_tir": (custom.from_tir, {"name": "f", "write": doubled, "reference": doubled}),
        "from_c": (
            custom.from_c, {"name": "f", "reference": doubled, "function": "f", "code": "int x;"}
        ),
    }  # fmt: skip


def of_te() -> dict[str, Case]:
    """Functions of tensor expressions; operands are refused by their expression."""
    x, y = program()
    axis, one = te.reduce_axis(0, 4, "k"), te.const(3, DType.INT32)
    operands = {
        "maximum": "a b", "minimum": "a b", "truncdiv": "a b", "clamp": "value low high",
        "select": "condition then otherwise", "rounding_divide_by_pot": "x exponent",
        "multiply_by_quantized_multiplier": "x multiplier shift",
        "multiply_by_reduced_multiplier": "x multiplier shift",
        "saturating_shift_left": "x count",
        **dict.fromkeys(("wrapping_add", "wrapping_sub", "wrapping_mul"), "a b"),
        **dict.fromkeys(("pow", "fmod", "floor_divide"), "x y"), "atan2": "y x",
        "fused_multiply_add": "a b c",
        "saturating_rounding_doubling_high_mul": "a b",
        **dict.fromkeys(("abs", "compiler_barrier", "count_leading_zeros", "exp", "floor", "log",
                         "no_fp_contract", "round", "sqrt", "tanh", "sin", "cos", "ceil",
                         "round_half_to_even", "round_small", "float_of_bits",
                         "bits_of_float"), "x"),
    }  # fmt: skip
    reduced = {"value": x[axis], "axis": axis}
    return {
        **{name: (getattr(te, name), dict.fromkeys(names.split(), one))
           for name, names in operands.items()},
        **{name: (getattr(te, name), reduced) for name in ("sum", "max", "min")},
        "term": (te.term, {"result": te.sum(x[axis], axis), "along": axis}),
        **{name: (getattr(te, name), {"name": "f", "combine": max, "init": 0, **more})
           for name, more in (("fold", reduced), ("scan", {"value": one, "along": axis}))},
        "as_expr": (te.as_expr, {"value": one}),
        "bind": (te.bind, {"name": "b", "value": one}),
        "call": (te.call, {"intrinsic": Intrinsic.SQRT}),
        "cast": (te.cast, {"dtype": DType.INT32, "value": one}),
        "compute": (te.compute, {"shape": (8,), "body": lambda i: x[i] + 1, "name": "z"}),
        "const": (te.const, {"value": 3, "dtype": DType.INT32}),
        "constant": (te.constant, {"data": np.zeros(3, np.int32), "name": "c"}),
        "create_prim_func": (te.create_prim_func, {"args": [x, y], "name": "f", "outputs": y}),
        "create_schedule": (te.create_schedule, {"outputs": y}),
        "placeholder": (te.placeholder, {"shape": (4,), "dtype": DType.INT32, "name": "p"}),
        "reduce_axis": (te.reduce_axis, {"start": 0, "stop": 4, "name": "r"}),
        "var": (te.var, {"name": "n", "low": 1, "high": 4}),
    }  # fmt: skip


def of_schedules() -> dict[str, Case]:
    """Methods of a schedule."""
    x, y = program()
    schedule = te.create_schedule(y)
    loop = schedule.loop(y, "i")
    on_loops: dict[str, dict[str, Any]] = {
        "split": {"loop": loop, "factor": 2}, "fuse": {"outer": loop, "inner": loop},
        "partition": {"loop": loop, "at": 4}, "unroll": {"loop": loop},
        "vectorize": {"loop": loop}, "cache_write": {"loop": loop},
        "cache_read": {"source": x, "loop": loop}, "compute_at": {"producer": y, "loop": loop},
        "tensorize": {"loop": loop, "kernel": None}, "loops": {"stage": y},
        "loop": {"stage": y, "name": "i"}, "primfunc": {},
    }  # fmt: skip
    return {f"Schedule.{name}": (getattr(schedule, name), on_loops[name]) for name in on_loops}


def refusals(name: str, function: Callable[..., Any], legal: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with how a function refuses each argument."""
    found = []
    told: Any = function.__init__ if inspect.isclass(function) else function
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            continue
        for wrong in WRONG:
            what = f"{name}({argument.name}={wrong!r})"
            allowed = ArgumentRule(resolved(told, argument.name)).allows(wrong)
            try:
                function(**{**legal, argument.name: wrong})
            except MicrotirError as error:
                called = FIELDS.get(f"{name}.{argument.name}", argument.name)
                if not allowed and called not in str(error):
                    found.append(f"{what}: '{argument.name}' is not in: {error}")
            except Exception as error:  # noqa: BLE001 - this is what must not be
                found.append(f"{what}: {type(error).__name__}: {error}")
    return found


@pytest.mark.parametrize(
    "cases", [of_configurations, of_operators, of_te, of_schedules], ids=lambda f: f.__name__
)
def test_arguments_that_are_nothing_of_what_is_legal(cases: Callable[[], dict[str, Case]]) -> None:
    """`run(None)`, `lower(42)` and 200 others raised AttributeErrors and TypeErrors from inside."""
    assert [line for name, case in cases().items() for line in refusals(name, *case)] == []


def test_arguments_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of models, artifacts and what runs them."""
    monkeypatch.chdir(tmp_path)  # "text" is a legal path, and is written
    cases = of_programs(tmp_path)
    assert [line for name, case in cases.items() for line in refusals(name, *case)] == []


def test_every_public_function_is_tried(tmp_path: Path) -> None:
    """A function that becomes public gets a row."""
    modules = (microtir, microtir.config, microtir.custom, microtir.frontend, microtir.host, te)
    public = {
        name
        for module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    tables = (of_programs(tmp_path), of_configurations(), of_operators(), of_te())
    assert public - {"host", "microcontroller"} <= {name for table in tables for name in table}


def test_a_target_spelled_as_text_is_named() -> None:
    """The diagnostic of `build(mod, "c -mcpu=cortex-m4")` says what to write."""
    module = module_of(quantised_graph())
    with pytest.raises(UsageError, match=r"build\(config\): argument 'config' got") as caught:
        microtir.build(module, "c -mcpu=cortex-m4")  # type: ignore[arg-type]
    assert caught.value.fix == "write Target('c -mcpu=cortex-m4')"
    with pytest.raises(UsageError, match=r"Model\.run\(inputs\): argument 'inputs' got \["):
        model().run([np.zeros(1)])  # type: ignore[arg-type]


def test_every_annotation_of_a_checked_function_can_be_told() -> None:
    """An alias that is a text of another module would let every argument pass."""
    functions = [
        function
        for info in pkgutil.walk_packages(microtir.__path__, "microtir.")
        if not info.name.endswith("__main__")
        for holder in _holders(importlib.import_module(info.name))
        for function in vars(holder).values()
        if inspect.isfunction(function) and function.__code__ is _CHECKED
    ]
    assert len(functions) > 50
    assert [
        (function.__qualname__, name, annotation)
        for function in functions
        for name, annotation in function.__annotations__.items()
        if annotation != "Any" and resolved(function, name) is Any
    ] == []


_CHECKED = checked_arguments(len).__code__


def _holders(module: ModuleType) -> list[ModuleType | type]:
    classes = [c for c in vars(module).values() if inspect.isclass(c)]
    return [module, *(c for c in classes if c.__module__ == module.__name__)]


def test_checks_cost_little() -> None:
    """A checked call costs microseconds: tensor expressions are made of thousands."""

    @checked_arguments
    def function(a: int, b: str | None = None, c: Mapping[str, int] | None = None) -> int:
        return a

    start = time.process_time()
    for _ in range(10000):
        function(1, c={})
    assert time.process_time() - start < 1.0
    with pytest.raises(UsageError, match=r"argument 'b' got 3, of type int\n  expected: str, None"):
        function(1, 3)  # type: ignore[arg-type]
    assert function(np.int64(3)) == 3


def test_what_others_make_says_who() -> None:
    """A schedule of a function, or a module of a mapping, as TVM had them, is no AttributeError."""
    x, y = program()
    function = te.create_prim_func([x, y], "f", y)
    with pytest.raises(UsageError, match=r"te\.create_schedule"):
        microtir.Schedule(function)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"functions=\(f"):
        microtir.IRModule({"main": function})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a PrimFunc"):
        microtir.IRModule(functions=("main",))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="artifact"):
        microtir.host.Model(function, None)  # type: ignore[arg-type]
