#!/usr/bin/env bash
# Puts a report on a pull request; of several runs the last one stands there.
#   PULL_REQUEST  its number
#   REPORT        the file, in Markdown
set -euo pipefail

gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file "$REPORT"
