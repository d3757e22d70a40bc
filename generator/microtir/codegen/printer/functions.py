"""Prints a function of the generated file: comment, signature and body, as finished lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microtir.codegen.interface.devices import devices_parameter
from microtir.codegen.printer.annotations import contract_lines
from microtir.codegen.printer.assembly import assembly_lines
from microtir.codegen.printer.c_types import C_TYPES
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.intrinsics import intrinsics_lines
from microtir.codegen.printer.layout import WIDTH, block_comment, indent, wrap
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.printer.statements import StatementPrinter, parameter_text, pointer_cast
from microtir.codegen.program import CProgram
from microtir.config.enums import Annotations
from microtir.dtype import DType
from microtir.measure.functions import has_intrinsics
from microtir.tir.analysis.access import preconditions
from microtir.tir.function import Origin
from microtir.tir.ir import PrimFunc, Scope
from microtir.tir.visitor import buffers_read


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The finished texts of a function; `signature` lacks the brace that opens the body.

    A micro-kernel with assembly or intrinsics has two more texts, for the compilers and CPUs that
    can use them.
    """

    comment: str
    signature: str
    body: str
    contract: str = ""
    assembly_signature: str = ""
    assembly: str = ""

    @property
    def definition(self) -> str:
        """Return the function in C, without its comment but with what a prover reads."""
        contract = f"{self.contract}\n" if self.contract else ""
        return f"{contract}{self.signature}\n{{\n{self.body}\n}}"

    @property
    def declaration(self) -> str:
        """Return the prototype behind its comment."""
        return f"{self.comment}\n{self.signature};"

    def commented(self, macro: str) -> str:
        """Return all of its texts, the assembly where `macro` is defined."""
        if not self.assembly:
            return f"{self.comment}\n{self.definition}"
        assembly = f"{self.assembly_signature}\n{{\n{self.assembly}\n}}"
        both = f"#if defined({macro})\n{assembly}\n#else\n{self.definition}\n#endif"
        return f"{self.comment}\n{both}"


def function_text(
    program: CProgram, function: PrimFunc, requirements: Requirements
) -> FunctionText:
    """Print the body of a function as a static C function."""
    names = ScopedNames(program.file_names)
    for parameter in function.params:
        names.define(parameter)
    printer = StatementPrinter(program, function, names, requirements)
    pointers = parameter_pointers(program, function)
    body = printer.lines(function.body)
    unused = [f"(void){names.of(p)};" for p in function.params if not names.is_used(p)]
    storage = _storage(program, function)
    returns, end = "void", []
    if function in program.fallible:
        returns, end = "int32_t", [f"return {program.macro}_OK;"]
    written = program.written[function]
    # Any write of a micro-kernel may come before any read: the regions of a call are apart.
    is_kernel = function in program.kernels and not merges(function)
    restrict = is_kernel and function not in program.assembly
    parameters = [
        parameter_text(p, names.of(p), p in written, is_restrict=restrict) for p in function.params
    ]
    if program.takes_constants(function):
        parameters.append(program.given_constants.parameter)
    if program.takes_devices(function):
        parameters.append(devices_parameter(program))
    head = f"{storage} {returns} {program.names[function]}"
    lines = [*unused, *pointers, *body, *end]
    text = c_function(head, parameters, lines, origin_lines(function))
    if program.config.annotations is Annotations.ACSL:
        text = replace(text, contract=_contract(program, function, names))
    if function not in program.assembly:
        return text
    if has_intrinsics(function):
        # The template knows parameters by their names in TIR.
        known = [
            parameter_text(p, p.name, p in written, is_restrict=restrict) for p in function.params
        ]
        template = program.assembly[function]
        lines = intrinsics_lines(template, function, program.name, program.macro)
        own = "\n".join(signature(head, known))
        return replace(text, assembly_signature=own, assembly=joined(lines))
    # The assembly finds its arguments in registers: to the compiler they look unused.
    unread = [f"{program.macro}_UNUSED {parameter}" for parameter in parameters]
    head = f"{program.macro}_ASSEMBLY void {program.names[function]}"
    return replace(
        text,
        assembly_signature="\n".join(signature(head, unread)),
        assembly="\n".join(assembly_lines(program.assembly[function], function)),
    )


def _contract(program: CProgram, function: PrimFunc, names: ScopedNames) -> str:
    """Return the contract of a function in ACSL."""
    known = preconditions(program.functions).get(function, ())
    lines = contract_lines(function, names, program.written[function], known)
    return "\n".join(part for line in lines for part in wrap(line))


def _storage(program: CProgram, function: PrimFunc) -> str:
    """Return what stands in front of the return type."""
    kernel = function.kernel
    if merges(function):
        return f"{program.macro}_SHARED"
    is_noinline = function in program.layers or (kernel is not None and kernel.noinline)
    return f"{program.macro}_LAYER" if program.model and is_noinline else "static"


def merges(function: PrimFunc) -> bool:
    """Return whether several layers call the function as what they have in common."""
    return function.kernel is not None and function.kernel.merges


def parameter_pointers(program: CProgram, function: PrimFunc) -> list[str]:
    """Return pointers to the constants that a function reads of what the run is given."""
    constants = (b for b in buffers_read(function) if b.scope is Scope.CONSTANT)
    arrays = {array.name: array for array in (program.arrays[buffer] for buffer in constants)}
    lines = []
    for array in arrays.values():
        if array.offset is not None:
            base = program.given_constants.holding(array)
            place = pointer_cast(base, DType.UINT8, array.dtype, array.offset, True)
            lines.append(f"const {C_TYPES[array.dtype]} *const {array.name} = {place};")
    return lines


def c_function(
    head: str, parameters: Sequence[str], lines: Sequence[str] = (), comment: Sequence[str] = ()
) -> FunctionText:
    """Return a function of finished lines."""
    said = "\n".join(block_comment(list(comment))) if comment else ""
    return FunctionText(said, "\n".join(signature(head, parameters)), joined(lines))


def joined(lines: Sequence[str]) -> str:
    """Return lines of a body, indented once and broken where they are too wide."""
    return "\n".join(part for line in indent(lines) for part in wrap(line))


def signature(head: str, parameters: Sequence[str]) -> list[str]:
    """Return `head(parameters)`; parameters that do not fit the line get lines of their own."""
    line = f"{head}({', '.join(parameters) or 'void'})"
    if len(line) < WIDTH:
        return [line]
    lines, current = [], " " * 8
    for number, parameter in enumerate(parameters):
        text = parameter + ("," if number < len(parameters) - 1 else ")")
        if current.strip() and len(current) + len(text) + 1 > WIDTH:
            lines.append(current.rstrip())
            current = " " * 8
        current += f"{text} "
    return [f"{head}(", *lines, current.rstrip()]


def origin_lines(function: PrimFunc) -> list[str]:
    """Return what a function's comment says: the operator of the model file that it computes."""
    origin = function.origin
    if function.kernel is not None and function.kernel.comment:
        *lines, last = function.kernel.comment
        return [*lines, f"{last}." if last[-1:].isalnum() else last]
    if origin is None:
        return [f"TIR function '{function.name}'"]
    facts = (*origin.facts, *_rings(function))
    return [title(origin), *(f"  {fact}" for fact in facts), *_macs(origin)]


def _rings(function: PrimFunc) -> list[str]:
    """Return which parameters are ring buffers, and where a row lies in them."""
    rings: list[str] = []
    for buffer, access in function.rows.items():
        slots = buffer.shape[0] if buffer.shape else access.height
        if isinstance(slots, int) and slots < access.height:
            where = f", row r in slot r % {slots}" if slots > 1 else ""
            label = "" if rings else "rings"
            rings.append(f"{label:<9}{buffer.name} holds {slots} of {access.height} rows{where}")
    return rings


def title(origin: Origin) -> str:
    """Return one line that names the operator in the model file."""
    where = f", operator {origin.index} of the model" if origin.index >= 0 else ""
    return f"{origin.operator} '{origin.node}'{where}"


def _macs(origin: Origin) -> list[str]:
    if not origin.macs:
        return []
    line, own = f"  {origin.macs:,} multiply-accumulates", origin.macs_executed
    again = []
    if origin.macs_recomputed:
        own -= origin.macs_recomputed
        again = [f"  and {origin.macs_recomputed:,} more, because bands compute the same rows"]
    if own == origin.macs:
        return [line, *again]
    return [f"{line}, {own:,} executed; the others are on constant channels", *again]
