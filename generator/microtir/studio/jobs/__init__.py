"""What a worker does for the page: one file a job, each a frozen value with `run`."""
