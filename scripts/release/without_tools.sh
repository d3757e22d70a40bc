#!/usr/bin/env bash
# Installs this checkout into the environment of `python` and runs the tests that need no compiler,
# no emulator and no other implementation: what every system can run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python -m pip install --quiet --editable '.[unit]'
python -m pytest -n auto --without-tools -q "$@"
