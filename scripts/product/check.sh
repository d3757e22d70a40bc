#!/usr/bin/env bash
# Builds what users get, the site, the wheel and packages of models, and checks all and the page of
# the studio. Usage: scripts/product/check.sh BIN
#   BIN  the folder of programs of an environment with the extra `product`; chromium and its driver
#        are on the PATH
# Leaves the site in build/site and the wheel in dist/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath "$1")
scratch=$(mktemp -d)
studio=
trap '[ -z "$studio" ] || { kill "$studio"; wait "$studio"; } 2>/dev/null || true; rm -rf "$scratch"' EXIT

# Most of its time it waits, now for the browser, now for a plan: the rest goes on beside it.
"$bin/python" -m scripts.product.studio >"$scratch/studio.log" 2>&1 &
studio=$!

echo "product: the site"
NO_MKDOCS_2_WARNING=1 "$bin/python" -m mkdocs build --strict --quiet
"$bin/python" -m scripts.product.links build/site
"$bin/python" -m scripts.product.site build/site

echo "product: the wheel, and the sources"
mkdir -p dist
find dist -maxdepth 1 -name 'microtir-*' -delete
"$bin/python" -m hatchling build -t sdist -t wheel -d dist
"$bin/python" -m twine check --strict dist/*
# What makes a wheel of the sources gets the very same one.
mkdir "$scratch/sources"
tar -xzf dist/microtir-*.tar.gz -C "$scratch/sources" --strip-components=1
(cd "$scratch/sources" && "$bin/python" -m hatchling build -t wheel -d again)
cmp dist/microtir-*.whl "$scratch"/sources/again/microtir-*.whl

echo "product: workflows and actions"
"$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/check-jsonschema" --builtin-schema vendor.github-actions .github/actions/*/action.yml

echo "product: packages"
"$bin/python" -m scripts.product.packages build/packages

scripts/product/install.sh "$bin/python" dist/microtir-*.whl

echo "product: the studio in a browser"
status=0
wait "$studio" || status=$?
studio=
cat "$scratch/studio.log"
exit "$status"
