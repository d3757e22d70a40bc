"""Models of one firmware: those that may run at the same time get memory beside each other."""

from __future__ import annotations

import json
import subprocess
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import CompilationConfig, Executor, export_model_library_format
from microtir.artifact import Artifact
from microtir.artifact.joint_memory import ConcurrentModules, PoolShare, joint_pool
from microtir.config import WorkspacePoolInfo
from microtir.errors import UsageError
from tests.support.archives import unpack
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.small_models import module_of, quantised_graph, tiny_graph

NAMES = ("a", "b", "c", "d")
BASE = CompilationConfig(targets="c")
BY_ROWS = Executor("aot", {"row-fed-inputs": True})


def built(name: str, config: CompilationConfig = BASE) -> Artifact:
    """One of three models, the first two of which are alike."""
    graph = tiny_graph() if name == "third" else quantised_graph()
    return microtir.build(module_of(graph), config.with_(module_name=name))


def unpacked(archive: Path, folder: Path) -> list[str]:
    """Return the paths of the sources in the folder that an archive is unpacked to."""
    unpack(archive, folder)
    return sorted(p.relative_to(folder).as_posix() for p in folder.glob("codegen/host/src/*.c"))


def header_of(folder: Path) -> str:
    """Return the text of the joint header."""
    return (folder / "codegen/host/include/joint_workspace.h").read_text()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, 4])), min_size=4, max_size=4),
    st.sets(st.sampled_from(list(combinations(NAMES, 2)))),
)
def test_no_two_that_meet_share_a_byte(
    given_shares: list[tuple[int, int]], pairs: set[tuple[str, str]]
) -> None:
    """Whatever may run at the same time lies apart, aligned, and in the fewest bytes."""
    shares = {name: PoolShare(*share) for name, share in zip(NAMES, given_shares, strict=True)}
    together = ConcurrentModules(tuple(map(frozenset, sorted(pairs))))
    pool = joint_pool("workspace", shares, together)
    for name in NAMES:
        assert pool.offsets[name] % shares[name].alignment == 0
        assert pool.offsets[name] + shares[name].size <= pool.size_bytes
    for one, other in pairs:
        low, high = sorted((one, other), key=lambda name: (pool.offsets[name], shares[name].size))
        assert pool.offsets[low] + shares[low].size <= pool.offsets[high]
    if all(share.alignment == 1 for share in shares.values()):
        # With so few models the most that meets at one time can be reached.
        assert pool.size_bytes == max(
            sum(shares[name].size for name in some)
            for count in range(1, 5)
            for some in combinations(NAMES, count)
            if all(pair in pairs for pair in combinations(some, 2))
        )


def test_many_models_are_placed_by_size() -> None:
    """More models than orders could be tried for: those that meet lie apart."""
    names = [f"m{n}" for n in range(12)]
    shares = {name: PoolShare(10 + n, 4) for n, name in enumerate(names)}
    pool = joint_pool(
        "workspace", shares, ConcurrentModules((frozenset(names[:3]), frozenset(names[2:9])))
    )
    assert pool.size_bytes < sum(share.size for share in shares.values())
    for some in (names[:3], names[2:9]):
        for one, other in combinations(some, 2):
            low, high = sorted((one, other), key=lambda name: pool.offsets[name])
            assert pool.offsets[low] + shares[low].size <= pool.offsets[high]


def test_the_header_says_who_may_meet(tmp_path: Path) -> None:
    """Sets are in the header and the metadata; without one all models have one place."""
    models = [built("first"), built("second"), built("third")]
    sizes = [a.metadata.memory.workspace_size for a in models if a.metadata.memory]
    path = export_model_library_format(models, tmp_path / "turns.tar")
    unpacked(path, tmp_path / "turns")
    text = header_of(tmp_path / "turns")
    assert "The models run one after another." in text
    assert f"#define JOINT_WORKSPACE_SIZE {max(sizes)}\n" in text
    assert text.count("_OFFSET 0\n") == 3
    path = export_model_library_format(
        models, tmp_path / "sets.tar", together=[("third", "first"), ("third", "second")]
    )
    unpacked(path, tmp_path / "sets")
    text = header_of(tmp_path / "sets")
    assert " * May run at the same time: first, third.\n" in text
    assert " * May run at the same time: second, third.\n" in text
    # The two large models still take turns.
    joint = json.loads((tmp_path / "sets" / "metadata.json").read_text())["microtir"]
    found = joint["joint_workspace"]
    assert found["together"] == [["first", "third"], ["second", "third"]]
    (pool,) = found["pools"]
    assert pool["offsets"]["first"] == pool["offsets"]["second"]
    assert max(sizes) < found["size_bytes"] < sum(sizes)
    assert found["size_bytes"] >= sizes[0] + sizes[2]


def test_pools_of_one_name_are_placed_alike(tmp_path: Path) -> None:
    """Each pool has its own offsets; macros are those of pools of single models."""
    pools = [WorkspacePoolInfo(name, (), {"size_hint_bytes": 4096}) for name in ("fast", "large")]
    config = BASE.with_(workspace_pools=pools)
    models = [built("first", config), built("third", config)]
    path = export_model_library_format(models, tmp_path / "both.tar", together=[("first", "third")])
    units = unpacked(path, tmp_path)
    text = header_of(tmp_path)
    for pool in ("FAST", "LARGE"):
        for name in ("FIRST", "THIRD"):
            assert f"#define JOINT_{pool}_WORKSPACE_POOL_{name}_OFFSET " in text
    (tmp_path / "main.c").write_text(
        '#include "joint_workspace.h"\n'
        "static JOINT_FAST_WORKSPACE_POOL(fast);\n"
        "int main(void) { return (int)sizeof fast == JOINT_FAST_WORKSPACE_POOL_SIZE ? 0 : 1; }\n"
    )
    flags = ["-std=c99", *STRICT, "-Icodegen/host/include", "-Iruntime/include"]
    assert not compiler_output(["gcc", *flags, "main.c", *units, "-o", "main"], tmp_path)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


_INTERRUPTED = """
#include <stdio.h>
#include <string.h>
#include "joint_workspace.h"

static JOINT_WORKSPACE(memory);
static int8_t image[FIRST_IMAGE_SIZE], scores[FIRST_SCORES_SIZE];
static int8_t second_scores[FIRST_SCORES_SIZE];
static int interrupts;

static void row_of(void *context, int32_t row, void *data)
{
    (void)context;
    (void)memcpy(data, &image[row * FIRST_IMAGE_ROW_SIZE], FIRST_IMAGE_ROW_SIZE);
    if (interrupts) { /* the other model runs while this one waits */
        const struct second_inputs inputs = {image};
        const struct second_outputs outputs = {second_scores};
        (void)second_run(&inputs, &outputs, memory + PLACE);
    }
}

int main(void)
{
    const struct first_inputs inputs = {{row_of, 0}};
    const struct first_outputs outputs = {scores};
    for (int i = 0; i < FIRST_IMAGE_SIZE; i++) {
        image[i] = (int8_t)(17 * i - 90);
    }
    for (interrupts = 0; interrupts < 2; interrupts++) {
        (void)first_run(&inputs, &outputs, memory + JOINT_WORKSPACE_FIRST_OFFSET);
        for (int i = 0; i < FIRST_SCORES_SIZE; i++) {
            (void)printf("%d ", scores[i]);
        }
        (void)printf("\\n");
    }
    return memcmp(scores, second_scores, sizeof scores) != 0;
}
"""


@pytest.mark.parametrize("apart", [True, False])
def test_a_model_runs_while_another_waits(apart: bool, tmp_path: Path) -> None:
    """In its own place it disturbs nothing; in the place of the other one it does."""
    models = [built("first", BASE.with_(executor=BY_ROWS)), built("second")]
    path = export_model_library_format(
        models, tmp_path / "both.tar", together=[["first", "second"]]
    )
    units = unpacked(path, tmp_path)
    (tmp_path / "main.c").write_text(_INTERRUPTED)
    place = "JOINT_WORKSPACE_SECOND_OFFSET" if apart else "JOINT_WORKSPACE_FIRST_OFFSET"
    flags = ["-std=c99", *STRICT, "-Icodegen/host/include", "-Iruntime/include", f"-DPLACE={place}"]
    command = ["gcc", *flags, "-fsanitize=address,undefined", "main.c", *units, "-o", "main"]
    assert not compiler_output(command, tmp_path)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    alone, interrupted = done.stdout.splitlines()
    assert (alone == interrupted) == apart
    assert done.returncode == 0 or not apart, done.stdout + done.stderr


@pytest.mark.parametrize("together", [["first"], ["first", "first"], ["first", "secnd"], "first"])
def test_sets_that_are_none(together: object, tmp_path: Path) -> None:
    """Sets of less than two, names twice, and names of no module are refused."""
    models = [built("first"), built("second")]
    with pytest.raises(UsageError, match=r"(?s)together.*expected"):
        export_model_library_format(models, tmp_path / "x.tar", together=[together])  # type: ignore[list-item]
    assert not (tmp_path / "x.tar").exists()


def test_an_archive_brings_its_sets(tmp_path: Path) -> None:
    """Sets outlive export and import; who is not taken out of the archive does not count."""
    models = [built("first"), built("second"), built("third")]
    sets = [["first", "third"], ["second", "third"]]
    path = export_model_library_format(models, tmp_path / "a.tar", together=sets)
    found = microtir.import_model_library_format(path)
    assert [len(artifact.concurrent) for artifact in found] == [1, 1, 2]
    again = export_model_library_format(found, tmp_path / "b.tar")
    for archive, folder in ((path, tmp_path / "a"), (again, tmp_path / "b")):
        unpacked(archive, folder)
    assert header_of(tmp_path / "a") == header_of(tmp_path / "b")
    some = ConcurrentModules.of([["first", "second"]], found[:2])
    assert some.sorted() == [["first", "second"]]
