"""Which part of the package may import which: the layering rule of docs/design as a table.

Any stage may import `errors`, `config`, `resources` and the TIR.  A stage also imports the IR that
it reads and the IR that it writes.  Only the driver and its last steps import stages.  An entry
allows the module or package of that name and everything below it, less what `PRIVATE` lists.
"""

from __future__ import annotations

COMMON = frozenset({
    "version", "support.arguments", "support.arrays", "errors", "config", "resources", "tir.ir",
    "tir.function", "dtype",
})  # fmt: skip
# Tensors and nodes, and below them what operators are defined with.
GRAPH_BASE = frozenset({"graph.ir", "graph.operator", "graph.names"})
GRAPH_IR = GRAPH_BASE | {"operators"}
# Facts about nodes that have one derivation for all who ask: multiplications, bounds of sums.
OPERATOR_FACTS = frozenset({"graph.macs", "graph.sums"})
PLAN_IR = frozenset({"plan.ir", "plan.measured"})
# What a compiled model is, with the plan that it was made from.
PROGRAM = frozenset({"program", "plan.ir"})
TIR = frozenset({"tir"})  # the IR and what reads it: text, verifier, interpreter, analysis
MODULE = frozenset({"ir_module", "decisions", "memory_plan"})
# The two ends of the road that a user calls himself (`microtir.frontend.from_tflite`,
# `microtir.host.load`, a project): what lies between them is reached through the driver only.
BOARDS = frozenset({"boards", "device", "packages", "projects", "profiling"})
ENDS = frozenset({"frontend", "host", "artifact"}) | BOARDS

# TIR passes rewrite modules: they are steps of the driver, not part of the language.  What reaches
# no module is a micro-kernel: its schedule finishes it.
PRIVATE: dict[str, frozenset[str]] = {
    "tir.passes": frozenset({"tir", "stages", "function_lowering", "schedule"}),
}

# In processing order.  A unit may always import itself.
ALLOWED: dict[str, frozenset[str]] = {
    "version": frozenset(),
    "dtype": frozenset(),
    "errors": frozenset(),
    "resources": frozenset({"errors"}),
    "files": frozenset({"errors", "support.scratch"}),
    # reading takes the rules of texts from config, which checks its own arguments
    "support": frozenset({"errors", "config", "resources"}),
    # facts of CPUs and their machine code, for whoever names, reads or measures them
    "instruction_sets": frozenset({"support.spelled"}),
    # the flags of tvmc and the names of microTVM's options are read by the table of options
    "config": frozenset(
        {
            "support.arguments",
            "support.spelled",
            "errors",
            "resources",
            "instruction_sets",
            "compat.microtvm",
        }
    ),
    "decisions": frozenset({"config.enums", "graph.ir"}),
    "memory_plan": frozenset({"errors", "tir.ir"}),
    "measure": COMMON | TIR | {"instruction_sets", "memory_plan"},
    "limits": COMMON | {"memory_plan"},
    "program": COMMON | GRAPH_IR | {"decisions", "measure", "memory_plan", "plan.ir"},
    "ir_module": COMMON | GRAPH_IR | {"decisions", "memory_plan", "program"},
    "extra_passes": COMMON | GRAPH_IR,
    # Definitions, meanings, formulas and readers are written in terms of nodes; what works on
    # graphs asks the records of the operators.
    # Functions that are written in whole are so in the text form of TIR.
    "operators": COMMON | GRAPH_BASE | {"te", "tir.text"},
    # What makes a node legal is said by its operator: a frontend turns it into diagnostics.
    # Initial values of variables are what a subgraph of the file computes.
    "frontend": COMMON | GRAPH_IR | OPERATOR_FACTS | MODULE | {"graph.rules", "graph.reference"},
    "graph": COMMON | GRAPH_IR | MODULE,
    # candidates come in as a function, from the driver; what was decided goes into the module
    "plan": COMMON
    | GRAPH_IR
    | MODULE
    | {"graph.columns", "graph.macs", "instruction_sets", "support.reading"},
    "te": COMMON | TIR | {"schedule"},  # te.create_schedule makes what schedule rewrites
    "schedule": COMMON | TIR,
    "kernels": COMMON
    | GRAPH_IR
    | OPERATOR_FACTS
    | PLAN_IR
    | TIR
    | {"instruction_sets", "te", "schedule"},
    # what a layer given away means, and the C that calls the library
    "external": COMMON
    | GRAPH_IR
    | OPERATOR_FACTS
    | TIR
    | {"graph.reference", "codegen.printer.environment"},
    "tir": COMMON | MODULE,
    "executor": COMMON | GRAPH_IR | PLAN_IR | TIR | MODULE,
    "memory": COMMON | TIR | MODULE | {"limits"},
    "codegen": COMMON
    | TIR
    | MODULE
    | {"measure", "support.encoding", "support.reading", "support.templates"}
    | {"compat.microtvm.abi"},
    # an archive holds the text of the TIR; ports that are read back have types of the graph
    "artifact": COMMON
    | MODULE
    | TIR
    | {"codegen", "files", "graph.ir", "measure", "support.reading", "compat.microtvm.mlf"}
    | {"support.notebook"},
    # what users of microTVM bring: each part belongs to the stage that calls it
    "compat": COMMON
    | MODULE
    | TIR
    | {"artifact", "codegen", "support.encoding", "files", "graph.ir", "support.reading"},
    # verify compares the C with the meaning of its graph
    "host": COMMON
    | MODULE
    | GRAPH_IR
    | {"artifact", "graph.macs", "graph.reference", "support.processes", "support.scratch"}
    | {"support.cache_folder"}
    | {"graph.streaming"},  # pushes of frames are compared with the model on the whole window
    "boards": COMMON | {"support.processes", "support.toml_table"},
    "device": COMMON
    | MODULE
    | {"artifact", "boards", "support.cache_folder", "support.processes", "support.scratch"},
    "projects": COMMON
    | MODULE
    | {
        "artifact",
        "boards",
        "device",
        "files",
        "support.scratch",
        "support.encoding",
        "support.processes",
        "support.reading",
        "support.template_files",
        "support.toml_table",
    },
    # a package has the files and the example of projects, in other places
    "packages": COMMON
    | MODULE
    | {
        "artifact",
        "boards",
        "files",
        "instruction_sets",
        "projects",
        "support.archives",
        "support.encoding",
        "support.spelled",
        "support.template_files",
        "support.toml_table",
    },
    "profiling": COMMON
    | MODULE
    | {"artifact", "boards", "device", "instruction_sets", "projects", "support.scratch"},
    "inputs": COMMON | TIR | MODULE | {"te", "schedule"},
    "requested": COMMON
    | GRAPH_IR
    | {
        "graph.bound_states",
        "graph.more_outputs",
        "graph.numerics",
        "graph.passes",
        "graph.processing",
        "graph.stepwise",
        "graph.streaming",
        "graph.unlike_scales",
    },
    "ports": COMMON | MODULE | {"graph.input_guards", "graph.ir", "requested"},
    "graph_lowering": COMMON | GRAPH_IR | {"external", "extra_passes", "graph"},
    "function_lowering": COMMON | TIR | {"extra_passes", "kernels", "plan.ir"},
    # a search over programs: how one is made comes in as a function
    "flash_slack": frozenset({"graph.ir", "plan.ir", "plan.work"}),
    "stages": COMMON | {"function_lowering", "graph.passes", "tir"},
    "shared": COMMON | GRAPH_IR | {"function_lowering", "graph", "kernels", "plan"},
    "trades": COMMON | {"decisions", "graph.ir", "plan.ir", "plan.ranking", "plan.work", "program"},
    "fit": COMMON
    | {"flash_slack", "graph.ir", "limits", "plan.ir", "plan.work", "program", "trades"},
    # the last steps of the driver: what it gives, and what it refuses
    "outcome": COMMON | MODULE | {"artifact", "codegen", "ports", "program"},
    "constant_placement": COMMON | MODULE | {"measure", "memory"},
    "excess": COMMON | MODULE | {"codegen", "memory", "outcome"},
    "driver": COMMON
    | GRAPH_IR
    | PLAN_IR
    | TIR
    | MODULE
    | {"inputs", "extra_passes", "external", "graph", "plan", "te", "schedule", "kernels"}
    | {
        "outcome",
        "ports",
        "requested",
        "constant_placement",
        "excess",
        "fit",
        "trades",
        "shared",
        "program",
        "graph_lowering",
        "function_lowering",
        "executor",
        "memory",
        "measure",
        "codegen",
        "artifact",
    },
    # what a user writes operators with, and a driver and a host to check them by
    "custom": COMMON
    | GRAPH_IR
    | TIR
    | MODULE
    | {"te", "schedule", "driver", "host"}
    | {"graph.reference"},
    # it measures what the driver makes on emulated boards
    "search": COMMON
    | MODULE
    | GRAPH_IR
    | PLAN_IR
    | {"driver", "artifact", "files", "ports", "requested"}
    | {"support.cache_folder", "support.quantities", "support.reading", "support.templates"}
    | {"report.data"}  # a limit that a report found exceeded is refused in a search's words
    | BOARDS,
    # a report describes the program that the driver made
    "report": COMMON
    | MODULE
    | GRAPH_IR
    | PLAN_IR
    | PROGRAM
    | TIR
    | {"driver", "artifact", "support.notebook", "support.reading", "support.templates"}
    | {"boards", "projects.capacity"},  # the memories of a board are limits
    # a page that shows what searches and reports say of models
    "studio": COMMON
    | {"frontend", "graph.ir", "ir_module", "driver", "artifact", "boards", "projects"}
    | {"search", "report", "instruction_sets", "support.ending", "support.reading"}
    | {"version"},
    # `profile --explain` prints what the plan decided, `--dump-code` the text of both IRs
    "cli": COMMON
    | GRAPH_IR
    | PLAN_IR
    | MODULE
    | ENDS
    | {"driver", "compat.microtvm", "files", "ports", "program", "search", "report", "stages"}
    | {"requested", "studio", "support.ending", "support.pool", "support.quantities"}
    | {"graph.text", "instruction_sets", "tir.text"},
    "__main__": frozenset({"cli"}),
}

# What the meaning of an operator must not even reach through others: it is checked against it.
BEHIND_MEANINGS = frozenset({"te", "schedule", "plan", "kernels", "codegen", "driver"})

# What the formula of an operator must not even reach through others: it is checked against it.
BEHIND_FORMULAS = frozenset({"graph.reference", "plan", "kernels", "codegen", "driver"})

# Modules that must not even reach these through others, and why.
UNREACHABLE: dict[str, tuple[frozenset[str], str]] = {
    search: (
        frozenset({"kernels", "te", "schedule", "executor", "memory", "codegen", "tir.passes"})
        | {"driver", "plan.planner", "graph.passes"},
        "a search over programs is given the function that compiles one",
    )
    for search in ("fit", "trades")
}

# Third-party modules that are imported only where a user asks for them, and are not dependencies.
OPTIONAL_THIRD_PARTY: dict[str, str] = {
    "ai_edge_litert": "the oracle of `verify --oracle litert`",
    "distributed": "`tune` on a cluster, for --scheduler",
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
