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

_NATURAL = "the strictest of targets and host: AVR 1, MVE and 64-bit CPUs 8, others 4"
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
            "tuple of Target",
            "at least one Target or target string, no kind twice",
        ),
        None,
        "Describes the processors; the CPU decides which kernels are candidates.",
        derived=f"required; on the command line the board's, else {DEFAULT_TARGET}",
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
        "Names the processor that runs the entry function, which is portable C. It matters only "
        "if an alignment depends on the processors.",
        derived="the host of a target; if no target names a host, the first target that can be a "
        "host, or c",
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
        "Chooses the C runtime that the generated code belongs to.",
    ),
    Option(
        Section.CONFIG,
        "workspace_pools",
        Structure(
            "tuple of WorkspacePoolInfo",
            "one or more pools, for targets of this configuration",
        ),
        None,
        "Declares the memories that hold activations. The application passes each to the run "
        "function, as the parameter with the pool's name. If no speeds are stated, the first "
        "pool counts as the fastest.",
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
        "Declares the memories that hold weights, each as const arrays in a section. If no speeds "
        "are stated, the first pool counts as the fastest.",
        derived="none: const arrays, which the linker places",
    ),
    Option(
        Section.CONFIG,
        "module_name",
        _MODULE_NAME,
        "",
        "Names the generated files and starts every public C identifier.",
        derived="the model file's name; default without one and with compatibility microtvm",
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
        "Chooses what a plan minimises. speed: estimated instructions. flash: code and "
        "weights. ram: the workspace; 1 % of it may cost 20 % of the instructions at most. "
        "ram-least: the workspace, at any cost. balanced: all of them; 1 % of RAM and flash may "
        "cost 3 % of the instructions at most.",
    ),
    Option(
        Section.CONFIG,
        "measure",
        Choice(enums.Measure),
        "model",
        "Chooses the cost by which kernels are compared. instructions: executed instructions, "
        "which an emulator counts exactly. cycles: estimated cycles of a microcontroller. "
        "model: cycles for a microcontroller with an FPU whose model mostly multiplies floats, "
        "and instructions otherwise.",
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
        "Writes what was proven of functions and loops as comments of the C, which compilers "
        "ignore. acsl: contracts, loop invariants and variants for Frama-C.",
    ),
    Option(
        Section.CONFIG,
        "constant_time",
        Flag(),
        False,
        "Refuses a model if the number of instructions of a layer may depend on data. The message "
        "names the layers and the causes. On a CPU without instructions that choose, such as a "
        "Cortex-M0 or RV32, the C has clamps and choices by masks, without branches.",
    ),
    Option(
        Section.CONFIG,
        "fault_checks",
        Choice(enums.FaultChecks),
        "none",
        "Notices memory that was damaged, by CRC-32. start: a function compares the weights when "
        "the application calls it, and a run refuses a state that changed between runs. layers: "
        "a run also compares the weights of each layer before it computes the layer.",
    ),
    Option(
        Section.CONFIG,
        "canaries",
        Flag(),
        False,
        "Notices writes beyond the ends of a workspace. A run sets words at both ends, compares "
        "them after each layer, and returns an error if one has changed.",
    ),
    Option(
        Section.CONFIG,
        "external",
        Structure(
            "tuple of External",
            "LIBRARY=FOLDER for the layers where it is estimated cheaper, LIBRARY=FOLDER,all, or "
            "LIBRARY=FOLDER,0,3 for operators by position; libraries: cmsis-nn",
        ),
        None,
        "Lets a third-party library compute layers: the sources that it needs are copied "
        "from the folder to the generated ones.",
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
        "Ranks kernels by measured costs if the records contain the operator, instead of by "
        "estimates.",
        derived="none",
    ),
    Option(
        Section.CONFIG,
        "stateful",
        Flag(),
        False,
        "Computes one time step of a recurrent model in each run. The time axis of its input is "
        "1, states stay from run to run, and a run gives the outputs of the whole sequence at "
        "that step.",
    ),
    Option(
        Section.CONFIG,
        "states",
        Word(
            "INPUT=OUTPUT, with commas between several; a * on both sides stands for the same text",
            states_problem,
        ),
        "",
        "Keeps inputs from run to run. The first run begins with zeros, each later run with the "
        "output of the run before. Callers pass neither.",
        derived="none",
    ),
    Option(
        Section.CONFIG,
        "stream_axis",
        Word(
            "an axis from 0 to 9, after the name of an input where there are several: 1, mfcc=1",
            stream_axis_problem,
        ),
        "",
        "Streams a model of a window of frames along an axis of its input. A run takes the "
        "newest frames and gives the outputs of the window that ends with them.",
        derived="none: a run takes whole inputs",
    ),
    Option(
        Section.CONFIG,
        "stream_hop",
        Integer(1, 1 << 16),
        1,
        "Sets the number of frames that a run of a streamed model takes. If the rows of a layer "
        "are several frames apart, use a multiple of that distance: then the layer needs one ring "
        "instead of one for each phase.",
    ),
    Option(
        Section.CONFIG,
        "rename_input",
        Word("NAME=NEW, with commas between several", renames_problem),
        "",
        "Renames inputs; the new names are C identifiers. The former names stay valid in options "
        "and as keys of samples.",
        derived="the names in the model",
    ),
    Option(
        Section.CONFIG,
        "rename_output",
        Word("NAME=NEW, with commas between several", renames_problem),
        "",
        "Renames outputs, as --rename-input does for inputs.",
        derived="the names in the model",
    ),
    Option(
        Section.CONFIG,
        "prepend",
        Word(
            "steps with commas between, after INPUT= where there are several inputs, and ';' "
            f"between these: uint8,minus:127.5,over:127.5; steps: {legal_steps(before=True)}",
            prepend_problem,
        ),
        "",
        "Adds pre-processing steps, from left to right: the C computes the model's input from "
        "the sensor's values. The input then has the sensor's type and extents.",
        derived="none: the model's own inputs",
    ),
    Option(
        Section.CONFIG,
        "append",
        Word(
            "steps with commas between, after OUTPUT= where there are several outputs, and ';' "
            f"between these: dequantize,softmax; steps: {legal_steps(before=False)}",
            append_problem,
        ),
        "",
        "Adds post-processing steps, from left to right: the C computes the application's values "
        "from the model's output. The output then has the type and extents of the last "
        "step.",
        derived="none: the model's own outputs",
    ),
    Option(
        Section.CONFIG,
        "budget",
        Structure(
            "Budget",
            "Budget(ram, flash, stack): bytes from 1, or None",
        ),
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
        "Chooses the interface of the entry function: c takes typed structs of inputs and outputs, "
        "packed an array of tensors whose types it checks.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "unpacked-api",
        Flag(),
        None,
        "Passes tensors to operators as plain C arguments; False passes checked tensors, and "
        "registers the operators, too, where there is a system-lib.",
        derived="True with interface-api 'c', where False is a contradiction; else False",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "link-params",
        Flag(),
        True,
        "Emits the weights as C arrays; False writes them to a file, which the application loads "
        "and passes to the run function.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "workspace-byte-alignment",
        _ALIGNMENT,
        None,
        "Sets the least alignment, in bytes, of the workspace and of every buffer in it. "
        "Elements of a buffer are aligned to their size in any case.",
        derived=_NATURAL,
    ),
    Option(
        Section.EXECUTOR_AOT,
        "constant-byte-alignment",
        _ALIGNMENT,
        None,
        "Sets the least alignment, in bytes, of every constant array; elements are aligned to "
        "their size in any case.",
        derived=_NATURAL,
    ),
)

_AOT_ROWS = (
    Option(
        Section.EXECUTOR_AOT,
        "row-fed-inputs",
        Flag(),
        False,
        "Takes the rows of each input from a function of the application as they are needed, so "
        "that no memory holds a whole input.",
    ),
    Option(
        Section.EXECUTOR_AOT,
        "row-drained-outputs",
        Flag(),
        False,
        "Passes the rows of each output, as they are computed, to a function that the "
        "application sets.",
    ),
)


_AOT_STEPS = Option(
    Section.EXECUTOR_AOT,
    "steps",
    Flag(),
    False,
    "Adds a function that runs the model step by step, so that the application can do other "
    "work in between. A step is an operator, or one iteration of a loop over rows. Macros give the "
    "estimated instructions of each step.",
)

_AOT_GUARD = Option(
    Section.EXECUTOR_AOT,
    "guard-inputs",
    Flag(),
    False,
    "Counts, in each run, the input elements outside of the calibrated range: "
    "stored values at the ends of an integer type, and floats that the model's QUANTIZE clips. "
    "The counts go into a struct of the caller.",
    is_quiet=True,
)


_AOT_BATCH = Option(
    Section.EXECUTOR_AOT,
    "batch-count",
    Flag(),
    False,
    "Passes each run the number of entries of the outermost dimension, from 1 to the number "
    "that the model was read with. Only these entries are computed, one by one.",
    is_quiet=True,
)


def _graph_options(section: Section) -> tuple[Option, ...]:
    return (
        Option(
            section,
            "link-params",
            Flag(),
            False,
            "Emits the weights as C arrays; False writes them to a file, which the application "
            "loads and passes to the run function.",
        ),
    )


_CRT = (
    Option(
        Section.RUNTIME_CRT,
        "system-lib",
        Flag(),
        False,
        "Registers the entry function by name; with interface-api 'c' it goes through a "
        "generated packed wrapper.",
    ),
)

_BUDGET = (
    Option(
        Section.BUDGET,
        "ram",
        _BYTES,
        None,
        "Selects the best plan whose workspace, with the state of the model, has at most this "
        "many bytes. The build is refused if no plan does. Inputs and outputs outside of the "
        "workspace, and the stack, do not count.",
        derived="no limit",
    ),
    Option(
        Section.BUDGET,
        "flash",
        _BYTES,
        None,
        "Selects the best plan whose weights and estimated code have at most this many bytes. "
        "The build is refused if no plan does.",
        derived="no limit",
    ),
    Option(
        Section.BUDGET,
        "stack",
        _BYTES,
        None,
        "Selects the best plan whose stack in one run, as the header bounds it, has at most "
        "this many bytes. The build is refused if no plan does.",
        derived="no limit",
    ),
)


_PASS = (
    Option(
        Section.PASS,
        "graph.block_activations",
        Choice(enums.BlockActivations),
        "model",
        "Chooses the activations of MatMulNBits, whose weights have a scale for each block. "
        "int8 rounds each row to 8 bits by its largest value while the model runs. float32 "
        "rounds none. model rounds only in layers whose accuracy_level is 4.",
        is_quiet=True,
    ),
    Option(
        Section.PASS,
        "graph.input_ranges",
        Word(
            "LOW..HIGH for all int8 inputs, or NAME=LOW..HIGH for some, with commas between",
            input_ranges_problem,
        ),
        "",
        "Declares the range of stored values of inputs, which lets microtir prove more about "
        "channels and sums. Other values then give wrong outputs, and their sums may overflow.",
        derived="all of int8",
    ),
    Option(
        Section.PASS,
        "graph.more_outputs",
        Word(
            "names of tensors in the model file, with commas between",
            more_outputs_problem,
        ),
        "",
        "Adds tensors inside the model to its outputs, so that a run can end early or its values "
        "can be looked at.",
        derived="the model's outputs only",
    ),
    Option(
        Section.PASS,
        "tir.disable_unroll",
        Flag(),
        False,
        "Unrolls no loop, not even one that a schedule marks for unrolling; contradicts an "
        "unroll_max_extent.",
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
        "Chooses how functions of floats such as exp, log, sin and pow are computed. polynomials: "
        "few instructions, and the same bits everywhere. libm: calls of expf and the like of the "
        "C library.",
        is_quiet=True,
    ),
    Option(
        Section.PASS,
        "tir.verify_each_pass",
        Flag(),
        False,
        "Runs the verifier after every pass over the graph and every function, and names the "
        "pass that broke a rule. Slow; for finding a faulty pass.",
    ),
    Option(
        Section.PASS,
        "tir.replay_each_pass",
        Flag(),
        False,
        "Computes the graph and every function before and after each pass, and names the first "
        "pass that changed a result. Functions run on rows that take at most a million steps. "
        "Very slow.",
    ),
    Option(
        Section.PASS,
        "memory.placement",
        Choice(enums.Placement),
        "greedy",
        "Chooses how buffers are placed in the workspace. greedy: the best of a few orders. "
        "exact: all orders, or those within a fixed number of steps. optimal: the solver of "
        "microtir[solver]. "
        "guarded: no sharing, with gaps that sanitizers watch.",
    ),
    Option(
        Section.PASS,
        "memory.recompute",
        Integer(0, 1000),
        0,
        "Computes images in bands of columns where that takes less memory. Columns at the edges "
        "of bands are computed twice, for at most this many percent more multiply-accumulates.",
    ),
    Option(
        Section.PASS,
        "memory.reorder",
        Flag(),
        True,
        "Runs operators in another order than the model file if less memory is then in use at one "
        "time.",
    ),
    Option(
        Section.PASS,
        "memory.use_workspace_io",
        Flag(),
        False,
        "Places inputs and outputs of the model in the workspace, where a run overwrites inputs; "
        "the header says where each of them lies.",
    ),
    *(
        Option(
            Section.PASS,
            f"memory.{kind}_pool",
            Word(
                "a workspace pool that the application passes; empty for any of them",
                pool_name_problem,
            ),
            "",
            f"Names the pool that {kind}s of the model lie in, with memory.use_workspace_io.",
            derived="any",
        )
        for kind in ("input", "output")
    ),
    Option(
        Section.PASS,
        "ethos_u.invoke",
        Choice(enums.EthosUInvoke),
        "ethosu_invoke_v3",
        "Names the function of Arm's driver that runs the commands of an Ethos-U: drivers from "
        "22.02 on have ethosu_invoke_v3, older ones ethosu_invoke or ethosu_invoke_v2.",
    ),
    Option(
        Section.PASS,
        "ethos_u.fast_scratch",
        Choice(enums.FastScratch),
        "workspace",
        "Chooses where the fast scratch of an Ethos-U with a memory of its own lies: in the "
        "workspace, or in the memory that the application gave to ethosu_init().",
    ),
    *(
        Option(
            Section.PASS,
            f"ethos_u.{kind}_pool",
            Word("a workspace pool; empty for any of them", pool_name_problem),
            "",
            f"Names the pool that the {kind.replace('_', ' ')} of an Ethos-U lies in.",
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
