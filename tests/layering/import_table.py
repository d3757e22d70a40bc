"""The layers of the package, lowest first: the layering rule as a list.

A top package or root module imports from the layers below its own, and from itself; those of one
layer know nothing of each other.  Imports inside functions and under TYPE_CHECKING count.  What
stands in `PRIVATE` is imported by those named there alone, however high others stand: only the
driver and its steps reach stages, everyone else is given what a stage made.
"""

from __future__ import annotations

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "dtype", "version"),
    ("support", "graph"),  # helpers of all kinds; tensors and nodes
    ("instruction_sets",),  # facts of CPUs and of their machine code
    ("config",),
    ("tir", "boards"),
    ("schedule", "measure"),
    ("te",),
    ("operators",),  # definitions, meanings, formulas and readers, in terms of nodes
    ("rewrite",),  # graphs from graphs, and facts of graphs
    ("quantise",),  # graphs of integers from graphs of floats and samples
    ("plan",),
    ("module",),  # what a compilation carries from stage to stage
    ("frontend", "kernels", "executor", "memory", "codegen", "fit"),
    ("artifact", "external", "writers"),
    ("host", "device", "lowering"),
    ("driver", "projects"),
    ("custom", "report", "packages", "profiling", "conform"),
    ("certificate", "search"),
    ("evidence",),
    ("studio",),
    ("cli",),
    ("__main__",),
)

# Beside itself, who may import what.
PRIVATE: dict[str, frozenset[str]] = {
    # TIR passes rewrite modules: they are steps of the driver, not part of the language.  What
    # reaches no module is a micro-kernel: its schedule finishes it.
    "tir.passes": frozenset({"lowering", "schedule"}),
    "plan.planner": frozenset(),
    "kernels": frozenset({"lowering", "driver"}),
    "executor": frozenset({"driver"}),
    "memory": frozenset({"lowering", "driver"}),
    "codegen": frozenset({"artifact", "lowering", "driver", "certificate", "evidence"}),
    "external": frozenset({"lowering", "driver"}),
    "fit": frozenset({"driver"}),
}

# What the meaning of an operator must not even reach through others: it is checked against it.
BEHIND_MEANINGS = frozenset({"te", "schedule", "plan", "kernels", "codegen", "driver"})

# What the formula of an operator must not even reach through others: it is checked against it.
BEHIND_FORMULAS = frozenset({"rewrite.reference", "plan", "kernels", "codegen", "driver"})

# Modules that must not even reach these through others, and why.
UNREACHABLE: dict[str, tuple[frozenset[str], str]] = {
    "fit": (
        frozenset({"kernels", "te", "schedule", "executor", "memory", "codegen", "tir.passes"})
        | {"driver", "plan.planner", "rewrite.optimise"},
        "a search over programs is given the function that compiles one",
    )
}

# Third-party modules that are imported only where a user asks for them, and are not dependencies.
OPTIONAL_THIRD_PARTY: dict[str, str] = {
    "ai_edge_litert": "the oracle of `verify --oracle litert`",
    "distributed": "`tune` on a cluster, for --scheduler",
    "h5py": "models of Keras",
    "google": "what the package onnx raises of bytes that are no model",
    "onnx": "ONNX models",
    "onnxruntime": "the oracle of `verify --oracle onnxruntime`",
    "ortools": "the solver of `memory.placement=optimal`",
    "serial": "serial ports of real boards, for --port",
    "starlette": "the page of `studio`",
    "tflite_micro": "the oracle of `verify --oracle tflm`",
    "uvicorn": "the page of `studio`",
    "h11": "how far a request of the page of `studio` has come",
}
