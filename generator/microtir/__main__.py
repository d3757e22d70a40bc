"""`python -m microtir`: the command line."""

import sys

from microtir.cli import main

if __name__ == "__main__":
    sys.exit(main())
