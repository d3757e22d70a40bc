#!/usr/bin/env bash
# Compares model files of this checkout with those of another commit.
#   MODELS   paths, one a line; of one that is new the report says what it takes
#   BASE     the commit
#   FLAGS    of the configuration, as a command line has them
#   LIMITS   of growth, as a command line has them
#   REPORT   the file that Markdown is written to; GITHUB_STEP_SUMMARY gets it, too
# Exit status 1: something has grown by more than a limit; 2 and more: a model was not compared,
# or one that is new was not compiled.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Words of a command line, with the quotes of a shell, and nothing that a shell would run.
words() {
  python3 -c 'import shlex, sys; print(*shlex.split(sys.argv[1]), sep="\0", end="\0" * bool(sys.argv[1].strip()))' "$1"
}
mapfile -d '' flags < <(words "${FLAGS:-}")
mapfile -d '' limits < <(words "${LIMITS:-}")

status=0
compared=0
echo "## What the models take" >"$REPORT"
while IFS= read -r model; do
  [ -n "$model" ] || continue
  compared=$((compared + 1))
  printf '\n### %s\n\n' "$model" >>"$REPORT"
  before=$scratch/$compared/${model##*/}
  mkdir -p "$scratch/$compared"
  found=0
  if git show "$BASE:$model" >"$before" 2>/dev/null; then
    microtir diff "$before" "$model" --markdown "${flags[@]}" "${limits[@]}" >>"$REPORT" || found=$?
  else
    made=$scratch/$compared/made
    printf 'It is not in %s. What it takes:\n\n```text\n' "$BASE" >>"$REPORT"
    if microtir compile "$model" "${flags[@]}" -o "$made" >"$made.log" 2>&1; then
      sed '1,/^$/d' "$made.log" >>"$REPORT" # without the files, whose folder goes again
    else
      cat "$made.log" >>"$REPORT"
      found=2
    fi
    echo '```' >>"$REPORT"
  fi
  if [ "$found" -gt "$status" ]; then
    status=$found
  fi
done <<<"$MODELS"

if [ "$compared" -eq 0 ]; then
  echo "compare: MODELS names no file" >&2
  exit 2
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  cat "$REPORT" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
