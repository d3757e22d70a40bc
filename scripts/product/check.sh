#!/usr/bin/env bash
# Builds what users get, the site and the wheel, and checks both. Usage: scripts/product/check.sh BIN
#   BIN  the folder of programs of an environment with the extra `product`
# Leaves the site in build/site and the wheel in dist/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "$1")

echo "product: the site"
NO_MKDOCS_2_WARNING=1 "$bin/mkdocs" build --strict --quiet
"$bin/python" -m scripts.product.links build/site

echo "product: the wheel"
mkdir -p dist
find dist -maxdepth 1 -name 'microtir-*' -delete
"$bin/python" -m hatchling build -t wheel -d dist
"$bin/python" -m twine check --strict dist/*

echo "product: workflows and actions"
"$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/check-jsonschema" --builtin-schema vendor.github-actions .github/actions/*/action.yml

scripts/product/install.sh "$bin/python" dist/microtir-*.whl
