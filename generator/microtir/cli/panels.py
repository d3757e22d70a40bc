"""Names the parts of the help of a verb; `--help` alone shows few of the options in them."""

PANEL = "Configuration"
EXECUTOR_PANEL = "Configuration of executors and runtime"
POOL_PANEL = "Configuration of memory pools"
TVMC_PANEL = "Options of tvmc"
QUANTISE_PANEL = "Quantisation of float models"
PROJECT_PANEL = "Built projects (--device micro)"
RUN_PANEL = "Details of runs and comparisons"
PANELS = (PANEL, EXECUTOR_PANEL, POOL_PANEL, TVMC_PANEL, QUANTISE_PANEL, PROJECT_PANEL, RUN_PANEL)
"""The parts of the help behind the options of a verb, in order."""
