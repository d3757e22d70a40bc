"""Jobs that a worker does for the page: one file each, a frozen value with `run`."""
