"""Compile the digits model to C and run the C on the test set.

python examples/digits/demo.py
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import microtir
from microtir import CompilationConfig, Executor, MicrotirError, Runtime, Target

FOLDER = Path(__file__).parent
MODEL = FOLDER / "digits_int8.tflite"
TEST_SET = FOLDER / "digits_test.npz"
SHADES = " .:-=+*#%@"


def compile_model(output: Path) -> microtir.Artifact:
    """Compile the model for a Cortex-M4 and write the sources to `output`."""
    module = microtir.frontend.from_tflite(MODEL)
    config = CompilationConfig(
        targets=[Target("c -mcpu=cortex-m4")],
        executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}),
        runtime=Runtime("crt"),
        module_name="digits",
    )
    artifact = microtir.build(module, config)
    artifact.export(output)
    return artifact


def run_all(artifact: microtir.Artifact, inputs: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Run the compiled C for inputs [samples, 1, 8, 8, 1]; outputs are stacked in the same way."""
    model = microtir.host.load(artifact)
    return np.stack([model.run({"image": sample})["probabilities"] for sample in inputs])


def picture(image: npt.NDArray[np.int8]) -> list[str]:
    """Draw a digit in eight lines of text, two characters a pixel."""
    shades = (image.reshape(8, 8).astype(int) + 128) * len(SHADES) // 256
    return ["".join(SHADES[shade] * 2 for shade in row) for row in shades]


def show(samples: dict[str, npt.NDArray[Any]], outputs: npt.NDArray[np.int8], count: int) -> None:
    """Print the first images side by side with what the C makes of them."""
    pictures = [picture(image) for image in samples["inputs"][:count]]
    for row in zip(*pictures, strict=True):
        print("   ".join(row))
    captions = []
    for output, label in zip(outputs[:count], samples["labels"], strict=False):
        probabilities = (output.ravel().astype(int) + 128) / 256
        best = int(probabilities.argmax())
        captions.append(f"C: {best} ({probabilities[best]:.0%}), is {label}".ljust(16))
    print("   ".join(captions) + "\n")


def main() -> int:
    """Return the exit status: that of the demonstration, or of the error that ended it."""
    try:
        return demonstrate()
    except MicrotirError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def demonstrate() -> int:
    """Return 0 if the C gave tflite-micro's bytes for every test image, else 1."""
    parser = argparse.ArgumentParser(description="Compile and run the digits model.")
    parser.add_argument("--output", type=Path, default=Path("build/digits"), help="folder for C")
    parser.add_argument("--show", type=int, default=4, help="test images to print")
    arguments = parser.parse_args()
    with np.load(TEST_SET, allow_pickle=False) as stored:
        samples = {key: stored[key] for key in stored.files}
    artifact = compile_model(arguments.output)
    outputs = run_all(artifact, samples["inputs"])
    show(samples, outputs, arguments.show)

    total = len(outputs)
    right = int((outputs.reshape(total, -1).argmax(axis=1) == samples["labels"]).sum())
    equal = int((outputs == samples["outputs"]).reshape(total, -1).all(axis=1).sum())
    print("the C                  for cortex-m4, run here as portable C")
    print(f"accuracy of the C      {right / total:.2%} ({right} of {total} test images)")
    print(f"bytes as tflite-micro  {equal} of {total} outputs")
    if artifact.module.model is not None:
        print(f"workspace              {artifact.module.model.memory.workspace_size} bytes of RAM")
        decisions = artifact.module.model.decisions.values()
        instructions = sum(decision.instructions for decision in decisions)
        print(f"instructions           about {instructions} a run, an estimate of planning")
    print(f"weights                {artifact.metadata.weights_bytes} bytes of flash")
    print(f"code                   about {artifact.metadata.code_bytes_estimate} bytes of flash")
    print(f"model file             {MODEL.stat().st_size} bytes")
    print(f"C sources in           {arguments.output}:")
    for path in sorted(arguments.output.rglob("*.[ch]")):
        print(f"  {path.relative_to(arguments.output)}  {path.stat().st_size} bytes")
    command = os.path.relpath(Path(sys.executable).with_name("microtir"))
    print(f"next: {command} fit example:digits  # every board, and whether this fits it")
    print(f"      {command} check YOUR.tflite   # whether a model of your own can be compiled")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
