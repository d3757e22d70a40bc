"""Every layer's C is printed from its PrimFunc: nothing else decides what a layer computes."""

from __future__ import annotations

from dataclasses import replace

import microtir
from microtir.codegen import emit
from microtir.support import resources
from microtir.tir.ir import PrimFunc, Seq


def lowered() -> microtir.IRModule:
    """Return the example model, lowered for this machine."""
    model = resources.example("digits/digits_int8.tflite")
    return microtir.lower(microtir.frontend.from_tflite(model))


def bodies(module: microtir.IRModule) -> dict[str, str]:
    """Text of each layer function's body by the PrimFunc's name."""
    (source,) = (f.text for f in emit(module).sources if f.path.endswith("digits_int8.c"))
    found = {}
    for function in module.functions[:-1]:
        start = source.index("{", source.index(f"_{function.name}("))
        found[function.name] = source[start : source.index("\n}\n", start)]
    return found


def emptied(function: PrimFunc) -> PrimFunc:
    """Return the function with a body that does nothing."""
    return replace(function, body=Seq(()))


def test_a_layer_without_a_body_is_printed_without_one() -> None:
    """With empty PrimFuncs nothing is left of any layer: codegen adds no computation of its own."""
    module = lowered()
    layers = tuple(emptied(f) for f in module.functions[:-1])
    before = bodies(module)
    after = bodies(module.with_functions((*layers, module.functions[-1])))
    assert len(before) == len(module.functions) - 1
    assert all("for (" in body or "=" in body for body in before.values())
    for name, body in after.items():
        statements = [
            line for line in body.splitlines()[1:] if not line.strip().startswith("(void)")
        ]
        assert statements == [], f"{name} still computes: {statements}"
