"""`python -m scripts.replay BASE [--quick]`: what the working tree generates otherwise than BASE.

The exit status is 0 if every file of every case is the same, else 1.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from scripts.replay.cases import Case, full_cases, quick_cases
from scripts.replay.trees import ROOT, Outcome, Tree, git, unpack

_SHOWN_CASES = 3
_SHOWN_LINES = 60  # of each file that differs


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what differs, and return the exit status."""
    parser = argparse.ArgumentParser(prog="replay", description=__doc__)
    parser.add_argument("base", help="commit, tag or branch to compare with")
    parser.add_argument("--quick", action="store_true", help="a sample of the cases")
    options = parser.parse_args(arguments)
    models = Path(os.environ.get("MICROTIR_MODELS", ROOT.parent / "shared" / "models")).resolve()
    cases = (quick_cases if options.quick else full_cases)(models)
    base = git("rev-parse", "--verify", f"{options.base}^{{commit}}").decode().strip()
    head = None if git("status", "--porcelain") else git("rev-parse", "HEAD").decode().strip()
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = Path(scratch) / "base"
        unpack(base, unpacked)
        return compare(Tree(unpacked, base), Tree(ROOT, head), cases, Path(scratch))


def compare(base: Tree, head: Tree, cases: Sequence[Case], scratch: Path) -> int:
    """Compile the cases in both trees, print what differs, and return the exit status."""
    before = base.outcomes(cases, lambda text: _progress("the base", text))
    after = head.outcomes(cases, lambda text: _progress("the working tree", text))
    _progress("", "")
    different = [c for c in cases if before[c.key] != after[c.key]]
    refused = sum("refused" in after[c.key] for c in cases)
    files = sum(len(after[c.key].get("files", ())) for c in cases)
    if not different:
        print(f"replay: {len(cases)} cases, {files} files, {refused} refused: no difference")
        return 0
    print(f"replay: {len(different)} of {len(cases)} cases differ")
    _count_files(different, before, after)
    _show_texts(base, head, different[:_SHOWN_CASES], scratch)
    return 1


def _progress(which: str, text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{which}: {text}" if which else "\r\033[K", end="", file=sys.stderr)


def _count_files(
    different: Sequence[Case], before: dict[str, Outcome], after: dict[str, Outcome]
) -> None:
    """Say which kinds of files differ, and of which cases: a change has a pattern."""
    kinds: Counter[str] = Counter()
    for case in different:
        old, new = before[case.key].get("files", {}), after[case.key].get("files", {})
        kinds.update(
            f"*{path.removeprefix(Path(path).name.split('.')[0].split('_')[0])}"
            for path in old.keys() | new.keys()
            if old.get(path) != new.get(path)
        )
    for kind, count in kinds.most_common():
        print(f"  {kind}: {count}")
    for case in islice(different, 20):
        outcome = after[case.key].get("refused") or before[case.key].get("refused") or ""
        print(f"  {case.key}  {outcome}")
    if len(different) > 20:
        print(f"  and {len(different) - 20} more")


def _show_texts(base: Tree, head: Tree, cases: Sequence[Case], scratch: Path) -> None:
    """Print the difference of the files of a few cases, compiled once more on both sides."""
    old = base.files(cases, scratch / "old")
    new = head.files(cases, scratch / "new")
    for case, one, other in zip(cases, old, new, strict=True):
        print(f"\n{case.key}")
        names = {p.relative_to(one) for p in one.rglob("*") if p.is_file()}
        names |= {p.relative_to(other) for p in other.rglob("*") if p.is_file()}
        for name in sorted(names):
            lines = difflib.unified_diff(
                _lines(one / name),
                _lines(other / name),
                f"base/{name}",
                f"tree/{name}",
                "",
                "",
                1,
                "",
            )
            print("\n".join(line[:200] for line in islice(lines, _SHOWN_LINES)))


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
