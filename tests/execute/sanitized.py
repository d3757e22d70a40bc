"""`python -m tests.execute.sanitized FOLDER`: all operators under sanitizers, in this process."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.execute.accumulators import all_cases
from tests.execute.cases import cases_of, compare
from tests.execute.test_operators import SANITIZED_SEEDS
from tests.support.operator_cases import OPERATORS
from tests.support.sanitizers import FLAGS


def main() -> int:
    """Run all cases; a finding ends the process with its report."""
    folder = Path(sys.argv[1])
    cases = [
        case
        for operator, kind in OPERATORS.items()
        for case in cases_of(operator, kind.dtypes, SANITIZED_SEEDS)
    ]
    cases += all_cases(range(3))
    compare(cases, folder, FLAGS)
    sys.stdout.write(f"{len(OPERATORS)} operators clean\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
