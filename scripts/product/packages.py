"""Makes packages of the example, and has the tools of their users build, run and pack them.

    python -m scripts.product.packages FOLDER [CHECK...]

CHECK names the functions to call, all of them by default.  FOLDER gets the packages; nothing is
fetched, and where a tool is missing the script fails.  With MICROPYTHON_DIR, a clone of
MicroPython, and PICO_SDK_PATH, the Pico SDK, these build what they are for, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

import microtir
from microtir import artifact, boards, packages, projects
from microtir.device.emulate import emulator_command, run_program
from microtir.support import resources

ROOT = Path(__file__).resolve().parents[2]
HARDWARE = ("/usr/share/arduino-builder", "/usr/share/arduino/hardware")
SAMPLES = 3
# Of microcontrollers, and where each has floats that are passed to functions.
_TRIPLES = (("thumbv7em-none-eabihf", "VFP registers"), ("thumbv7m-none-eabi", ""))
NAME = "digits_models"
_ODD_NAMES = ("Error", "core", "std", "u8", "Result", "Ok", "type", "self", "fmt")
SCRIPTS = Path(sysconfig.get_path("scripts"))  # of this environment


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """Run a program, and return what it prints; its whole output is shown where it fails."""
    words = list(map(str, command))
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nproduct: {' '.join(words)} in {folder}: {done.returncode}")
    return done.stdout


def made(kind: str, folder: Path, target: str, licence: str | None = "Apache-2.0") -> Path:
    """Return the folder of a package of the example, with samples of its test set."""
    model = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    config = microtir.CompilationConfig(targets=target, module_name="digits")
    data = np.load(resources.example("digits/digits_test.npz"))
    inputs, outputs = data["inputs"][:SAMPLES], data["outputs"][:SAMPLES]
    samples = projects.Samples({"image": inputs}, {"probabilities": outputs})
    options = packages.PackageOptions(samples={"digits": samples}, licence=licence)
    place = folder / kind / NAME
    packages.generate(microtir.build(model, config), kind, place, force=True, options=options)
    return place


def arduino(folder: Path) -> None:
    """Build the sketch for a Mega, and run it in the emulator."""
    board = boards.load_board("atmega2560")
    library = made("arduino", folder, str(board.target))
    build = folder / "arduino-build"
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir()
    options = [f"-hardware={place}" for place in HARDWARE] + [f"-tools={HARDWARE[0]}"]
    command: list[str | Path] = ["arduino-builder", "-compile", *options]
    name = board.support(boards.ProjectType.ARDUINO).board or ""
    command += ["-libraries", library.parent, "-fqbn", name, "-build-path", build]
    # avr-libc leaves out a macro that the core's C++ files use.
    command += ["-prefs=compiler.cpp.extra_flags=-DDECIMAL_DIG=__DECIMAL_DIG__"]
    run([*command, library / "examples/run/run.ino"], folder)
    result = run_program(emulator_command(board, build / "run.ino.elf"))
    if result.status != 0 or result.output.count(" equal\n") != SAMPLES:
        sys.exit(f"product: the sketch ended with {result.status}:\n{result.output}")


def odd_models() -> list[artifact.Artifact]:
    """Return the example under names that mean something in Rust."""
    model = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    config = microtir.CompilationConfig(targets="c")
    return [microtir.build(model, config.with_(module_name=name)) for name in _ODD_NAMES]


def rust(folder: Path) -> None:
    """Build and test the crate without a network; compile its C for a Cortex-M4, too."""
    crate = made("rust", folder, "c -mcpu=cortex-m4")
    target = folder / "rust-target"
    said = run(
        ["cargo", "test", "--offline", "--target-dir", target], crate, RUSTFLAGS="-Dwarnings"
    )
    if "digits_on_samples ... ok" not in said or "errors_are_errors ... ok" not in said:
        sys.exit(f"product: the crate ran no test:\n{said}")
    odd = folder / "rust-odd" / "odd_models"
    options = packages.PackageOptions(name="odd_models")
    packages.generate(odd_models(), "rust", odd, force=True, options=options)
    run(["cargo", "test", "--offline", "--target-dir", target], odd, RUSTFLAGS="-Dwarnings")
    # The standard library for a microcontroller is in no Debian package, and build.rs needs none.
    script = folder / "rust-build"
    run(["rustc", "--edition", "2021", "-o", script, "build.rs"], crate)
    for triple, arguments in _TRIPLES:
        out = folder / f"rust-{triple}"
        out.mkdir(exist_ok=True)
        run([script], crate, TARGET=triple, HOST="x86_64-unknown-linux-gnu", OUT_DIR=str(out))
        facts = run(["arm-none-eabi-readelf", "-A", out / f"lib{NAME}.a"], out)
        if arguments not in facts:
            sys.exit(f"product: the crate's library for {triple} has another ABI:\n{facts}")


def platformio(folder: Path) -> None:
    """Let PlatformIO read and pack the library; what licences there are it asks the network."""
    library = made("platformio", folder, "c", licence=None)
    archive = folder / "platformio.tar.gz"
    core = str(folder / "platformio-core")
    run([SCRIPTS / "pio", "pkg", "pack", library, "-o", archive], folder, PLATFORMIO_CORE_DIR=core)
    listed = run(["tar", "tzf", archive], folder)
    if "examples/run/run.ino" not in listed or "src/digits/digits.c" not in listed:
        sys.exit(f"product: PlatformIO packs:\n{listed}")


def esp_idf(folder: Path) -> None:
    """Let the component manager of the ESP-IDF read and pack the component."""
    component = made("esp-idf", folder, "c")
    command: list[str | Path] = [SCRIPTS / "compote", "-W", "component", "pack", "--name", NAME]
    run(command, component, IDF_TOOLS_PATH=str(folder / "idf-tools"))
    if not (component / "dist" / f"{NAME}_1.0.0.tgz").is_file():
        sys.exit("product: the component manager of the ESP-IDF has made no archive")


def zephyr(folder: Path) -> None:
    """Let west read the manifest of the workspace."""
    module = made("zephyr", folder, "c")
    check = (
        "from west.manifest import ImportFlag, Manifest\n"
        "manifest = Manifest.from_data(open('west.yml').read(), import_flags=ImportFlag.IGNORE)\n"
        "print([project.name for project in manifest.projects])\n"
    )
    if "'zephyr'" not in run([SCRIPTS / "python", "-c", check], module):
        sys.exit("product: west finds no Zephyr in the manifest")


def micropython(folder: Path) -> None:
    """Build MicroPython for this machine with the module, and run a model in it."""
    port = Path(os.environ["MICROPYTHON_DIR"]).resolve() / "ports" / "unix"
    module = made("micropython", folder, "c")
    build = folder / "micropython-build"
    run(["make", "-C", port.parent.parent / "mpy-cross"], folder)
    off = ("FROZEN_MANIFEST", *(f"MICROPY_PY_{name}" for name in ("BTREE", "SSL", "FFI")))
    command: list[str | Path] = ["make", "-C", port, f"USER_C_MODULES={module.parent}"]
    run([*command, f"BUILD={build}", f"{off[0]}=", *(f"{name}=0" for name in off[1:])], folder)
    data = np.load(resources.example("digits/digits_test.npz"))
    script = folder / "run_digits.py"
    script.write_text(
        f"from {NAME} import digits\n"
        f"image = bytearray({list(data['inputs'][0].tobytes())})\n"
        "out = bytearray(digits.probabilities_bytes)\ndigits.run(image, out)\nprint(list(out))\n"
    )
    said = run([build / "micropython", script], folder)
    if said.strip() != str(list(data["outputs"][0].tobytes())):
        sys.exit(f"product: MicroPython computes {said}")
    calls = re.findall(r"```python\n(.*?)```", (module / "README.md").read_text(), re.DOTALL)
    for call in calls:
        script.write_text(call)
        run([build / "micropython", script], folder)


def pico(folder: Path) -> None:
    """Build the example with the Pico SDK; without picotool there is no .uf2 file."""
    library = made("pico", folder, "c -mcpu=cortex-m0plus")
    build = folder / "pico-build"
    run(["cmake", "-S", library / "example", "-B", build, "-DPICO_NO_PICOTOOL=1"], folder)
    run(["cmake", "--build", build], folder)
    if not (build / "run_models.elf").is_file():
        sys.exit("product: the Pico SDK has built no program")


def bills(folder: Path) -> None:
    """Validate the bills of materials of all packages, and that of the wheel."""
    for bill in (ROOT / artifact.SBOM_FILE, *sorted(folder.rglob(artifact.SBOM_FILE))):
        run([SCRIPTS / "pyspdxtools", "-i", bill], folder)


def main() -> None:
    """Try every package whose tool is there to be had, and those whose SDK is named."""
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    checks = [arduino, rust, platformio, esp_idf, zephyr]
    checks += [micropython] * ("MICROPYTHON_DIR" in os.environ)
    checks += [pico] * ("PICO_SDK_PATH" in os.environ)
    checks += [bills]
    asked = sys.argv[2:] or [check.__name__ for check in checks]
    if unknown := set(asked) - {check.__name__ for check in checks}:
        sys.exit(f"product: no check can be made of {', '.join(sorted(unknown))}")
    checks = [check for check in checks if check.__name__ in asked]
    for check in checks:
        print(f"product: packages: {check.__name__}", flush=True)
        check(folder)


if __name__ == "__main__":
    main()
