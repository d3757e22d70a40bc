"""Boards: what comes with microtir, boards of one's own, and files that are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from microtir import Target
from microtir.boards import Board, ProjectType, all_boards, load_board
from microtir.boards.board import EmulatorKind, MemoryKind
from microtir.boards.errors import BoardError
from microtir.boards.search import BOARD_PATH
from microtir.config import Family
from microtir.support import resources

MINIMAL = """
title = "A board"
target = "c -mcpu=cortex-m4"
code = "flash"
data = "ram"

[[memory]]
name = "flash"
kind = "flash"
address = 0x0
size = 0x1000

[[memory]]
name = "ram"
kind = "ram"
address = 0x2000_0000
size = 0x400

[toolchain]
prefix = "arm-none-eabi-"

[projects.baremetal]
label = "checked"
parts = ["cortex_m"]
"""


def _write(folder: Path, text: str, name: str = "mine") -> Path:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "board.toml").write_text(text)
    return folder


def _error(folder: Path, text: str) -> str:
    with pytest.raises(BoardError) as caught:
        load_board("mine", [_write(folder, text)])
    assert str(folder / "mine" / "board.toml") in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("board", all_boards(), ids=lambda board: board.name)
def test_bundled_board(board: Board) -> None:
    """Every bundled board is read, has memories for program and variables, and says how to talk."""
    assert board.projects
    if board.name == "host":
        return
    assert board.code in board.memories
    assert board.data in board.memories
    assert board.data is not None
    assert board.data.kind is MemoryKind.RAM
    assert board.clock_hz >= 1_000_000
    assert board.target == Target(str(board.target))
    kinds = [support.type for support in board.projects]
    assert board.emulator or board.serial or ProjectType.ZEPHYR in kinds


@pytest.mark.parametrize("board", all_boards(), ids=lambda board: board.name)
def test_flags_agree_with_the_target(board: Board) -> None:
    """The compiler is told of the CPU that code is generated for."""
    flags = " ".join(board.toolchain.flags)
    if board.target.family is Family.ARM and board.name != "host":
        assert f"-mcpu={board.target.mcpu}" in flags
        has_fpu = "fp" in [str(feature) for feature in board.target.features]
        assert ("-mfloat-abi=hard" in flags) == has_fpu
    if board.target.family is Family.AVR:
        assert f"-mmcu={board.target.mcpu}" in flags
    if board.toolchain.prefix == "riscv64-unknown-elf-":
        assert f"-march={board.target.march}" in flags


def test_boards_of_the_predecessor() -> None:
    """Every board of microTVM's two lists is there, by its Zephyr name or its Arduino board."""
    zephyr = {
        *("b_u585i_iot02a", "mimxrt1050_evk", "mps2_an521", "mps3_an547"),
        *("nrf5340dk_nrf5340_cpuapp", "nucleo_f746zg", "nucleo_l4r5zi", "qemu_cortex_r5"),
        *("qemu_riscv32", "qemu_riscv64", "qemu_x86", "stm32f746g_disco"),
    }
    arduino = {
        *("due", "feathers2", "metrom4", "spresense", "nano33ble", "portentah7", "pybadge"),
        *("rpi_pico", "teensy40", "teensy41", "wioterminal"),
    }
    supports = [(b.name, s) for b in all_boards() for s in b.projects]
    assert zephyr <= {s.board for _, s in supports if s.type is ProjectType.ZEPHYR}
    assert arduino <= {name for name, s in supports if s.type is ProjectType.ARDUINO}


def test_names_of_frameworks_have_their_form() -> None:
    """Zephyr has an old and a qualified name, Arduino names have three parts."""
    for board in all_boards():
        for support in board.projects:
            if support.type is ProjectType.ZEPHYR:
                assert re.fullmatch(r"[a-z0-9_]+", support.board or "")
                assert re.fullmatch(r"[a-z0-9_]+(/[a-z0-9_]+)+", support.qualified_board or "")
            if support.type is ProjectType.ARDUINO:
                assert re.fullmatch(r"\w+:\w+:\w+(:\w+=\w+)?", support.board or "")


def test_board_of_ones_own(tmp_path: Path) -> None:
    """A new board is a file: found through the argument, with every default in place."""
    board = load_board("mine", [_write(tmp_path, MINIMAL)])
    support = board.support(ProjectType.BAREMETAL)
    assert (board.name, board.emulator, board.flasher, board.serial) == ("mine", None, None, None)
    assert (support.parts, support.stack, support.definitions) == (("cortex_m",), 4096, ())
    assert board.code is not None and (board.code.size, board.code.wait_states) == (4096, 0)


def test_board_path_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the environment variable come after the argument and before the bundled ones."""
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, title in ((first, "First"), (second, "Second")):
        folder.mkdir()
        _write(folder, MINIMAL.replace("A board", title))
        _write(folder, MINIMAL.replace("A board", title), "microbit")
    monkeypatch.setenv(BOARD_PATH, f"{second}:{tmp_path / 'missing'}")
    assert load_board("mine", [first]).title == "First"
    assert load_board("mine").title == "Second"
    assert load_board("microbit").title == "Second"
    assert [b.title for b in all_boards() if b.name == "mine"] == ["Second"]


def test_unknown_board() -> None:
    """A misspelt name gives the nearest, and all there are."""
    with pytest.raises(BoardError, match=r"no board 'mps2-an386': did you mean 'mps2_an386'\?"):
        load_board("mps2-an386")
    with pytest.raises(BoardError, match=r"expected:.*atmega2560.*riscv32"):
        load_board("no such board")


def test_missing_board_folder(tmp_path: Path) -> None:
    """A board folder that is not there is an error, not an empty folder."""
    with pytest.raises(BoardError, match="there is no such folder"):
        load_board("microbit", [tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A board"', "", r"title: the key 'title' is missing"),
        ('title = "A board"', "title = 3", r"title: got 3\n  expected: a text"),
        ('title = "A board"', 'title = ""', r"title: got ''"),
        ('title = "A board"', 'titel = "A board"', r"title: the key 'title' is missing"),
        ("[toolchain]", 'tilte = "x"\n[toolchain]', r"memory\[1\]\.tilte: unknown key 'tilte'"),
        ("[toolchain]", '[toolchain]\nprefx = "x"', r"unknown key 'prefx': did you mean 'prefix'"),
        ("size = 0x400", 'size = "1 KiB"', r"memory\[1\]\.size: got '1 KiB'\n  expected: a number"),
        ("size = 0x400", "size = -1", r"memory\[1\]\.size: got -1"),
        ("size = 0x400", "size = true", r"memory\[1\]\.size: got True"),
        ("size = 0x400", "size = 0", r"'ram' has no bytes"),
        ("size = 0x400", "size = 1.5", r"got 1\.5"),
        ('kind = "ram"', 'kind = "rom"', r"memory\[1\]\.kind: got 'rom'.*\n  expected: flash, ram"),
        ('name = "ram"', 'name = "flash"', r"two memories 'flash'"),
        ('kind = "ram"\naddress = 0x2000_0000', 'kind = "flash"\naddress = 0xFFF', "overlaps"),
        (
            'data = "ram"',
            'data = "ram"\nreserve = -1',
            r"reserve: got -1\n  expected: a number of at most 63",
        ),
        ('data = "ram"', 'data = "ram"\nreserve = "1K"', r"reserve: got '1K'"),
        (
            'data = "ram"',
            'data = "ram"\nreserve = 1024',
            r"reserve: got 1024\n  expected: less than",
        ),
        ('data = "ram"', 'data = "rum"', r"data: there is no memory 'rum': did you mean 'ram'"),
        ('data = "ram"', "", r"data: the key 'data' is missing"),
        ("cortex-m4", "cortex-m44", r"target: .*'cortex-m44', which is unknown"),
        ("projects.baremetal", "projects.bearmetal", r"'bearmetal' is not a project type: did you"),
        ("projects.baremetal", "projects.zephyr", r"projects\.zephyr\.board: the key 'board'"),
        ('label = "checked"', "", r"projects\.baremetal\.label: the key 'label' is missing"),
        (
            'label = "checked"',
            'label = "fine"',
            r"got 'fine'\n  expected: executed, built, checked",
        ),
        ('parts = ["cortex_m"]', 'parts = "cortex_m"', r"parts: got 'cortex_m'\n.*a list of texts"),
        ('parts = ["cortex_m"]', 'parts = ["../x"]', r"parts: got '\.\./x'"),
        ('parts = ["cortex_m"]', 'definitions = ["A=b c"]', r"definitions: got 'A=b c'"),
        (
            'parts = ["cortex_m"]',
            "semihosting = 1",
            r"semihosting: got 1\n  expected: true or false",
        ),
        ("[toolchain]", "toolchain = 1\n[other]", r"memory\[1\]"),
        ("[projects", '[flash]\ncommand = ["dd"]\n[projects', r"flash\.command: it has no place"),
        ("[projects", '[emulator]\nkind = "qemu"\n[projects', r"emulator\.program: the key"),
        ("[projects", '[[toolchain.requires]]\npackage = "x"\n[projects', "name a program, or"),
        ("[[memory]]", "[[memory]", "is not TOML.*line"),
    ],
)
def test_wrong_file(old: str, new: str, message: str, tmp_path: Path) -> None:
    """Every kind of mistake in a board's file is refused, with file and field."""
    assert old in MINIMAL
    assert re.search(message, _error(tmp_path, MINIMAL.replace(old, new, 1)))


def test_wrong_folder_name(tmp_path: Path) -> None:
    """A board's name is a word that can be typed and used in file names."""
    with pytest.raises(BoardError, match="'My Board' is not a name for a board"):
        load_board("My Board", [_write(tmp_path, MINIMAL, "My Board")])


def test_unsupported_project_type() -> None:
    """A board without a project type says which it has."""
    with pytest.raises(BoardError, match="no project of type 'arduino'\n  expected: baremetal"):
        load_board("mps2_an386").support(ProjectType.ARDUINO)


def test_every_part_of_a_board_exists() -> None:
    """A part or serial driver that a bundled board names is a folder of templates."""
    root = resources.templates() / "projects"
    for board in all_boards():
        for support in board.projects:
            for part in (*support.parts, *filter(None, [support.uart])):
                assert (root / support.type.value / part).is_dir(), (board.name, part)


def test_emulated_boards_name_their_package() -> None:
    """Whoever lacks an emulator is told what to install."""
    for board in all_boards():
        if board.emulator and board.emulator.kind is not EmulatorKind.NATIVE:
            assert board.emulator.package, board.name
