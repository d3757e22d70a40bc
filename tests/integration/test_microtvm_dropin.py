"""The C interface of microTVM: applications that were written against it compile, link and run.

The applications of `microtvm_apps` use what microTVM documents, one kind of interface each; none of
them knows anything of microtir.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.artifact import Artifact
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Graph
from microtir.operators.activations.definition import Tanh
from tests.support.archives import unpack
from tests.support.c_compilers import (
    C_COMPILERS,
    CPP_COMPILERS,
    HOST_COMPILERS,
    INCLUDES,
    STRICT,
    STRICT_CPP,
    compiler_output,
    strict_problems,
)
from tests.support.graphs import graph, node, quant, tensor
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    tiny_graph,
)

LOGGING = "tvm/runtime/crt/logging.h"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
APPS = Path(__file__).with_name("microtvm_apps")
BASE = CompilationConfig(targets="c", compatibility="microtvm")
POOL = BASE.with_(workspace_pools="dtcm-2")
WORKSPACE_IO = POOL.with_(pass_config={"memory.use_workspace_io": True})
CONFIGS = {
    "structs": BASE,
    "main_function": BASE,
    "pools": POOL,
    "workspace_io": WORKSPACE_IO,
    "two_pools": BASE.with_(
        workspace_pools=[
            {"pool_name": "dtcm-2", "pool_info_properties": {"size_hint_bytes": 8}},
            "sram",
        ],
        pass_config={"memory.use_workspace_io": True, "memory.input_pool": "sram"},
    ),
    "constant_pools": BASE.with_(
        workspace_pools="sram",
        constant_pools=[
            {
                "pool_name": "dtcm-2",
                "pool_info_properties": {"size_hint_bytes": 90, "byte_alignment": 32},
            },
            "flash",
        ],
    ),
    "constant_pool_only": BASE.with_(constant_pools="flash"),
    "allocators": BASE,
    "packed": BASE.with_(executor=Executor("aot", {"interface-api": "packed"})),
    "system_lib": BASE.with_(runtime=Runtime("crt", {"system-lib": True})),
    "packed_system_lib": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed"}),
        runtime=Runtime("crt", {"system-lib": True}),
    ),
    "aot_executor": BASE.with_(runtime=Runtime("crt", {"system-lib": True})),
    "packed_aot_executor": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed"}),
        runtime=Runtime("crt", {"system-lib": True}),
    ),
    "graph": BASE.with_(executor=Executor("graph", {"link-params": True})),
    "graph_apart": BASE.with_(executor="graph"),
    "debug": BASE.with_(executor="debug"),
    "packed_with_unpacked_operators": BASE.with_(
        executor=Executor("aot", {"interface-api": "packed", "unpacked-api": True})
    ),
}


SOURCES = {
    "packed_with_unpacked_operators": "packed.c",
    "packed_system_lib": "system_lib.c",
    "packed_aot_executor": "aot_executor.c",
    "graph_apart": "graph.c",
    "debug": "graph.c",
}


def _write_headers(artifact: Artifact, app: str, folder: Path) -> None:
    """Write what such applications made of the files of an archive: arrays of their bytes."""
    content = artifact.data[0].content if artifact.data else b""
    blob = ", ".join(map(str, b"\0" + content)) if content else ", ".join(map(str, _NONE))
    # A copy in odd memory is asked for where weights are in a file: it begins behind a byte.
    name = "odd" if content else "params_blob"
    lines = [f"static const unsigned char {name}[] = {{{blob}}};"]
    if content:
        lines.append("#define params_blob (*(const unsigned char (*)[sizeof odd - 1])(odd + 1))")
    lines.append('static const char graph_json[] = "{}";')
    (folder / "blobs.h").write_text("\n".join(lines) + "\n")
    packed = "" if app == "packed_system_lib" else "_packed"
    (folder / "names.h").write_text(f'#define RUN "tvmgen_default_run{packed}"\n')


_NONE = 0xF7E58D4F05049CB7.to_bytes(8, "little") + bytes(24)


def built(config: CompilationConfig, model: Graph | None = None) -> Artifact:
    """Return the model that the applications run."""
    return microtir.build(module_of(model or quantised_graph()), config)


def expected() -> list[int]:
    """Return what the applications print: the scores of an image of multiples of 11."""
    image = (11 * np.arange(12)).astype(np.int8).reshape(1, 3, 4, 1)
    [scores] = reference_outputs(quantised_graph(), {"image": image}).values()
    return [int(value) for value in scores.ravel()]


def printed(command: list[str], folder: Path) -> list[int]:
    """Compile an application, run it, and read the numbers that it prints."""
    return [int(line) for line in printed_text(command, folder).split()]


def printed_text(command: list[str], folder: Path) -> str:
    """Compile an application, run it, and return what it prints."""
    problems = compiler_output([*command, "-o", "app", "-lm"], folder)
    assert not problems, problems
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("compiler", HOST_COMPILERS)
@pytest.mark.parametrize("app", CONFIGS)
def test_application_runs_unchanged(app: str, compiler: str, tmp_path: Path) -> None:
    """It compiles without a warning against the generated header, links, and gets the scores."""
    artifact = built(CONFIGS[app])
    folder = artifact.export(tmp_path / "generated")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    source = APPS / SOURCES.get(app, f"{app}.c")
    (tmp_path / "app.c").write_text(source.read_text())
    _write_headers(artifact, app, tmp_path)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", *INCLUDES, f"-I{APPS}"]
    flags += SANITIZERS if compiler == "gcc" else ()  # clang's libraries are another package
    assert printed([compiler, *flags, "../app.c", *units], folder) == expected()


def test_the_graph_executor_stops_what_it_cannot_take(tmp_path: Path) -> None:
    """No such input, and another shape: microTVM printed a line and went on, or checked nothing."""
    artifact = built(CONFIGS["graph"])
    folder = artifact.export(tmp_path / "generated")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    _write_headers(artifact, "graph", tmp_path)
    (tmp_path / "app.c").write_text((APPS / "graph.c").read_text())
    command = ["gcc", "-std=c99", *INCLUDES, f"-I{APPS}", "../app.c", *units, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    for argument, code in (("name", "0x702"), ("shape", "0x803")):
        done = subprocess.run(
            ["./app", argument], cwd=folder, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (9, f"stopped: {code}\n")


@pytest.mark.parametrize(
    ("setting", "works"),
    [
        ("MAX_NDIM=4", True),
        ("MAX_NDIM=3", False),  # the image has four
        ("MAX_ARGS=2", True),
        ("MAX_ARGS=1", False),
        ("MAX_STRLEN_FUNCTION_NAME=30", True),
        ("MAX_STRLEN_FUNCTION_NAME=29", False),  # of tvmgen_default_get_c_metadata with its zero
        ("GLOBAL_FUNC_REGISTRY_SIZE_BYTES=32", True),
        ("GLOBAL_FUNC_REGISTRY_SIZE_BYTES=8", False),
    ],
)
def test_macros_of_the_application_are_limits(setting: str, works: bool, tmp_path: Path) -> None:
    """Macros of crt_config.h away from their defaults: room enough, or an error and no damage."""
    artifact = built(CONFIGS["aot_executor"])
    folder = artifact.export(tmp_path / "generated")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    (tmp_path / "app.c").write_text((APPS / "aot_executor.c").read_text())
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", *INCLUDES, f"-I{APPS}", *SANITIZERS]
    command = ["gcc", *flags, f"-DTVM_CRT_{setting}", "../app.c", *units, "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    done = subprocess.run(["./app"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if works else 1), done.stdout + done.stderr
    assert works or re.fullmatch(r"line \d+\n", done.stdout)


def test_two_models_of_an_archive_share_their_workspace(tmp_path: Path) -> None:
    """Unpacked like one of microTVM, all of codegen/host/src compiled: one workspace for both."""
    models = [built(BASE), built(BASE.with_(module_name="second"), tiny_graph())]
    path = microtir.export_model_library_format(models, tmp_path / "both.tar")
    unpack(path, tmp_path)
    units = sorted(
        p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("codegen/host/src/*.c")
    )
    assert "codegen/host/src/joint_workspace.c" in units
    flags = ["-std=c99", *STRICT, "-Icodegen/host/include", "-Iruntime/include"]
    assert printed(["gcc", *flags, str(APPS / "two_models.c"), *units], tmp_path) == expected()
    again = microtir.import_model_library_format(path)
    assert [a.sources for a in again] == [a.sources for a in models]
    assert (tmp_path / "templates" / "platform.c.template").is_file()
    assert (tmp_path / "runtime" / "include" / "tvm" / "runtime" / "c_runtime_api.h").is_file()


@pytest.mark.parametrize("compiler", C_COMPILERS)
@pytest.mark.parametrize(
    "config",
    [BASE, WORKSPACE_IO, CONFIGS["packed"], CONFIGS["graph"], CONFIGS["system_lib"]],
    ids=["internal", "mapped", "packed", "graph", "system_lib"],
)
def test_no_warning(config: CompilationConfig, compiler: str, tmp_path: Path) -> None:
    """Every generated file passes the project's flags on every compiler."""
    artifact = built(config)
    artifact.export(tmp_path / "out")
    for path in (tmp_path / "out" / "runtime_crt" / "src").glob("*.c"):
        if not path.name.startswith("tvm"):
            path.unlink()  # tests/crt compiles them
    assert not strict_problems(tmp_path / "out", compiler, "c99")


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_headers_are_fit_for_cpp(compiler: str, tmp_path: Path) -> None:
    """All headers, each included first and twice, also from C++."""
    artifact = built(WORKSPACE_IO)
    artifact.export(tmp_path)
    paths = [f.path.removeprefix("runtime_crt/include/") for f in artifact.sources]
    headers = [path for path in paths if re.match(r"(tvm|dlpack).*\.h$", path)]
    headers.remove("tvm/runtime/crt/microtvm_rpc_server.h")  # says what to use instead
    assert headers
    for number, header in enumerate(headers):
        (tmp_path / f"h{number}.cpp").write_text(f"#include <{header}>\n" * 2)
        command = [compiler, "-std=c++17", *STRICT_CPP, *INCLUDES, "-fsyntax-only"]
        assert not compiler_output([*command, f"h{number}.cpp"], tmp_path)


def test_names_are_those_of_microtvm() -> None:
    """Lower case for files and identifiers, upper case for macros; the tensors' own names."""
    x = tensor("Serving:0", (1, 4), DType.INT8, quant(0.1, 3))
    y = tensor("2nd/out", (1, 4), DType.INT8, quant(1 / 128, 0))
    model = graph([node(Tanh(), (x,), y)], [x], [y])
    artifact = built(BASE.with_(module_name="MyNet"), model)
    text = artifact.source("tvmgen_mynet.h")
    assert "#define TVMGEN_MYNET_SERVING_0_SIZE" in text
    assert re.search(r"struct tvmgen_mynet_inputs \{\n    void \*Serving_0; ", text)
    assert re.search(r"struct tvmgen_mynet_outputs \{\n    void \*t_2nd_out; ", text)
    assert "int32_t tvmgen_mynet_run(" in text
    assert "#define TVMGEN_MYNET_WORKSPACE_SIZE" in text


def test_codes_of_errors_are_those_of_microtvm(tmp_path: Path) -> None:
    """Category and number make a code; applications compare and print them."""
    built(BASE).export(tmp_path)
    (tmp_path / "codes.c").write_text("""
#include <tvm/runtime/crt/error_codes.h>
_Static_assert(kTvmErrorPlatformNoMemory == 0x503, "platform");
_Static_assert(kTvmErrorFunctionNameNotFound == 0x100, "registry");
_Static_assert(kTvmErrorFunctionCallInvalidArg == 0x803, "call");
_Static_assert(kTvmErrorNoError == 0, "none");
""")
    command = ["gcc", "-std=c11", *INCLUDES, "-fsyntax-only", "codes.c"]
    assert not compiler_output(command, tmp_path)


def test_an_application_s_own_config_counts(tmp_path: Path) -> None:
    """Macros of a crt_config.h on the include path take precedence over the defaults."""
    built(BASE).export(tmp_path)
    (tmp_path / "crt_config.h").write_text("#define TVM_CRT_MAX_PACKET_SIZE_BYTES 512\n")
    (tmp_path / "app.c").write_text("""
#include <tvm/runtime/c_runtime_api.h>
_Static_assert(TVM_CRT_MAX_PACKET_SIZE_BYTES == 512, "own");
_Static_assert(TVM_CRT_MAX_NDIM == 6, "default");
""")
    command = ["gcc", "-std=c11", *INCLUDES, "-fsyntax-only", "app.c"]
    assert not compiler_output(command, tmp_path)


@pytest.mark.parametrize("first", ["crt_config.h", "tvm/runtime/crt/packed_func.h", LOGGING])
@pytest.mark.parametrize("level", ["DEBUG", "ERROR"])
def test_a_config_may_begin_with_the_log(first: str, level: str, tmp_path: Path) -> None:
    """Its own macros come behind, and count; whichever header an application includes first."""
    built(CONFIGS["graph"]).export(tmp_path)
    (tmp_path / "crt_config.h").write_text(
        "#ifndef CRT_CONFIG\n#define CRT_CONFIG\n#include <tvm/runtime/crt/logging.h>\n"
        "#define TVM_CRT_DEBUG 1\n#define TVM_CRT_MAX_NDIM 5\n#define TVM_CRT_MAX_ARGS 12\n"
        f"#define TVM_CRT_LOG_LEVEL TVM_CRT_LOG_LEVEL_{level}\n#endif\n"
    )
    (tmp_path / "app.c").write_text(f"""
#include <{first}>
#include "crt_config.h"
#include <stdarg.h>
#include <stdio.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/logging.h>
_Static_assert(TVM_CRT_MAX_NDIM == 5 && TVM_CRT_MAX_STRLEN_PARAM_NAME == 80, "own, and a default");
_Static_assert(sizeof(((TVMArgs *)0)->tcodes) == 12 * sizeof(int), "own");
void TVMLogf(const char *fmt, ...)
{{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
}}
int main(void)
{{
    LOG_ERROR("error %d ", 1);
    LOG_DEBUG("debug\\n");
    return 0;
}}
""")
    command = ["gcc", "-std=c11", *STRICT, *INCLUDES, "app.c"]
    assert printed_text(command, tmp_path) == (
        "error 1 debug\n" if level == "DEBUG" else "error 1 "
    )


def test_a_registry_is_divided_as_microtvm_did(tmp_path: Path) -> None:
    """As many functions fit, at any address; one more, or one byte more of a name, does not."""
    artifact = built(CONFIGS["system_lib"])
    folder = artifact.export(tmp_path / "generated")
    (folder / "app.c").write_text((APPS / "registry_sizes.c").read_text())
    source = "runtime_crt/src/tvm_registry.c"
    command = ["gcc", "-std=c11", *STRICT, *INCLUDES, *SANITIZERS, "app.c", source]
    assert printed_text(command, folder) == ""


def test_without_the_option_there_is_nothing_of_it() -> None:
    """The names of microTVM are there on demand only."""
    assert not any("tvm" in f.path for f in built(CompilationConfig(targets="c")).sources)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"executor": "graph", "workspace_pools": "sram"}, "pool with executor 'graph'"),
        ({"executor": Executor("aot", {"link-params": False})}, "'link-params' = False"),
        ({"pass_config": {"memory.use_workspace_io": True}}, "without a declared workspace pool"),
        ({"compatibility": "tvm"}, "'compatibility' is 'tvm'"),
        (
            {
                "executor": Executor("aot", {"interface-api": "packed"}),
                "workspace_pools": "sram",
            },
            "a declared workspace pool with interface-api 'packed'",
        ),
    ],
)
def test_what_microtvm_could_not_is_refused(changes: dict[str, object], text: str) -> None:
    """Workspace I/O without a pool crashed its compiler."""
    with pytest.raises(ConfigError, match=text):
        BASE.with_(**changes)
