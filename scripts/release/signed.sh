#!/usr/bin/env bash
# Fails unless a tag is signed with a key of .github/allowed_signers.
# Usage: scripts/release/signed.sh TAG
# Keys are those of ssh: `git config gpg.format ssh`, `git config user.signingKey FILE.pub`, `git tag -s`.
set -euo pipefail
signers="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.github/allowed_signers"
if ! grep -q '^[^#]' "$signers"; then
  echo "release: $signers lists no key: add those of the maintainers, a line each" >&2
  exit 1
fi
# The tag itself: a checkout of a runner has the commit under the tag's name.
git -c gpg.format=ssh -c "gpg.ssh.allowedSignersFile=$signers" verify-tag "$1"
