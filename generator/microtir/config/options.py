"""The one table of all options: what constructors check, the command line offers and docs print.

Each row has a name, a domain (type and legal values), a default and a sentence of help. Nothing
else in the project lists options: Executor, Runtime, PassConfig, Budget, the pools and
CompilationConfig check against these rows, the flags of the command line are derived from them
(flags.py), and so are `microtir options` and docs/configuration.md (reference.py).
"""

from __future__ import annotations

from functools import cache

from microtir.config import enums, pool_options
from microtir.config.domains import Choice, Flag, Integer, Structure, Word
from microtir.config.input_ranges import input_ranges_problem
from microtir.config.legacy_options import LEGACY
from microtir.config.more_outputs import more_outputs_problem
from microtir.config.option import Option, Section, UnknownOptionError, pending
from microtir.config.processing import (
    append_problem,
    legal_steps,
    prepend_problem,
)
from microtir.config.renames import renames_problem
from microtir.config.states import states_problem
from microtir.config.stream_axis import stream_axis_problem
from microtir.config.target_options import TARGET_OPTIONS
from microtir.errors import nearest
from microtir.support.names import pool_name_problem, wanted_name_problem

_ALIGNMENT = Integer(1, pool_options.MAX_ALIGNMENT, power=True)
_BYTES = Integer(1, pool_options.MAX_BYTES)
DEFAULT_TARGET = "c -mcpu=cortex-m4"
"""Target of a command line that names neither a target nor a board."""

_NATURAL = "the largest value of the targets: 1 for AVR, 8 for MVE and 64-bit CPUs, otherwise 4"
_MODULE_NAME = Word(
    "a C identifier of at most 48 characters without leading or double underscores; not a "
    "keyword, macro or standard header",
    wanted_name_problem,
)

_CONFIG = (
    Option(
        Section.CONFIG,
        "targets",
        Structure(
            "tuple of Target", "one or more targets or target strings, at most one of each kind"
        ),
        None,
        "Names the target processors. The CPU decides which kernels can be used.",
        derived=f"required in Python; otherwise the target of --board, or {DEFAULT_TARGET}",
        spelling="--target",
    ),
    Option(
        Section.CONFIG,
        "target_host",
        Structure(
            "Target",
            "a Target or target string that names no host",
        ),
        None,
        "Names the processor that runs the entry function, which is portable C. The host changes "
        "only the alignment of buffers, and only if the two processors need different alignments.",
        derived="the host that a target names; otherwise the first target that can be a "
        "host; otherwise c",
    ),
    Option(
        Section.CONFIG,
        "executor",
        Choice(enums.ExecutorKind),
        "aot",
        "Chooses how operators are called. aot writes one C function that calls them one after "
        "another. "
        "graph writes a table of calls that the runtime walks. debug adds names, times and "
        "checksums to that table.",
    ),
    Option(
        Section.CONFIG,
        "runtime",
        Choice(enums.RuntimeKind),
        "crt",
        "Chooses the C runtime library of the generated code.",
    ),
    Option(
        Section.CONFIG,
        "workspace_pools",
        Structure(
            "tuple of WorkspacePoolInfo",
            "one or more pools, for targets of this configuration",
        ),
        None,
        "Declares the memories that hold activations. The run function has a parameter for each "
        "pool, and the application passes the memory of the pool. If no speeds are stated, "
        "microtir assumes that the first pool is the fastest.",
        derived="one pool 'workspace' without a limit",
    ),
    Option(
        Section.CONFIG,
        "constant_pools",
        Structure(
            "tuple of ConstantPoolInfo",
            "pools for targets of this configuration",
        ),
        None,
        "Declares the memories that hold weights. The weights of each pool are const arrays in a "
        "section. If no speeds are stated, microtir assumes that the first pool is the fastest.",
        derived="none (the weights are const arrays, which the linker places)",
    ),
    Option(
        Section.CONFIG,
        "module_name",
        _MODULE_NAME,
        "",
        "Names the generated files. Every public C identifier begins with this name.",
        derived="the model file's name; 'default' without a file or with compatibility microtvm",
    ),
    Option(
        Section.CONFIG,
        "numerics",
        Choice(enums.Numerics),
        "model",
        "Names the reference whose results the code reproduces. model: the reference of the file's "
        "format. tflm: tflite-micro, bit-exact for int8. tflite_ref: LiteRT's reference kernels. "
        "onnxruntime: ONNX's quantised operators, bit-exact. pt2e: PyTorch's quantised programs.",
        pending=pending("use numerics 'tflm'", "tflite_opt", "float"),
    ),
    Option(
        Section.CONFIG,
        "optimize",
        Choice(enums.Optimize),
        "balanced",
        "Chooses what a plan minimises. speed: estimated instructions. flash: code and weights. "
        "ram: the workspace, if 1 % less RAM costs at most 20 % more instructions. ram-least: the "
        "workspace, at any cost. balanced: all of these, if 1 % less RAM or flash costs at most 3 "
        "% more instructions.",
    ),
    Option(
        Section.CONFIG,
        "measure",
        Choice(enums.Measure),
        "model",
        "Chooses the cost that is used to compare kernels. instructions: executed instructions, "
        "which an emulator counts exactly. cycles: estimated cycles of a microcontroller. model: "
        "cycles for a microcontroller with an FPU whose model mostly multiplies floats, and "
        "instructions otherwise.",
    ),
    Option(
        Section.CONFIG,
        "compatibility",
        Choice(enums.Compatibility),
        "none",
        "Also generates another tool's C interface: microtvm writes "
        "tvmgen_<module>.h with the names that applications for microTVM use.",
    ),
    Option(
        Section.CONFIG,
        "annotations",
        Choice(enums.Annotations),
        "none",
        "Writes the proven facts about functions and loops as comments into the C code. acsl: "
        "contracts, loop invariants and loop variants in the language of Frama-C.",
    ),
    Option(
        Section.CONFIG,
        "constant_time",
        Flag(),
        False,
        "Refuses a model if the number of instructions of a layer may depend on data. The message "
        "names the layers and the causes. The C code selects values with masks instead of "
        "branches, except on an AVR.",
    ),
    Option(
        Section.CONFIG,
        "fault_checks",
        Choice(enums.FaultChecks),
        "none",
        "Detects damaged memory with CRC-32 checksums. start: the C code has a function that "
        "checks the weights when the application calls it. Each run also refuses a state that "
        "changed since the last run. layers: in addition, a run checks the weights of each layer "
        "before it computes the layer. tensors: in addition, a run checks that the tensors in the "
        "workspace do not change between layers.",
    ),
    Option(
        Section.CONFIG,
        "canaries",
        Flag(),
        False,
        "Detects writes beyond the ends of a workspace. A run writes known words at both ends and "
        "checks them after each layer. If a word has changed, the run returns an error.",
    ),
    Option(
        Section.CONFIG,
        "external",
        Structure(
            "tuple of External",
            "LIBRARY=FOLDER for the layers where the library is estimated to be cheaper. "
            "LIBRARY=FOLDER,all for all layers that it can compute. LIBRARY=FOLDER,0,3 for "
            "operators 0 and 3 of the model. Libraries: cmsis-nn",
        ),
        None,
        "Lets a third-party library compute layers. The necessary source files are copied from "
        "the folder to the generated files.",
        derived="none",
    ),
    Option(
        Section.CONFIG,
        "tuning_records",
        Word(
            "the name of a file that `microtir tune` wrote",
            lambda text: "is not a name of a file" if "\n" in text else "",
        ),
        "",
        "Compares kernels by measured costs instead of estimates, for every operator that the "
        "records contain.",
        derived="none",
    ),
    Option(
        Section.CONFIG,
        "stateful",
        Flag(),
        False,
        "Computes one time step of a recurrent model in each run. The time axis of the input has "
        "length 1, and states are kept between runs. The outputs equal those of the whole "
        "sequence at that step.",
    ),
    Option(
        Section.CONFIG,
        "states",
        Word(
            "a comma-separated list of INPUT=OUTPUT; a * matches the same text in both names",
            states_problem,
        ),
        "",
        "Makes each pair of an input and an output a state. The first run reads zeros, and each "
        "later run reads the previous output. Callers do not pass these tensors.",
        derived="none",
    ),
    Option(
        Section.CONFIG,
        "stream_axis",
        Word(
            "an axis from 0 to 9, such as 1. For several inputs: NAME=AXIS, such as mfcc=1",
            stream_axis_problem,
        ),
        "",
        "Streams a model whose input is a window of frames along this axis. Each run takes only "
        "the newest frames, and computes the outputs of the window that ends with them.",
        derived="none (each run takes whole inputs)",
    ),
    Option(
        Section.CONFIG,
        "stream_hop",
        Integer(1, 1 << 16),
        1,
        "Sets the number of new frames in each run of a streamed model. If a layer advances by "
        "several frames per row, use a multiple of that number. The layer then needs only one "
        "ring buffer.",
    ),
    Option(
        Section.CONFIG,
        "rename_input",
        Word("a comma-separated list of NAME=NEW", renames_problem),
        "",
        "Renames inputs. The new names must be C identifiers. The old names stay valid in options "
        "and as names of arrays in sample files.",
        derived="the names in the model",
    ),
    Option(
        Section.CONFIG,
        "rename_output",
        Word("a comma-separated list of NAME=NEW", renames_problem),
        "",
        "Renames outputs. The rules are those of --rename-input.",
        derived="the names in the model",
    ),
    Option(
        Section.CONFIG,
        "prepend",
        Word(
            "a comma-separated list of steps, for example uint8,minus:127.5,over:127.5. For "
            f"several inputs: INPUT=STEPS;INPUT=STEPS. Steps: {legal_steps(before=True)}",
            prepend_problem,
        ),
        "",
        "Adds pre-processing steps, which run from left to right. The C then computes the model's "
        "input from the sensor's values. The input of the C has the sensor's type and shape.",
        derived="none (the inputs stay those of the model)",
    ),
    Option(
        Section.CONFIG,
        "append",
        Word(
            "a comma-separated list of steps, for example dequantize,softmax. For several "
            f"outputs: OUTPUT=STEPS;OUTPUT=STEPS. Steps: {legal_steps(before=False)}",
            append_problem,
        ),
        "",
        "Adds post-processing steps, which run from left to right. The C code then computes the "
        "application's values from the model's output. The output of the C code has the type and "
        "shape of the last step.",
        derived="none (the outputs stay those of the model)",
    ),
    Option(
        Section.CONFIG,
        "budget",
        Structure("Budget", "Budget(ram, flash, stack), each a number of bytes from 1, or None"),
        None,
        "Sets limits. The build is refused if figures that need no C compiler exceed them.",
        derived="no limits",
        spelling="",
    ),
    Option(
        Section.CONFIG,
        "pass_config",
        Structure(
            "PassConfig",
            "a mapping of the keys below to values",
        ),
        None,
        "Sets options of single passes.",
        derived="every key at its default",
        spelling="",
    ),
)

_AOT = (
    Option(
        Section.EXECUTOR_AOT,
        "interface-api",
        Choice(enums.InterfaceApi),
        "c",
        "Chooses the interface of the entry function. c: it takes typed structs of inputs and "
        "outputs. packed: it takes an array of tensors, and checks their types.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "unpacked-api",
        Flag(),
        None,
        "True passes tensors to operators as plain C arguments. False passes tensors with checked "
        "types. With system-lib, False also registers the operators.",
        derived="always True with interface-api 'c', otherwise False",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "link-params",
        Flag(),
        True,
        "True writes the weights as C arrays. False writes them to a file, which the application "
        "loads and passes to the run function.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "workspace-byte-alignment",
        _ALIGNMENT,
        None,
        "Sets the minimum alignment, in bytes, of the workspace and of every buffer in it. "
        "Elements of a buffer are always aligned to their size.",
        derived=_NATURAL,
    ),
    Option(
        Section.EXECUTOR_AOT,
        "constant-byte-alignment",
        _ALIGNMENT,
        None,
        "Sets the minimum alignment, in bytes, of every constant array. Elements are always "
        "aligned to their size.",
        derived=_NATURAL,
    ),
)

_AOT_ROWS = (
    Option(
        Section.EXECUTOR_AOT,
        "row-fed-inputs",
        Flag(),
        False,
        "Calls a function of the application for each row of an input when the row is needed. The "
        "whole input is then never in memory at one time.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "row-drained-outputs",
        Flag(),
        False,
        "Calls a function of the application with each row of an output as soon as the row is "
        "computed.",
    ),
)


_AOT_STEPS = Option(
    Section.EXECUTOR_AOT,
    "steps",
    Flag(),
    False,
    "Adds a function that runs the model step by step, so that the application can do other work "
    "between steps. A step is an operator, or one iteration of a loop over rows. Macros in the "
    "header state the estimated instructions of each step.",
)

_AOT_GUARD = Option(
    Section.EXECUTOR_AOT,
    "guard-inputs",
    Flag(),
    False,
    "Counts, in each run, the input elements outside of the calibrated range: stored values at "
    "the ends of an integer type, and floats that the model's QUANTIZE clips. The counts are "
    "written to a struct that the caller passes.",
    is_quiet=True,
)


_AOT_BATCH = Option(
    Section.EXECUTOR_AOT,
    "batch-count",
    Flag(),
    False,
    "Adds a parameter to the run function: the number of batch entries, from 1 to the batch size "
    "of the model. A run computes one entry after another.",
    is_quiet=True,
)


def _graph_options(section: Section) -> tuple[Option, ...]:
    return (
        Option(
            section,
            "link-params",
            Flag(),
            False,
            "True writes the weights as C arrays. False writes them to a file, which the "
            "application loads and passes to the run function.",
        ),
    )


_CRT = (
    Option(
        Section.RUNTIME_CRT,
        "system-lib",
        Flag(),
        False,
        "Registers the entry function in the runtime, which then finds it by its name. With "
        "interface-api 'c', a generated packed wrapper is registered instead.",
    ),
)

_BUDGET = (
    Option(
        Section.BUDGET,
        "ram",
        _BYTES,
        None,
        "Selects the best plan whose workspace and states together take at most this many bytes. "
        "The build is refused if no plan fits. The limit excludes the stack, and inputs and "
        "outputs outside of the workspace.",
        derived="no limit",
    ),
    Option(
        Section.BUDGET,
        "flash",
        _BYTES,
        None,
        "Selects the best plan whose weights and estimated code take at most this many bytes. The "
        "build is refused if no plan fits.",
        derived="no limit",
    ),
    Option(
        Section.BUDGET,
        "stack",
        _BYTES,
        None,
        "Selects the best plan that needs at most this many bytes of stack in one run. The header "
        "states that bound of the stack. The build is refused if no plan fits.",
        derived="no limit",
    ),
)


_PASS = (
    Option(
        Section.PASS,
        "graph.attention_cache",
        Choice(enums.AttentionCache),
        "model",
        "Chooses the type of the keys and values that attention keeps in states. int8: they are "
        "rounded to 8 bits when a run stores them. Each head of a token has a scale from its "
        "largest value. model: they stay as they are in the model.",
        is_quiet=True,
    ),
    Option(
        Section.PASS,
        "graph.block_activations",
        Choice(enums.BlockActivations),
        "model",
        "Chooses the activations of the ONNX operator MatMulNBits, whose weights have a scale for "
        "each block. int8: each row is rounded to 8 bits while the model runs, with a scale from "
        "its largest value. float32: rows are not rounded. model: rows are rounded only in layers "
        "whose accuracy_level is 4.",
        is_quiet=True,
    ),
    Option(
        Section.PASS,
        "graph.input_ranges",
        Word(
            "LOW..HIGH for all int8 inputs, or a comma-separated list of NAME=LOW..HIGH",
            input_ranges_problem,
        ),
        "",
        "Declares the range of the stored values of inputs, so that microtir can prove more about "
        "channels and sums. Other values give wrong outputs, and their sums may overflow.",
        derived="all of int8",
    ),
    Option(
        Section.PASS,
        "graph.more_outputs",
        Word("a comma-separated list of names of tensors in the model file", more_outputs_problem),
        "",
        "Adds inner tensors of the model to its outputs, so that their values can be inspected or "
        "a run can end early.",
        derived="the model's outputs only",
    ),
    Option(
        Section.PASS,
        "tir.disable_unroll",
        Flag(),
        False,
        "True unrolls no loop, not even a loop that a schedule marks for unrolling. It cannot be "
        "combined with tir.unroll_max_extent.",
    ),
    Option(
        Section.PASS,
        "tir.unroll_max_extent",
        Integer(0, 256),
        0,
        "Unrolls innermost loops of at most this many iterations; 0 unrolls only marked loops.",
    ),
    Option(
        Section.PASS,
        "tir.float_functions",
        Choice(enums.FloatFunctions),
        "polynomials",
        "Chooses how float functions such as exp, log, sin and pow are computed. polynomials: few "
        "instructions, and the same bits on every machine. libm: calls of the C library, such as "
        "expf.",
        is_quiet=True,
    ),
    Option(
        Section.PASS,
        "tir.verify_each_pass",
        Flag(),
        False,
        "Runs the verifier after every pass, on the graph and on every function, and names the "
        "pass that broke a rule. It is slow, and helps to find a faulty pass.",
    ),
    Option(
        Section.PASS,
        "tir.replay_each_pass",
        Flag(),
        False,
        "Computes the graph and every function before and after each pass, and names the first "
        "pass that changed a result. Each function runs on as many rows as take at most a million "
        "steps. It is very slow.",
    ),
    Option(
        Section.PASS,
        "memory.placement",
        Choice(enums.Placement),
        "greedy",
        "Chooses how buffers are placed in the workspace. greedy: the best of a few orders. "
        "exact: all orders that a fixed number of steps allows. optimal: a solver, which the "
        "extra microtir[solver] installs. guarded: buffers share no bytes, and sanitizers watch "
        "the gaps between them.",
    ),
    Option(
        Section.PASS,
        "memory.recompute",
        Integer(0, 1000),
        0,
        "Computes images in bands of columns if that takes less memory. Columns at the edges of "
        "bands are then computed twice. The value limits this extra work, in percent.",
    ),
    Option(
        Section.PASS,
        "memory.reorder",
        Flag(),
        True,
        "True runs operators in another order than the model file if that reduces the peak memory.",
    ),
    Option(
        Section.PASS,
        "memory.use_workspace_io",
        Flag(),
        False,
        "Places the inputs and outputs of the model in the workspace, where a run overwrites the "
        "inputs. The header states the place of each input and output.",
    ),
    *(
        Option(
            Section.PASS,
            f"memory.{kind}_pool",
            Word(
                "the name of a workspace pool that the application passes; empty for any such pool",
                pool_name_problem,
            ),
            "",
            f"Names the pool for the model's {kind}s. It needs memory.use_workspace_io.",
            derived="any",
        )
        for kind in ("input", "output")
    ),
    Option(
        Section.PASS,
        "ethos_u.invoke",
        Choice(enums.EthosUInvoke),
        "ethosu_invoke_v3",
        "Names the function of Arm's driver that runs the commands of an Ethos-U. Drivers from "
        "22.02 on have ethosu_invoke_v3. Older drivers have ethosu_invoke or ethosu_invoke_v2.",
    ),
    Option(
        Section.PASS,
        "ethos_u.fast_scratch",
        Choice(enums.FastScratch),
        "workspace",
        "Chooses the place of the fast scratch, for an Ethos-U that has a separate memory for it. "
        "workspace: in the workspace. driver: in the memory that the application passed to "
        "ethosu_init().",
    ),
    *(
        Option(
            Section.PASS,
            f"ethos_u.{kind}_pool",
            Word("the name of a workspace pool; empty for any pool", pool_name_problem),
            "",
            f"Names the workspace pool for the {kind.replace('_', ' ')} of an Ethos-U.",
            derived="any",
        )
        for kind in ("scratch", "fast_scratch")
    ),
)

OPTIONS: tuple[Option, ...] = (
    *_CONFIG,
    *TARGET_OPTIONS,
    *_AOT,
    *_AOT_ROWS,
    _AOT_STEPS,
    _AOT_GUARD,
    _AOT_BATCH,
    *_graph_options(Section.EXECUTOR_GRAPH),
    *_graph_options(Section.EXECUTOR_DEBUG),
    *_CRT,
    *_BUDGET,
    *pool_options.POOL_OPTIONS,
    *_PASS,
)


# Every configuration asks for each of its options.
@cache
def section_options(section: Section) -> tuple[Option, ...]:
    """Return the options of one section, in the order of the table."""
    return tuple(option for option in OPTIONS if option.section is section)


def find(section: Section, name: object) -> Option:
    """Return the option called `name`.

    Raises:
        UnknownOptionError: there is none; says the nearest name, or what took its place.
    """
    options = section_options(section)
    for option in options:
        if option.name == name:
            return option
    names = [option.name for option in options]
    fix = LEGACY.get(str(name))
    # A misspelt key of microTVM's passes is told its name, which then is told what took its place.
    meant = [old for old in LEGACY if "." in old] if section is Section.PASS else []
    hint = "" if fix else nearest(str(name), [*names, *meant])
    what = f"{section.label} '{name}' is unknown"
    raise UnknownOptionError(
        f"{what}: {hint}" if hint else what,
        where=f"{section.path}{name}",
        legal=", ".join(names),
        fix=fix,
    )
