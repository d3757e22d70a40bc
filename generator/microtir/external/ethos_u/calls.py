"""Let each operator of an Ethos-U be a call of Arm's driver, with memory to work in.

The memory is more outputs of the node, which nobody reads: so each is a buffer of its own, and
memory planning finds it a place in a pool for the time of the call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.config import CompilationConfig
from microtir.config.enums import Compatibility, EthosUInvoke, FastScratch
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.external.emit import call_body
from microtir.external.interface import device
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.custom import custom_record
from microtir.operators.custom.definition import Custom
from microtir.operators.npu.definition import ALIGNMENT, EthosU
from microtir.rewrite.reference import evaluate
from microtir.tir import ir
from microtir.tir.extern import CTemplate

_DEVICE = "ethos_u"
_MOST_ADDRESSES = 8  # that the driver sets; Vela's commands use the first three
_STACK = 256  # bytes of arrays, and of what the driver calls, as far as is known


@dataclass(frozen=True, slots=True)
class _Driver:
    """The calls of the application's driver.

    Args:
        prefix: start of every C identifier.
        invoke: which of its functions.
        has_fast_scratch: whether the driver has memory for the fast scratch.
        pools: in which scratch and fast scratch must lie; empty for any of them.
        device: the application's, where it passes the driver to a run.
    """

    prefix: str
    invoke: EthosUInvoke
    has_fast_scratch: bool
    pools: tuple[str, str]
    device: ir.Device | None


@dataclass(frozen=True, slots=True)
class DriverCalls(Rewrite):
    """Calls the driver for each operator of an Ethos-U.

    Raises:
        UsageError: the driver that is used has to be known, and a function reserves one by itself.
    """

    config: CompilationConfig
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if not any(isinstance(node.op, EthosU) for node in graph.nodes):
            return graph
        passes = self.config.pass_config
        is_microtvm = self.config.compatibility is Compatibility.MICROTVM
        _refuse_two_drivers(self.config)
        driver = _Driver(
            self.config.module_name,
            passes.ethos_u_invoke,
            passes.ethos_u_fast_scratch is FastScratch.DRIVER,
            (passes.ethos_u_scratch_pool, passes.ethos_u_fast_scratch_pool),
            device(_DEVICE) if is_microtvm else None,
        )
        nodes = tuple(_call(n, driver) if isinstance(n.op, EthosU) else n for n in graph.nodes)
        return replace(graph, nodes=nodes)


def _refuse_two_drivers(config: CompilationConfig) -> None:
    passes = config.pass_config
    if passes.ethos_u_invoke is not EthosUInvoke.V2:
        return
    other = ""
    if config.compatibility is Compatibility.MICROTVM:
        other = "with compatibility 'microtvm' the application passes a driver"
    elif passes.ethos_u_fast_scratch is FastScratch.DRIVER:
        other = "microtir checks the fast memory of a driver before using it"
    if other:
        raise UsageError(
            f"'{EthosUInvoke.V2}' itself reserves a driver, but {other}",
            where="pass_config.ethos_u.invoke",
            legal=f"{EthosUInvoke.V3}, {EthosUInvoke.PLAIN}",
        )


def _call(node: Node, driver: _Driver) -> Node:
    """Return the node with the memory that the NPU works in as outputs behind its own."""
    op = node.attributes(EthosU)
    has_fast = bool(op.fast_scratch) and not driver.has_fast_scratch
    sizes = {"scratch": op.scratch, **({"fast_scratch": op.fast_scratch} if has_fast else {})}
    memory = [
        Tensor(f"{node.name}/{name}", TensorType((size,), DType.UINT8))
        for name, size in sizes.items()
    ]
    record = custom_record(
        name="Arm's driver of the Ethos-U",
        reference=lambda _node, *inputs: evaluate(node, inputs),
        function=WrittenFunction(lambda _node, name: _Layer(node, op, driver).function(name)),
        label=op.label,
    )
    return replace(node, op=Custom(record), outputs=(*node.outputs, *memory))


@dataclass(frozen=True, slots=True)
class _Layer:
    """The function of a node: copies to and from the scratch, and the call between them."""

    node: Node
    op: EthosU
    driver: _Driver

    def function(self, name: str) -> ir.PrimFunc:
        """Emit the function that main calls."""
        node, op = self.node, self.op
        cpu_inputs = op.inputs_from_cpu(node)
        passed = {t: f"x{n}" for n, t in enumerate(dict.fromkeys(cpu_inputs)) if not t.is_constant}
        inputs = {t: ir.Buffer(text, t.shape, t.dtype) for t, text in passed.items()}
        outputs = [ir.Buffer(f"y{n}", t.shape, t.dtype) for n, t in enumerate(node.outputs)]
        memory = [ir.Buffer("scratch", (op.scratch,), DType.UINT8, alignment=ALIGNMENT)]
        if op.fast_scratch and not self.driver.has_fast_scratch:
            memory.append(
                ir.Buffer("fast_scratch", (op.fast_scratch,), DType.UINT8, alignment=ALIGNMENT)
            )
        constants = {node.inputs[0]: "commands"}
        constants |= {node.inputs[1]: "weights"} if op.has_weights else {}
        constants |= {t: f"constant{n}" for n, t in enumerate(cpu_inputs) if t.is_constant}
        stored = {t: _constant(t, text) for t, text in constants.items()}
        arguments = (*stored.values(), *inputs.values(), *outputs, *memory)
        params = {b: ir.Buffer(b.name, b.shape, b.dtype, alignment=b.alignment) for b in arguments}
        names = {t: b.name for t, b in (*stored.items(), *inputs.items())}
        extern = ir.ExternFunction(
            f"{self.driver.prefix}_ethos_u_{name}",
            tuple(params.values()),
            reads=tuple(params[b] for b in (*stored.values(), *inputs.values())),
            writes=tuple(params[b] for b in (*outputs, *memory)),
            returns_status=True,
            stack_bytes=_STACK,
            sources=(self._source(names), *self._hooks()),
            device=self.driver.device,
        )
        call = ir.ExternCall(extern, tuple(_all_of(b) for b in arguments))
        pools = {b: pool for b, pool in zip(memory, self.driver.pools, strict=False) if pool}
        return ir.PrimFunc(name, (*inputs.values(), *outputs, *memory), call, pools=pools)

    def _source(self, names: dict[Tensor, str]) -> ir.ExternSource:
        """Return the C of the call."""
        op, driver = self.op, self.driver
        inputs = op.inputs_from_cpu(self.node)
        addresses = self._addresses()[:_MOST_ADDRESSES]
        has_handle = driver.invoke is not EthosUInvoke.V2
        has_user_argument = driver.invoke is EthosUInvoke.V3
        arguments = [
            *(["driver"] if has_handle else []),
            *("commands", str(self.node.inputs[0].type.bytes)),
            *("addresses", "sizes", str(len(addresses))),
            *(["NULL"] if has_user_argument else []),
        ]
        reserved = "ethosu_reserve_driver()" if driver.device is None else "device"
        handle = reserved if has_handle else ""
        values = {
            "count": len(addresses),
            "addresses": [{"text": text, "size": size} for text, size in addresses],
            "inputs": [
                {"name": names[t], "offset": at, "size": t.type.bytes}
                for t, at in zip(inputs, op.operands, strict=True)
            ],
            "outputs": [
                {"name": f"y{n}", "offset": at, "size": t.type.bytes}
                for n, (t, at) in enumerate(zip(self.node.outputs, op.results, strict=True))
            ],
            "invoke": str(driver.invoke),
            "arguments": ", ".join(arguments),
            "handle": handle,
            "is_reserved": driver.device is None,
            "of_driver": op.fast_scratch if driver.has_fast_scratch else 0,
        }
        return ir.ExternSource(
            f"{driver.prefix}_ethos_u.c",
            call_body(CTemplate("external/ethos_u.c.j2", values), driver.device),
            ir.SourceKind.BODY,
            ("<string.h>", "ethosu_driver.h"),
        )

    def _hooks(self) -> tuple[ir.ExternSource, ...]:
        """Return the functions of the device, where the application passes one."""
        device = self.driver.device
        if device is None:
            return ()
        hooks = [device.activate, device.open, device.close, device.deactivate]
        text = CTemplate("external/ethos_u_device.c.j2", {"hooks": hooks})
        return (ir.ExternSource(f"{self.driver.prefix}_ethos_u_device.c", text),)

    def _addresses(self) -> list[tuple[str, int]]:
        """Return base addresses as C, with the bytes from there: the order is Vela's."""
        op, node = self.op, self.node
        weights = ("weights", node.inputs[1].type.bytes) if op.has_weights else ("", 0)
        fast = ("fast_scratch", op.fast_scratch)
        if not op.fast_scratch:
            fast = ("scratch", op.scratch)
        elif self.driver.has_fast_scratch:
            fast = ("", op.fast_scratch)
        tensors = (*op.inputs_from_cpu(node), *node.outputs)
        places = zip(tensors, (*op.operands, *op.results), strict=True)
        inside = [(f"&scratch[{at}]", tensor.type.bytes) for tensor, at in places]
        return [weights, ("scratch", op.scratch), fast, *inside]


def _constant(tensor: Tensor, name: str) -> ir.Buffer:
    """Return a constant input as an array of the program, aligned as the NPU needs it."""
    return ir.Buffer(name, tensor.shape, tensor.dtype, ir.Scope.CONSTANT, tensor.data, ALIGNMENT)


def _all_of(buffer: ir.Buffer) -> ir.BufferArgument:
    return ir.BufferArgument(buffer, (ir.IntImm(0),) * len(buffer.shape))
