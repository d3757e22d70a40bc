#!/usr/bin/env bash
# Installs a wheel as its users do, into a new environment, and compiles the example with it.
# Usage: scripts/product/install.sh PYTHON WHEEL
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "product: $2 in a new environment"
wheel=$(realpath "$2")
"$1" -m venv "$scratch/env"
bin=$scratch/env/bin
[ -d "$bin" ] || bin=$scratch/env/Scripts # on Windows
"$bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cd "$scratch" # nothing of a checkout is near
unset PYTHONPATH
"$bin/microtir" --version
"$bin/microtir" compile example:digits -o digits
[ -f digits/digits_int8.c ]
