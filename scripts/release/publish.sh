#!/usr/bin/env bash
# Makes the release of a tag on GitHub. Usage: scripts/release/publish.sh NOTES FILE...
#   GITHUB_REF_NAME  the tag
# A release that is there already is left as it is: a second run of a workflow is no error.
set -euo pipefail
notes=$1
shift

if gh release view "$GITHUB_REF_NAME" >/dev/null 2>&1; then
  echo "release: $GITHUB_REF_NAME is there already"
  exit 0
fi
gh release create "$GITHUB_REF_NAME" --verify-tag --title "$GITHUB_REF_NAME" \
  --notes-file "$notes" "$@"
